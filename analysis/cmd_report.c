/* SPDX-License-Identifier: MIT
 *
 * directp report: one HTML page about a tensor: which format, which policy, guard or not, what
 * error to expect. Tables and a drawing in SVG; nothing outside the file is referred to.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "analysis/commands.h"
#include "analysis/guard.h"
#include "analysis/options.h"
#include "analysis/plot.h"

enum { OPERATORS = 14 };

static const char *const NAMES[OPERATORS] = {
    "fast",         "accurate",    "wan",          "guard-14b",  "ideal",
    "hao-nv-nv",    "sage3",       "sage3-smooth", "stabilised", "hao-nv-fp8",
    "hao-nv-mxfp8", "hao-nv-bf16", "fa4-fp8",      "fa4-bf16"};

typedef struct {
    dp_attend_metrics plain[OPERATORS], smooth[OPERATORS];
} errors;

/* Text with the characters of markup replaced. */
static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            (void)fputs("&lt;", out);
            break;
        case '>':
            (void)fputs("&gt;", out);
            break;
        case '&':
            (void)fputs("&amp;", out);
            break;
        default:
            (void)fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        }
    }
}

static bool run_all(const dp_attend_inputs *inputs, int threads, dp_attend_metrics *m,
                    dp_error *error)
{
    const dp_attention *in = &inputs->in;
    const size_t rows = in->batch * in->q_heads * in->queries;
    uint16_t *o = malloc(rows * in->dim * sizeof *o);
    uint16_t *reference = malloc(rows * in->dim * sizeof *reference);
    float *lse = malloc(rows * sizeof *lse);
    const dp_switches switches = dp_switches_default();
    bool good = o != NULL && reference != NULL && lse != NULL &&
                dp_reference_bf16(in, threads, reference, NULL, error);
    for (int i = 0; good && i < OPERATORS; i++) {
        dp_forward_policy policy;
        dp_route route;
        if (dp_forward_policy_find(NAMES[i], &policy, NULL)) {
            const dp_direct_p launch =
                dp_direct_p_make(&policy, DP_EPOCH_R, &switches, dp_attention_scale(in), NULL);
            const dp_attend_run_options options = {
                .inputs = inputs, .launch = &launch, .threads = threads};
            good = dp_attend_run(&options, o, lse, error);
        } else {
            good = dp_route_find(NAMES[i], &route, error) &&
                   dp_route_run(in, &route, NULL, NULL, threads, o, lse, NULL, error);
        }
        m[i] = dp_attend_compare(o, reference, rows, in->dim);
    }
    free(o);
    free(reference);
    free(lse);
    return good ||
           dp_fail(error, "report: %s", error->text[0] != '\0' ? error->text : "not enough memory");
}

/* Bars of relative L2, plain and smoothed, cut at 1. */
static void put_drawing(FILE *out, const errors *e)
{
    (void)fprintf(out, "<svg viewBox='0 0 820 %d' width='820' role='img'>\n", 40 + 34 * OPERATORS);
    for (int i = 0; i < OPERATORS; i++) {
        const double values[2] = {e->plain[i].rel_l2, e->smooth[i].rel_l2};
        const int y = 10 + 34 * i;
        (void)fprintf(out, "<text x='130' y='%d' text-anchor='end' font-size='13'>%s</text>",
                      y + 17, NAMES[i]);
        for (int k = 0; k < 2; k++) {
            const double v = isfinite(values[k]) ? fmin(values[k], 1.0) : 1.0;
            (void)fprintf(out,
                          "<rect x='140' y='%d' width='%.1f' height='12' fill='%s'/>"
                          "<text x='%.1f' y='%d' font-size='11'>%.4f</text>\n",
                          y + 13 * k, 560.0 * v, k == 0 ? "#1f77b4" : "#2ca02c", 146.0 + 560.0 * v,
                          y + 10 + 13 * k, values[k]);
        }
    }
    (void)fprintf(out,
                  "<text x='140' y='%d' font-size='12'>relative L2 against BF16, cut at 1: blue as "
                  "given, green with the mean key subtracted</text></svg>\n",
                  30 + 34 * OPERATORS);
}

