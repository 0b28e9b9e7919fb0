/* SPDX-License-Identifier: MIT
 *
 * The rates of runs over time: an HDF5 file of kind "history" with one parallel column a quantity
 * below /history, a row a run of a series (FILES.md). Rows are appended whole or not at all.
 */
#ifndef DP_ANALYSIS_HISTORY_H
#define DP_ANALYSIS_HISTORY_H

#include "analysis/h5.h"

/* Columns of text. */
typedef enum {
    DP_RUN_TIME,   /* UTC, "2026-11-29T21:30:00Z"                          */
    DP_RUN_LABEL,  /* the user's: a commit, a version                      */
    DP_RUN_SERIES, /* what is compared over time; by default the input     */
    DP_RUN_KIND,   /* of the input: dump, pair, diff, range, codes         */
    DP_RUN_POLICY,
    DP_RUN_EPOCH,
    DP_RUN_DEVICE,
    DP_RUN_PRODUCER,
    DP_RUN_FIRST_WRONG, /* dataset, "" when nothing differs                */
    DP_RUN_DIAGNOSIS,   /* name of the mistake that explains it            */
    DP_RUN_FAILED,      /* the conditions of --fail-if that held           */
    DP_RUN_TEXTS
} dp_run_text;

/* Columns of numbers. */
typedef enum {
    DP_RUN_ELEMENTS, /* compared, over all stages */
    DP_RUN_MISMATCHES,
    DP_RUN_MISMATCH_RATE,
    DP_RUN_QUANTIZE_ELEMENTS, /* and so on, two columns a stage in the order of the operator */
    DP_RUN_QUANTIZE_MISMATCHES,
    DP_RUN_SCORE_ELEMENTS,
    DP_RUN_SCORE_MISMATCHES,
    DP_RUN_REFERENCE_ELEMENTS,
    DP_RUN_REFERENCE_MISMATCHES,
    DP_RUN_SCALE_ELEMENTS,
    DP_RUN_SCALE_MISMATCHES,
    DP_RUN_CODE_ELEMENTS,
    DP_RUN_CODE_MISMATCHES,
    DP_RUN_DENOMINATOR_ELEMENTS,
    DP_RUN_DENOMINATOR_MISMATCHES,
    DP_RUN_ACCUMULATE_ELEMENTS,
    DP_RUN_ACCUMULATE_MISMATCHES,
    DP_RUN_OUTPUT_ELEMENTS,
    DP_RUN_OUTPUT_MISMATCHES,
    DP_RUN_CODE_MATCH,
    DP_RUN_ZERO_SCALE,
    DP_RUN_ZERO_PAYLOAD,
    DP_RUN_LOST_MASS,
    DP_RUN_P_REL_L2,
    DP_RUN_REL_L2,
    DP_RUN_COSINE,
    DP_RUN_RMSE,
    DP_RUN_RMS,
    DP_RUN_NONFINITE_ROWS,
    DP_RUN_NUMBERS
} dp_run_number;

typedef struct {
    const char *name;
    const char *meaning; /* NULL: said by the name */
    int better;          /* 1: larger is better, -1: smaller, 0: neither */
} dp_run_column;

/* A column of text, UTF-8 in a fixed number of bytes and a zero. */
typedef struct {
    const char *name;
    size_t size; /* most bytes, without the zero */
} dp_run_text_column;

extern const dp_run_column dp_run_columns[DP_RUN_NUMBERS];
extern const dp_run_text_column dp_run_texts[DP_RUN_TEXTS];

enum { DP_RUN_TEXT_SIZE = 256 };

/* One row. A number that was not measured is not known, and NaN in the file. */
typedef struct {
    char text[DP_RUN_TEXTS][DP_RUN_TEXT_SIZE];
    double number[DP_RUN_NUMBERS];
    bool known[DP_RUN_NUMBERS];
} dp_run_row;

/* Set a text; what does not fit its column is cut off, between characters. */
void dp_run_set_text(dp_run_row *row, dp_run_text column, const char *text);
void dp_run_set(dp_run_row *row, dp_run_number column, double value);

typedef struct {
    size_t count;
    dp_run_row *rows; /* in the order they were appended */
} dp_history;

/* Read a history; columns it lacks are unknown, those this program does not know are left alone. */
bool dp_history_load(dp_history *history, const char *path, dp_error *error);
void dp_history_free(dp_history *history);

/* One writer at a time: a lock file .NAME.lock beside the history, removed when it is released. */
typedef struct {
    char path[DP_PATH_SIZE];
    int descriptor; /* -1: not held */
} dp_history_lock;
/* Wait up to `seconds` for the other writer, then fail. */
bool dp_history_lock_take(dp_history_lock *lock, const char *path, double seconds, dp_error *error);
void dp_history_lock_release(dp_history_lock *lock);

/* Append rows under the lock, to a new file or to a copy of the old one that then takes its place.
 * Columns the file lacks are added, unknown for its old rows; whatever else is in it is kept. */
bool dp_history_append(const char *path, const dp_run_row *rows, size_t count,
                       const char *const *inputs, size_t input_count, dp_error *error);

/* "2026-11-29", "2026-11-29T21:30", with seconds, with Z or an offset such as +01:00, to UTC.
 * Without an offset the time is UTC. NULL: now. */
bool dp_time_parse(const char *text, char utc[DP_RUN_TEXT_SIZE], dp_error *error);

#endif
