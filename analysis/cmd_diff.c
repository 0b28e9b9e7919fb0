/* SPDX-License-Identifier: MIT
 *
 * directp diff: find the first wrong stage of a kernel's dump, and the mistake that explains it.
 */
#include <stdlib.h>

#include "analysis/commands.h"
#include "analysis/diff_report.h"
#include "analysis/options.h"
#include "analysis/rates.h"

typedef struct {
    dp_dump_overrides overrides;
    const char *against, *tolerance, *zero_sign, *nan, *output, *junit;
    bool json, csv, stages, mistakes, no_diagnosis;
    int64_t threads;
    dp_texts fail_if;
} request;

static const char NOTES[] =
    "Each stage is recomputed from the dump's own stage before it, so that a wrong bit is "
    "reported\n"
    "where it was made. Stages that are not in the dump are bridged by the oracle. Codes, scale\n"
    "bytes and counts are compared by bits always; --tolerance score=ulps:2,lse=ulps:4 loosens\n"
    "floating stages (score, reference, row_sum, accumulate, output, o, lse).\n"
    "State: same, DIFFERS, bridged (not in the dump), no source (nothing to compute it from).\n"
    "The root attributes policy, epoch and switches say what the dump is; --policy, --epoch and\n"
    "--set replace them. Without either the dump is refused.";

static bool parse(int *argc, char **argv, request *r, int *status)
{
    const dp_option options[] = {
        DP_TEXT("policy", &r->overrides.policy, "NAME", "policy, instead of the file's"),
        DP_CHOICE("epoch", &r->overrides.epoch, "S|R", "sources modelled, instead of the file's"),
        DP_TEXT("set", &r->overrides.set, "NAME=VALUE,...", "policy fields and switches on top"),
        DP_CHOICE("sfu", &r->overrides.sfu, "exact|h200", "model of EX2, RCP and LG2"),
        DP_TEXT("against", &r->against, "OTHER.h5", "compare with another dump by bits"),
        DP_FLAG("stages", &r->stages, "list the stages and datasets, then stop"),
        DP_FLAG("mistakes", &r->mistakes, "list the known mistakes, then stop"),
        DP_TEXT("tolerance", &r->tolerance, "STAGE=ulps:N,...", "distances that pass"),
        DP_CHOICE("zero-sign", &r->zero_sign, "strict|ignore", "-0 against +0"),
        DP_CHOICE("nan", &r->nan, "bits|equal", "NaNs of different bits"),
        DP_FLAG("no-diagnosis", &r->no_diagnosis, "do not look for the mistake"),
        DP_OUTPUT(&r->output, "write maps and histograms (HDF5) for `directp plot diff`"),
        DP_TEXT("junit", &r->junit, "FILE", "write JUnit XML for a CI server"),
        DP_TEXTS("fail-if", &r->fail_if, "CONDITIONS",
                 "exit 1 when one holds, and only then (directp record --help)"),
        DP_THREADS(&r->threads),
        DP_JSON(&r->json),
        DP_CSV(&r->csv),
    };
    const dp_usage usage = {
        .verb = "diff",
        .operands = "DUMP.h5",
        .summary =
            "Compare every stage of a kernel's dump with the oracle, name the first wrong "
            "one, and say which known mistake explains it. Exit status 1: something differs.",
        .notes = NOTES,
        .example = "directp diff dump.h5\n"
                   "directp diff dump.h5 --policy fast --epoch R --set shift=14 --json\n"
                   "directp diff dump.h5 --against other.h5 -o report.h5 --junit report.xml",
        .least = 0,
        .most = 1,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    *status = dp_options_parse(&usage, argc, argv);
    return *status == DP_CONTINUE;
}

static void list_stages(void)
{
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const dp_dump_dataset *set = &dp_dump_datasets[d];
        (void)printf("%-12s %-24s %zu byte%s an element\n", set->stage, set->path,
                     dp_dump_element((dp_dump_id)d), dp_dump_element((dp_dump_id)d) > 1 ? "s" : "");
    }
}

static void list_mistakes(void)
{
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        for (size_t i = 0; dp_hypothesis_at(i) != NULL; i++) {
            const dp_hypothesis *h = dp_hypothesis_at(i);
            if (h->id == (dp_dump_id)d) {
                (void)printf("%-10s %-24s %s\n", dp_dump_datasets[d].name, h->name, h->meaning);
            }
        }
    }
    (void)puts("operands   preset                   the bytes of a preset of directp quantize\n"
               "floats     factor, factor-by-...    a factor of everything, a head, a tile, a row\n"
               "lse, m     offset, offset-by-...    a constant that is added\n"
               "any        single-bit               at most four elements, one bit each");
}

static bool compare(const request *r, dp_dump *dump, dp_dump *other, bool *different,
                    dp_error *error)
{
    dp_style style;
    dp_diff_job job = {.dump = dump,
                       .against = r->against != NULL ? other : NULL,
                       .threads = (int)r->threads,
                       .no_diagnosis = r->no_diagnosis,
                       .rules = {.ignore_zero_sign = strcmp(r->zero_sign, "ignore") == 0,
                                 .nan_equal = strcmp(r->nan, "equal") == 0}};
    if (!dp_style_of(r->json, r->csv, &style, error) ||
        !dp_diff_rules_parse(r->tolerance, &job.rules, error) ||
        !dp_rates_check(&r->fail_if, error)) {
        return false;
    }
    dp_diff_result *result = dp_diff_run(&job, error);
    bool compared = false;
    for (int d = 0; result != NULL && d < DP_DUMP_DATASETS; d++) {
        compared = compared || result->set[d].compared;
    }
    bool good = result != NULL;
    if (good && !compared) {
        good = dp_fail(error,
                       "%s: nothing in it could be compared: dump a stage together with the one "
                       "before it, or the inputs",
                       dump->path);
    }
    good = good && (r->output == NULL || dp_diff_save(&job, result, r->output, error)) &&
           (r->junit == NULL || dp_diff_junit(&job, result, r->junit, error)) &&
           dp_diff_print(&job, result, style, stdout, error); /* last: `| head` ends us */
    *different = good && (result->first_wrong >= 0 || result->order_differs);
    if (good && r->fail_if.count > 0) {
        good = dp_rates_judge_diff(&r->fail_if, &job, result, different, error);
    }
    free(result);
    return good;
}

int dp_cmd_diff(int argc, char **argv)
{
    request r = {.tolerance = "", .zero_sign = "strict", .nan = "bits"};
    int status;
    if (!parse(&argc, argv, &r, &status)) {
        return status;
    }
    if (r.stages || r.mistakes) {
        if (r.stages) {
            list_stages();
        } else {
            list_mistakes();
        }
        return DP_EXIT_SAME;
    }
    dp_error error = {""};
    if (argc < 2) {
        (void)dp_fail(&error, "diff: no dump: give a file");
        return dp_report_error(&error);
    }
    r.overrides.data_only = r.against != NULL;
    dp_dump dump, other;
    bool different = false;
    if (!dp_dump_open(&dump, argv[1], &r.overrides, &error)) {
        return dp_report_error(&error);
    }
    bool good = r.against == NULL || dp_dump_open(&other, r.against, &r.overrides, &error);
    if (good) {
        good = compare(&r, &dump, &other, &different, &error);
        if (r.against != NULL) {
            dp_dump_close(&other);
        }
    }
    dp_dump_close(&dump);
    return !good ? dp_report_error(&error) : different ? DP_EXIT_DIFFERENT : DP_EXIT_SAME;
}
