/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/stat.h>

#include "analysis/commands.h"
#include "analysis/options.h"
#include "analysis/plot.h"

const dp_plot dp_plots[] = {
    {"range", "what formats keep of probabilities, by sequence length or input; scale exponents",
     dp_plot_range},
    {"diff", "where and how far a dump differs: map of mismatches, histogram of distances",
     dp_plot_diff},
    {"codes", "codes of P against those of 2^x: confusion, match by distance and by byte",
     dp_plot_codes},
    {"fit", "the landscape of an objective, decision boundaries, what each map keeps", dp_plot_fit},
    {"matrix", "operators in the plane of their errors, by input; sweeps", dp_plot_matrix},
    {"history", "rates over the runs that directp record wrote", dp_plot_history},
    {NULL, NULL, NULL},
};

static void list_plots(char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "Kinds:");
    for (const dp_plot *plot = dp_plots; plot->name != NULL && used < size; plot++) {
        const int added =
            snprintf(text + used, size - used, "\n  %-8s %s", plot->name, plot->summary);
        used += added > 0 ? (size_t)added : 0;
    }
}

/* The folder, made when it is not there. */
static bool make_dir(const char *dir, dp_error *error)
{
    struct stat status;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        return dp_fail(error, "%s: cannot make this folder: %s", dir, strerror(errno));
    }
    if (stat(dir, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return dp_fail(error, "%s: is not a folder: give another one with -o", dir);
    }
    return true;
}

int dp_cmd_plot(int argc, char **argv)
{
    const char *dir = ".";
    bool reset = false;
    bool data_only = false;
    char notes[1024];
    const dp_option options[] = {
        {.name = "output",
         .type = DP_OPTION_TEXT,
         .value = &dir,
         .help = "folder for data, script and pictures; made when missing",
         .argument = "DIR",
         .letter = 'o'},
        DP_FLAG("reset", &reset, "replace scripts that are already in the folder"),
        DP_FLAG("data-only", &data_only, "write data and script, do not run gnuplot")};
    const dp_usage usage = {
        .verb = "plot",
        .operands = "KIND FILE...",
        .summary = "Draw results. The folder receives plain data files, a gnuplot script and the "
                   "pictures; edit the script and run gnuplot on it again, it is kept.",
        .notes = notes,
        .example = "directp plot range out/range.h5 -o out/plots",
        .least = 2,
        .most = 1024,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    list_plots(notes, sizeof notes);
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    dp_error error = {""};
    const dp_plot_request request = {.dir = dir,
                                     .files = (const char *const *)argv + 2,
                                     .count = (size_t)argc - 2,
                                     .reset = reset,
                                     .draw = !data_only};
    for (const dp_plot *plot = dp_plots; plot->name != NULL; plot++) {
        if (strcmp(plot->name, argv[1]) == 0) {
            const bool good = make_dir(dir, &error) && plot->run(&request, &error);
            return good ? DP_EXIT_SAME : dp_report_error(&error);
        }
    }
    (void)dp_fail(&error, "plot: there is no kind '%.64s': see directp plot --help", argv[1]);
    return dp_report_error(&error);
}
