/* SPDX-License-Identifier: MIT
 *
 * directp guard: which heads of a layer need a guard, with which constants, and what it costs.
 */
#include <math.h>
#include <stdio.h>

#include "analysis/commands.h"
#include "analysis/guard.h"
#include "analysis/options.h"
#include "analysis/report.h"

static const dp_column COLUMNS[] = {
    {"file", NULL, -1},        {"layer", NULL, -1},        {"head", NULL, -1},
    {"logit", NULL, 2},        {"logit_smooth", NULL, 2},  {"top", NULL, 1},
    {"bottom", NULL, 1},       {"top_smooth", NULL, 1},    {"bottom_smooth", NULL, 1},
    {"miss", NULL, 1},         {"safe", NULL, -1},         {"safe_smooth", NULL, -1},
    {"rel_l2", NULL, 4},       {"rel_l2_smooth", NULL, 4}, {"rel_l2_anchor", NULL, 4},
    {"rel_l2_both", NULL, 4},  {"lost", NULL, -1},         {"lost_smooth", NULL, -1},
    {"lost_anchor", NULL, -1}, {"lost_both", NULL, -1},    {"margin", NULL, -1},
    {"shift", NULL, -1},       {"advice", NULL, -1}};

static const char NOTES[] =
    "logit is the largest |q.k| times the softmax scale; top and bottom are the largest and least\n"
    "row maximum, miss the most that a row maximum lies above its anchor, all three in octaves.\n"
    "safe: every row maximum lies in the range that the path without a reference stores, -107 to\n"
    "113 octaves at shift 16. rel_l2 and lost (rows that are not finite, or zero where they "
    "should\n"
    "not be) are measured with the oracle, epoch R, against BF16.\n"
    "advice: none, when safe; smooth-k, when subtracting the mean key makes the head safe (exact\n"
    "attention does not change); else what loses fewest rows and then has the least error; with "
    "an\n"
    "anchor, the margin (raw units) and shift printed, the same for all heads of a layer:\n"
    "  --policy fast --epoch R --set reference=anchor,anchor=128,margin=M,shift=L\n"
    "exact-maximum: some anchor misses its row maximum by more than 236 octaves, which no margin "
    "and\n"
    "shift hold, or every choice loses rows.";

static void add_head(dp_report *report, const char *file, int64_t layer, const dp_guard *guard,
                     const dp_guard_head *h, size_t q_heads)
{
    dp_report_text(report, file);
    if (layer >= 0) {
        dp_report_i64(report, layer);
    } else {
        dp_report_blank(report);
    }
    dp_report_i64(report, (int64_t)(h->batch * q_heads + h->head));
    const double numbers[] = {h->largest_logit[0], h->largest_logit[1], h->top[0], h->bottom[0],
                              h->top[1],           h->bottom[1],        h->miss[0]};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        dp_report_f64(report, numbers[i]);
    }
    dp_report_text(report, h->safe[0] ? "yes" : "no");
    dp_report_text(report, h->safe[1] ? "yes" : "no");
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        dp_report_f64(report, h->rel_l2[c]);
    }
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        dp_report_i64(report, (int64_t)h->lost_rows[c]);
    }
    if (h->advice == DP_GUARD_ANCHOR || h->advice == DP_GUARD_BOTH) {
        dp_report_i64(report, guard->margin);
        dp_report_i64(report, guard->shift);
    } else {
        dp_report_blank(report);
        dp_report_blank(report);
    }
    dp_report_text(report, dp_guard_choice_name(h->advice));
}

typedef struct {
    int64_t anchor, threads;
    double q_factor;
    const char *policy;
} request;

static bool guard_file(const request *r, const char *path, dp_report *report, dp_error *error)
{
    const dp_attend_transform transform = {.q_factor = r->q_factor};
    dp_tensors tensors;
    dp_attend_inputs inputs;
    dp_forward_policy policy;
    dp_guard guard;
    if (!dp_forward_policy_find(r->policy, &policy, error) ||
        !dp_tensors_load(path, &tensors, error)) {
        return false;
    }
    const int64_t layer = tensors.layer;
    bool good = dp_attend_from_tensors(&tensors, path, &transform, &inputs, error);
    dp_tensors_free(&tensors);
    if (!good) {
        return false;
    }
    good = dp_guard_measure(&inputs, &policy, (int)r->anchor, (int)r->threads, &guard, error);
    if (good) {
        const char *slash = strrchr(path, '/');
        for (size_t h = 0; h < guard.count; h++) {
            add_head(report, slash != NULL ? slash + 1 : path, layer, &guard, &guard.heads[h],
                     inputs.in.q_heads);
        }
        dp_guard_free(&guard);
    }
    dp_attend_inputs_free(&inputs);
    return good;
}

int dp_cmd_guard(int argc, char **argv)
{
    bool json = false;
    bool csv = false;
    request r = {.anchor = 128, .q_factor = 1.0, .policy = "fast"};
    const dp_option options[] = {
        DP_TEXT("policy", &r.policy, "NAME", "base policy, without a reference"),
        DP_INT("anchor", &r.anchor, 1, 128, "keys sampled for the anchor"),
        DP_REAL("q-factor", &r.q_factor, 1e-6, 1e6, "multiply Q by this"),
        DP_THREADS(&r.threads),
        DP_JSON(&json),
        DP_CSV(&csv),
    };
    const dp_usage usage = {.verb = "guard",
                            .operands = "IN.h5...",
                            .summary =
                                "Tell for every head whether Direct-P needs a guard, which "
                                "constants it takes, and what each choice does to the output.",
                            .notes = NOTES,
                            .example = "directp guard data/real/qwen15_layer00.h5",
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
    dp_report *report = dp_report_new("Guards", COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    bool good = dp_style_of(json, csv, &style, &error) &&
                (report != NULL || dp_fail(&error, "guard: not enough memory"));
    for (int i = 1; good && i < argc; i++) {
        good = guard_file(&r, argv[i], report, &error);
    }
    good = good && dp_report_print(report, style, stdout, &error);
    dp_report_free(report);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}
