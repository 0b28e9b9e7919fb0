/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/commands.h"
#include "analysis/options.h"
#include "analysis/quantize_report.h"
#include "analysis/tensors.h"

typedef struct {
    dp_quantize_options how;
    const char *axis, *layout, *output;
    int64_t threads;
    bool json, csv, explain;
} quantize_options;

/* "FILE:/dataset" -> FILE and /dataset; a file of the whole name comes first. */
static bool split_operand(const char *operand, char path[DP_PATH_SIZE], const char **dataset,
                          dp_error *error)
{
    const char *colon = NULL;
    for (const char *at = operand; (at = strstr(at, ":/")) != NULL; at++) {
        colon = at;
    }
    *dataset = NULL;
    if (strlen(operand) >= DP_PATH_SIZE) {
        return dp_fail(error, "quantize: the path is too long: shorten it");
    }
    (void)snprintf(path, DP_PATH_SIZE, "%s", operand);
    if (colon != NULL && access(operand, F_OK) != 0) {
        path[colon - operand] = '\0';
        *dataset = colon + 1;
    }
    return true;
}

/* The arrays to quantize: one dataset, or q and k along the head dim and v along the keys. */
static bool load(const dp_h5 *file, const char *dataset, const quantize_options *o,
                 dp_quantize_subject *subjects, size_t *count, dp_error *error)
{
    static const char *const inputs[] = {"/inputs/q", "/inputs/k", "/inputs/v"};
    static const char *const axes[] = {"dim", "dim", "seq"};
    if (dataset != NULL) {
        *count = 1;
        return dp_quantize_load(file, dataset, &subjects[0], error) &&
               dp_quantize_axis(&subjects[0], o->axis, error);
    }
    if (!dp_h5_check_root(file, "tensors|dump", NULL, error)) {
        return false;
    }
    const bool folded = strcmp(o->how.format, "nvfp4-k64") == 0;
    for (*count = 0; *count < (folded ? 2u : 3u);) {
        dp_quantize_subject *s = &subjects[*count];
        const char *axis = o->axis;
        if (!dp_quantize_load(file, inputs[*count], s, error)) {
            (*count)++;
            return false;
        }
        if (axis == NULL && s->axes[0][0] == '\0' && s->shape.rank == 4) {
            axis = *count == 2 ? "2" : "3"; /* the order a file without axes has */
        }
        const bool good = dp_quantize_axis(s, axis != NULL ? axis : axes[*count], error);
        (*count)++;
        if (!good) {
            return false;
        }
    }
    return true;
}

/* policy, switches and source: what a later reader needs to know about the codes. */
static bool put_root(dp_h5_writer *w, const char *operand, const dp_quantize_method *m,
                     const quantize_options *o, dp_error *error)
{
    char switches[512];
    (void)snprintf(switches, sizeof switches, "format=%s\nrule=%s\nrounding=%s\noverflow=%s\n",
                   o->how.format, o->how.rule != NULL ? o->how.rule : "recipe",
                   o->how.rounding != NULL ? o->how.rounding : "recipe",
                   o->how.overflow != NULL ? o->how.overflow : "recipe");
    return dp_h5_put_text(w, "/", "policy", m->name, error) &&
           dp_h5_put_text(w, "/", "switches", switches, error) &&
           dp_h5_put_text(w, "/", "source", operand, error);
}

static bool write_output(const char *path, const char *operand, bool whole,
                         const dp_quantize_method *m, const quantize_options *o, dp_layout layout,
                         const dp_quantize_subject *subjects, const dp_quantize_result *results,
                         size_t count, dp_error *error)
{
    dp_h5_writer w;
    const char *const inputs[] = {path};
    dp_tensors tensors;
    memset(&tensors, 0, sizeof tensors);
    bool good = dp_h5_create(&w, o->output, "dump", inputs, 1, error);
    w.deflate = 4;
    good = good && put_root(&w, operand, m, o, error);
    if (good && whole) {
        good = dp_tensors_load(path, &tensors, error) && dp_tensors_put(&w, &tensors, error);
    }
    for (size_t i = 0; good && i < count; i++) {
        good = dp_quantize_put(&w, m, &subjects[i], &results[i], layout, error);
    }
    good = good && dp_h5_commit(&w, error);
    dp_h5_abandon(&w);
    dp_tensors_free(&tensors);
    return good;
}

/* NaN scales poison a row: say where, and let the exit status say so too. */
static int judge(const dp_quantize_subject *subjects, const dp_quantize_result *results,
                 size_t count)
{
    int status = DP_EXIT_SAME;
    for (size_t i = 0; i < count; i++) {
        if (results[i].scale_byte_nan > 0) {
            dp_report_warning("%s: %llu scale bytes are NaN, the first at block %zu (of all blocks "
                              "in order): look at the elements there",
                              subjects[i].name, (unsigned long long)results[i].scale_byte_nan,
                              results[i].first_nan[0]);
            status = DP_EXIT_DIFFERENT;
        }
    }
    return status;
}

