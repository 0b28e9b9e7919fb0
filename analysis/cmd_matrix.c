/* SPDX-License-Identifier: MIT
 *
 * directp matrix: formats and routes side by side, with the published rows.
 */
#include <math.h>
#include <stdio.h>

#include "analysis/commands.h"
#include "analysis/matrix.h"
#include "analysis/options.h"
#include "analysis/report.h"

typedef struct {
    int64_t seed, sms, seq, heads, dim, threads;
    bool json, csv;
    const char *sections, *output;
    dp_style style;
} request;

static const dp_column COLUMNS[] = {{"section", NULL, -1},
                                    {"input", NULL, -1},
                                    {"operator", NULL, -1},
                                    {"parameter", NULL, -1},
                                    {"cosine", NULL, 6},
                                    {"rel_l2", NULL, 6},
                                    {"rmse", NULL, 6},
                                    {"slope", NULL, 4},
                                    {"nonfinite_rows", NULL, -1},
                                    {"rows", NULL, -1},
                                    {"lost_mass", NULL, 6},
                                    {"flushed", NULL, 6},
                                    {"overflowed", NULL, 6},
                                    {"published_cosine", NULL, 6},
                                    {"published_rel_l2", NULL, 6}};

static const char NOTES[] =
    "Sections: formats (N(0,1) inputs; published rows at 256 keys and 16 "
    "heads, 1024 and 24), g (the\n"
    "factor in the NVFP4 scale of P; published at 4096 keys, 24 heads, "
    "--random 0), density (native\n"
    "pairs of policy fast, stage 1; published at 4096 keys, 24 heads, --sms "
    "148), inputs (Q times 4\n"
    "and 10, an attention sink, mass in the tail, V of ones), overflow "
    "(paths without a row maximum:\n"
    "scales above 448, rows lost). With files, sections run on their "
    "tensors instead; inputs and\n"
    "overflow unless named.\n"
    "lost_mass is 1 - mean output where V is 1; flushed and overflowed are "
    "shares of the blocks of P\n"
    "whose scale is 0, or above 448 before it is stored. direct-* rows are a reading of the\n"
    "published TK rows and agree statistically: analysis/MATRIX.md.";

static bool parse(int *argc, char **argv, request *r, int *status)
{
    const dp_option options[] = {
        DP_INT("random", &r->seed, 0, 9007199254740991.0, "seed of Q, K, V, as torch draws them"),
        DP_INT("sms", &r->sms, 1, 65535, "multiprocessors of that device (GB200 152, B300 148)"),
        DP_INT("seq", &r->seq, 1, 1 << 17, "queries and keys"),
        DP_INT("heads", &r->heads, 1, 256, "heads"),
        DP_INT("dim", &r->dim, 1, 128, "head dimension"),
        DP_TEXT("sections", &r->sections, "LIST", "of formats, g, density, inputs, overflow"),
        DP_OUTPUT(&r->output, "write the table (HDF5) for directp plot matrix"),
        DP_THREADS(&r->threads),
        DP_JSON(&r->json),
        DP_CSV(&r->csv),
    };
    const dp_usage usage = {.verb = "matrix",
                            .operands = "[IN.h5...]",
                            .summary = "Run formats and routes on the same inputs and print their "
                                       "errors against BF16 attention, with published rows.",
                            .notes = NOTES,
                            .example =
                                "directp matrix -o matrix.h5 && directp plot matrix matrix.h5\n"
                                "directp matrix --sections formats --seq 1024 --heads 24\n"
                                "directp matrix data/real/*.h5 --sections overflow",
                            .least = 0,
                            .most = 1024,
                            .options = options,
                            .count = sizeof options / sizeof options[0]};
    *status = dp_options_parse(&usage, argc, argv);
    return *status == DP_CONTINUE;
}

static void add_number(dp_report *report, double value)
{
    if (isnan(value)) {
        dp_report_blank(report);
    } else {
        dp_report_f64(report, value);
    }
}

static void add_row(dp_report *report, const dp_matrix_row *row)
{
    dp_report_text(report, row->section);
    dp_report_text(report, row->input);
    dp_report_text(report, row->name);
    add_number(report, row->parameter);
    add_number(report, row->metrics.cosine);
    add_number(report, row->metrics.rel_l2);
    add_number(report, row->metrics.rmse);
    add_number(report, row->metrics.slope);
    dp_report_i64(report, (int64_t)row->metrics.nonfinite_rows);
    dp_report_i64(report, (int64_t)row->metrics.rows);
    add_number(report, row->lost_mass);
    add_number(report, row->flushed);
    add_number(report, row->overflowed);
    add_number(report, row->published_cosine);
    add_number(report, row->published_rel_l2);
}

int dp_cmd_matrix(int argc, char **argv)
{
    request r = {
        .seed = 20260814, .sms = 152, .seq = 1024, .heads = 4, .dim = 128, .sections = NULL};
    int status = 0;
    if (!parse(&argc, argv, &r, &status)) {
        return status;
    }
    dp_error error = {""};
    dp_matrix matrix = {.seed = (uint64_t)r.seed,
                        .sms = (int)r.sms,
                        .seq = (size_t)r.seq,
                        .heads = (size_t)r.heads,
                        .dim = (size_t)r.dim,
                        .files = (const char *const *)argv + 1,
                        .file_count = (size_t)argc - 1};
    const char *sections = r.sections != NULL      ? r.sections
                           : matrix.file_count > 0 ? "inputs,overflow"
                                                   : "formats,g,density,inputs,overflow";
    bool good = dp_style_of(r.json, r.csv, &r.style, &error) &&
                dp_matrix_run(&matrix, sections, (int)r.threads, &error);
    dp_report *report = good ? dp_report_new("Operators against BF16 attention", COLUMNS,
                                             sizeof COLUMNS / sizeof COLUMNS[0])
                             : NULL;
    for (size_t i = 0; report != NULL && i < matrix.count; i++) {
        add_row(report, &matrix.rows[i]);
    }
    good = good && (report != NULL || dp_fail(&error, "matrix: not enough memory")) &&
           (r.output == NULL || dp_matrix_save(&matrix, r.output, &error)) && /* `| head` ends us */
           dp_report_print(report, r.style, stdout, &error);
    dp_report_free(report);
    dp_matrix_free(&matrix);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}
