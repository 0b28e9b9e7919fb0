/* SPDX-License-Identifier: MIT
 *
 * directp fit: find the map from scores to codes that is best for a distribution or for tensors.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/attend_choice.h"
#include "analysis/commands.h"
#include "analysis/fit_print.h"
#include "analysis/options.h"

enum { SIGMAS = 16 };

typedef struct {
    int64_t seed, sms, seq, heads, dim, threads, degree, blocks, rows, starts, locals, bootstrap;
    int64_t grid, search_seed;
    bool random, json, csv, smooth_k, causal, no_causal;
    bool blocks_given, rows_given, policy_given, weights_given, grid_given;
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
    "held at the point below which it would rise again (floor). Constants are rounded to f32 "
    "first.\n"
    "Use them: directp attend --policy fast --set a=A,b=B, or\n"
    "--set map=polynomial,degree=2,c0=..,c1=..,c2=..,floor=..\n"
    "loss_low, loss_high: 95 % of the bootstrap's samples for that map; beaten: share of them in\n"
    "which it is worse than the fitted map. boot_low, boot_high: maps fitted to those samples.\n"
    "Region: the polygon of (A, B) in which no code of the sample changes its match. With "
    "--objective\n"
    "match and degree 1 no real A in 1/16..4 and B in -1..3 keeps more codes than bound (proved).\n"
    "Folds: every head is judged by a map fitted to the other heads only, beside the published "
    "maps.";

static bool parse(int *argc, char **argv, request *r, int *status)
{
    const dp_option options[] = {
        DP_TEXT("sigma", &r->sigma, "LIST", "scores from N(0, sigma), natural logits, in turn"),
        {.name = "blocks",
         .type = DP_OPTION_INT,
         .value = &r->blocks,
         .argument = "N",
         .low = 64,
         .high = 1 << 20,
         .given = &r->blocks_given,
         .help = "blocks of 32 of --sigma"},
        {.name = "random",
         .type = DP_OPTION_INT,
         .value = &r->seed,
         .argument = "SEED",
         .low = 0,
         .high = 9007199254740991.0,
         .given = &r->random,
         .help = "scores of Q, K, V drawn from N(0,1) as torch draws them on a CUDA device"},
        DP_INT_RANDOM("sms", &r->sms, 1, 65535, &r->random,
                      "multiprocessors of that device (GB200 152, B300 148)"),
        DP_INT_RANDOM("seq", &r->seq, 1, 1 << 17, &r->random, "queries and keys of --random"),
        DP_INT_RANDOM("heads", &r->heads, 1, 256, &r->random, "heads of --random"),
        DP_INT_RANDOM("dim", &r->dim, 1, 128, &r->random, "head dimension of --random"),
        DP_REAL("q-factor", &r->q_factor, 1e-6, 1e6, "multiply Q by this"),
        DP_FLAG("smooth-k", &r->smooth_k, "subtract each head's mean key"),
        DP_FLAG("causal", &r->causal, "mask keys behind the query"),
        DP_FLAG("no-causal", &r->no_causal, "see all keys, whatever the file says"),
        {.name = "rows",
         .type = DP_OPTION_INT,
         .value = &r->rows,
         .argument = "N",
         .low = 1,
         .high = 4096,
         .given = &r->rows_given,
         .help = "query rows of each head that are judged"},
        DP_INT("degree", &r->degree, 1, 3, "1 affine, 2 quadratic, 3 cubic"),
        DP_CHOICE("objective", &r->objective, "match|mass|output|mix", "what is optimised"),
        {.name = "weights",
         .type = DP_OPTION_TEXT,
         .value = &r->weights,
         .argument = "LIST",
         .given = &r->weights_given,
         .help = "of match, mass and output in mix"},
        {.name = "policy",
         .type = DP_OPTION_TEXT,
         .value = &r->policy,
         .argument = "NAME",
         .given = &r->policy_given,
         .help = "whose schedule the map runs in"},
        DP_CHOICE("epoch", &r->epoch, "S|R", "sources modelled"),
        DP_TEXT("set", &r->set, "NAME=VALUE,...", "policy fields and switches"),
        DP_CHOICE("sfu", &r->sfu, "exact|h200", "model of EX2, RCP and LG2"),
        DP_INT("starts", &r->starts, 8, 65536, "scrambled Sobol points"),
        DP_INT("locals", &r->locals, 1, 64, "of them refined"),
        DP_INT("search-seed", &r->search_seed, 0, 9007199254740991.0, "of starts and bootstrap"),
        DP_INT("bootstrap", &r->bootstrap, 0, 10000, "replicates, 40 or more; 0: none"),
        {.name = "grid",
         .type = DP_OPTION_INT,
         .value = &r->grid,
         .argument = "N",
         .low = 0,
         .high = 257,
         .given = &r->grid_given,
         .help = "side of the landscape in -o; 0: none"},
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

/* Options that would be ignored, and numbers that promise what they cannot give. */
static bool check_options(const request *r, int argc, dp_error *error)
{
    if ((argc > 1) + r->random + (r->sigma != NULL) != 1) {
        return dp_fail(error, "fit: one source is needed: files, --random SEED or --sigma LIST");
    }
    if (r->sigma == NULL && r->blocks_given) {
        return dp_fail(error, "--blocks: they are drawn for --sigma only: leave it out");
    }
    if (r->sigma != NULL && (r->rows_given || r->policy_given)) {
        return dp_fail(error, "%s: scores of --sigma have no rows and no schedule: leave it out",
                       r->rows_given ? "--rows" : "--policy");
    }
    if (r->weights_given && strcmp(r->objective, "mix") != 0) {
        return dp_fail(error, "--weights: objective %s has none: give --objective mix",
                       r->objective);
    }
    if (r->grid_given && (r->output == NULL || r->degree != 1) && r->grid > 0) {
        return dp_fail(error, "--grid: the landscape is of affine maps and is written to a file: "
                              "give -o FILE and --degree 1");
    }
    return r->bootstrap == 0 || r->bootstrap >= DP_FIT_REPLICATES ||
           dp_fail(
               error,
               "--bootstrap %lld: too few for an interval of 95 per cent: give 0, or %d or more",
               (long long)r->bootstrap, DP_FIT_REPLICATES);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool add_tensors(const request *r, const char *path, bool outputs, dp_fit_sample *sample,
                        dp_error *error)
{
    const dp_attend_transform transform = {.smooth_k = r->smooth_k,
                                           .q_factor = r->q_factor,
                                           .causal = r->causal,
                                           .no_causal = r->no_causal};
    const dp_inputs_request wanted = {.random = r->random,
                                      .seed = r->seed,
                                      .sms = r->sms,
                                      .batch = 1,
                                      .seq = r->seq,
                                      .heads = r->heads,
                                      .dim = r->dim,
                                      .threads = (int)r->threads,
                                      .transform = transform};
    dp_attend_inputs inputs;
    dp_direct_p launch;
    dp_mma_switches mma = {0};
    if (!dp_inputs_choice("fit", &wanted, path, &inputs, error)) {
        return false;
    }
    const bool good = dp_launch_choice(r->policy, r->epoch, r->set, r->sfu,
                                       dp_attention_scale(&inputs.in), &launch, &mma, error) &&
                      dp_fit_sample_attention(sample, &inputs, &launch, (size_t)r->rows, outputs,
                                              path != NULL ? base_name(path) : "random", error);
    dp_attend_inputs_free(&inputs);
    return good;
}

static bool sample_of(const request *r, int argc, char **argv, bool outputs, dp_fit_sample *sample,
                      dp_error *error)
{
    sample->threads = (int)r->threads;
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
    bool good = !r->random || add_tensors(r, NULL, outputs, sample, error);
    for (int i = 1; good && i < argc; i++) {
        good = add_tensors(r, argv[i], outputs, sample, error);
    }
    return good && (sample->count > 0 ||
                    dp_fail(error, "fit: every score is masked: give more rows or --no-causal"));
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
    /* The proof looks further than the landscape: the fitted pair has to be on it. */
    const dp_fit_map *best = &study->map[0];
    study->a_low = fmin(study->a_low, floor(10.0 * (double)best->c[1] - 0.5) / 10.0);
    study->a_high = fmax(study->a_high, ceil(10.0 * (double)best->c[1] + 0.5) / 10.0);
    study->b_low = fmin(study->b_low, floor(10.0 * (double)best->c[0] - 0.5) / 10.0);
    study->b_high = fmax(study->b_high, ceil(10.0 * (double)best->c[0] + 0.5) / 10.0);
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
    bool good = check_options(r, argc, error) && weights_of(r, &options.weights, error) &&
                sample_of(r, argc, argv, options.weights.output > 0.0, &sample, error) &&
                dp_fit_search(&sample, &options, &result, error);
    if (good) {
        collect_maps(&study, &result);
        good = save(r, argc, argv, &study, &sample, &options, error) && /* `| head` ends us */
               dp_fit_print(r->style, &study, &sample, &options, &result, error);
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
                 .grid = 49,
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
