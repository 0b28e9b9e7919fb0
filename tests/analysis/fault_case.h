/* SPDX-License-Identifier: MIT
 *
 * Small problems for the comparer, as dumps in memory: made by the operator of ref/forward, which
 * the comparer does not use for its own stages.
 */
#ifndef DP_TESTS_FAULT_CASE_H
#define DP_TESTS_FAULT_CASE_H

#include "analysis/diff.h"

typedef struct {
    const char *name, *policy;
    dp_epoch epoch;
    size_t queries, keys, q_heads, kv_heads;
    bool causal;
    int inputs; /* 0 normal, 1 a grid full of midpoints, 2 peaked, 3 flat, 4 down to below every
                   byte */
} fault_case;

/* A problem with its oracle dump. */
typedef struct {
    dp_attention in;
    dp_direct_p launch;
    dp_operands operands;
    uint16_t *q, *k, *v;
    int32_t *kv_of_q;
    dp_dump dump;
    dp_dump pristine; /* the oracle's, to start again from */
    void *saved[DP_DUMP_DATASETS];
} fault_problem;

void fault_problem_make(const fault_case *from, uint64_t seed, fault_problem *problem);
/* Undo what a fault did to the dump. */
void fault_problem_reset(fault_problem *problem);
void fault_problem_free(fault_problem *problem);
/* The stages of the operator on these operands, into the dump (from score on). */
void fault_problem_run(fault_problem *problem, const dp_attention *in, const dp_operands *operands,
                       const dp_direct_p *launch);
/* The operands into the dump. */
void fault_problem_operands(fault_problem *problem, const dp_operands *operands);
/* What follows dataset `after` in the dump, by the comparer's stages from the dump's own data. */
void fault_problem_follow(fault_problem *problem, dp_dump_id after);
size_t fault_elements(const fault_problem *problem, dp_dump_id id);

#endif
