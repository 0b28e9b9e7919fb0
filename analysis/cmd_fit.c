/* SPDX-License-Identifier: MIT
 *
 * directp fit: find the map from scores to codes that is best for a distribution or for tensors.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/attend_choice.h"
#include "analysis/commands.h"
#include "analysis/fit.h"
#include "analysis/options.h"
#include "analysis/report.h"

enum { SIGMAS = 16 };

typedef struct {
    int64_t seed, sms, seq, heads, dim, threads, degree, blocks, rows, starts, locals, bootstrap;
    int64_t grid, search_seed;
    bool random, json, csv, smooth_k, causal;
    double q_factor;
    const char *sigma, *objective, *policy, *epoch, *set, *sfu, *output, *weights;
    dp_style style;
} request;

static const char NOTES[] =
    "Objectives, smaller is better: match is the share of codes that differ from rounding 2^x;\n"
    "mass is |sum of the code values / that of 2^x - 1|, a curve in (A, B), along which the share\n"
    "of codes decides with weight 0.01; output is the relative L2 of the output against BF16;\n"
    "mix adds them with --weights MATCH,MASS,OUTPUT.\n"
    "x is the score in octaves above a value of 1, after the block exponent; a map is\n"
    "c0 + c1 x + c2 x^2 + c3 x^3, so an affine pair (A, B) has c1 = A and c0 = B. A polynomial is\n"
    "held at the point below which it would rise again. Constants are rounded to f32 before they\n"
    "are judged. Several files are several tensors; each head is left out once for held_out.\n"
    "plateau: the interval of the coefficient, the others fixed, inside which no code of the\n"
    "sample changes, found by enumerating all breakpoints; no value on the line keeps more codes\n"
    "than line_best.";

static bool parse(int *argc, char **argv, request *r, int *status)
{
    const dp_option options[] = {
        DP_TEXT("sigma", &r->sigma, "LIST", "scores from N(0, sigma), natural logits, in turn"),
        DP_INT("blocks", &r->blocks, 64, 1 << 20, "blocks of 32 of --sigma"),
        {.name = "random",
         .type = DP_OPTION_INT,
         .value = &r->seed,
         .argument = "SEED",
         .low = 0,
         .high = 9007199254740991.0,
         .given = &r->random,
         .help = "scores of Q, K, V drawn from N(0,1) as torch draws them on a CUDA device"},
        DP_INT("sms", &r->sms, 1, 65535, "multiprocessors of that device (GB200 152, B300 148)"),
        DP_INT("seq", &r->seq, 1, 1 << 17, "queries and keys of --random"),
        DP_INT("heads", &r->heads, 1, 256, "heads of --random"),
        DP_INT("dim", &r->dim, 1, 128, "head dimension of --random"),
        DP_REAL("q-factor", &r->q_factor, 1e-6, 1e6, "multiply Q by this"),
        DP_FLAG("smooth-k", &r->smooth_k, "subtract each head's mean key"),
        DP_FLAG("causal", &r->causal, "mask keys behind the query"),
        DP_INT("rows", &r->rows, 1, 4096, "query rows of each head that are judged"),
        DP_INT("degree", &r->degree, 1, 3, "1 affine, 2 quadratic, 3 cubic"),
        DP_CHOICE("objective", &r->objective, "match|mass|output|mix", "what is optimised"),
        DP_TEXT("weights", &r->weights, "LIST", "of match, mass and output in mix"),
        DP_TEXT("policy", &r->policy, "NAME", "whose schedule the map runs in"),
        DP_CHOICE("epoch", &r->epoch, "S|R", "sources modelled"),
        DP_TEXT("set", &r->set, "NAME=VALUE,...", "policy fields and switches"),
        DP_CHOICE("sfu", &r->sfu, "exact|h200", "model of EX2, RCP and LG2"),
        DP_INT("starts", &r->starts, 8, 65536, "scrambled Sobol points"),
        DP_INT("locals", &r->locals, 1, 64, "of them refined"),
        DP_INT("search-seed", &r->search_seed, 0, 9007199254740991.0, "of starts and bootstrap"),
        DP_INT("bootstrap", &r->bootstrap, 0, 10000, "replicates"),
        DP_INT("grid", &r->grid, 0, 257, "side of the landscape in -o; 0: none"),
        DP_OUTPUT(&r->output, "write maps and landscape (HDF5) for directp plot fit"),
        DP_THREADS(&r->threads),
        DP_JSON(&r->json),
        DP_CSV(&r->csv),
    };
    const dp_usage usage = {
        .verb = "fit",
        .operands = "[IN.h5...]",
        .summary = "Fit an affine, quadratic or cubic map from scores to E2M1 codes, and show what "
                   "it and the published constants do.",
        .notes = NOTES,
        .example =
            "directp fit --sigma 1 --objective match\n"
            "directp fit --random 20260814 --seq 1024 --heads 4 --objective output -o fit.h5\n"
            "directp fit data/real/qwen15_layer00.h5 --objective mix --weights 1,1,4",
        .least = 0,
        .most = 16,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    *status = dp_options_parse(&usage, argc, argv);
    return *status == DP_CONTINUE;
}

static bool weights_of(const request *r, dp_fit_weights *w, dp_error *error)
{
    double values[3];
    size_t count = 0;
    if (strcmp(r->objective, "mix") != 0) {
        *w = strcmp(r->objective, "match") == 0  ? (dp_fit_weights){1, 0, 0}
             : strcmp(r->objective, "mass") == 0 ? (dp_fit_weights){0.01, 1, 0}
                                                 : (dp_fit_weights){0, 0, 1};
        return true;
    }
    if (!dp_parse_f64_list("--weights", r->weights, 0, 1e6, values, 3, &count, error)) {
        return false;
    }
    *w = (dp_fit_weights){values[0], values[1], values[2]};
    return (count == 3 && values[0] + values[1] + values[2] > 0.0) ||
           dp_fail(error, "--weights %s: not three weights, one above 0: give MATCH,MASS,OUTPUT",
                   r->weights);
}

static bool add_inputs(const request *r, const dp_attend_inputs *inputs, bool outputs,
                       dp_fit_sample *sample, dp_error *error)
{
    dp_direct_p launch;
    dp_mma_switches mma = {0};
    return dp_launch_choice(r->policy, r->epoch, r->set, r->sfu, dp_attention_scale(&inputs->in),
                            &launch, &mma, error) &&
           dp_fit_sample_attention(sample, inputs, &launch, (size_t)r->rows, outputs, error);
}

static bool sample_of(const request *r, int argc, char **argv, bool outputs, dp_fit_sample *sample,
                      dp_error *error)
{
    const dp_attend_transform transform = {
        .smooth_k = r->smooth_k, .q_factor = r->q_factor, .causal = r->causal};
    sample->threads = (int)r->threads;
    if ((argc > 1) + r->random + (r->sigma != NULL) != 1) {
        return dp_fail(error, "fit: one source is needed: files, --random SEED or --sigma LIST");
    }
    if (r->sigma != NULL) {
        double sigmas[SIGMAS];
        size_t count = 0;
        if (outputs) {
            return dp_fail(error, "--sigma: scores alone have no output: give files or --random");
        }
        return dp_parse_f64_list("--sigma", r->sigma, 1e-3, 1e3, sigmas, SIGMAS, &count, error) &&
               dp_fit_sample_gaussian(sample, sigmas, count, (size_t)r->blocks,
                                      (uint64_t)r->search_seed, error);
    }
    bool good = true;
    for (int i = 1; good && i < (r->random ? 2 : argc); i++) {
        dp_attend_inputs inputs;
        dp_tensors tensors;
        if (r->random) {
            good = dp_attend_random((uint64_t)r->seed, (int)r->sms, 1, (size_t)r->seq,
                                    (size_t)r->heads, (size_t)r->heads, (size_t)r->dim,
                                    (int)r->threads, &transform, &inputs, error);
        } else {
            good = dp_tensors_load(argv[i], &tensors, error);
            if (good) {
                good = dp_attend_from_tensors(&tensors, argv[i], &transform, &inputs, error);
                dp_tensors_free(&tensors);
            }
        }
        if (good) {
            good = add_inputs(r, &inputs, outputs, sample, error);
            dp_attend_inputs_free(&inputs);
        }
    }
    return good;
}

static const dp_column MAP_COLUMNS[] = {{"map", NULL, -1}, {"c0", NULL, -1},    {"c1", NULL, -1},
                                        {"c2", NULL, -1},  {"c3", NULL, -1},    {"match", NULL, 6},
                                        {"mass", NULL, 6}, {"output", NULL, 6}, {"loss", NULL, 6}};
static const dp_column RANGE_COLUMNS[] = {
    {"coefficient", NULL, -1},  {"value", NULL, -1},       {"boot_low", NULL, 6},
    {"boot_high", NULL, 6},     {"plateau_low", NULL, 9},  {"plateau_high", NULL, 9},
    {"codes_inside", NULL, -1}, {"codes_below", NULL, -1}, {"codes_above", NULL, -1},
    {"line_best", NULL, -1},    {"breakpoints", NULL, -1}};
static const dp_column CHECK_COLUMNS[] = {
    {"scores", NULL, -1},  {"visits", NULL, -1},  {"folds", NULL, -1},   {"held_in", NULL, 6},
    {"held_out", NULL, 6}, {"loss_low", NULL, 6}, {"loss_high", NULL, 6}};

static void add_maps(dp_report *report, const dp_fit_study *study, const dp_fit_sample *sample,
                     dp_fit_weights weights)
{
    for (size_t m = 0; m < study->maps; m++) {
        dp_fit_sums sums[DP_FIT_GROUPS];
        dp_fit_evaluate(sample, &study->map[m], sample->rows != NULL, sums);
        const dp_fit_measure x = dp_fit_measure_of(sums, NULL, sample->groups);
        dp_report_text(report, study->name[m]);
        for (int k = 0; k < DP_FIT_COEFFICIENTS; k++) {
            if (k <= study->map[m].degree && study->map[m].degree > 0) {
                dp_report_f32(report, study->map[m].c[k]);
            } else {
                dp_report_blank(report);
            }
        }
        dp_report_f64(report, x.match);
        dp_report_f64(report, x.mass);
        if (sample->rows != NULL) {
            dp_report_f64(report, x.output);
        } else {
            dp_report_blank(report);
        }
        dp_report_f64(report, dp_fit_loss(x, weights));
    }
}

static bool add_ranges(dp_report *report, const dp_fit_sample *sample, const dp_fit_result *result,
                       dp_error *error)
{
    for (int k = 0; k <= result->best.degree; k++) {
        char name[8];
        dp_fit_plateau p;
        if (!dp_fit_plateau_find(sample, &result->best, k, true, &p, error)) {
            return false;
        }
        (void)snprintf(name, sizeof name, "c%d", k);
        dp_report_text(report, name);
        dp_report_f32(report, result->best.c[k]);
        dp_report_f64(report, result->low[k]);
        dp_report_f64(report, result->high[k]);
        dp_report_f64(report, p.low);
        dp_report_f64(report, p.high);
        dp_report_i64(report, (int64_t)p.matched);
        dp_report_i64(report, (int64_t)p.below);
        dp_report_i64(report, (int64_t)p.above);
        dp_report_i64(report, (int64_t)p.best);
        dp_report_i64(report, (int64_t)p.breakpoints);
    }
    return true;
}

static void add_check(dp_report *report, const dp_fit_sample *sample, const dp_fit_result *result)
{
    dp_report_i64(report, (int64_t)sample->count);
    dp_report_i64(report, (int64_t)result->visit_count);
    dp_report_i64(report, result->folds);
    dp_report_f64(report, result->held_in);
    dp_report_f64(report, result->held_out);
    dp_report_f64(report, result->loss_low);
    dp_report_f64(report, result->loss_high);
}

static bool print_all(const request *r, dp_report *const reports[3], dp_error *error)
{
    static const char *const keys[3] = {"maps", "coefficients", "search"};
    if (r->style != DP_STYLE_JSON) {
        bool good = true;
        for (int i = 0; good && i < 3; i++) {
            if (i > 0) {
                (void)printf("\n");
            }
            good = dp_report_print(reports[i], r->style, stdout, error);
        }
        return good;
    }
    dp_json json;
    dp_json_start(&json, stdout);
    dp_json_object(&json);
    bool good = true;
    for (int i = 0; good && i < 3; i++) {
        dp_json_key(&json, keys[i]);
        good = dp_report_json(reports[i], &json, error);
    }
    dp_json_close(&json);
    dp_json_finish(&json);
    return good;
}

static bool print_result(const request *r, const dp_fit_study *study, const dp_fit_sample *sample,
                         const dp_fit_result *result, dp_fit_weights weights, dp_error *error)
{
    dp_report *reports[3] = {
        dp_report_new("Maps on this sample", MAP_COLUMNS, sizeof MAP_COLUMNS / sizeof *MAP_COLUMNS),
        dp_report_new("The fitted map: bootstrap intervals and plateaus", RANGE_COLUMNS,
                      sizeof RANGE_COLUMNS / sizeof *RANGE_COLUMNS),
        dp_report_new("The search: loss on what was fitted and on what was left out", CHECK_COLUMNS,
                      sizeof CHECK_COLUMNS / sizeof *CHECK_COLUMNS)};
    bool good = reports[0] != NULL && reports[1] != NULL && reports[2] != NULL;
    if (good) {
        add_maps(reports[0], study, sample, weights);
        add_check(reports[2], sample, result);
        good = add_ranges(reports[1], sample, result, error) && print_all(r, reports, error);
    } else {
        (void)dp_fail(error, "fit: not enough memory for the report");
    }
    for (int i = 0; i < 3; i++) {
        dp_report_free(reports[i]);
    }
    return good;
}

static void name_map(dp_fit_study *study, const char *name, dp_fit_map map)
{
    (void)snprintf(study->name[study->maps], DP_FIT_NAME, "%s", name);
    study->map[study->maps++] = map;
}

/* The fitted map, the ideal one, and those of the policies. */
static void collect_maps(dp_fit_study *study, const dp_fit_result *result)
{
    name_map(study, "fitted", result->best);
    name_map(study, "ideal", (dp_fit_map){.degree = 0, .floor = -INFINITY});
    static const char *const names[] = {"fast",        "accurate",  "wan",
                                        "affine-nvnv", "quadratic", "cubic"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        dp_forward_policy policy;
        if (dp_forward_policy_find(names[i], &policy, NULL)) {
            dp_fit_map map = {.degree = policy.degree, .floor = policy.map_floor};
            memcpy(map.c, policy.coefficient, sizeof map.c);
            name_map(study, names[i], map);
        }
    }
}

