/* SPDX-License-Identifier: MIT
 *
 * Judging runs by conditions.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/condition_internal.h"

typedef enum { KNOWN, NOT_MEASURED, NO_EARLIER_RUN } state;

typedef struct {
    double number;
    state state;
} value;

/* What a row is compared with: earlier runs of its series and kind that did not fail. */
typedef struct {
    const dp_run_row *row;
    const dp_history *history;
    double *sorted; /* scratch, a number an earlier run */
} setting;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The numbers of a column in the earlier runs, in their order. */
static size_t earlier(const setting *s, int column)
{
    size_t count = 0;
    for (size_t i = 0; s->history != NULL && i < s->history->count; i++) {
        const dp_run_row *r = &s->history->rows[i];
        if (r->known[column] && r->text[DP_RUN_FAILED][0] == '\0' &&
            strcmp(r->text[DP_RUN_SERIES], s->row->text[DP_RUN_SERIES]) == 0 &&
            strcmp(r->text[DP_RUN_KIND], s->row->text[DP_RUN_KIND]) == 0) {
            s->sorted[count++] = r->number[column];
        }
    }
    return count;
}

static value reference(const setting *s, dp_operation_kind kind, int column)
{
    const size_t count = earlier(s, column);
    if (count == 0) {
        return (value){0.0, NO_EARLIER_RUN};
    }
    if (kind == DP_PUSH_LAST) {
        return (value){s->sorted[count - 1], KNOWN};
    }
    qsort(s->sorted, count, sizeof *s->sorted, by_size);
    if (kind == DP_PUSH_BEST) {
        return (value){s->sorted[dp_run_columns[column].better > 0 ? count - 1 : 0], KNOWN};
    }
    return (value){0.5 * (s->sorted[(count - 1) / 2] + s->sorted[count / 2]), KNOWN};
}

static value apply(dp_operation_kind kind, value a, value b)
{
    if (a.state != KNOWN || b.state != KNOWN) {
        const bool measured = a.state != NOT_MEASURED && b.state != NOT_MEASURED;
        return (value){0.0, measured ? NO_EARLIER_RUN : NOT_MEASURED};
    }
    switch (kind) {
    case DP_ADD:
        return (value){a.number + b.number, KNOWN};
    case DP_SUBTRACT:
        return (value){a.number - b.number, KNOWN};
    case DP_MULTIPLY:
        return (value){a.number * b.number, KNOWN};
    default:
        return (value){a.number / b.number, KNOWN};
    }
}

static bool compare(dp_operation_kind kind, double a, double b)
{
    switch (kind) {
    case DP_LESS:
        return a < b;
    case DP_AT_MOST:
        return a <= b;
    case DP_MORE:
        return a > b;
    case DP_AT_LEAST:
        return a >= b;
    case DP_EQUAL:
        return a == b;
    default:
        return a != b;
    }
}

/* Run a program. Both sides of its comparison; the state of the whole. */
static state run(const setting *s, const dp_condition *condition, double sides[2], bool *holds)
{
    value stack[DP_CONDITION_LENGTH] = {{0.0, KNOWN}};
    size_t top = 0;
    for (size_t i = 0; i < condition->length; i++) {
        const dp_operation *o = &condition->program[i];
        if (o->kind == DP_PUSH_NUMBER) {
            stack[top++] = (value){o->number, KNOWN};
        } else if (o->kind == DP_PUSH_COLUMN) {
            stack[top++] =
                (value){s->row->number[o->column], s->row->known[o->column] ? KNOWN : NOT_MEASURED};
        } else if (o->kind <= DP_PUSH_MEDIAN) {
            stack[top++] = reference(s, o->kind, o->column);
        } else if (o->kind == DP_NEGATE) {
            stack[top - 1].number = -stack[top - 1].number;
        } else if (o->kind <= DP_DIVIDE) {
            top--;
            stack[top - 1] = apply(o->kind, stack[top - 1], stack[top]);
        }
    }
    const value both = apply(DP_ADD, stack[0], stack[1]);
    sides[0] = stack[0].number;
    sides[1] = stack[1].number;
    *holds = both.state == KNOWN &&
             (isnan(sides[0]) || isnan(sides[1]) ||
              compare(condition->program[condition->length - 1].kind, sides[0], sides[1]));
    return both.state;
}

/* "; "-separated conditions that held, cut when there are more than the column holds. */
static void note_failure(dp_run_row *row, const char *text)
{
    char all[2 * DP_RUN_TEXT_SIZE];
    const char *before = row->text[DP_RUN_FAILED];
    (void)snprintf(all, sizeof all, "%s%s%s", before, before[0] != '\0' ? ", " : "", text);
    dp_run_set_text(row, DP_RUN_FAILED, all);
}

/* The first column of a condition that no row knows, for the error. */
static bool nobody_knows(const dp_condition *condition, const dp_run_row *rows, size_t count,
                         dp_error *error)
{
    for (size_t k = 0; k < condition->length; k++) {
        const dp_operation *o = &condition->program[k];
        bool known = o->kind != DP_PUSH_COLUMN;
        for (size_t i = 0; !known && i < count; i++) {
            known = rows[i].known[o->column];
        }
        if (!known) {
            return dp_fail(error,
                           "--fail-if '%s': %s was not measured here (%s): dump what it needs "
                           "(FILES.md lists it) or leave the condition out",
                           condition->text, dp_run_columns[o->column].name,
                           dp_run_columns[o->column].meaning);
        }
    }
    return dp_fail(error, "--fail-if '%s': no input has all of its columns: split the condition",
                   condition->text);
}

/* One condition on every row. */
static bool judge_one(const dp_condition *condition, dp_run_row *rows, size_t count,
                      const dp_history *history, double *scratch, bool *failed, dp_error *error)
{
    size_t judged = 0, without = 0;
    for (size_t i = 0; i < count; i++) {
        const setting s = {.row = &rows[i], .history = history, .sorted = scratch};
        double sides[2];
        bool holds = false;
        const state judged_as = run(&s, condition, sides, &holds);
        judged += judged_as == KNOWN;
        without += judged_as == NO_EARLIER_RUN;
        if (holds) {
            (void)fflush(stdout);
            (void)fprintf(stderr, "directp: failed: %s: %s (%.9g, %.9g)\n",
                          rows[i].text[DP_RUN_SERIES], condition->text, sides[0], sides[1]);
            note_failure(&rows[i], condition->text);
            *failed = true;
        }
    }
    if (without > 0) {
        (void)fprintf(
            stderr,
            "directp: note: %s: not judged for %zu of %zu rows, which have no earlier run "
            "of their series\n",
            condition->text, without, count);
    }
    return judged + without > 0 || nobody_knows(condition, rows, count, error);
}

bool dp_conditions_judge(const dp_conditions *conditions, dp_run_row *rows, size_t count,
                         const dp_history *history, bool *failed, dp_error *error)
{
    *failed = false;
    if (conditions == NULL || conditions->count == 0) {
        return true;
    }
    if (history == NULL && dp_conditions_use_history(conditions)) {
        return dp_fail(error, "--fail-if: last, best and median need a history: use directp "
                              "record, which has one");
    }
    double *scratch = malloc(((history != NULL ? history->count : 0) + 1) * sizeof *scratch);
    bool good = scratch != NULL;
    if (!good) {
        (void)dp_fail(error, "--fail-if: not enough memory");
    }
    for (size_t i = 0; good && i < conditions->count; i++) {
        good = judge_one(&conditions->item[i], rows, count, history, scratch, failed, error);
    }
    free(scratch);
    return good;
}
