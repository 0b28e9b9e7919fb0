/* SPDX-License-Identifier: MIT */
#include "analysis/fit_print.h"

#include <math.h>
#include <stdlib.h>

static const dp_column MAP_COLUMNS[] = {
    {"map", NULL, -1},      {"c0", NULL, -1},    {"c1", NULL, -1},       {"c2", NULL, -1},
    {"c3", NULL, -1},       {"floor", NULL, -1}, {"monotone", NULL, -1}, {"match", NULL, 6},
    {"mass", NULL, 6},      {"output", NULL, 6}, {"loss", NULL, 6},      {"loss_low", NULL, 6},
    {"loss_high", NULL, 6}, {"beaten", NULL, 3}};
static const dp_column RANGE_COLUMNS[] = {
    {"coefficient", NULL, -1},  {"value", NULL, -1},       {"boot_low", NULL, 6},
    {"boot_high", NULL, 6},     {"plateau_low", NULL, 9},  {"plateau_high", NULL, 9},
    {"codes_inside", NULL, -1}, {"codes_below", NULL, -1}, {"codes_above", NULL, -1},
    {"line_best", NULL, -1},    {"breakpoints", NULL, -1}};
static const dp_column REGION_COLUMNS[] = {
    {"a_low", NULL, 9},   {"a_high", NULL, 9},   {"b_low", NULL, 9},  {"b_high", NULL, 9},
    {"area", NULL, -1},   {"corners", NULL, -1}, {"codes", NULL, -1}, {"bound", NULL, -1},
    {"proved", NULL, -1}, {"regions", NULL, -1}, {"boxes", NULL, -1}};
static const dp_column CORNER_COLUMNS[] = {{"corner", NULL, -1}, {"a", NULL, 12}, {"b", NULL, 12}};
static const dp_column SEARCH_COLUMNS[] = {
    {"scores", NULL, -1},   {"groups", NULL, -1},  {"visits", NULL, -1},  {"optimiser", NULL, -1},
    {"folds", NULL, -1},    {"held_in", NULL, 6},  {"held_out", NULL, 6}, {"replicates", NULL, -1},
    {"distinct", NULL, -1}, {"loss_low", NULL, 6}, {"loss_high", NULL, 6}};

enum { MAPS, RANGES, REGION, CORNERS, FOLDS, SEARCH, TABLES };

typedef struct {
    const dp_fit_study *study;
    const dp_fit_sample *sample;
    const dp_fit_options *options;
    const dp_fit_result *result;
    dp_fit_sums *sums[DP_FIT_MAPS]; /* [map][groups] */
    dp_column fold_columns[7 + DP_FIT_MAPS];
    dp_report *report[TABLES];
} printer;

static void number(dp_report *report, double value)
{
    if (isnan(value)) {
        dp_report_blank(report);
    } else {
        dp_report_f64(report, value);
    }
}

static void add_coefficients(dp_report *report, const dp_fit_map *map)
{
    for (int k = 0; k < DP_FIT_COEFFICIENTS; k++) {
        if (k <= map->degree && map->degree > 0) {
            dp_report_f32(report, map->c[k]);
        } else {
            dp_report_blank(report);
        }
    }
}

static bool add_maps(printer *p, dp_error *error)
{
    const dp_fit_sample *sample = p->sample;
    dp_report *report = p->report[MAPS];
    for (size_t m = 0; m < p->study->maps; m++) {
        const dp_fit_map *map = &p->study->map[m];
        dp_fit_evaluate(sample, map, DP_FIT_ALL, p->sums[m]);
        const dp_fit_measure x = dp_fit_measure_of(p->sums[m], NULL, sample->groups);
        dp_fit_spread spread;
        if (!dp_fit_spread_of(sample, p->options, p->sums[m], m > 0 ? p->sums[0] : NULL, &spread,
                              error)) {
            return false;
        }
        dp_report_text(report, p->study->name[m]);
        add_coefficients(report, map);
        number(report, map->floor > -INFINITY ? (double)map->floor : (double)NAN);
        dp_report_text(report, dp_fit_monotone(map) ? "yes" : "no");
        dp_report_f64(report, x.match);
        dp_report_f64(report, x.mass);
        number(report, sample->rows != NULL ? x.output : (double)NAN);
        dp_report_f64(report, dp_fit_loss(x, p->options->weights));
        number(report, spread.low);
        number(report, spread.high);
        number(report, spread.beaten);
    }
    return true;
}

