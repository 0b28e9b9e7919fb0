/* SPDX-License-Identifier: MIT
 *
 * The standard case set: inputs a kernel must be run on, and whose dumps must agree with the
 * oracle, before it is called verified.
 */
#ifndef DP_ANALYSIS_STANDARD_CASES_H
#define DP_ANALYSIS_STANDARD_CASES_H

#include "analysis/tensors.h"

typedef struct {
    const char *name;
    const char *purpose;
    size_t queries, keys, q_heads, kv_heads;
} dp_standard_case;

/* Case number `index`; NULL after the last. */
const dp_standard_case *dp_standard_case_at(size_t index);
/* Its tensors, the same on every machine; the caller frees them. */
bool dp_standard_case_make(const dp_standard_case *which, dp_tensors *tensors, dp_error *error);

#endif
