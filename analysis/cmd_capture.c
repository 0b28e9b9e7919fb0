/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/capture.h"
#include "analysis/commands.h"
#include "analysis/options.h"
#include "analysis/report.h"
#include "device/capture/capture.h"

/* Defined where the CUDA part is built and linked (analysis/CMakeLists.txt). */
/* NOLINTNEXTLINE(readability-redundant-declaration): the weakness is what is new */
extern dp_capture_status dp_capture_record(const char *path,
                                           const dp_capture_record_options *options,
                                           dp_error *error) __attribute__((weak));

static const dp_column columns[] = {{"group", NULL, -1},      {"instruction", NULL, -1},
                                    {"model", NULL, -1},      {"cases", NULL, -1},
                                    {"mismatches", NULL, -1}, {"first_mismatch", NULL, -1}};

static bool print_results(const dp_capture_result *results, size_t count, dp_style style,
                          dp_error *error)
{
    const size_t shown = style == DP_STYLE_TEXT ? 5 : 6;
    dp_report *report = dp_report_new("capture check", columns, shown);
    if (report == NULL) {
        return dp_fail(error, "capture check: memory is short: free some");
    }
    for (size_t i = 0; i < count; i++) {
        dp_report_text(report, results[i].group);
        dp_report_text(report, results[i].instruction);
        dp_report_text(report, results[i].model);
        dp_report_i64(report, (int64_t)results[i].cases);
        dp_report_i64(report, (int64_t)results[i].mismatches);
        if (shown == 6 && results[i].first[0] != '\0') {
            dp_report_text(report, results[i].first);
        } else if (shown == 6) {
            dp_report_blank(report);
        }
    }
    const bool good = dp_report_print(report, style, stdout, error);
    dp_report_free(report);
    return good;
}

static int print_verdict(const dp_capture_result *results, size_t count, dp_style style)
{
    uint64_t cases = 0;
    uint64_t mismatches = 0;
    uint64_t unknown = 0;
    for (size_t i = 0; i < count; i++) {
        const bool none = strcmp(results[i].model, "none") == 0;
        unknown += none ? 1 : 0;
        cases += none ? 0 : results[i].cases;
        mismatches += results[i].mismatches;
        if (style == DP_STYLE_TEXT && results[i].first[0] != '\0') {
            printf("%s: first mismatch: %s\n", results[i].group, results[i].first);
        }
    }
    if (style == DP_STYLE_TEXT) {
        printf("%" PRIu64 " cases replayed, %" PRIu64 " mismatches, %" PRIu64
               " groups without a model\n",
               cases, mismatches, unknown);
    }
    return mismatches == 0 ? DP_EXIT_SAME : DP_EXIT_DIFFERENT;
}

/* "NAME=VALUE,NAME=VALUE" */
static bool take_switches(dp_mma_switches *switches, const char *text, dp_error *error)
{
    char part[128];
    for (const char *at = text; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, ",");
        (void)snprintf(part, sizeof part, "%.*s", (int)(length < 127 ? length : 127), at);
        char *equals = strchr(part, '=');
        if (equals == NULL) {
            return dp_fail(error, "--switches: '%s' has no '=': write NAME=VALUE", part);
        }
        *equals = '\0';
        if (!dp_mma_switch_set(switches, part, equals + 1, error)) {
            return false;
        }
        at += length + (at[length] == ',' ? 1 : 0);
    }
    return true;
}

