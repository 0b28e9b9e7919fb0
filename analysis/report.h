/* SPDX-License-Identifier: MIT
 *
 * One table, printed as aligned text, as CSV (RFC 4180) or as JSON from the same cells.
 */
#ifndef DP_ANALYSIS_REPORT_H
#define DP_ANALYSIS_REPORT_H

#include "analysis/json.h"

typedef enum { DP_STYLE_TEXT, DP_STYLE_JSON, DP_STYLE_CSV } dp_style;

/* What --json and --csv ask for; both at once is an error. */
bool dp_style_of(bool json, bool csv, dp_style *style, dp_error *error);

typedef struct {
    const char *key;  /* JSON member and CSV heading, with the unit: "seconds", "bytes_per_s" */
    const char *head; /* heading in text; NULL for key */
    int decimals; /* text only: digits after the point of real cells, -1 for as many as needed */
} dp_column;

typedef struct dp_report dp_report;

enum { DP_REPORT_COLUMNS = 64 };

/* The columns, at most DP_REPORT_COLUMNS, are kept by reference. NULL when memory is short. */
dp_report *dp_report_new(const char *title, const dp_column *columns, size_t count);
void dp_report_free(dp_report *report);

/* As text, lines longer than `width` are cut into bands of columns, each beginning with the first
 * `keys` columns. */
void dp_report_wrap(dp_report *report, size_t keys, size_t width);

/* Cells are added from left to right, rows from top to bottom. */
void dp_report_text(dp_report *report, const char *text);
void dp_report_i64(dp_report *report, int64_t value);
void dp_report_f32(dp_report *report, float value);
void dp_report_f64(dp_report *report, double value);
void dp_report_bits(dp_report *report, uint64_t bits, int digits); /* 0x7F */
void dp_report_blank(dp_report *report);                           /* null in JSON */

/* The number of complete rows. */
size_t dp_report_rows(const dp_report *report);

/* Print the table. JSON is a document {"title": ..., "rows": [...]}; a verb that prints more than
 * one table writes its own document and calls dp_report_json for each. False, with an error, when
 * memory ran short while cells were added or a row is incomplete. */
bool dp_report_print(const dp_report *report, dp_style style, FILE *stream, dp_error *error);
/* As text with a line for each column: for few rows of many cells. Columns that are blank in every
 * row are left out. */
bool dp_report_print_turned(const dp_report *report, FILE *stream, dp_error *error);
/* The rows as a JSON array of objects, one line each. */
bool dp_report_json(const dp_report *report, dp_json *json, dp_error *error);

#endif
