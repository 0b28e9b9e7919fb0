/* SPDX-License-Identifier: MIT
 *
 * The words and tables of the page. Every tag is closed and every attribute quoted, so that the
 * page is well-formed XML as well.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

#include "analysis/guard_report.h"
#include "analysis/page.h"
#include "analysis/svg.h"
#include "ref/version.h"

static const char STYLE[] =
    "body{font:16px/1.45 system-ui,sans-serif;color:#222;background:#fff;margin:0 auto;padding:"
    "0 14px 3em;max-width:1240px}h1{font-size:1.5em;overflow-wrap:anywhere}h2{font-size:1.2em;"
    "margin-top:2em;border-bottom:2px solid #222}.verdict{border-left:6px solid #0072b2;background:"
    "#f3f8fc;padding:.4em 1em}.verdict dt{font-weight:600;margin-top:.5em}.verdict dd{margin:0}"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr));gap:"
    "1.2em}figure{margin:0}figcaption{font-size:.9em;margin-bottom:.3em}svg{width:100%;height:auto;"
    "max-width:620px;font-family:system-ui,sans-serif}.t{overflow-x:auto}table{border-collapse:"
    "collapse;font-size:.82em;font-variant-numeric:tabular-nums}td,th{padding:.2em .6em;border-"
    "bottom:1px solid #ddd;text-align:right;white-space:nowrap}td.l,th.l{text-align:left}tr.best"
    "{background:#e8f4e8;font-weight:600}code{overflow-wrap:anywhere;background:#f4f4f4}summary{"
    "cursor:pointer;margin-top:.8em}";

static void put(FILE *out, const char *format, ...) DP_PRINTF(2, 3);
static void put(FILE *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(out, format, arguments);
    va_end(arguments);
}

static void figure(FILE *out, const char *caption, const dp_page *page,
                   void (*draw)(FILE *out, const dp_page *page))
{
    put(out, "<figure><figcaption>%s</figcaption>\n", caption);
    draw(out, page);
    put(out, "</figure>\n");
}

/* A number with three significant digits, or what stands for it. */
static const char *brief(double value, char text[32])
{
    (void)snprintf(text, 32, isfinite(value) ? "%.3g" : "no finite row", value);
    return text;
}

static uint64_t lost_of(const dp_page *page, int i, int which)
{
    return dp_guard_lost(&page->run[i].whole[which]);
}

/* ---- the verdict ------------------------------------------------------------------------------
 */

static void put_policy(FILE *out, const dp_page *page)
{
    const dp_page_verdict *v = &page->verdict;
    const int which = v->smooth ? 1 : 0;
    char a[32];
    put(out, "<dt>Which policy?</dt><dd>");
    if (v->policy < 0) {
        put(out, "None of the operators kept every row: check the inputs for NaN or Inf.</dd>\n");
        return;
    }
    put(out, "<b>%s</b>%s (%s): relative L2 error %s.", dp_page_operators[v->policy].name,
        v->smooth ? " with the mean key subtracted" : ", K as given",
        dp_page_operators[v->policy].says, brief(v->error, a));
    if (!v->direct) {
        put(out, " Every Direct-P policy loses rows here, so an exact row maximum is needed.");
    }
    if (lost_of(page, 0, 0) > 0) {
        put(out, " <b>fast</b> as it is loses %" PRIu64 " of %zu rows.", lost_of(page, 0, 0),
            page->heads * page->tensors->q_len);
    } else if (v->policy != 0) {
        put(out, " <b>fast</b> under the same K: %s.", brief(page->run[0].whole[which].rel_l2, a));
    }
    if (v->smooth && v->policy < DP_PAGE_DIRECT) {
        put(out, " Without smoothing this policy has %s%s.",
            brief(page->run[v->policy].whole[0].rel_l2, a),
            lost_of(page, v->policy, 0) > 0 ? " and loses rows" : "");
    }
    put(out, "</dd>\n");
}