static bool add_ranges(const printer *p, dp_error *error)
{
    const dp_fit_result *result = p->result;
    dp_report *report = p->report[RANGES];
    for (int k = 0; k <= result->best.degree; k++) {
        char name[8];
        dp_fit_plateau plateau;
        if (!dp_fit_plateau_find(p->sample, NULL, &result->best, k, true, &plateau, error)) {
            return false;
        }
        (void)snprintf(name, sizeof name, "c%d", k);
        dp_report_text(report, name);
        dp_report_f32(report, result->best.c[k]);
        number(report, result->replicates > 0 ? result->low[k] : (double)NAN);
        number(report, result->replicates > 0 ? result->high[k] : (double)NAN);
        dp_report_f64(report, plateau.low);
        dp_report_f64(report, plateau.high);
        dp_report_i64(report, (int64_t)plateau.matched);
        dp_report_i64(report, (int64_t)plateau.below);
        dp_report_i64(report, (int64_t)plateau.above);
        dp_report_i64(report, (int64_t)plateau.best);
        dp_report_i64(report, (int64_t)plateau.breakpoints);
    }
    return true;
}

/* The polygon around an affine map; of codes alone with the proof. */
static void add_region(const printer *p)
{
    const dp_fit_result *result = p->result;
    dp_report *report = p->report[REGION];
    dp_fit_cell cell = result->joint.cell;
    if (!result->joint_searched) {
        dp_fit_cell_around(p->sample, p->options->low, p->options->high, &result->best, &cell);
    }
    dp_report_f64(report, cell.a_low);
    dp_report_f64(report, cell.a_high);
    dp_report_f64(report, cell.b_low);
    dp_report_f64(report, cell.b_high);
    dp_report_f64(report, cell.area);
    dp_report_i64(report, cell.vertices);
    dp_report_i64(report, dp_fit_count(p->sample, NULL, &result->best));
    if (result->joint_searched) {
        dp_report_i64(report, result->joint.bound);
        dp_report_text(report, result->joint.count == result->joint.bound ? "yes" : "no");
        dp_report_i64(report, (int64_t)result->joint.cells);
        dp_report_i64(report, (int64_t)result->joint.boxes);
    } else {
        dp_report_blank(report);
        dp_report_text(report, "not asked");
        dp_report_blank(report);
        dp_report_blank(report);
    }
    for (int i = 0; i < cell.vertices; i++) {
        dp_report_i64(p->report[CORNERS], i);
        dp_report_f64(p->report[CORNERS], cell.a[i]);
        dp_report_f64(p->report[CORNERS], cell.b[i]);
    }
}

/* Published maps are judged on the unit that each fold leaves out, like the fitted one. */
static void add_folds(const printer *p)
{
    const dp_fit_result *result = p->result;
    dp_report *report = p->report[FOLDS];
    double mean[DP_FIT_MAPS] = {0};
    for (int u = 0; u < result->folds; u++) {
        uint32_t own[DP_FIT_GROUPS];
        for (int g = 0; g < p->sample->groups; g++) {
            own[g] = g / DP_FIT_UNIT_GROUPS == u;
        }
        dp_report_text(report, p->sample->unit[u].text);
        add_coefficients(report, &result->fold[u].map);
        dp_report_f64(report, result->fold[u].held_in);
        dp_report_f64(report, result->fold[u].held_out);
        for (size_t m = 2; m < p->study->maps; m++) {
            const double loss = dp_fit_loss(dp_fit_measure_of(p->sums[m], own, p->sample->groups),
                                            p->options->weights);
            mean[m] += loss / result->folds;
            dp_report_f64(report, loss);
        }
    }
    if (result->folds > 0) {
        dp_report_text(report, "mean");
        for (int k = 0; k < DP_FIT_COEFFICIENTS; k++) {
            dp_report_blank(report);
        }
        dp_report_f64(report, result->held_in);
        dp_report_f64(report, result->held_out);
        for (size_t m = 2; m < p->study->maps; m++) {
            dp_report_f64(report, mean[m]);
        }
    }
}

