/* SPDX-License-Identifier: MIT
 *
 * A streaming JSON writer (RFC 8259). Numbers survive: 9 significant digits for binary32, 17 for
 * binary64, the sign of zero kept, non-finite values as the strings "NaN", "Infinity", "-Infinity".
 */
#ifndef DP_ANALYSIS_JSON_H
#define DP_ANALYSIS_JSON_H

#include <stdio.h>

#include "formats/error.h"

enum { DP_JSON_DEPTH = 32 };

typedef struct {
    FILE *stream;
    int depth;
    bool keyed;                /* a key was written and its value is due */
    bool used[DP_JSON_DEPTH];  /* the container at this depth has a member */
    bool array[DP_JSON_DEPTH]; /* it is an array */
    bool compact;              /* inside a container printed on one line */
    int compact_depth;
} dp_json;

/* Start a document. Deeper nesting than DP_JSON_DEPTH is a programming error. */
void dp_json_start(dp_json *json, FILE *stream);
/* End it with a newline. The caller checks the stream once, at its end. */
void dp_json_finish(dp_json *json);

void dp_json_object(dp_json *json);
void dp_json_array(dp_json *json);
/* The same on a single line. */
void dp_json_object_line(dp_json *json);
void dp_json_array_line(dp_json *json);
/* Close the innermost container. */
void dp_json_close(dp_json *json);

/* Inside an object every value is preceded by its key. */
void dp_json_key(dp_json *json, const char *key);
/* UTF-8 passes through; bytes that are not UTF-8 become U+FFFD. */
void dp_json_text(dp_json *json, const char *text);
void dp_json_i64(dp_json *json, int64_t value);
void dp_json_u64(dp_json *json, uint64_t value);
void dp_json_f32(dp_json *json, float value);
void dp_json_f64(dp_json *json, double value);
void dp_json_bool(dp_json *json, bool value);
void dp_json_null(dp_json *json);
/* "0x7F800001": bits as a string of `digits` hexadecimal digits. */
void dp_json_bits(dp_json *json, uint64_t bits, int digits);

/* Key and value in one call. */
void dp_json_member_text(dp_json *json, const char *key, const char *text);
void dp_json_member_i64(dp_json *json, const char *key, int64_t value);
void dp_json_member_u64(dp_json *json, const char *key, uint64_t value);
void dp_json_member_f64(dp_json *json, const char *key, double value);
void dp_json_member_bool(dp_json *json, const char *key, bool value);

/* A number as it is printed everywhere: "%.9g" or "%.17g", "NaN", "Infinity", "-Infinity". */
const char *dp_f32_text(float value, char text[32]);
const char *dp_f64_text(double value, char text[32]);

#endif
