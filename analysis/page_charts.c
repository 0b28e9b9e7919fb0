/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "analysis/page.h"
#include "analysis/svg.h"

enum { MOST_HEADS = 48 }; /* drawn; tables hold all */

static const char *const CODE_VALUES[DP_CODE_COUNT] = {"0", "0.5", "1", "1.5", "2", "3", "4", "6"};

static size_t drawn_heads(const dp_page *page)
{
    return page->heads < MOST_HEADS ? page->heads : MOST_HEADS;
}

/* "head 0", "head 1", ... */
typedef struct {
    char text[MOST_HEADS][32];
    const char *names[MOST_HEADS];
} head_list;

static const char *const *head_names(head_list *list, size_t count)
{
    for (size_t h = 0; h < count; h++) {
        (void)snprintf(list->text[h], sizeof list->text[h], "head %zu", h);
        list->names[h] = list->text[h];
    }
    return list->names;
}

/* The decade of 1, 2, 5 that holds all finite positive values, at most from 1e-4 to 10. */
static dp_svg_axis log_axis(const double *values, size_t count, const char *label)
{
    static const double steps[] = {1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02,
                                   0.05, 0.1,  0.2,  0.5,  1.0,  2.0,  5.0,  10.0};
    enum { STEPS = sizeof steps / sizeof steps[0] };
    double least = 1.0;
    double most = 1e-4;
    for (size_t i = 0; i < count; i++) {
        if (isfinite(values[i]) && values[i] > 0.0) {
            least = fmin(least, values[i]);
            most = fmax(most, values[i]);
        }
    }
    dp_svg_axis axis = {.low = steps[0], .high = steps[STEPS - 1], .log = true, .label = label};
    for (int i = 0; i < STEPS; i++) {
        axis.low = steps[i] <= least && steps[i] < 1.0 ? steps[i] : axis.low;
        axis.high = steps[STEPS - 1 - i] >= most ? steps[STEPS - 1 - i] : axis.high;
    }
    axis.high = axis.high > axis.low ? axis.high : 10.0 * axis.low;
    return axis;
}

void dp_page_chart_operators(FILE *out, const dp_page *page)
{
    const char *names[DP_PAGE_OPERATORS];
    double error[2][DP_PAGE_OPERATORS];
    bool lost[2][DP_PAGE_OPERATORS];
    double all[2 * DP_PAGE_OPERATORS];
    size_t count = 0;
    for (int i = 0; i < DP_PAGE_OPERATORS; i++) {
        for (int which = 0; page->run[i].present && which < 2; which++) {
            names[count] = dp_page_operators[i].name;
            error[which][count] = page->run[i].whole[which].rel_l2;
            lost[which][count] = dp_guard_lost(&page->run[i].whole[which]) > 0;
            /* BF16 lies far below the others and would set the axis */
            const bool far = dp_page_operators[i].class == DP_PAGE_BF16;
            all[2 * count + (size_t)which] = far ? NAN : error[which][count];
        }
        count += page->run[i].present;
    }
    const dp_svg_series series[2] = {{"K as given", error[0], lost[0]},
                                     {"mean key subtracted", error[1], lost[1]}};
    const dp_svg_dots chart = {.title = "Relative L2 error of each operator",
                               .x = log_axis(all, 2 * count, "relative L2 error against BF16"),
                               .rows = names,
                               .row_count = count,
                               .series = series,
                               .series_count = 2,
                               .mark = "rows lost (not finite, or zero)"};
    dp_svg_dots_draw(out, &chart);
}

void dp_page_chart_plane(FILE *out, const dp_page *page)
{
    static const char *const groups[] = {"FP4 P and V", "FP8 P and V", "all FP8", "BF16 P and V"};
    const int which = page->verdict.smooth ? 1 : 0;
    const char *names[DP_PAGE_OPERATORS];
    double x[DP_PAGE_OPERATORS];
    double y[DP_PAGE_OPERATORS];
    size_t group[DP_PAGE_OPERATORS];
    size_t count = 0;
    for (int i = 0; i < DP_PAGE_OPERATORS; i++) {
        const dp_guard_effect *e = &page->run[i].whole[which];
        const bool far = dp_page_operators[i].class == DP_PAGE_BF16;
        if (page->run[i].present && !far && isfinite(e->cosine) && isfinite(e->rel_l2)) {
            names[count] = dp_page_operators[i].name;
            x[count] = fmax(1.0 - e->cosine, 1e-6);
            y[count] = e->rel_l2;
            group[count] = dp_page_operators[i].class;
            count++;
        }
    }
    const dp_svg_plane chart = {.title = "Operators in the plane of their errors",
                                .x = log_axis(x, count, "1 - cosine"),
                                .y = log_axis(y, count, "relative L2 error against BF16"),
                                .names = names,
                                .px = x,
                                .py = y,
                                .group = group,
                                .count = count,
                                .groups = groups,
                                .group_count = sizeof groups / sizeof groups[0]};
    dp_svg_plane_draw(out, &chart);
}

