/* SPDX-License-Identifier: MIT
 *
 * The standard case set: inputs a kernel must be run on, and whose dumps must agree with the
 * oracle, before it is called verified.
 */
#ifndef DP_ANALYSIS_STANDARD_CASES_H
#define DP_ANALYSIS_STANDARD_CASES_H

#include "analysis/tensors.h"
#include "ref/forward/forward.h"

typedef struct {
    const char *name;
    const char *purpose;
    size_t queries, keys, q_heads, kv_heads;
} dp_standard_case;

/* Case number `index`; NULL after the last. */
const dp_standard_case *dp_standard_case_at(size_t index);
/* Its tensors, the same on every machine; the caller frees them. aimed: one head of the case
 * p-midpoints is made for this launch; NULL: for the policy fast, as the published policies are. */
bool dp_standard_case_make(const dp_standard_case *which, const dp_direct_p *aimed,
                           dp_tensors *tensors, dp_error *error);

/* Q [head][queries][128] and K [head][keys][128] of the case p-midpoints. */
enum { DP_STANDARD_AIMS = 11 }; /* its heads, each made for a policy */
bool dp_standard_midpoints(const dp_direct_p *aimed, size_t queries, size_t keys, float *q,
                           float *k, dp_error *error);

#endif
