/* SPDX-License-Identifier: MIT
 *
 * Errors as values. Arithmetic never fails; files, options and shapes do, and then one sentence
 * says where, what is wrong and what to do about it.
 */
#ifndef DP_FORMATS_ERROR_H
#define DP_FORMATS_ERROR_H

#include "formats/base.h"

DP_BEGIN_C

typedef struct {
    char text[1024]; /* "WHERE: what is wrong: what to do", empty while nothing failed */
} dp_error;

#if defined(__GNUC__)
#define DP_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define DP_PRINTF(format_index, first)
#endif

/* Record an error (error may be NULL) and return false, so that a caller can `return dp_fail(...)`.
 * The first error recorded stays: a later one is a consequence. */
bool dp_fail(dp_error *error, const char *format, ...) DP_PRINTF(2, 3);
#ifdef __clang_analyzer__
/* The analyser reads one file at a time: tell it the result. */
#define dp_fail(...) ((void)(dp_fail)(__VA_ARGS__), false)
#endif

DP_END_C

#endif