static void add_search(const printer *p)
{
    const dp_fit_result *result = p->result;
    dp_report *report = p->report[SEARCH];
    const bool folds = result->folds > 0;
    const bool drawn = result->replicates > 0;
    uint16_t filled[DP_FIT_GROUPS];
    dp_report_i64(report, (int64_t)p->sample->count);
    dp_report_i64(report, dp_fit_filled(p->sample, filled));
    dp_report_i64(report, (int64_t)result->visit_count);
    dp_report_text(report, dp_fit_refiner());
    dp_report_i64(report, result->folds);
    number(report, folds ? result->held_in : (double)NAN);
    number(report, folds ? result->held_out : (double)NAN);
    dp_report_i64(report, (int64_t)result->replicates);
    dp_report_i64(report, (int64_t)result->distinct);
    number(report, drawn ? result->loss_low : (double)NAN);
    number(report, drawn ? result->loss_high : (double)NAN);
}

static bool print_all(const printer *p, dp_style style, dp_error *error)
{
    static const char *const keys[TABLES] = {"maps",    "coefficients", "region",
                                             "corners", "folds",        "search"};
    bool good = true;
    if (style != DP_STYLE_JSON) {
        for (int i = 0; good && i < TABLES; i++) {
            if (dp_report_rows(p->report[i]) > 0) {
                (void)printf("%s", i > 0 ? "\n" : "");
                good = dp_report_print(p->report[i], style, stdout, error);
            }
        }
        return good;
    }
    dp_json json;
    dp_json_start(&json, stdout);
    dp_json_object(&json);
    for (int i = 0; good && i < TABLES; i++) {
        dp_json_key(&json, keys[i]);
        good = dp_report_json(p->report[i], &json, error);
    }
    dp_json_close(&json);
    dp_json_finish(&json);
    return good;
}

static bool allocate(printer *p, dp_error *error)
{
    static const char *const fixed[] = {"fold", "c0", "c1", "c2", "c3", "held_in", "held_out"};
    size_t n = 0;
    for (; n < sizeof fixed / sizeof fixed[0]; n++) {
        p->fold_columns[n] = (dp_column){fixed[n], NULL, n < 5 ? -1 : 6};
    }
    for (size_t m = 2; m < p->study->maps; m++) {
        p->fold_columns[n++] = (dp_column){p->study->name[m], NULL, 6};
    }
#define TABLE(title, columns) dp_report_new(title, columns, sizeof(columns) / sizeof(columns)[0])
    p->report[MAPS] = TABLE("Maps on this sample", MAP_COLUMNS);
    p->report[RANGES] = TABLE("The fitted map: bootstrap intervals and plateaus", RANGE_COLUMNS);
    p->report[REGION] = TABLE("Where no code changes its match", REGION_COLUMNS);
    p->report[CORNERS] = TABLE("Corners of that region", CORNER_COLUMNS);
    p->report[FOLDS] =
        dp_report_new("Loss on each head, fitted to the others, and of the published "
                      "maps there",
                      p->fold_columns, n);
    p->report[SEARCH] = TABLE("The search", SEARCH_COLUMNS);
#undef TABLE
    bool good = true;
    for (int i = 0; i < TABLES; i++) {
        good = good && p->report[i] != NULL;
    }
    for (size_t m = 0; m < p->study->maps; m++) {
        p->sums[m] = calloc((size_t)p->sample->groups, sizeof *p->sums[m]);
        good = good && p->sums[m] != NULL;
    }
    return good || dp_fail(error, "fit: not enough memory for the report");
}

bool dp_fit_print(dp_style style, const dp_fit_study *study, const dp_fit_sample *sample,
                  const dp_fit_options *options, const dp_fit_result *result, dp_error *error)
{
    printer p = {.study = study, .sample = sample, .options = options, .result = result};
    bool good = allocate(&p, error) && add_maps(&p, error) && add_ranges(&p, error);
    if (good) {
        if (result->best.degree == 1) {
            add_region(&p);
        }
        add_folds(&p);
        add_search(&p);
        good = print_all(&p, style, error);
    }
    for (int i = 0; i < TABLES; i++) {
        dp_report_free(p.report[i]);
    }
    for (size_t m = 0; m < DP_FIT_MAPS; m++) {
        free(p.sums[m]);
    }
    return good;
}