void dp_page_chart_rows(FILE *out, const dp_page *page)
{
    static const char *const bars[2] = {"K as given", "mean key subtracted"};
    head_list list;
    const size_t count = drawn_heads(page);
    const dp_guard *guard = &page->guard;
    double low[2 * MOST_HEADS];
    double high[2 * MOST_HEADS];
    for (size_t h = 0; h < count; h++) {
        for (size_t which = 0; which < 2; which++) {
            low[2 * h + which] = guard->heads[h].scores[which].bottom;
            high[2 * h + which] = guard->heads[h].scores[which].top;
        }
    }
    const dp_svg_ranges chart = {
        .title = "Row maxima of each head against what the unguarded path keeps",
        .x = {.low = -160.0, .high = 200.0, .label = "row maxima, octaves (log2 of exp(logit))"},
        .band_low = guard->low,
        .band_high = guard->high,
        .band = "kept without a guard",
        .rows = head_names(&list, count),
        .row_count = count,
        .low = low,
        .high = high,
        .bars = bars,
        .bar_count = 2};
    dp_svg_ranges_draw(out, &chart);
}

void dp_page_chart_choices(FILE *out, const dp_page *page)
{
    static const char *const names[DP_GUARD_CHOICES] = {"nothing", "smooth-k",  "anchor",
                                                        "both",    "exact max", "smooth-k + exact"};
    head_list list;
    const size_t count = drawn_heads(page);
    double error[DP_GUARD_CHOICES][MOST_HEADS];
    bool lost[DP_GUARD_CHOICES][MOST_HEADS];
    double all[DP_GUARD_CHOICES * MOST_HEADS];
    dp_svg_series series[DP_GUARD_CHOICES];
    for (size_t c = 0; c < DP_GUARD_CHOICES; c++) {
        for (size_t h = 0; h < count; h++) {
            error[c][h] = page->guard.heads[h].effect[c].rel_l2;
            lost[c][h] = dp_guard_lost(&page->guard.heads[h].effect[c]) > 0;
            all[c * count + h] = error[c][h];
        }
        series[c] = (dp_svg_series){names[c], error[c], lost[c]};
    }
    const dp_svg_dots chart = {
        .title = "What each choice does to the output of each head",
        .x = log_axis(all, DP_GUARD_CHOICES * count, "relative L2 error of the head"),
        .rows = head_names(&list, count),
        .row_count = count,
        .series = series,
        .series_count = DP_GUARD_CHOICES,
        .mark = "rows lost (not finite, or zero)"};
    dp_svg_dots_draw(out, &chart);
}

void dp_page_chart_range(FILE *out, const dp_page *page)
{
    double zero[DP_PAGE_FORMATS];
    double lost[DP_PAGE_FORMATS];
    double pv[DP_PAGE_FORMATS];
    for (int i = 0; i < DP_PAGE_FORMATS; i++) {
        zero[i] = page->range[i].zero_scale;
        lost[i] = page->range[i].lost_mass;
        pv[i] = page->range[i].pv_rel_l2;
    }
    const dp_svg_series series[3] = {{"error of PV (relative L2)", pv, NULL},
                                     {"probability stored as 0", lost, NULL},
                                     {"blocks with scale 0", zero, NULL}};
    const dp_svg_dots chart = {
        .title = "What each format keeps of the probabilities",
        .x = {.low = 1e-4, .high = 1.0, .log = true, .label = "share, or relative error"},
        .rows = dp_page_formats,
        .row_count = DP_PAGE_FORMATS,
        .series = series,
        .series_count = 3};
    dp_svg_dots_draw(out, &chart);
}