static void put_guard(FILE *out, const dp_page *page)
{
    const dp_guard *guard = &page->guard;
    char text[1024];
    size_t safe[2] = {0, 0};
    for (size_t h = 0; h < guard->count; h++) {
        safe[0] += guard->heads[h].scores[0].safe;
        safe[1] += guard->heads[h].scores[1].safe;
    }
    const dp_guard_pair *pair = &guard->pair[dp_guard_is_smooth(guard->together) ? 1 : 0];
    put(out, "<dt>Guard or not?</dt><dd>");
    switch (guard->together) {
    case DP_GUARD_NONE:
        put(out, "<b>No guard is needed.</b>");
        break;
    case DP_GUARD_SMOOTH:
        put(out, "<b>Subtracting the mean key is enough</b>; no anchor is needed.");
        break;
    case DP_GUARD_ANCHOR:
    case DP_GUARD_BOTH:
        put(out,
            "<b>Yes: an anchor%s</b> for fast; margin M = %d (raw) and shift L = %d serve every "
            "head.",
            guard->together == DP_GUARD_BOTH ? ", and the mean key subtracted," : "", pair->margin,
            pair->shift);
        break;
    default:
        put(out, "<b>No anchor holds every head</b>: take an exact row maximum%s.",
            guard->together == DP_GUARD_EXACT_SMOOTH ? " and subtract the mean key" : "");
    }
    put(out,
        " An unguarded row is kept between %.0f and %.0f octaves: %zu of %zu heads lie there as "
        "given, %zu with the mean key subtracted.",
        guard->low, guard->high, safe[0], guard->count, safe[1]);
    if (guard->apart) {
        put(out, " That single choice costs head %zu, which needs nothing, %.3f times its error.",
            guard->uniform[guard->together].worst_head, guard->uniform[guard->together].worst);
    }
    put(out, " Head by head: ");
    dp_svg_text(out, dp_guard_heads_text(guard, text, sizeof text));
    put(out, ".</dd>\n");
}

static void put_format(FILE *out, const dp_page *page)
{
    const dp_page_verdict *v = &page->verdict;
    char a[32];
    char b[32];
    put(out, "<dt>Which format?</dt><dd>");
    if (v->fp4_suffices) {
        put(out, "<b>FP4 for P and V is enough.</b>");
    } else {
        put(out, "<b>FP8 for P and V where the error matters</b>: FP4 has %.1f times its error.",
            v->fp4_error / v->fp8_error);
    }
    put(out, " The best FP4 operator under this K (%s) has %s, the best with FP8 P and V (%s) %s",
        v->fp4 >= 0 ? dp_page_operators[v->fp4].name : "none", brief(v->fp4_error, a),
        v->fp8 >= 0 ? dp_page_operators[v->fp8].name : "none", brief(v->fp8_error, b));
    put(out, ", all FP8 %s. ", brief(v->all_fp8_error, a));
    put(out, "NVFP4 Q and K alone, with BF16 P and V, already have %s.", brief(v->qk_error, a));
    if (page->has_range) {
        const dp_range_result *r = page->range;
        put(out,
            " For P, MXFP4 as Direct-P stores it (mxfp4-kernel) loses %.1f %% of the probability; "
            "NVFP4 %.1f %%, since %.1f %% of its block scales are zero (with the factor 448: "
            "%.1f %% and %.1f %%).",
            100.0 * r[4].lost_mass, 100.0 * r[0].lost_mass, 100.0 * r[0].zero_scale,
            100.0 * r[1].lost_mass, 100.0 * r[1].zero_scale);
    }
    put(out, "</dd>\n");
}

static void put_error(FILE *out, const dp_page *page)
{
    const dp_page_verdict *v = &page->verdict;
    char a[32];
    char b[32];
    put(out, "<dt>What error to expect?</dt><dd>");
    if (v->policy < 0) {
        put(out, "None can be given.</dd>\n");
        return;
    }
    const dp_guard_effect *e = &page->run[v->policy].whole[v->smooth ? 1 : 0];
    put(out, "Relative L2 <b>%s</b> over all heads (cosine %.4f), %s in the worst head (%zu).",
        brief(v->error, a), e->cosine, brief(v->worst, b), v->worst_head);
    const dp_error_parts *p = &page->parts[page->heads];
    put(out, " Of the error of %s, Q and K make %s", page->parts_policy, brief(p->qk, a));
    put(out, ", P %s", brief(p->p, a));
    put(out, ", V %s", brief(p->v, a));
    put(out, " (they add up as vectors).</dd>\n");
}