static int run_check(int argc, char **argv)
{
    int64_t threads = 0;
    bool json = false;
    bool csv = false;
    const char *sfu = "auto";
    const char *group = NULL;
    const char *text = NULL;
    const dp_option options[] = {
        DP_TEXT("group", &group, "NAME", "replay this group of /capture alone"),
        DP_CHOICE("sfu", &sfu, "auto|exact|h200",
                  "model of ex2, rcp and lg2; auto: the device that the file names"),
        DP_TEXT("switches", &text, "NAME=VALUE,...",
                "switches of the matrix models, e.g. zero_sign=keep (ref/arith/MMA.md)"),
        DP_THREADS(&threads),
        DP_JSON(&json),
        DP_CSV(&csv)};
    const dp_usage usage = {
        .verb = "capture check",
        .operands = "FILE",
        .summary = "Replay a capture file against the models and print, for each group, its cases "
                   "and mismatches.",
        .notes =
            "A group whose instruction has no model here is shown with model \"none\" and does "
            "not count.",
        .example = "directp capture check data/captures/h200_mma.h5",
        .least = 1,
        .most = 1,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    dp_error error = {""};
    dp_style style;
    dp_mma_switches switches = {0};
    dp_capture_result *results = NULL;
    size_t count = 0;
    const dp_capture_options chosen = {
        .sfu = dp_sfu_by_name(sfu), .switches = &switches, .only = group, .threads = (int)threads};
    int result = DP_EXIT_ERROR;
    if (dp_style_of(json, csv, &style, &error) && take_switches(&switches, text, &error) &&
        dp_capture_replay(argv[1], &chosen, &results, &count, &error) &&
        print_results(results, count, style, &error)) {
        result = print_verdict(results, count, style);
    }
    free(results);
    return error.text[0] != '\0' ? dp_report_error(&error) : result;
}

static int run_record(int argc, char **argv)
{
    int64_t device = 0;
    int64_t tiles = 2;
    int64_t level = 4;
    int64_t seed = 1;
    bool quiet = false;
    const char *only = NULL;
    const char *output = NULL;
    const dp_option options[] = {
        DP_OUTPUT(&output, "the capture file to write"),
        DP_TEXT("only", &only, "LIST",
                "parts, comma-separated: sfu, lg2, convert, scalar, mma, block; default all"),
        DP_INT("device", &device, 0, 1024, "CUDA device"),
        DP_INT("tiles", &tiles, 1, 64, "matrix experiments: tiles a kind of data"),
        DP_INT("level", &level, 1, 9, "gzip level"),
        DP_INT("seed", &seed, 0, 9007199254740992.0, "seed of the random operands"),
        DP_FLAG("quiet", &quiet, "print nothing")};
    const dp_usage usage = {.verb = "capture record",
                            .operands = "",
                            .summary = "Record what this GPU's instructions return.",
                            .example = "directp capture record -o h200.h5 --only mma",
                            .options = options,
                            .count = sizeof options / sizeof options[0]};
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    dp_error error = {""};
    const dp_capture_record_options chosen = {.only = only,
                                              .device = (int)device,
                                              .level = (int)level,
                                              .tiles = (unsigned)tiles,
                                              .seed = (uint64_t)seed,
                                              .quiet = quiet};
    if (dp_capture_record == NULL) {
        (void)dp_fail(&error, "capture record: this build has no CUDA part: build it where nvcc is "
                              "found, with DIRECTP_CUDA on");
    } else if (output == NULL) {
        (void)dp_fail(&error, "capture record: no output: give -o FILE");
    } else if (dp_capture_record(output, &chosen, &error) == DP_CAPTURE_DONE) {
        return DP_EXIT_SAME;
    }
    return dp_report_error(&error);
}

static const char help[] =
    "Usage: directp capture record -o FILE [options]\n"
    "       directp capture check FILE [options]\n"
    "Record what a GPU's instructions return, or replay such a file against the models.\n\n"
    "See directp capture record --help and directp capture check --help.\n\n"
    "Example:\n"
    "  directp capture check data/mma_vectors.h5\n\n"
    "Exit status: 0 all cases agree, 1 some differ, 2 bad usage, bad input or no GPU.\n";

int dp_cmd_capture(int argc, char **argv)
{
    dp_error error = {""};
    if (argc >= 2 && strcmp(argv[1], "check") == 0) {
        return run_check(argc - 1, argv + 1);
    }
    if (argc >= 2 && strcmp(argv[1], "record") == 0) {
        return run_record(argc - 1, argv + 1);
    }
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        (void)fputs(help, stdout);
        return DP_EXIT_SAME;
    }
    (void)dp_fail(&error,
                  "capture: '%.64s' is neither record nor check: see directp capture --help",
                  argc >= 2 ? argv[1] : "");
    return dp_report_error(&error);
}
