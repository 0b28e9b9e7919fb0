/* SPDX-License-Identifier: MIT
 *
 * directp report: one HTML page about a file: which format, which policy, guard or not, what error
 * to expect.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "analysis/commands.h"
#include "analysis/options.h"
#include "analysis/page.h"
#include "analysis/plot.h"

static bool write_page(const dp_page *page, const char *dir, dp_error *error)
{
    dp_plot_file file;
    const char *const files[] = {page->path};
    const dp_plot_request request = {.dir = dir, .files = files, .count = 1};
    if (!dp_plot_open(&file, &request, "report.html", error)) {
        return false;
    }
    dp_page_write(file.stream, page);
    return dp_plot_close(&file, true, error);
}

static bool make(const char *path, const char *dir, int threads, dp_error *error)
{
    char command[2 * DP_PATH_SIZE];
    struct stat status;
    dp_tensors tensors;
    dp_page *page = calloc(1, sizeof *page);
    if (page == NULL) {
        return dp_fail(error, "report: not enough memory");
    }
    (void)snprintf(command, sizeof command, "directp report %s -o %s", path, dir);
    bool good = dp_tensors_load(path, &tensors, error);
    if (good) {
        const bool made = (mkdir(dir, 0777) == 0 || errno == EEXIST) && stat(dir, &status) == 0 &&
                          S_ISDIR(status.st_mode);
        good = (made ||
                dp_fail(error, "%s: cannot make this folder: give another one with -o", dir)) &&
               dp_page_measure(path, command, &tensors, threads, page, error) &&
               write_page(page, dir, error);
        dp_page_free(page);
        dp_tensors_free(&tensors);
    }
    free(page);
    return good;
}

int dp_cmd_report(int argc, char **argv)
{
    const char *dir = ".";
    int64_t threads = 0;
    const dp_option options[] = {{.name = "output",
                                  .type = DP_OPTION_TEXT,
                                  .value = &dir,
                                  .help = "folder of report.html; made when missing",
                                  .argument = "DIR",
                                  .letter = 'o'},
                                 DP_THREADS(&threads)};
    const dp_usage usage = {
        .verb = "report",
        .operands = "IN.h5",
        .summary =
            "Write one HTML page about Q, K and V (or a dump that holds them): which format and "
            "policy, guard or not, what error to expect; charts and tables are inside. A dump with "
            "stages is compared with the oracle too. SOURCE_DATE_EPOCH fixes the date it bears.",
        .example = "directp report data/real/qwen15_layer00.h5 -o out",
        .least = 1,
        .most = 1,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    dp_error error = {""};
    if (!make(argv[1], dir, (int)threads, &error)) {
        return dp_report_error(&error);
    }
    (void)printf("%s/report.html\n", dir);
    return DP_EXIT_SAME;
}
