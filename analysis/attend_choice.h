/* SPDX-License-Identifier: MIT
 *
 * Options that choose inputs and a Direct-P launch, shared by the verbs that run one.
 */
#ifndef DP_ANALYSIS_ATTEND_CHOICE_H
#define DP_ANALYSIS_ATTEND_CHOICE_H

#include "analysis/attend.h"

/* What --random and its companions, or a file, ask for. */
typedef struct {
    bool random; /* --random was given */
    int64_t seed, sms, batch, seq, heads, dim;
    int64_t kv_heads; /* 0: as many as heads */
    int threads;
    dp_attend_transform transform;
} dp_inputs_request;

/* Draw the inputs, or read them from `path` (NULL: no file was named). `verb` stands in error
 * texts. */
bool dp_inputs_choice(const char *verb, const dp_inputs_request *request, const char *path,
                      dp_attend_inputs *inputs, dp_error *error);

/* "name=value,name=value" onto a policy, its switches and the matrix unit's switches
 * (mma.NAME=VALUE). */
bool dp_apply_settings(const char *text, dp_forward_policy *policy, dp_switches *switches,
                       dp_mma_switches *mma, dp_error *error);

/* The model of EX2, RCP and LG2 by name: "exact" or "h200". */
const dp_sfu *dp_sfu_choice(const char *name);

/* A launch from the texts of --policy, --epoch ("S", "R"), --set and --sfu. */
bool dp_launch_choice(const char *policy, const char *epoch, const char *settings, const char *sfu,
                      double softmax_scale, dp_direct_p *launch, dp_mma_switches *mma,
                      dp_error *error);

/* A standard path by name, with "--set" settings: switches of the route, and "mma." ones. */
bool dp_route_choice(const char *name, const char *settings, dp_route *route, dp_mma_switches *mma,
                     dp_error *error);

#endif
