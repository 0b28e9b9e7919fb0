/* SPDX-License-Identifier: MIT
 *
 * SHA-256 (FIPS 180-4), to say which input a page or a file was made from.
 */
#ifndef DP_ANALYSIS_SHA256_H
#define DP_ANALYSIS_SHA256_H

#include "formats/error.h"

/* Hexadecimal digits of the digest of `size` bytes, and a final zero. */
void dp_sha256(const void *data, size_t size, char hex[65]);
/* The same of a file, and its size in bytes. */
bool dp_sha256_file(const char *path, char hex[65], uint64_t *bytes, dp_error *error);

#endif
