/* SPDX-License-Identifier: MIT
 *
 * directp guard: which heads of a layer need a guard, with which constants, and what it costs.
 */
#include <stdlib.h>

#include "analysis/commands.h"
#include "analysis/guard_report.h"
#include "analysis/options.h"

static const char NOTES[] =
    "logit is the largest |q.k| times the softmax scale. Row maxima are in octaves (log2 of\n"
    "exp(logit)); miss is the most one lies above its anchor. An unguarded row is kept between\n"
    "the two bounds printed, which follow from the shift, the keys and the values. M (raw units)\n"
    "and L are what the advised anchor takes; slack says how many octaves are left to either\n"
    "side. >448 %: blocks of 16 whose NVFP4 scale would overflow without a row maximum; >254 %:\n"
    "blocks of 32 beyond the largest byte of Direct-P.\n"
    "none and smooth-k (K minus its mean; exact attention does not change) run the policy as it\n"
    "is; anchor adds a row reference, smooth-k+anchor both; exact is no Direct-P but an online\n"
    "row maximum in the same formats. Advice: none where every row is inside the bounds and\n"
    "kept; smooth-k where that alone brings it there; else what loses fewest rows and then has\n"
    "the least error, the exact maximum last. A launch takes one choice for all its heads:\n"
    "\"worst\" compares it with doing nothing on the heads that need nothing.\n"
    "Everything is measured with the oracle, epoch R.";

typedef struct {
    int64_t anchor, threads;
    double q_factor;
    const char *policy, *set;
} request;

/* The base policy with the fields of --set. */
static bool policy_of(const request *r, dp_forward_policy *policy, dp_error *error)
{
    bool last = false;
    if (!dp_forward_policy_find(r->policy, policy, error)) {
        return false;
    }
    for (size_t i = 0; r->set[0] != '\0' && !last; i++) {
        char item[64];
        dp_error why = {""};
        if (!dp_list_item(r->set, i, item, sizeof item, &last)) {
            return dp_fail(error, "--set %.200s: an item is too long: give NAME=VALUE", r->set);
        }
        if (!dp_forward_policy_set(policy, item, &why)) {
            return dp_fail(error, "--set: %s", why.text);
        }
    }
    return true;
}

static bool guard_file(const request *r, const char *path, dp_guard_layer *layer, dp_error *error)
{
    const dp_attend_transform transform = {.q_factor = r->q_factor};
    const char *slash = strrchr(path, '/');
    dp_tensors tensors;
    dp_attend_inputs inputs;
    dp_forward_policy policy;
    if (!policy_of(r, &policy, error) || !dp_tensors_load(path, &tensors, error)) {
        return false;
    }
    *layer = (dp_guard_layer){.layer = tensors.layer, .q_heads = tensors.q_heads};
    (void)snprintf(layer->file, sizeof layer->file, "%s", slash != NULL ? slash + 1 : path);
    bool good = dp_attend_from_tensors(&tensors, path, &transform, &inputs, error);
    dp_tensors_free(&tensors);
    if (good) {
        layer->keys = inputs.in.keys;
        layer->queries = inputs.in.queries;
        layer->dim = inputs.in.dim;
        layer->causal = inputs.in.causal;
        good = dp_guard_measure(&inputs, &policy, (int)r->anchor, (int)r->threads, &layer->guard,
                                error);
        dp_attend_inputs_free(&inputs);
    }
    return good;
}

static bool run(const request *r, const char *const *files, size_t count, dp_style style,
                const char *output, dp_error *error)
{
    dp_guard_study study = {
        .policy = r->policy, .settings = r->set, .q_factor = r->q_factor, .anchor = (int)r->anchor};
    study.layers = calloc(count, sizeof *study.layers);
    bool good = study.layers != NULL || dp_fail(error, "guard: not enough memory");
    for (size_t i = 0; good && i < count; i++) {
        good = guard_file(r, files[i], &study.layers[i], error);
        study.count += good;
    }
    good = good && (output == NULL || dp_guard_save(&study, output, files, count, error)) &&
           dp_guard_print(&study, style, stdout, error);
    for (size_t i = 0; i < study.count; i++) {
        dp_guard_free(&study.layers[i].guard);
    }
    free(study.layers);
    return good;
}

int dp_cmd_guard(int argc, char **argv)
{
    bool json = false;
    bool csv = false;
    const char *output = NULL;
    request r = {.anchor = 128, .q_factor = 1.0, .policy = "fast", .set = ""};
    const dp_option options[] = {
        DP_TEXT("policy", &r.policy, "NAME", "base policy, without a reference"),
        DP_TEXT("set", &r.set, "NAME=VALUE,...", "policy fields on top, such as rebase-q1=off"),
        DP_INT("anchor", &r.anchor, 1, 128, "keys sampled for the anchor"),
        DP_REAL("q-factor", &r.q_factor, 1e-6, 1e6, "multiply Q by this"),
        DP_THREADS(&r.threads),
        DP_OUTPUT(&output, "write advice, constants and measures (HDF5)"),
        DP_JSON(&json),
        DP_CSV(&csv),
    };
    const dp_usage usage = {.verb = "guard",
                            .operands = "IN.h5...",
                            .summary =
                                "Tell for every head whether Direct-P needs a guard, which "
                                "constants it takes, and what each choice does to the output; and "
                                "the one choice that serves all heads of a launch.",
                            .notes = NOTES,
                            .example = "directp guard data/real/qwen15_layer00.h5\n"
                                       "directp guard layer*.h5 -o guards.h5 --json",
                            .least = 1,
                            .most = 256,
                            .options = options,
                            .count = sizeof options / sizeof options[0]};
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    dp_error error = {""};
    dp_style style;
    const bool good =
        dp_style_of(json, csv, &style, &error) &&
        run(&r, (const char *const *)argv + 1, (size_t)argc - 1, style, output, &error);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}