static int best_of(const dp_attend_metrics *m, int first, int last)
{
    int best = first;
    for (int i = first; i < last; i++) {
        best = m[i].nonfinite_rows == 0 && m[i].rel_l2 < m[best].rel_l2 ? i : best;
    }
    return best;
}

static void put_answers(FILE *out, const errors *e, const dp_guard *guard)
{
    int advised[DP_GUARD_CHOICES] = {0};
    for (size_t h = 0; h < guard->count; h++) {
        advised[guard->heads[h].advice]++;
    }
    const int policy = best_of(e->plain, 0, 4);
    const int policy_smooth = best_of(e->smooth, 0, 4);
    const int fp4 = best_of(e->plain, 0, 9);
    const int fp4_smooth = best_of(e->smooth, 0, 9);
    (void)fprintf(out,
                  "<ul><li>Policy: <b>%s</b> as given (relative L2 %.4f), <b>%s</b> with the "
                  "mean key subtracted (%.4f).</li>\n",
                  NAMES[policy], e->plain[policy].rel_l2, NAMES[policy_smooth],
                  e->smooth[policy_smooth].rel_l2);
    (void)fprintf(out,
                  "<li>Least error with FP4 P and V: %s (%.4f), smoothed %s (%.4f); with FP8 P "
                  "and V %.4f, smoothed %.4f; all FP8 %.4f.</li>\n",
                  NAMES[fp4], e->plain[fp4].rel_l2, NAMES[fp4_smooth], e->smooth[fp4_smooth].rel_l2,
                  e->plain[9].rel_l2, e->smooth[9].rel_l2, e->plain[12].rel_l2);
    (void)fprintf(out, "<li>Guard: of %zu heads, %d need nothing", guard->count, advised[0]);
    for (int c = 1; c < DP_GUARD_CHOICES; c++) {
        (void)fprintf(out, ", %d %s", advised[c], dp_guard_choice_name((dp_guard_choice)c));
    }
    (void)fprintf(out, "; an anchor takes margin %d (raw), shift %d.</li></ul>\n",
                  guard->pair[0].margin, guard->pair[0].shift);
}

static void put_tables(FILE *out, const errors *e, const dp_guard *guard)
{
    (void)fputs(
        "<h2>Operators</h2><table><tr><th>operator<th>cosine<th>relative L2<th>slope<th>rows "
        "not finite<th>smoothed: relative L2<th>rows not finite</tr>\n",
        out);
    for (int i = 0; i < OPERATORS; i++) {
        (void)fprintf(out, "<tr><td>%s<td>%.6f<td>%.6f<td>%.4f<td>%llu<td>%.6f<td>%llu</tr>\n",
                      NAMES[i], e->plain[i].cosine, e->plain[i].rel_l2, e->plain[i].slope,
                      (unsigned long long)e->plain[i].nonfinite_rows, e->smooth[i].rel_l2,
                      (unsigned long long)e->smooth[i].nonfinite_rows);
    }
    (void)fputs(
        "</table><h2>Heads (policy fast)</h2><table><tr><th>head<th>largest logit<th>smoothed"
        "<th>row maxima, octaves<th>anchor miss<th>relative L2<th>smoothed<th>anchor<th>lost "
        "rows<th>advice</tr>\n",
        out);
    for (size_t h = 0; h < guard->count; h++) {
        const dp_guard_head *g = &guard->heads[h];
        (void)fprintf(out,
                      "<tr><td>%zu<td>%.2f<td>%.2f<td>%.1f to %.1f<td>%.1f<td>%.4f<td>%.4f<td>"
                      "%.4f<td>%llu<td>%s</tr>\n",
                      h, g->scores[0].largest_logit, g->scores[1].largest_logit,
                      g->scores[0].bottom, g->scores[0].top, g->scores[0].miss, g->effect[0].rel_l2,
                      g->effect[1].rel_l2, g->effect[2].rel_l2,
                      (unsigned long long)dp_guard_lost(&g->effect[0]),
                      dp_guard_choice_name(g->advice));
    }
    (void)fputs("</table>\n", out);
}

