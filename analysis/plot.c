/* SPDX-License-Identifier: MIT */
#include "analysis/plot.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool join(char path[DP_PATH_SIZE], const char *dir, const char *name, dp_error *error)
{
    const int length = snprintf(path, DP_PATH_SIZE, "%s/%s", dir, name);
    return (length > 0 && length < DP_PATH_SIZE) ||
           dp_fail(error, "%.200s: the path is too long: use a shorter one", dir);
}

bool dp_plot_open(dp_plot_file *file, const dp_plot_request *request, const char *name,
                  dp_error *error)
{
    char path[DP_PATH_SIZE];
    file->stream = NULL;
    if (!join(path, request->dir, name, error) ||
        !dp_output_begin(&file->output, path, request->files, request->count, error)) {
        return false;
    }
    file->stream = fopen(file->output.temporary, "w");
    if (file->stream == NULL) {
        (void)dp_fail(error, "%s: cannot write: %s", path, strerror(errno));
        dp_output_abandon(&file->output);
        return false;
    }
    return true;
}

bool dp_plot_close(dp_plot_file *file, bool good, dp_error *error)
{
    if (file->stream == NULL) {
        return false;
    }
    const bool written = ferror(file->stream) == 0;
    const bool closed = fclose(file->stream) == 0;
    file->stream = NULL;
    if (!good || !written || !closed) {
        dp_output_abandon(&file->output);
        return good ? dp_fail(error, "%s: cannot write: is the disk full?", file->output.path)
                    : false;
    }
    return dp_output_commit(&file->output, error);
}

bool dp_plot_install(const dp_plot_request *request, const char *name, dp_error *error)
{
    char path[DP_PATH_SIZE];
    size_t size = 0;
    const unsigned char *script = dp_plot_script(name, &size);
    dp_plot_file file;
    struct stat status;
    if (script == NULL) {
        return dp_fail(error, "plot: there is no script %s in this build", name);
    }
    if (!join(path, request->dir, name, error)) {
        return false;
    }
    if (!request->reset && stat(path, &status) == 0) {
        return true;
    }
    if (!dp_plot_open(&file, request, name, error)) {
        return false;
    }
    (void)fwrite(script, 1, size, file.stream);
    return dp_plot_close(&file, true, error);
}

bool dp_plot_draw(const dp_plot_request *request, const char *name, dp_error *error)
{
    if (!request->draw) {
        return true;
    }
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child < 0) {
        return dp_fail(error, "gnuplot: cannot start it: %s", strerror(errno));
    }
    if (child == 0) {
        if (chdir(request->dir) == 0) {
            (void)execlp("gnuplot", "gnuplot", name, (char *)NULL);
        }
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return dp_fail(error, "gnuplot: lost it: %s", strerror(errno));
        }
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        return dp_fail(error, "gnuplot: not found: install gnuplot-nox and run `gnuplot %s` in %s",
                       name, request->dir);
    }
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
           dp_fail(error,
                   "%s/%s: gnuplot stopped with an error: repair the script, or "
                   "replace it with --reset",
                   request->dir, name);
}

dp_point dp_plot_point(double value, double floor, double *drawn)
{
    *drawn = floor;
    if (!isfinite(value)) {
        return DP_POINT_RUG;
    }
    if (value < floor || value <= 0.0) {
        return DP_POINT_FLOOR;
    }
    *drawn = value;
    return DP_POINT_SHOWN;
}