static void put_kernel(FILE *out, const dp_page *page)
{
    if (page->diff == NULL) {
        return;
    }
    const int first = page->diff->first_wrong;
    put(out, "<dt>Is the dump right?</dt><dd>");
    if (first < 0) {
        put(out, "Every stage in it equals the oracle%s.",
            page->diff->order_differs ? ", but its key order is not the policy's" : "");
    } else {
        const dp_diff_dataset *set = &page->diff->set[first];
        put(out,
            "<b>No</b>: the first wrong dataset is <b>%s</b>, %" PRIu64 " of %" PRIu64 " elements",
            dp_dump_datasets[first].name, set->mismatches, set->elements);
        if (page->diff->finding_count > 0) {
            put(out, "; best explanation: ");
            dp_svg_text(out, page->diff->findings[0].name);
        }
        put(out, ".");
    }
    put(out, "</dd>\n");
}

/* ---- sections ----------------------------------------------------------------------------------
 */

static void put_operators(FILE *out, const dp_page *page)
{
    put(out, "<h2 id=\"policy\">Which policy</h2>\n<div class=\"charts\">\n");
    figure(out,
           "Error of every operator, all heads together. A cross: some rows are lost; the error is "
           "that of the others.",
           page, dp_page_chart_operators);
    figure(out,
           page->verdict.smooth
               ? "The same in the plane of both errors, mean key subtracted, without all BF16."
               : "The same in the plane of both errors, K as given, without all BF16.",
           page, dp_page_chart_plane);
    put(out,
        "</div>\n<details open=\"open\"><summary>Table</summary><div class=\"t\"><table><tr><th "
        "class=\"l\">operator</th><th class=\"l\">what it is</th><th>relative L2</th><th>cosine"
        "</th><th>rows lost</th><th>smoothed: relative L2</th><th>cosine</th><th>rows lost</th>"
        "</tr>\n");
    for (int i = 0; i < DP_PAGE_OPERATORS; i++) {
        const dp_page_run *run = &page->run[i];
        if (!run->present) {
            continue;
        }
        put(out, "<tr%s><td class=\"l\">%s</td><td class=\"l\">",
            i == page->verdict.policy ? " class=\"best\"" : "", dp_page_operators[i].name);
        dp_svg_text(out, dp_page_operators[i].says);
        put(out, "</td>");
        for (int which = 0; which < 2; which++) {
            put(out, "<td>%.6f</td><td>%.6f</td><td>%" PRIu64 "</td>", run->whole[which].rel_l2,
                run->whole[which].cosine, lost_of(page, i, which));
        }
        put(out, "</tr>\n");
    }
    put(out, "</table></div></details>\n");
}

static void put_guard_table(FILE *out, const dp_page *page)
{
    put(out,
        "<details open=\"open\"><summary>Heads: need and constants</summary><div class=\"t\">"
        "<table><tr><th>head</th><th>largest logit</th><th>smoothed</th><th>row maxima, octaves"
        "</th><th>smoothed</th><th>anchor miss</th><th>scales above 448</th><th>above 254</th>"
        "<th>M</th><th>L</th><th>slack, octaves</th><th class=\"l\">advice</th></tr>\n");
    for (size_t h = 0; h < page->heads; h++) {
        const dp_guard_head *g = &page->guard.heads[h];
        const dp_guard_scores *s = g->scores;
        const dp_guard_scores *a = &s[dp_guard_is_smooth(g->advice) ? 1 : 0];
        put(out,
            "<tr><td>%zu</td><td>%.1f</td><td>%.1f</td><td>%.0f to %.0f</td><td>%.0f to %.0f"
            "</td><td>%.0f</td><td>%.1f %%</td><td>%.1f %%</td>",
            h, s[0].largest_logit, s[1].largest_logit, s[0].bottom, s[0].top, s[1].bottom, s[1].top,
            a->miss,
            100.0 * (double)s[0].above_e4m3 / (double)(s[0].blocks16 > 0 ? s[0].blocks16 : 1),
            100.0 * (double)s[0].above_e8m0 / (double)(s[0].blocks32 > 0 ? s[0].blocks32 : 1));
        if (dp_guard_is_anchored(g->advice)) {
            put(out, "<td>%d</td><td>%d</td><td>%.0f</td>", a->pair.margin, a->pair.shift,
                fmin(a->pair.slack, a->rebase_slack));
        } else {
            put(out, "<td></td><td></td><td></td>");
        }
        put(out, "<td class=\"l\">%s</td></tr>\n", dp_guard_choice_name(g->advice));
    }
    put(out, "</table></div></details>\n");
}

