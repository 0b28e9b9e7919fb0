/* SPDX-License-Identifier: MIT */
#include "analysis/guard_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- text: what fits a line ------------------------------------------------------------------ */

static const dp_column NEEDS[] = {{"head", NULL, -1},
                                  {"logit", NULL, 1},
                                  {"smooth", "smoothed", 1},
                                  {"rows", "row maxima", -1},
                                  {"rows_smooth", "smoothed", -1},
                                  {"miss", NULL, 0},
                                  {"margin", "M", -1},
                                  {"shift", "L", -1},
                                  {"slack", NULL, 0},
                                  {"advice", NULL, -1}};
static const dp_column EFFECTS[] = {
    {"head", NULL, -1}, {"e4m3", ">448 %", 1},      {"e8m0", ">254 %", 1},
    {"none", NULL, -1}, {"smooth", "smooth-k", -1}, {"anchor", NULL, -1},
    {"both", NULL, -1}, {"exact", NULL, -1},        {"exact_smooth", "smooth+exact", -1}};
static const dp_column TOGETHER[] = {{"choice", "one choice for all heads", -1},
                                     {"margin", "M", -1},
                                     {"shift", "L", -1},
                                     {"lost", "lost rows", -1},
                                     {"error", "mean rel. L2", 4},
                                     {"worst", "worst for a safe head", -1}};

static void add_range(dp_report *report, const dp_guard_scores *s)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%.0f..%.0f", s->bottom, s->top);
    dp_report_text(report, text);
}

/* The constants that go with an advice: those of the plain or the smoothed scores. */
static const dp_guard_pair *pair_of(const dp_guard_head *head)
{
    return &head->scores[dp_guard_is_smooth(head->advice) ? 1 : 0].pair;
}

static double slack_of(const dp_guard_head *head)
{
    const dp_guard_scores *s = &head->scores[dp_guard_is_smooth(head->advice) ? 1 : 0];
    return s->pair.slack < s->rebase_slack ? s->pair.slack : s->rebase_slack;
}

static void add_needs(dp_report *report, const dp_guard_head *head, size_t q_heads)
{
    const dp_guard_scores *s = head->scores;
    const dp_guard_pair *pair = pair_of(head);
    dp_report_i64(report, (int64_t)(head->batch * q_heads + head->head));
    dp_report_f64(report, s[0].largest_logit);
    dp_report_f64(report, s[1].largest_logit);
    add_range(report, &s[0]);
    add_range(report, &s[1]);
    dp_report_f64(report, s[dp_guard_is_smooth(head->advice) ? 1 : 0].miss);
    if (dp_guard_is_anchored(head->advice)) {
        dp_report_i64(report, pair->margin);
        dp_report_i64(report, pair->shift);
        dp_report_f64(report, slack_of(head));
    } else {
        dp_report_blank(report);
        dp_report_blank(report);
        dp_report_blank(report);
    }
    dp_report_text(report, dp_guard_choice_name(head->advice));
}

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0.0;
}

static void add_effects(dp_report *report, const dp_guard_head *head, size_t q_heads)
{
    const dp_guard_scores *s = head->scores;
    dp_report_i64(report, (int64_t)(head->batch * q_heads + head->head));
    dp_report_f64(report, 100.0 * share(s[0].above_e4m3, s[0].blocks16));
    dp_report_f64(report, 100.0 * share(s[0].above_e8m0, s[0].blocks32));
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        char text[64];
        const uint64_t lost = dp_guard_lost(&head->effect[c]);
        int used = snprintf(text, sizeof text, "%.4f", head->effect[c].rel_l2);
        if (lost > 0 && used > 0) {
            (void)snprintf(text + used, sizeof text - (size_t)used, " !%" PRIu64, lost);
        }
        dp_report_text(report, text);
    }
}

static void add_together(dp_report *report, const dp_guard *guard, dp_guard_choice c)
{
    const dp_guard_pair *pair = &guard->pair[dp_guard_is_smooth(c) ? 1 : 0];
    const dp_guard_uniform *u = &guard->uniform[c];
    char text[64] = "-";
    dp_report_text(report, dp_guard_choice_name(c));
    if (dp_guard_is_anchored(c)) {
        dp_report_i64(report, pair->margin);
        dp_report_i64(report, pair->shift);
    } else {
        dp_report_blank(report);
        dp_report_blank(report);
    }
    dp_report_i64(report, (int64_t)u->lost_rows);
    dp_report_f64(report, u->error);
    if (!isnan(u->worst)) {
        (void)snprintf(text, sizeof text, "%.3f x (head %zu)", u->worst, u->worst_head);
    }
    dp_report_text(report, text);
}