static bool quantize(const char *operand, const quantize_options *o, const dp_quantize_method *m,
                     dp_layout layout, dp_style style, int *status, dp_error *error)
{
    char path[DP_PATH_SIZE];
    const char *dataset;
    dp_h5 file;
    dp_quantize_subject subjects[3];
    dp_quantize_result results[3];
    size_t count = 0;
    memset(subjects, 0, sizeof subjects);
    memset(results, 0, sizeof results);
    if (!split_operand(operand, path, &dataset, error) || !dp_h5_open(&file, path, error)) {
        return false;
    }
    bool good = load(&file, dataset, o, subjects, &count, error);
    dp_h5_close(&file);
    for (size_t i = 0; good && i < count; i++) {
        good = dp_quantize_run(m, &subjects[i], (int)o->threads, &results[i], error);
    }
    if (good && o->output != NULL) {
        good = write_output(path, operand, dataset == NULL, m, o, layout, subjects, results, count,
                            error);
    }
    good = good && dp_quantize_print(operand, m, subjects, results, count, style, error);
    *status = good ? judge(subjects, results, count) : DP_EXIT_ERROR;
    for (size_t i = 0; i < 3; i++) {
        free(subjects[i].values);
        dp_quantize_result_free(&results[i]);
    }
    return good;
}

static const char notes[] =
    "Formats without scales: e2m1 e2m3 e3m2 e4m3 e5m2 ue4m3 ue5m3 e4m3fnuz e5m2fnuz fp16 bf16.\n"
    "With block scales: nvfp4 (needs --recipe: te, modelopt, flat, ...), nvfp4-k64 (Q and K of\n"
    "head dim 128), mxfp4, mxfp6-e2m3, mxfp6-e3m2, mxfp8 (= mxfp8-e4m3), mxfp8-e5m2; the MX\n"
    "formats follow recipe OCP unless told otherwise. Scale rules (--rule): floor ceil rceil even\n"
    "round round-log2 floor-ratio best-l2, and amplitude (the RTE rule of Direct-P kernels).\n"
    "Without :/DATASET the arrays /inputs/q, k (along dim) and v (along seq) are taken.\n"
    "\"flushed\" counts elements that are not 0 and decode to 0. Exit status 1: a scale is NaN.";

static int parse(quantize_options *o, int *argc, char **argv)
{
    const dp_option options[] = {
        DP_TEXT("format", &o->how.format, "NAME", "target format, see below"),
        DP_TEXT("recipe", &o->how.recipe, "NAME", "whose block quantizer to follow"),
        DP_TEXT("rule", &o->how.rule, "NAME", "E8M0 scale rule in place of the recipe's"),
        DP_TEXT("rounding", &o->how.rounding, "NAME",
                "payload rounding in place of the recipe's: rne, rz, ru, rd, ties-zero, ties-away"),
        DP_TEXT("overflow", &o->how.overflow, "NAME",
                "beyond the largest value: satfinite, nonsat or ieee754 (default satfinite; rz, ru "
                "and rd need one)"),
        DP_TEXT("nan", &o->how.nan, "NAME",
                "NaN without scales: ptx, signed, mldtypes, zero, error (default ptx)"),
        DP_TEXT("via", &o->how.via, "NAME",
                "round to f16 or bf16 first, to reproduce a kernel that does; without scales"),
        DP_INT("block", &o->how.block, 0, 4096, "elements a scale covers; 0 is the recipe's"),
        DP_TEXT("axis", &o->axis, "AXIS",
                "axis blocks run along: a name such as seq, or an index, negative from the end "
                "(default the last)"),
        DP_CHOICE("layout", &o->layout, "linear|128x4|sm120|128x4-swapped",
                  "order of the scale bytes in the output"),
        DP_OUTPUT(&o->output, "write payload, scales and global scale to this HDF5 file"),
        DP_FLAG("explain", &o->explain, "print the formulas and stop"),
        DP_THREADS(&o->threads),
        DP_JSON(&o->json),
        DP_CSV(&o->csv)};
    const dp_usage usage = {
        .verb = "quantize",
        .operands = "IN.h5[:/DATASET]",
        .summary = "Quantize an array, write the codes and scales, and report the error.",
        .notes = notes,
        .example = "directp quantize in.h5 --format nvfp4 --recipe te -o out.h5\n"
                   "  directp quantize in.h5:/inputs/v --format mxfp4 --rule amplitude --axis seq",
        .least = 0,
        .most = 1,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    return dp_options_parse(&usage, argc, argv);
}

int dp_cmd_quantize(int argc, char **argv)
{
    quantize_options o = {.layout = "linear"};
    dp_error error = {""};
    dp_style style;
    dp_layout layout;
    dp_quantize_method method;
    int status = parse(&o, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    if (o.how.format == NULL) {
        (void)dp_fail(&error, "--format: it is missing: see directp quantize --help");
        return dp_report_error(&error);
    }
    if (!dp_style_of(o.json, o.csv, &style, &error) || !dp_layout_find(o.layout, &layout) ||
        !dp_quantize_method_of(&o.how, &method, &error)) {
        return dp_report_error(&error);
    }
    if (o.explain && style != DP_STYLE_TEXT) {
        (void)dp_fail(&error, "quantize: --explain prints text: leave --json and --csv out");
        return dp_report_error(&error);
    }
    if (o.explain) {
        dp_quantize_explain(&method);
        return DP_EXIT_SAME;
    }
    if (argc < 2) {
        (void)dp_fail(&error, "quantize: IN.h5 is missing: see directp quantize --help");
        return dp_report_error(&error);
    }
    if (method.direct && layout != DP_LAYOUT_LINEAR) {
        (void)dp_fail(&error, "--layout: %s has no scales to lay out: leave it out", method.name);
        return dp_report_error(&error);
    }
    return quantize(argv[1], &o, &method, layout, style, &status, &error) ? status
                                                                          : dp_report_error(&error);
}