static void put_choice_tables(FILE *out, const dp_page *page)
{
    put(out,
        "<details><summary>Heads: relative L2 of each choice, and rows lost</summary><div class=\""
        "t\"><table><tr><th>head</th>");
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        put(out, "<th>%s</th>", dp_guard_choice_name((dp_guard_choice)c));
    }
    put(out, "</tr>\n");
    for (size_t h = 0; h < page->heads; h++) {
        put(out, "<tr><td>%zu</td>", h);
        for (int c = 0; c < DP_GUARD_CHOICES; c++) {
            const dp_guard_effect *e = &page->guard.heads[h].effect[c];
            put(out, "<td>%.4f", e->rel_l2);
            if (dp_guard_lost(e) > 0) {
                put(out, " (%" PRIu64 " lost)", dp_guard_lost(e));
            }
            put(out, "</td>");
        }
        put(out, "</tr>\n");
    }
    put(out,
        "</table></div></details>\n<details><summary>One choice for a launch of all heads</summary>"
        "<div class=\"t\"><table><tr><th class=\"l\">choice</th><th>M</th><th>L</th><th>rows lost"
        "</th><th>mean relative L2</th><th>worst against nothing, heads that need nothing</th>"
        "</tr>\n");
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        const dp_guard_choice choice = (dp_guard_choice)c;
        const dp_guard_uniform *u = &page->guard.uniform[c];
        const dp_guard_pair *pair = &page->guard.pair[dp_guard_is_smooth(choice) ? 1 : 0];
        put(out, "<tr%s><td class=\"l\">%s</td>",
            choice == page->guard.together ? " class=\"best\"" : "", dp_guard_choice_name(choice));
        if (dp_guard_is_anchored(choice)) {
            put(out, "<td>%d</td><td>%d</td>", pair->margin, pair->shift);
        } else {
            put(out, "<td></td><td></td>");
        }
        put(out, "<td>%" PRIu64 "</td><td>%.4f</td>", u->lost_rows, u->error);
        if (isnan(u->worst)) {
            put(out, "<td></td></tr>\n");
        } else {
            put(out, "<td>%.3f times (head %zu)</td></tr>\n", u->worst, u->worst_head);
        }
    }
    put(out, "</table></div></details>\n");
}

static void put_guards(FILE *out, const dp_page *page)
{
    put(out, "<h2 id=\"guard\">Guard or not</h2>\n<div class=\"charts\">\n");
    figure(out,
           "Where the row maxima of each head lie. Bars that leave the green band (or the chart, "
           "marked &lt; and &gt;) are rows that Direct-P without a reference does not keep.",
           page, dp_page_chart_rows);
    figure(out, "Error of each head under each choice, policy fast; anchors with their own M, L.",
           page, dp_page_chart_choices);
    put(out, "</div>\n");
    put_guard_table(out, page);
    put_choice_tables(out, page);
}

static void put_formats(FILE *out, const dp_page *page)
{
    put(out, "<h2 id=\"format\">Which format for P</h2>\n");
    if (!page->has_range) {
        put(out, "<p>Not measured: ");
        dp_svg_text(out, page->range_why);
        put(out, "</p>\n");
        return;
    }
    put(out, "<div class=\"charts\">\n");
    figure(out,
           "Exact softmax probabilities stored in each format, blocks of 32 keys, up to 256 rows a "
           "head; no kernel is involved. &lt; at the edge: 0, or below 0.0001.",
           page, dp_page_chart_range);
    figure(out,
           "Exponents of the block scales (mxfp4-kernel: of the amplitude, 6 times the step). What "
           "is missing to 1 is blocks with scale 0.",
           page, dp_page_chart_scales);
    put(out, "</div>\n<details><summary>Table</summary><div class=\"t\"><table><tr><th class=\"l\">"
             "format</th><th>scale 0, of blocks</th><th>stored as 0, of entries</th><th>lost "
             "probability</th><th>P, relative L2</th><th>PV, relative L2</th><th>PV, "
             "cosine</th></tr>\n");
    for (int i = 0; i < DP_PAGE_FORMATS; i++) {
        const dp_range_result *r = &page->range[i];
        put(out, "<tr><td class=\"l\">%s</td>", dp_page_formats[i]);
        if (isnan(r->zero_scale)) {
            put(out, "<td>no scale</td>");
        } else {
            put(out, "<td>%.4f</td>", r->zero_scale);
        }
        put(out, "<td>%.4f</td><td>%.4f</td><td>%.4f</td><td>%.4f</td><td>%.6f</td></tr>\n",
            r->zero_payload, r->lost_mass, r->p_rel_l2, r->pv_rel_l2, r->pv_cosine);
    }
    put(out, "</table></div></details>\n");
}