const char *dp_guard_heads_text(const dp_guard *guard, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t h = 0; h < guard->count && used < size;) {
        size_t last = h;
        while (last + 1 < guard->count && guard->heads[last + 1].advice == guard->heads[h].advice) {
            last++;
        }
        char range[48];
        (void)snprintf(range, sizeof range, last > h ? "%zu-%zu" : "%zu", h, last);
        const int n = snprintf(text + used, size - used, "%s%s %s", used > 0 ? "; " : "", range,
                               dp_guard_choice_name(guard->heads[h].advice));
        used += n > 0 ? (size_t)n : 0;
        h = last + 1;
    }
    return text;
}

const char *dp_guard_options_text(const char *policy, const char *settings, dp_guard_choice choice,
                                  int anchor, dp_guard_pair pair, char *text, size_t size)
{
    char set[256] = "";
    text[0] = '\0';
    if (choice >= DP_GUARD_EXACT) {
        return text;
    }
    if (dp_guard_is_anchored(choice)) {
        (void)snprintf(set, sizeof set, "reference=anchor,anchor=%d,margin=%d,shift=%d", anchor,
                       pair.margin, pair.shift);
    }
    const bool both = set[0] != '\0' && settings[0] != '\0';
    (void)snprintf(text, size, "--policy %s --epoch R%s%s%s%s%s", policy,
                   dp_guard_is_smooth(choice) ? " --smooth-k" : "",
                   set[0] != '\0' || settings[0] != '\0' ? " --set " : "", settings,
                   both ? "," : "", set);
    return text;
}

/* Heads that lose codes of rebased quarters under their advice. */
static void print_rebased(const dp_guard *guard, FILE *stream)
{
    char text[512] = "";
    size_t used = 0;
    for (size_t h = 0; h < guard->count && used < sizeof text; h++) {
        const dp_guard_head *head = &guard->heads[h];
        const dp_guard_scores *s = &head->scores[dp_guard_is_smooth(head->advice) ? 1 : 0];
        const bool anchored = dp_guard_is_anchored(head->advice);
        const bool direct = head->advice < DP_GUARD_EXACT;
        if (direct && (anchored ? s->rebase_slack < 0.0 : s->rebased > 0)) {
            const int n =
                snprintf(text + used, sizeof text - used, "%s%zu", used > 0 ? ", " : "", h);
            used += n > 0 ? (size_t)n : 0;
        }
    }
    if (used > 0) {
        (void)fprintf(stream,
                      "  Rebased quarters (D11) lose codes in head %s: a build without them, --set "
                      "rebase-q1=off,\n  may need less.\n",
                      text);
    }
}

static void print_advice(const dp_guard_study *study, const dp_guard *guard, FILE *stream)
{
    char text[1024];
    const dp_guard_choice c = guard->together;
    const dp_guard_pair pair = guard->pair[dp_guard_is_smooth(c) ? 1 : 0];
    const dp_guard_uniform *u = &guard->uniform[c];
    const dp_guard_uniform *smooth = &guard->uniform[DP_GUARD_SMOOTH];
    (void)fprintf(stream, "One launch for all heads: %s\n", dp_guard_choice_name(c));
    if (c < DP_GUARD_EXACT) {
        (void)fprintf(stream, "  %s\n",
                      dp_guard_options_text(study->policy, study->settings, c, study->anchor, pair,
                                            text, sizeof text));
    }
    if (guard->apart) {
        (void)fprintf(stream,
                      "  It costs head %zu, which needs nothing, %.3f times its error: launch the "
                      "heads apart.\n",
                      u->worst_head, u->worst);
    }
    print_rebased(guard, stream);
    if (c == DP_GUARD_NONE && smooth->lost_rows == 0 && smooth->error < 0.95 * u->error) {
        (void)fprintf(stream, "  Not needed, but --smooth-k lowers the mean error to %.4f.\n",
                      smooth->error);
    }
    (void)fprintf(stream, "Head by head: %s\n\n", dp_guard_heads_text(guard, text, sizeof text));
}