static bool save(const request *r, int argc, char **argv, dp_fit_study *study,
                 const dp_fit_sample *sample, const dp_fit_options *options, dp_error *error)
{
    if (r->output == NULL) {
        return true;
    }
    study->grid = r->degree == 1 && r->grid > 1 ? (size_t)r->grid : 0;
    study->b_low = options->low[0];
    study->b_high = options->high[0];
    study->a_low = options->low[1];
    study->a_high = options->high[1];
    (void)snprintf(study->objective, sizeof study->objective, "%s", r->objective);
    if (r->random) {
        (void)snprintf(study->source, sizeof study->source, "N(0,1) seed %lld S=%lld H=%lld",
                       (long long)r->seed, (long long)r->seq, (long long)r->heads);
    } else {
        (void)snprintf(study->source, sizeof study->source, "%s%.200s",
                       r->sigma != NULL ? "Gaussian logits, sigma " : "",
                       r->sigma != NULL ? r->sigma : argv[1]);
    }
    return dp_fit_study_fill(study, sample, options, error) &&
           dp_fit_study_save(study, r->output, (const char *const *)argv + 1,
                             r->random || r->sigma != NULL ? 0 : (size_t)argc - 1, error);
}

static bool fit(const request *r, int argc, char **argv, dp_error *error)
{
    /* c0..c3 by degree: wide enough for every published map. */
    static const double low[3][4] = {{0.2, 0.4, 0, 0}, {0.2, 0.2, 0, 0}, {0.2, 0.1, 0, 0}};
    static const double high[3][4] = {{1.8, 2.4, 0, 0}, {1.8, 2, 0.8, 0}, {1.8, 2, 0.8, 0.3}};
    dp_fit_options options = {.degree = (int)r->degree,
                              .starts = (size_t)r->starts,
                              .locals = (size_t)r->locals,
                              .seed = (uint64_t)r->search_seed,
                              .bootstrap = (size_t)r->bootstrap};
    memcpy(options.low, low[r->degree - 1], sizeof options.low);
    memcpy(options.high, high[r->degree - 1], sizeof options.high);
    dp_fit_sample sample = {0};
    dp_fit_result result = {0};
    dp_fit_study study = {0};
    bool good = weights_of(r, &options.weights, error) &&
                sample_of(r, argc, argv, options.weights.output > 0.0, &sample, error) &&
                dp_fit_search(&sample, &options, &result, error);
    if (good) {
        collect_maps(&study, &result);
        good = print_result(r, &study, &sample, &result, options.weights, error) &&
               save(r, argc, argv, &study, &sample, &options, error);
    }
    dp_fit_study_free(&study);
    dp_fit_result_free(&result);
    dp_fit_sample_free(&sample);
    return good;
}

int dp_cmd_fit(int argc, char **argv)
{
    request r = {.sms = 152,
                 .seq = 1024,
                 .heads = 4,
                 .dim = 128,
                 .degree = 1,
                 .blocks = 4096,
                 .rows = 32,
                 .starts = 128,
                 .locals = 3,
                 .bootstrap = 200,
                 .grid = 33,
                 .search_seed = 20260730,
                 .q_factor = 1.0,
                 .objective = "match",
                 .weights = "1,1,1",
                 .policy = "fast",
                 .epoch = "S",
                 .sfu = "exact"};
    int status = 0;
    if (!parse(&argc, argv, &r, &status)) {
        return status;
    }
    dp_error error = {""};
    if (!dp_style_of(r.json, r.csv, &r.style, &error) || !fit(&r, argc, argv, &error)) {
        return dp_report_error(&error);
    }
    return DP_EXIT_SAME;
}