void dp_page_chart_scales(FILE *out, const dp_page *page)
{
    enum { SHOWN = 3 };
    static const int which[SHOWN] = {0, 1, 4};
    double at[DP_RANGE_SCALE_EXPONENTS];
    double share[SHOWN][DP_RANGE_SCALE_EXPONENTS];
    dp_svg_series series[SHOWN];
    int least = DP_RANGE_SCALE_EXPONENTS;
    int most = 0;
    double tallest = 0.0;
    for (int s = 0; s < SHOWN; s++) {
        const dp_range_counts *c = &page->range[which[s]].counts;
        for (int e = 0; e < DP_RANGE_SCALE_EXPONENTS; e++) {
            share[s][e] = (double)c->exponents[e] / (double)(c->blocks > 0 ? c->blocks : 1);
            least = share[s][e] > 0.005 && e < least ? e : least;
            most = share[s][e] > 0.005 && e > most ? e : most;
            tallest = fmax(tallest, share[s][e]);
        }
        series[s] = (dp_svg_series){dp_page_formats[which[s]], share[s], NULL};
    }
    least = least < most ? least - 1 : most - 4;
    least = least < 0 ? 0 : least;
    for (int e = least; e <= most + 1 && e < DP_RANGE_SCALE_EXPONENTS; e++) {
        at[e - least] = (double)(e - 127);
        for (int s = 0; s < SHOWN; s++) {
            share[s][e - least] = share[s][e]; /* least >= 0: never overwrites what is to come */
        }
    }
    const dp_svg_lines chart = {
        .title = "Exponents of the block scales",
        .x = {.low = least - 127.5,
              .high = most + 1 - 126.5,
              .label = "exponent of the block scale, log2 rounded down"},
        .y = {.low = 0.0, .high = tallest > 0.0 ? 1.05 * tallest : 1.0, .label = "share of blocks"},
        .at = at,
        .count = (size_t)(most + 2 - least),
        .series = series,
        .series_count = SHOWN,
        .steps = true};
    dp_svg_lines_draw(out, &chart);
}

void dp_page_chart_parts(FILE *out, const dp_page *page)
{
    head_list list;
    const size_t count = drawn_heads(page);
    double part[5][MOST_HEADS];
    for (size_t h = 0; h < count; h++) {
        const dp_error_parts *p = &page->parts[h];
        part[0][h] = p->qk;
        part[1][h] = p->p;
        part[2][h] = p->v;
        part[3][h] = p->rest;
        part[4][h] = p->total;
    }
    double all[5 * MOST_HEADS];
    dp_svg_series series[5];
    static const char *const names[5] = {"Q and K", "P", "V", "the rest", "total"};
    for (size_t s = 0; s < 5; s++) {
        series[s] = (dp_svg_series){names[s], part[s], NULL};
        memcpy(all + s * count, part[s], count * sizeof(double));
    }
    const dp_svg_dots chart = {.title = "Where the error of each head comes from",
                               .x = log_axis(all, 5 * count, "relative L2 error against exact"),
                               .rows = head_names(&list, count),
                               .row_count = count,
                               .series = series,
                               .series_count = 5};
    dp_svg_dots_draw(out, &chart);
}

void dp_page_chart_boundaries(FILE *out)
{
    static const double middle[7] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0};
    static const char *const rows[DP_PAGE_MAPS] = {"2^x", "fast", "accurate", "wan"};
    double edges[DP_PAGE_MAPS][7];
    for (int i = 0; i < DP_PAGE_MAPS; i++) {
        dp_forward_policy policy;
        const bool affine = i > 0 && dp_forward_policy_find(rows[i], &policy, NULL);
        for (int k = 0; k < 7; k++) {
            edges[i][k] =
                affine ? (middle[k] - (double)policy.coefficient[0]) / (double)policy.coefficient[1]
                       : log2(middle[k]);
        }
    }
    const dp_svg_strips chart = {
        .title = "Codes of each map over x",
        .x = {.low = -3.0, .high = 3.0, .label = "x, log2 of the value to be rounded"},
        .rows = rows,
        .row_count = DP_PAGE_MAPS,
        .edges = edges[0],
        .names = CODE_VALUES,
        .pieces = DP_CODE_COUNT};
    dp_svg_strips_draw(out, &chart);
}