static bool print_layer(const dp_guard_study *study, const dp_guard_layer *layer, FILE *stream,
                        dp_error *error)
{
    const dp_guard *guard = &layer->guard;
    dp_report *needs = dp_report_new(NULL, NEEDS, COUNT(NEEDS));
    dp_report *effects =
        dp_report_new("Relative L2 against BF16 attention; !N: rows lost (not finite, or zero)",
                      EFFECTS, COUNT(EFFECTS));
    dp_report *together = dp_report_new(NULL, TOGETHER, COUNT(TOGETHER));
    bool good = (needs != NULL && effects != NULL && together != NULL) ||
                dp_fail(error, "guard: not enough memory");
    for (size_t h = 0; good && h < guard->count; h++) {
        add_needs(needs, &guard->heads[h], layer->q_heads);
        add_effects(effects, &guard->heads[h], layer->q_heads);
    }
    for (int c = 0; good && c < DP_GUARD_CHOICES; c++) {
        add_together(together, guard, (dp_guard_choice)c);
    }
    if (good) {
        (void)fprintf(stream, "%s", layer->file);
        if (layer->layer >= 0) {
            (void)fprintf(stream, ", layer %" PRId64, layer->layer);
        }
        (void)fprintf(
            stream, ": %zu keys, D = %zu%s; unguarded rows may reach from %.0f to %.0f octaves\n",
            layer->keys, layer->dim, layer->causal ? ", causal" : "", guard->low, guard->high);
    }
    good = good && dp_report_print(needs, DP_STYLE_TEXT, stream, error) &&
           fputc('\n', stream) != EOF && dp_report_print(effects, DP_STYLE_TEXT, stream, error) &&
           fputc('\n', stream) != EOF && dp_report_print(together, DP_STYLE_TEXT, stream, error);
    if (good) {
        print_advice(study, guard, stream);
    }
    dp_report_free(needs);
    dp_report_free(effects);
    dp_report_free(together);
    return good;
}

/* ---- CSV and JSON: everything --------------------------------------------------------------- */

static const dp_column ALL[] = {{"file", NULL, -1},
                                {"layer", NULL, -1},
                                {"head", NULL, -1},
                                {"logit", NULL, -1},
                                {"logit_smooth", NULL, -1},
                                {"top", NULL, -1},
                                {"bottom", NULL, -1},
                                {"top_smooth", NULL, -1},
                                {"bottom_smooth", NULL, -1},
                                {"miss", NULL, -1},
                                {"miss_smooth", NULL, -1},
                                {"rebased_rows", NULL, -1},
                                {"rebased_rows_smooth", NULL, -1},
                                {"safe", NULL, -1},
                                {"safe_smooth", NULL, -1},
                                {"above_448", NULL, -1},
                                {"above_448_smooth", NULL, -1},
                                {"above_byte_254", NULL, -1},
                                {"above_byte_254_smooth", NULL, -1},
                                {"shiftless_lost", NULL, -1},
                                {"shiftless_lost_smooth", NULL, -1},
                                {"margin", NULL, -1},
                                {"shift", NULL, -1},
                                {"slack", NULL, -1},
                                {"margin_smooth", NULL, -1},
                                {"shift_smooth", NULL, -1},
                                {"slack_smooth", NULL, -1},
                                {"rel_l2", NULL, -1},
                                {"rel_l2_smooth", NULL, -1},
                                {"rel_l2_anchor", NULL, -1},
                                {"rel_l2_both", NULL, -1},
                                {"rel_l2_exact", NULL, -1},
                                {"rel_l2_exact_smooth", NULL, -1},
                                {"cosine", NULL, -1},
                                {"cosine_smooth", NULL, -1},
                                {"cosine_anchor", NULL, -1},
                                {"cosine_both", NULL, -1},
                                {"cosine_exact", NULL, -1},
                                {"cosine_exact_smooth", NULL, -1},
                                {"nonfinite", NULL, -1},
                                {"nonfinite_smooth", NULL, -1},
                                {"nonfinite_anchor", NULL, -1},
                                {"nonfinite_both", NULL, -1},
                                {"nonfinite_exact", NULL, -1},
                                {"nonfinite_exact_smooth", NULL, -1},
                                {"zero", NULL, -1},
                                {"zero_smooth", NULL, -1},
                                {"zero_anchor", NULL, -1},
                                {"zero_both", NULL, -1},
                                {"zero_exact", NULL, -1},
                                {"zero_exact_smooth", NULL, -1},
                                {"advice", NULL, -1}};

