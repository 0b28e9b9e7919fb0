/* SPDX-License-Identifier: MIT
 *
 * The worked example of README.md: the wrong kernel in C, and in Python where python3 has h5py; the
 * commands that find its mistakes; and that the output README.md shows is what they print.
 */
#include "scratch.h"

static char scores[512];

static void make_scores(void)
{
    static dp_run run;
    char line[1024];
    (void)snprintf(scores, sizeof scores, "%s", scratch("scores.h5"));
    (void)snprintf(line, sizeof line,
                   "attend --random 1 --seq 256 --heads 2 --policy fast --epoch S --stages score "
                   "-o '%s'",
                   scores);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
}

/* Run a kernel with a mistake; PROGRAM MISTAKE SCORES NAME. */
static void kernel(const char *program, const char *mistake, const char *name)
{
    char line[2048];
    (void)snprintf(line, sizeof line, "%s %s '%s' '%s'", program, mistake, scores, scratch(name));
    ck_assert_msg(system(line) == 0, "%s", line);
}

static void diff(dp_run *run, const char *name, int status)
{
    char line[1024];
    (void)snprintf(line, sizeof line, "diff '%s'", scratch(name));
    run_directp(run, line);
    ck_assert_msg(run->status == status, "%s: %d %s%s", name, run->status, run->out, run->err);
}

/* What README.md shows of this output, from `opening` to a blank line, is in it, line by line. */
static void assert_readme_shows(const char *out, const char *opening)
{
    static char readme[1 << 17];
    char path[1024];
    int lines = 0;
    (void)scratch_text(dp_source_path(path, sizeof path, "README.md"), readme, sizeof readme);
    const char *at = strstr(readme, opening);
    ck_assert_msg(at != NULL, "README.md lacks: %s", opening);
    for (; strncmp(at, "    ", 4) == 0; at = strchr(at, '\n') + 1) {
        const int length = (int)strcspn(at, "\n") - 4;
        char line[1024];
        (void)snprintf(line, sizeof line, "%.*s\n", length, at + 4);
        if (strstr(line, "...") == NULL) {
            ck_assert_msg(strstr(out, line) != NULL, "README.md shows: %sand diff printed:\n%s",
                          line, out);
            lines++;
        }
    }
    ck_assert_int_ge(lines, 4);
}

START_TEST(in_c)
{
    static dp_run run;
    const char *program = getenv("WRONG_KERNEL");
    ck_assert_msg(program != NULL, "WRONG_KERNEL is not set");
    make_scores();
    kernel(program, "none", "none.h5");
    diff(&run, "none.h5", 0);
    kernel(program, "shift", "shift.h5");
    diff(&run, "shift.h5", 1);
    ck_assert(strstr(run.out, "Diagnosis: shift-missing:") != NULL);
    assert_readme_shows(run.out, "    First wrong stage: scale");
    kernel(program, "truncate", "truncate.h5");
    diff(&run, "truncate.h5", 1);
    ck_assert(strstr(run.out, "Diagnosis: truncated:") != NULL);
    assert_readme_shows(run.out, "    First wrong stage: code");
}
END_TEST

START_TEST(in_python)
{
    static const char *const mistakes[] = {"none", "shift", "truncate"};
    static dp_run run;
    char program[1100], path[1024], line[2048];
    if (system("python3 -c 'import h5py, numpy' 2>/dev/null") != 0) {
        printf("python3 has no h5py: the Python half is skipped\n");
        return;
    }
    make_scores();
    (void)snprintf(program, sizeof program, "python3 '%s'",
                   dp_source_path(path, sizeof path, "analysis/examples/wrong_kernel.py"));
    for (size_t i = 0; i < 3; i++) {
        kernel(program, mistakes[i], "python.h5");
        kernel(getenv("WRONG_KERNEL"), mistakes[i], "c.h5");
        diff(&run, "python.h5", i > 0);
        (void)snprintf(line, sizeof line, "diff '%s' --against '%s'", scratch("python.h5"),
                       scratch("c.h5"));
        run_directp(&run, line); /* the same kernel in both languages */
        ck_assert_msg(run.status == 0, "%s: %s%s", mistakes[i], run.out, run.err);
    }
}
END_TEST

/* The script that README.md shows is the one in the tree, without its first line. */
START_TEST(readme_shows_the_script)
{
    static char readme[1 << 17], script[1 << 14];
    char path[1024];
    (void)scratch_text(dp_source_path(path, sizeof path, "README.md"), readme, sizeof readme);
    (void)scratch_text(dp_source_path(path, sizeof path, "analysis/examples/wrong_kernel.py"),
                       script, sizeof script);
    const char *at = strstr(script, "import sys");
    ck_assert(at != NULL);
    while (*at != '\0') {
        const size_t length = strcspn(at, "\n");
        char line[1024];
        (void)snprintf(line, sizeof line, "    %.*s\n", (int)length, at);
        ck_assert_msg(length == 0 || strstr(readme, line) != NULL, "README.md lacks: %s", line);
        at += length + (at[length] == '\n');
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("example");
    TCase *tests = tcase_create("example");
    tcase_add_checked_fixture(tests, NULL, scratch_remove);
    tcase_add_test(tests, in_c);
    tcase_add_test(tests, in_python);
    tcase_add_test(tests, readme_shows_the_script);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
