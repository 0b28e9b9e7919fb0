/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "analysis/page.h"
#include "analysis/sha256.h"

const dp_page_operator dp_page_operators[DP_PAGE_OPERATORS] = {
    {"fast", "Direct-P, no row reference", DP_PAGE_FP4},
    {"wan", "Direct-P, constants of the Wan build", DP_PAGE_FP4},
    {"accurate", "Direct-P, 32 anchors, native lanes", DP_PAGE_FP4},
    {"guard-14b", "Direct-P, 128 anchors, M = 112, L = 14", DP_PAGE_FP4},
    {"fast+guard", "fast with the anchor advised here", DP_PAGE_FP4},
    {"ideal", "fast with exact 2^x", DP_PAGE_FP4},
    {"stabilised-nv-mx", "exact row maximum, MXFP4 P and V", DP_PAGE_FP4},
    {"stabilised", "exact row maximum, NVFP4 P and V", DP_PAGE_FP4},
    {"hao-nv-nv", "HAO, NVFP4 P and V", DP_PAGE_FP4},
    {"sage3", "SageAttention3 without smoothing", DP_PAGE_FP4},
    {"sage3-smooth", "SageAttention3, Q and K smoothed", DP_PAGE_FP4},
    {"hao-nv-fp8", "NVFP4 Q and K, FP8 P and V", DP_PAGE_FP8_PV},
    {"hao-nv-mxfp8", "NVFP4 Q and K, MXFP8 P and V", DP_PAGE_FP8_PV},
    {"fa4-fp8", "FlashAttention-4, all FP8", DP_PAGE_FP8},
    {"hao-nv-bf16", "NVFP4 Q and K, BF16 P and V", DP_PAGE_BF16_PV},
    {"fa4-bf16", "FlashAttention-4, all BF16", DP_PAGE_BF16},
};

const char *const dp_page_formats[DP_PAGE_FORMATS] = {"nvfp4-g1", "nvfp4-g448",   "ue5m3-g1",
                                                      "mxfp4",    "mxfp4-kernel", "e4m3-g448"};

typedef struct {
    const dp_attend_inputs *inputs[2]; /* as given, smoothed */
    uint16_t *o, *reference;
    float *lse;
    int threads;
    dp_page *page;
    dp_error *error;
} work;

/* The launch of a Direct-P operator; false where the operator is a route. */
static bool launch_of(const work *w, int i, int which, dp_direct_p *launch)
{
    const dp_switches switches = dp_switches_default();
    dp_forward_policy policy;
    const bool guarded = i == DP_PAGE_GUARDED;
    if (!dp_forward_policy_find(guarded ? "fast" : dp_page_operators[i].name, &policy, NULL)) {
        return false;
    }
    if (guarded) {
        policy = dp_guard_policy(&policy, w->page->guard.anchor, w->page->guard.pair[which]);
    }
    *launch = dp_direct_p_make(&policy, DP_EPOCH_R, &switches,
                               dp_attention_scale(&w->inputs[0]->in), NULL);
    return true;
}

static bool run_operator(const work *w, int i, int which)
{
    const dp_attention *in = &w->inputs[which]->in;
    const size_t size = in->queries * in->dim;
    dp_page_run *run = &w->page->run[i];
    dp_direct_p launch;
    dp_route route;
    bool good;
    if (launch_of(w, i, which, &launch)) {
        const dp_attend_run_options options = {
            .inputs = w->inputs[which], .launch = &launch, .threads = w->threads};
        good = dp_attend_run(&options, w->o, w->lse, w->error);
    } else {
        good = dp_route_find(dp_page_operators[i].name, &route, w->error) &&
               dp_route_run(in, &route, NULL, NULL, w->threads, w->o, w->lse, NULL, w->error);
    }
    run->present = good;
    run->head[which] = calloc(w->page->heads, sizeof *run->head[which]);
    if (!good || run->head[which] == NULL) {
        return dp_fail(w->error, "report: not enough memory");
    }
    for (size_t h = 0; h < w->page->heads; h++) {
        run->head[which][h] =
            dp_guard_effect_of(w->o + h * size, w->reference + h * size, in->queries, in->dim);
    }
    run->whole[which] =
        dp_guard_effect_of(w->o, w->reference, w->page->heads * in->queries, in->dim);
    return true;
}

static bool run_operators(const work *w)
{
    for (int i = 0; i < DP_PAGE_OPERATORS; i++) {
        if (i == DP_PAGE_GUARDED && !dp_guard_is_anchored(w->page->guard.together)) {
            continue;
        }
        if (!run_operator(w, i, 0) || !run_operator(w, i, 1)) {
            return false;
        }
    }
    return true;
}

static void run_range(const work *w)
{
    dp_range_format formats[DP_RANGE_FORMATS];
    size_t count = 0;
    char list[256] = "";
    dp_error error = {""};
    const dp_range_options options = {.block = 32, .rows = 256, .threads = w->threads};
    for (int i = 0; i < DP_PAGE_FORMATS; i++) {
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? "," : "",
                       dp_page_formats[i]);
    }
    w->page->has_range =
        dp_range_formats_parse(list, formats, &count, &error) &&
        dp_range_run(w->page->tensors, formats, count, &options, w->page->range, &error);
    (void)snprintf(w->page->range_why, sizeof w->page->range_why, "%s", error.text);
}

