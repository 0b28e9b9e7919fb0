/* SPDX-License-Identifier: MIT
 *
 * A parsed condition, between condition.c and condition_judge.c.
 */
#ifndef DP_ANALYSIS_CONDITION_INTERNAL_H
#define DP_ANALYSIS_CONDITION_INTERNAL_H

#include "analysis/condition.h"

enum { DP_CONDITION_LENGTH = 64, DP_CONDITIONS = 32 };

typedef enum {
    DP_PUSH_NUMBER,
    DP_PUSH_COLUMN, /* of the run itself */
    DP_PUSH_LAST,
    DP_PUSH_BEST,
    DP_PUSH_MEDIAN,
    DP_NEGATE,
    DP_ADD,
    DP_SUBTRACT,
    DP_MULTIPLY,
    DP_DIVIDE,
    DP_LESS, /* comparisons end a program and leave both sides on the stack */
    DP_AT_MOST,
    DP_MORE,
    DP_AT_LEAST,
    DP_EQUAL,
    DP_UNEQUAL
} dp_operation_kind;

typedef struct {
    dp_operation_kind kind;
    int column;    /* dp_run_number */
    double number; /* of DP_PUSH_NUMBER */
} dp_operation;

typedef struct {
    char text[200];
    dp_operation program[DP_CONDITION_LENGTH];
    size_t length;
} dp_condition;

struct dp_conditions {
    dp_condition item[DP_CONDITIONS];
    size_t count;
};

#endif
