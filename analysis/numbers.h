/* SPDX-License-Identifier: MIT
 *
 * Numbers out of text, strictly: the whole text is the number, in range, or there is an error.
 */
#ifndef DP_ANALYSIS_NUMBERS_H
#define DP_ANALYSIS_NUMBERS_H

#include "formats/error.h"

/* `where` opens the error text ("--seq"). Bounds are inclusive and stated in the error. */

/* Decimal, or hexadecimal after 0x. No blanks, no trailing text. */
bool dp_parse_i64(const char *where, const char *text, int64_t low, int64_t high, int64_t *value,
                  dp_error *error);
/* Decimal or hexadecimal floating point; infinities and NaN are refused. */
bool dp_parse_f64(const char *where, const char *text, double low, double high, double *value,
                  dp_error *error);
/* "64,128,256": at most `capacity` numbers, none empty. */
bool dp_parse_i64_list(const char *where, const char *text, int64_t low, int64_t high,
                       int64_t *values, size_t capacity, size_t *count, dp_error *error);
bool dp_parse_f64_list(const char *where, const char *text, double low, double high, double *values,
                       size_t capacity, size_t *count, dp_error *error);
/* Copy the comma-separated item number `index` of text into item. False when there is none or it
 * does not fit; *last tells whether it was the final one. */
bool dp_list_item(const char *text, size_t index, char *item, size_t size, bool *last);
/* Position of text in "one|two|three", -1 if it is not one of them. */
int dp_choice_index(const char *choices, const char *text);

#endif