/* Codes of fast and accurate, and where the error of the better of the two comes from. */
static bool run_codes(const work *w)
{
    dp_page *page = w->page;
    const int which = page->verdict.smooth ? 1 : 0;
    const dp_attention *in = &w->inputs[which]->in;
    static const int shown[2] = {DP_PAGE_FAST, DP_PAGE_ACCURATE};
    dp_direct_p launch[2];
    for (int i = 0; i < 2; i++) {
        if (!launch_of(w, shown[i], which, &launch[i]) ||
            !dp_codes_run(in, &launch[i], NULL, w->threads, &page->codes[i], w->error)) {
            return false;
        }
    }
    const bool accurate = page->run[DP_PAGE_ACCURATE].whole[which].rel_l2 <
                          page->run[DP_PAGE_FAST].whole[which].rel_l2;
    const int best = accurate ? 1 : 0;
    page->parts_policy = dp_page_operators[shown[best]].name;
    page->parts = calloc(page->heads + 1, sizeof *page->parts);
    return page->parts != NULL &&
           dp_decompose(in, &launch[best], NULL, w->threads, page->parts, w->error);
}

/* The mismatches of a dump with stages. A dump that cannot be compared is no failure of the page.
 */
static void run_diff(const work *w)
{
    dp_page *page = w->page;
    dp_h5 file;
    dp_error error = {""};
    bool stages = false;
    if (!dp_h5_open(&file, page->path, &error)) {
        return;
    }
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        stages = stages || dp_h5_exists(&file, dp_dump_datasets[d].path);
    }
    dp_h5_close(&file);
    const dp_dump_overrides as_said = {0};
    if (stages && dp_dump_open(&page->dump, page->path, &as_said, &error)) {
        const dp_diff_job job = {.dump = &page->dump, .threads = w->threads};
        page->diff = dp_diff_run(&job, &error);
        if (page->diff == NULL) {
            dp_dump_close(&page->dump);
        }
    }
    (void)snprintf(page->diff_why, sizeof page->diff_why, "%s", error.text);
}

static void set_date(dp_page *page)
{
    const char *fixed = getenv("SOURCE_DATE_EPOCH");
    const time_t now = fixed != NULL ? (time_t)strtoll(fixed, NULL, 10) : time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) != NULL) {
        (void)strftime(page->date, sizeof page->date, "%Y-%m-%d %H:%M UTC", &utc);
    }
}

bool dp_page_measure(const char *path, const char *command, const dp_tensors *tensors, int threads,
                     dp_page *page, dp_error *error)
{
    const dp_attend_transform plain = {.q_factor = 1.0};
    dp_attend_inputs inputs;
    dp_attend_inputs smooth = {0};
    dp_forward_policy fast;
    memset(page, 0, sizeof *page);
    page->path = path;
    page->command = command;
    page->tensors = tensors;
    page->heads = tensors->batch * tensors->q_heads;
    set_date(page);
    if (!dp_sha256_file(path, page->sha256, &page->bytes, error) ||
        !dp_forward_policy_find("fast", &fast, error) ||
        !dp_attend_from_tensors(tensors, path, &plain, &inputs, error)) {
        return false;
    }
    const size_t rows = page->heads * inputs.in.queries;
    work w = {.inputs = {&inputs, &smooth},
              .o = malloc(rows * inputs.in.dim * sizeof *w.o),
              .reference = malloc(rows * inputs.in.dim * sizeof *w.reference),
              .lse = malloc(rows * sizeof *w.lse),
              .threads = threads,
              .page = page,
              .error = error};
    bool good = (w.o != NULL && w.reference != NULL && w.lse != NULL &&
                 dp_guard_smoothed(&inputs, &smooth)) ||
                dp_fail(error, "report: not enough memory for %zu rows", rows);
    good = good && dp_reference_bf16(&inputs.in, threads, w.reference, NULL, error) &&
           dp_guard_measure(&inputs, &fast, 128, threads, &page->guard, error) && run_operators(&w);
    if (good) {
        page->verdict = dp_page_judge(page);
        run_range(&w);
        run_diff(&w);
        good = run_codes(&w) || dp_fail(error, "report: not enough memory");
    }
    free(smooth.k);
    dp_attend_inputs_free(&inputs);
    free(w.o);
    free(w.reference);
    free(w.lse);
    return good;
}

void dp_page_free(dp_page *page)
{
    for (int i = 0; i < DP_PAGE_OPERATORS; i++) {
        free(page->run[i].head[0]);
        free(page->run[i].head[1]);
    }
    dp_guard_free(&page->guard);
    free(page->parts);
    if (page->diff != NULL) {
        dp_dump_close(&page->dump);
    }
    free(page->diff);
    memset(page, 0, sizeof *page);
}