static void put_page(FILE *out, const char *path, const dp_tensors *t, const errors *e,
                     const dp_guard *guard)
{
    (void)fputs("<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>directp report</title>"
                "<style>body{font:15px sans-serif;max-width:60em;margin:2em auto}table{border-"
                "collapse:collapse}td,th{padding:.2em .7em;border-bottom:1px solid #ddd;text-align:"
                "right}td:first-child,td:last-child{text-align:left}</style><h1>Attention in FP4: ",
                out);
    put_text(out, path);
    (void)fputs("</h1>\n", out);
    put_answers(out, e, guard);
    put_drawing(out, e);
    put_tables(out, e, guard);
    (void)fputs("<h2>Provenance</h2><p>Model ", out);
    put_text(out, t->model != NULL ? t->model : "not named");
    (void)fprintf(out,
                  ", layer %lld; %zu x %zu query heads, %zu key heads, %zu queries, %zu keys, D = "
                  "%zu, softmax scale %.9g, %s, %s. Written by ",
                  (long long)t->layer, t->batch, t->q_heads, t->kv_heads, t->q_len, t->kv_len,
                  t->dim, t->softmax_scale, t->causal ? "causal" : "not causal", t->format);
    put_text(out, t->producer != NULL ? t->producer : "an unnamed program");
    (void)fputs(". Direct-P policies in epoch R; error against BF16 attention of the tensors as "
                "given; rows that are not finite are left out of it.</p></html>\n",
                out);
}

static bool make(const char *path, const char *dir, int threads, dp_error *error)
{
    static errors e;
    const dp_attend_transform plain = {.q_factor = 1.0};
    const dp_attend_transform smooth = {.q_factor = 1.0, .smooth_k = true};
    dp_tensors tensors;
    dp_attend_inputs inputs;
    dp_guard guard = {0};
    dp_forward_policy policy;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        return dp_fail(error, "%s: cannot make this folder: give another one with -o", dir);
    }
    if (!dp_forward_policy_find("fast", &policy, error) ||
        !dp_tensors_load(path, &tensors, error)) {
        return false;
    }
    bool good = dp_attend_from_tensors(&tensors, path, &plain, &inputs, error);
    if (good) {
        good = run_all(&inputs, threads, e.plain, error) &&
               dp_guard_measure(&inputs, &policy, 128, threads, &guard, error);
        dp_attend_inputs_free(&inputs);
    }
    if (good) {
        good = dp_attend_from_tensors(&tensors, path, &smooth, &inputs, error);
        if (good) {
            good = run_all(&inputs, threads, e.smooth, error);
            dp_attend_inputs_free(&inputs);
        }
    }
    dp_plot_file file;
    const char *const files[] = {path};
    const dp_plot_request request = {.dir = dir, .files = files, .count = 1};
    good = good && dp_plot_open(&file, &request, "report.html", error);
    if (good) {
        put_page(file.stream, path, &tensors, &e, &guard);
        good = dp_plot_close(&file, true, error);
    }
    dp_guard_free(&guard);
    dp_tensors_free(&tensors);
    return good;
}

int dp_cmd_report(int argc, char **argv)
{
    const char *dir = ".";
    int64_t threads = 0;
    const dp_option options[] = {{.name = "output",
                                  .type = DP_OPTION_TEXT,
                                  .value = &dir,
                                  .help = "folder of report.html; made when missing",
                                  .argument = "DIR",
                                  .letter = 'o'},
                                 DP_THREADS(&threads)};
    const dp_usage usage = {.verb = "report",
                            .operands = "IN.h5",
                            .summary =
                                "Write one HTML page about Q, K and V: which format and policy, "
                                "guard or not, and what error to expect.",
                            .example = "directp report data/real/qwen15_layer00.h5 -o out",
                            .least = 1,
                            .most = 1,
                            .options = options,
                            .count = sizeof options / sizeof options[0]};
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    dp_error error = {""};
    if (!make(argv[1], dir, (int)threads, &error)) {
        return dp_report_error(&error);
    }
    (void)printf("%s/report.html\n", dir);
    return DP_EXIT_SAME;
}