static void draw_boundaries(FILE *out, const dp_page *page)
{
    (void)page;
    dp_page_chart_boundaries(out);
}

static void draw_confusion_fast(FILE *out, const dp_page *page)
{
    dp_page_chart_confusion(out, page, 0);
}

static void draw_confusion_accurate(FILE *out, const dp_page *page)
{
    dp_page_chart_confusion(out, page, 1);
}

static void put_codes(FILE *out, const dp_page *page)
{
    const dp_code_match *m = page->codes;
    put(out,
        "<h2 id=\"codes\">Codes</h2>\n<p>Codes equal to those of 2^x: fast %.1f %%, accurate "
        "%.1f %%. Probability mass against that of 2^x, mean over the rows: fast %.3f, "
        "accurate %.3f.</p>\n<div class=\"charts\">\n",
        100.0 * (double)m[0].match / (double)m[0].lanes,
        100.0 * (double)m[1].match / (double)m[1].lanes, m[0].mass_mean, m[1].mass_mean);
    figure(out, "Which E2M1 value each map gives over x (the number in the field).", page,
           draw_boundaries);
    figure(out, "Share of codes equal to those of 2^x by distance to the nearest boundary.", page,
           dp_page_chart_match);
    figure(out, "fast: of the lanes whose code by 2^x is the row's, percent with the column's.",
           page, draw_confusion_fast);
    figure(out, "accurate: the same.", page, draw_confusion_accurate);
    put(out, "</div>\n");
}

static void put_parts(FILE *out, const dp_page *page)
{
    put(out,
        "<h2 id=\"error\">What error, and whence</h2>\n<div class=\"charts\">\n<figure>"
        "<figcaption>%s%s: what each quantization adds to the error of each head, against exact "
        "attention.</figcaption>\n",
        page->parts_policy, page->verdict.smooth ? ", mean key subtracted" : "");
    dp_page_chart_parts(out, page);
    put(out, "</figure>\n</div>\n<details><summary>Table</summary><div class=\"t\"><table><tr><th>"
             "head</th><th>Q and K</th><th>P</th><th>V</th><th>the rest</th><th>total</th><th>BF16 "
             "attention's own</th></tr>\n");
    for (size_t h = 0; h <= page->heads; h++) {
        const dp_error_parts *p = &page->parts[h];
        if (h < page->heads) {
            put(out, "<tr><td>%zu</td>", h);
        } else {
            put(out, "<tr class=\"best\"><td>all</td>");
        }
        put(out,
            "<td>%.4f</td><td>%.4f</td><td>%.4f</td><td>%.4f</td><td>%.4f</td><td>%.4f</td>"
            "</tr>\n",
            p->qk, p->p, p->v, p->rest, p->total, p->bf16);
    }
    put(out, "</table></div></details>\n");
}

static void put_diff(FILE *out, const dp_page *page)
{
    if (page->diff == NULL && page->diff_why[0] == '\0') {
        return;
    }
    put(out, "<h2 id=\"dump\">The dump against the oracle</h2>\n");
    if (page->diff == NULL) {
        put(out, "<p>The file holds stages that could not be compared: ");
        dp_svg_text(out, page->diff_why);
        put(out, "</p>\n");
        return;
    }
    if (page->diff->first_wrong >= 0) {
        put(out, "<div class=\"charts\">\n");
        figure(out, "Where the first wrong dataset differs.", page, dp_page_chart_mismatches);
        figure(out, "How far: 0 on the axis is one code or one ulp.", page,
               dp_page_chart_distances);
        put(out, "</div>\n");
    }
    put(out,
        "<div class=\"t\"><table><tr><th class=\"l\">stage</th><th class=\"l\">dataset</th><th "
        "class=\"l\">state</th><th>elements</th><th>mismatches</th></tr>\n");
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const dp_diff_dataset *set = &page->diff->set[d];
        const char *state = !set->dumped          ? "not in the dump"
                            : !set->compared      ? "nothing to compute it from"
                            : set->mismatches > 0 ? "differs"
                                                  : "same";
        put(out,
            "<tr%s><td class=\"l\">%s</td><td class=\"l\">%s</td><td "
            "class=\"l\">%s</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td></tr>\n",
            d == page->diff->first_wrong ? " class=\"best\"" : "", dp_dump_datasets[d].stage,
            dp_dump_datasets[d].name, state, set->elements, set->mismatches);
    }
    put(out, "</table></div>\n");
    for (size_t i = 0; i < page->diff->finding_count; i++) {
        const dp_diff_finding *f = &page->diff->findings[i];
        put(out, "<p><b>");
        dp_svg_text(out, f->name);
        put(out, "</b>: ");
        dp_svg_text(out, f->meaning);
        put(out, " (%" PRIu64 " mismatches become %" PRIu64 ")</p>\n", f->before, f->left);
    }
}

