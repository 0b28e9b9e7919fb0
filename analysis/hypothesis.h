/* SPDX-License-Identifier: MIT
 *
 * What the tables of known mistakes share. Each mistake recomputes one dataset of a strip as a
 * kernel with that mistake would; it starts from the injected data (`in`) and overwrites the
 * oracle's.
 */
#ifndef DP_ANALYSIS_HYPOTHESIS_H
#define DP_ANALYSIS_HYPOTHESIS_H

#include "analysis/diff.h"

/* Tables, each ending with a NULL name. */
extern const dp_hypothesis dp_hypotheses_quantize[];
extern const dp_hypothesis dp_hypotheses_score[];
extern const dp_hypothesis dp_hypotheses_scale[];
extern const dp_hypothesis dp_hypotheses_code[];
extern const dp_hypothesis dp_hypotheses_sum[];
extern const dp_hypothesis dp_hypotheses_output[];
extern const dp_hypothesis dp_hypotheses_any[];

/* Elements of `out` that are within `ulps` of the kernel's become the kernel's: for mistakes whose
 * own roundings are not known. relative > 0: also within this part of the larger magnitude or of 1.
 */
void dp_hypothesis_near(const dp_unit *unit, dp_dump_id id, void *out, uint64_t ulps,
                        double relative);
/* Scale bytes of `rows` x `cols` as they come out when written in one layout and read as another:
 * to_stored: linear bytes taken for stored ones, else the reverse. */
void dp_hypothesis_relayout(int layout, bool to_stored, size_t rows, size_t cols, uint8_t *scale);

/* Source row r of the strip (q) or of the key head (k), features zeros appended; natural: keys in
 * the order of the inputs. False without inputs and beyond the last row. */
bool dp_hypothesis_source_row(const dp_unit *unit, bool q, size_t r, bool natural, float *x);
/* V of the key head at a position, 0 in the padding. */
float dp_hypothesis_v_at(const dp_unit *unit, size_t position, size_t d, bool natural);

/* Codes of an affine map with the constants that the kernel's codes allow; false when no pair does.
 */
bool dp_hypothesis_fitted_map(const dp_unit *unit, double argument, void *out);

/* E2M1 code of a value under a rule for ties. */
typedef enum { DP_TIES_EVEN, DP_TIES_DOWN, DP_TIES_AWAY, DP_TIES_TRUNCATE } dp_ties;
uint8_t dp_hypothesis_e2m1(float x, dp_ties ties);

#endif