void dp_page_chart_match(FILE *out, const dp_page *page)
{
    static const char *const names[2] = {"fast", "accurate"};
    double at[DP_DISTANCE_BINS - 1];
    double share[2][DP_DISTANCE_BINS - 1];
    dp_svg_series series[2];
    for (int i = 0; i < 2; i++) {
        const dp_code_match *m = &page->codes[i];
        for (int b = 0; b < DP_DISTANCE_BINS - 1; b++) {
            at[b] = (b + 0.5) * DP_DISTANCE_STEP;
            share[i][b] = m->distance_lanes[b] > 0
                              ? (double)m->distance_match[b] / (double)m->distance_lanes[b]
                              : NAN;
        }
        series[i] = (dp_svg_series){names[i], share[i], NULL};
    }
    const dp_svg_lines chart = {
        .title = "Codes equal to those of 2^x by the distance to a rounding boundary",
        .x = {.low = 0.0, .high = 2.0, .label = "distance of x to the nearest boundary of 2^x"},
        .y = {.low = 0.0, .high = 1.0, .label = "share of equal codes"},
        .at = at,
        .count = DP_DISTANCE_BINS - 1,
        .series = series,
        .series_count = 2};
    dp_svg_lines_draw(out, &chart);
}

void dp_page_chart_confusion(FILE *out, const dp_page *page, int which)
{
    double cells[DP_CODE_COUNT * DP_CODE_COUNT];
    for (int i = 0; i < DP_CODE_COUNT; i++) {
        int64_t lanes = 0;
        for (int k = 0; k < DP_CODE_COUNT; k++) {
            lanes += page->codes[which].confusion[i][k];
        }
        for (int k = 0; k < DP_CODE_COUNT; k++) {
            cells[i * DP_CODE_COUNT + k] =
                (double)page->codes[which].confusion[i][k] / (double)(lanes > 0 ? lanes : 1);
        }
    }
    const dp_svg_cells chart = {.title = "Codes made, by the code of 2^x, in percent of the row",
                                .cells = cells,
                                .rows = DP_CODE_COUNT,
                                .columns = DP_CODE_COUNT,
                                .row_names = CODE_VALUES,
                                .column_names = CODE_VALUES,
                                .x = "value of the code made",
                                .y = "value of the code of 2^x",
                                .most = 1.0,
                                .print = true};
    dp_svg_cells_draw(out, &chart);
}

void dp_page_chart_mismatches(FILE *out, const dp_page *page)
{
    const int id = page->diff->first_wrong;
    const dp_diff_dataset *set = &page->diff->set[id];
    const size_t all_rows = page->diff->map_rows[id];
    const size_t all_columns = page->diff->map_columns[id];
    const size_t rows = all_rows < DP_DIFF_MAP ? all_rows : DP_DIFF_MAP;
    const size_t columns = all_columns < DP_DIFF_MAP ? all_columns : DP_DIFF_MAP;
    double *cells = calloc(rows * columns + 1, sizeof *cells);
    double most = 1.0;
    char x[96];
    char y[96];
    for (size_t i = 0; cells != NULL && i < rows * columns; i++) {
        cells[i] = (double)set->map[i / columns][i % columns];
        most = fmax(most, cells[i]);
    }
    (void)snprintf(x, sizeof x, "column, 0 to %zu", all_columns > 0 ? all_columns - 1 : 0);
    (void)snprintf(y, sizeof y, "row, 0 (top) to %zu; darkest: %g mismatches",
                   all_rows > 0 ? all_rows - 1 : 0, most);
    const dp_svg_cells chart = {.title = "Where the first wrong dataset differs",
                                .cells = cells,
                                .rows = rows,
                                .columns = columns,
                                .x = x,
                                .y = y,
                                .most = most};
    if (cells != NULL && rows > 0 && columns > 0) {
        dp_svg_cells_draw(out, &chart);
    }
    free(cells);
}

void dp_page_chart_distances(FILE *out, const dp_page *page)
{
    const dp_diff_dataset *set = &page->diff->set[page->diff->first_wrong];
    double at[DP_DIFF_BUCKETS];
    double share[DP_DIFF_BUCKETS];
    int last = 1;
    double most = 0.0;
    for (int b = 1; b < DP_DIFF_BUCKETS - 1; b++) {
        at[b - 1] = b - 1;
        share[b - 1] = (double)set->histogram[b] / (double)set->mismatches;
        most = fmax(most, share[b - 1]);
        last = set->histogram[b] > 0 ? b : last;
    }
    const dp_svg_series series = {"mismatches", share, NULL};
    const dp_svg_lines chart = {
        .title = "How far the mismatches lie apart",
        .x = {.low = -0.5, .high = last + 0.5, .label = "log2 of the distance in codes or ulps"},
        .y = {.low = 0.0, .high = most > 0.0 ? 1.05 * most : 1.0, .label = "share of mismatches"},
        .at = at,
        .count = (size_t)last + 1,
        .series = &series,
        .series_count = 1,
        .steps = true};
    dp_svg_lines_draw(out, &chart);
}