static void put_provenance(FILE *out, const dp_page *page)
{
    const dp_tensors *t = page->tensors;
    put(out, "<h2 id=\"provenance\">Provenance</h2>\n<div class=\"t\"><table>\n<tr><th class=\"l\">"
             "command</th><td class=\"l\"><code>");
    dp_svg_text(out, page->command);
    put(out,
        "</code></td></tr>\n<tr><th class=\"l\">made</th><td class=\"l\">%s by directp %s</td>"
        "</tr>\n<tr><th class=\"l\">input</th><td class=\"l\"><code>",
        page->date, dp_version());
    dp_svg_text(out, page->path);
    put(out,
        "</code>, %" PRIu64 " bytes</td></tr>\n<tr><th class=\"l\">SHA-256</th><td class=\"l\">"
        "<code>%s</code></td></tr>\n<tr><th class=\"l\">tensors</th><td class=\"l\">",
        page->bytes, page->sha256);
    put(out,
        "batch %zu, %zu query heads, %zu key heads, %zu queries, %zu keys, D = %zu, softmax scale "
        "%.9g, %s, %s</td></tr>\n<tr><th class=\"l\">model</th><td class=\"l\">",
        t->batch, t->q_heads, t->kv_heads, t->q_len, t->kv_len, t->dim, t->softmax_scale,
        t->causal ? "causal" : "not causal", t->format);
    dp_svg_text(out, t->model != NULL ? t->model : "not named");
    if (t->layer >= 0) {
        put(out, ", layer %" PRId64, t->layer);
    }
    put(out, "</td></tr>\n<tr><th class=\"l\">written by</th><td class=\"l\">");
    dp_svg_text(out, t->producer != NULL ? t->producer : "an unnamed program");
    put(out,
        "</td></tr>\n</table></div>\n<p>Direct-P in epoch R with default switches, 128 anchors for "
        "the guards. Errors are against BF16 attention (tiles of 128 keys, online maximum) of the "
        "tensors as given, also where the mean key is subtracted, which exact attention does not "
        "notice; rows that are not finite are left out of an error and counted as lost, as are "
        "rows "
        "of zeros where BF16 attention has none. \"What error, and whence\" is against attention "
        "in "
        "binary64.</p>\n<p>The policy named at the top is the first in the table, K as given "
        "before "
        "smoothed, whose error is at most %.0f %% above the least of the Direct-P policies that "
        "keep "
        "every row (of all FP4 operators where none does); FP8 P and V are named where FP4 has "
        "more "
        "than %.2f times their error.</p>\n",
        100.0 * (DP_PAGE_SIMPLE - 1.0), DP_PAGE_FP8_FACTOR);
}

void dp_page_write(FILE *out, const dp_page *page)
{
    const char *slash = strrchr(page->path, '/');
    const char *name = slash != NULL ? slash + 1 : page->path;
    put(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\""
             "viewport\" content=\"width=device-width,initial-scale=1\"/><title>");
    dp_svg_text(out, name);
    put(out,
        ": attention in FP4</title><style>%s</style></head><body>\n<h1>Attention in FP4: ", STYLE);
    dp_svg_text(out, name);
    put(out, "</h1>\n<dl class=\"verdict\">\n");
    put_policy(out, page);
    put_guard(out, page);
    put_format(out, page);
    put_error(out, page);
    put_kernel(out, page);
    put(out, "</dl>\n");
    put_operators(out, page);
    put_guards(out, page);
    put_formats(out, page);
    put_parts(out, page);
    put_codes(out, page);
    put_diff(out, page);
    put_provenance(out, page);
    put(out, "</body></html>\n");
}