static void add_all(dp_report *report, const dp_guard_layer *layer, const dp_guard_head *head)
{
    const dp_guard_scores *s = head->scores;
    dp_report_text(report, layer->file);
    if (layer->layer >= 0) {
        dp_report_i64(report, layer->layer);
    } else {
        dp_report_blank(report);
    }
    dp_report_i64(report, (int64_t)(head->batch * layer->q_heads + head->head));
    const double ranges[] = {s[0].largest_logit, s[1].largest_logit, s[0].top,  s[0].bottom,
                             s[1].top,           s[1].bottom,        s[0].miss, s[1].miss};
    for (size_t i = 0; i < COUNT(ranges); i++) {
        dp_report_f64(report, ranges[i]);
    }
    dp_report_i64(report, (int64_t)s[0].rebased);
    dp_report_i64(report, (int64_t)s[1].rebased);
    dp_report_text(report, s[0].safe ? "yes" : "no");
    dp_report_text(report, s[1].safe ? "yes" : "no");
    const double shares[] = {share(s[0].above_e4m3, s[0].blocks16),
                             share(s[1].above_e4m3, s[1].blocks16),
                             share(s[0].above_e8m0, s[0].blocks32),
                             share(s[1].above_e8m0, s[1].blocks32),
                             s[0].shiftless_lost,
                             s[1].shiftless_lost};
    for (size_t i = 0; i < COUNT(shares); i++) {
        dp_report_f64(report, shares[i]);
    }
    for (int which = 0; which < 2; which++) {
        dp_report_i64(report, s[which].pair.margin);
        dp_report_i64(report, s[which].pair.shift);
        dp_report_f64(report, fmin(s[which].pair.slack, s[which].rebase_slack));
    }
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        dp_report_f64(report, head->effect[c].rel_l2);
    }
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        dp_report_f64(report, head->effect[c].cosine);
    }
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        dp_report_i64(report, (int64_t)head->effect[c].nonfinite_rows);
    }
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        dp_report_i64(report, (int64_t)head->effect[c].zero_rows);
    }
    dp_report_text(report, dp_guard_choice_name(head->advice));
}

static void json_layer(const dp_guard_study *study, const dp_guard_layer *layer, dp_json *json)
{
    const dp_guard *guard = &layer->guard;
    const dp_guard_choice best = guard->together;
    char text[1024];
    dp_json_object(json);
    dp_json_member_text(json, "file", layer->file);
    if (layer->layer >= 0) {
        dp_json_member_i64(json, "layer", layer->layer);
    }
    dp_json_member_f64(json, "low", guard->low);
    dp_json_member_f64(json, "high", guard->high);
    dp_json_member_text(json, "together", dp_guard_choice_name(best));
    dp_json_member_bool(json, "apart", guard->apart);
    dp_json_member_text(json, "options",
                        dp_guard_options_text(study->policy, study->settings, best, study->anchor,
                                              guard->pair[dp_guard_is_smooth(best) ? 1 : 0], text,
                                              sizeof text));
    dp_json_key(json, "choices");
    dp_json_array(json);
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        const dp_guard_choice choice = (dp_guard_choice)c;
        const dp_guard_pair *pair = &guard->pair[dp_guard_is_smooth(choice) ? 1 : 0];
        dp_json_object_line(json);
        dp_json_member_text(json, "choice", dp_guard_choice_name(choice));
        if (dp_guard_is_anchored(choice)) {
            dp_json_member_i64(json, "margin", pair->margin);
            dp_json_member_i64(json, "shift", pair->shift);
            dp_json_member_f64(json, "slack", pair->slack);
        }
        dp_json_member_u64(json, "lost_rows", guard->uniform[c].lost_rows);
        dp_json_member_f64(json, "rel_l2_mean", guard->uniform[c].error);
        dp_json_member_f64(json, "worst_ratio", guard->uniform[c].worst);
        dp_json_close(json);
    }
    dp_json_close(json);
    dp_json_close(json);
}

static bool print_json(const dp_guard_study *study, const dp_report *all, FILE *stream,
                       dp_error *error)
{
    dp_json json;
    dp_json_start(&json, stream);
    dp_json_object(&json);
    dp_json_member_text(&json, "title", "Guards");
    dp_json_member_text(&json, "policy", study->policy);
    dp_json_member_text(&json, "settings", study->settings);
    dp_json_member_i64(&json, "anchor", study->anchor);
    dp_json_member_f64(&json, "q_factor", study->q_factor);
    dp_json_key(&json, "rows");
    const bool good = dp_report_json(all, &json, error);
    dp_json_key(&json, "layers");
    dp_json_array(&json);
    for (size_t i = 0; i < study->count; i++) {
        json_layer(study, &study->layers[i], &json);
    }
    dp_json_close(&json);
    dp_json_close(&json);
    dp_json_finish(&json);
    return good;
}

bool dp_guard_print(const dp_guard_study *study, dp_style style, FILE *stream, dp_error *error)
{
    bool good = true;
    if (style == DP_STYLE_TEXT) {
        for (size_t i = 0; good && i < study->count; i++) {
            good = print_layer(study, &study->layers[i], stream, error);
        }
        return good;
    }
    dp_report *all = dp_report_new("Guards", ALL, COUNT(ALL));
    good = all != NULL || dp_fail(error, "guard: not enough memory");
    for (size_t i = 0; good && i < study->count; i++) {
        for (size_t h = 0; h < study->layers[i].guard.count; h++) {
            add_all(all, &study->layers[i], &study->layers[i].guard.heads[h]);
        }
    }
    good = good && (style == DP_STYLE_JSON ? print_json(study, all, stream, error)
                                           : dp_report_print(all, style, stream, error));
    dp_report_free(all);
    return good;
}
