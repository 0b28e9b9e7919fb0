/* SPDX-License-Identifier: MIT
 *
 * Outputs are whole or absent: after success, failure, signals and a full file system.
 */
#define _XOPEN_SOURCE 700 /* symlink, RLIMIT_FSIZE */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "analysis/h5.h"
#include "scratch.h"

static void put(const char *path, const char *text)
{
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    (void)fputs(text, out);
    ck_assert_int_eq(fclose(out), 0);
}

static void assert_content(const char *path, const char *expected)
{
    char text[256];
    ck_assert_str_eq(scratch_text(path, text, sizeof text), expected);
}

START_TEST(commit_replaces_and_abandon_keeps)
{
    dp_output output;
    dp_error error = {""};
    put(scratch("target"), "old");
    ck_assert(dp_output_begin(&output, scratch("target"), NULL, 0, &error));
    put(output.temporary, "new");
    assert_content(scratch("target"), "old");
    dp_output_abandon(&output);
    assert_content(scratch("target"), "old");
    ck_assert_int_eq(scratch_count(".tmp"), 0);
    ck_assert(dp_output_begin(&output, scratch("target"), NULL, 0, &error));
    put(output.temporary, "new");
    ck_assert_msg(dp_output_commit(&output, &error), "%s", error.text);
    dp_output_abandon(&output); /* harmless */
    assert_content(scratch("target"), "new");
    ck_assert_int_eq(scratch_count(".tmp"), 0);
    ck_assert(!dp_output_commit(&output, &error)); /* only once */
}
END_TEST

START_TEST(targets_that_are_refused)
{
    dp_output output;
    dp_error error = {""};
    const char *inputs[] = {"/nonexistent", scratch("input")};
    put(scratch("input"), "data");
    ck_assert_int_eq(symlink(scratch("input"), scratch("link")), 0);
    ck_assert_int_eq(link(scratch("input"), scratch("hard")), 0);
    const char *const same[] = {"input", "link", "hard", "./input"};
    for (int i = 0; i < 4; i++) {
        error.text[0] = '\0';
        ck_assert(!dp_output_begin(&output, scratch(same[i]), inputs, 2, &error));
        ck_assert_msg(strstr(error.text, "also an input") != NULL, "%s", error.text);
        dp_output_abandon(&output);
    }
    const char *const bad[] = {"/dev/null", "/tmp", "/nonexistent/x", "/etc/hostname/x"};
    const char *const said[] = {"not a regular file", "a directory", "cannot be created",
                                "cannot be written"};
    for (int i = 0; i < 4; i++) {
        error.text[0] = '\0';
        ck_assert(!dp_output_begin(&output, bad[i], NULL, 0, &error));
        ck_assert_msg(strstr(error.text, said[i]) != NULL, "%s", error.text);
        dp_output_abandon(&output);
    }
    /* A link that is no input: what it points to is replaced, the link stays. */
    ck_assert(dp_output_begin(&output, scratch("link"), NULL, 0, &error));
    put(output.temporary, "through");
    ck_assert(dp_output_commit(&output, &error));
    struct stat status;
    ck_assert(lstat(scratch("link"), &status) == 0 && S_ISLNK(status.st_mode));
    assert_content(scratch("input"), "through");
    assert_content(scratch("hard"), "data");
}
END_TEST

/* A child that waits inside a write is ended by each signal: nothing stays behind. */
START_TEST(signals_leave_nothing)
{
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        int ready[2];
        char byte;
        ck_assert_int_eq(pipe(ready), 0);
        const pid_t child = fork();
        if (child == 0) {
            dp_h5_writer writer;
            dp_error error = {""};
            const uint8_t data[] = {1, 2, 3};
            const uint64_t dims[] = {3};
            (void)signal(numbers[i], SIG_DFL); /* Check's handler would kill the process group */
            bool good = dp_h5_create(&writer, scratch("killed.h5"), "dump", NULL, 0, &error);
            good = good && dp_h5_put(&writer, "/x", DP_H5_U8, 1, dims, data, NULL, &error);
            (void)!write(ready[1], good ? "y" : "n", 1);
            (void)pause();
            _exit(0);
        }
        ck_assert(read(ready[0], &byte, 1) == 1 && byte == 'y');
        ck_assert_int_eq(scratch_count(".tmp"), 1);
        ck_assert_int_eq(kill(child, numbers[i]), 0);
        int status = 0;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i], "status %d", status);
        ck_assert_int_eq(scratch_count(".tmp"), 0);
        ck_assert_int_eq(scratch_count("killed.h5"), 0);
        (void)close(ready[0]);
        (void)close(ready[1]);
    }
}
END_TEST

/* No room for the file: an error, and neither a target nor a temporary file. */
START_TEST(full_file_system)
{
    const pid_t child = fork();
    if (child == 0) {
        static uint8_t data[1 << 20];
        const uint64_t dims[] = {sizeof data};
        const struct rlimit limit = {64 << 10, 64 << 10};
        dp_h5_writer writer;
        dp_error error = {""};
        (void)signal(SIGXFSZ, SIG_IGN); /* writes fail with EFBIG */
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        bool good = dp_h5_create(&writer, scratch("full.h5"), "dump", NULL, 0, &error);
        good = good && dp_h5_put(&writer, "/x", DP_H5_U8, 1, dims, data, NULL, &error);
        good = good && dp_h5_commit(&writer, &error);
        dp_h5_abandon(&writer);
        _exit(!good && strstr(error.text, "cannot be written") != NULL ? 0 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    ck_assert_int_eq(scratch_count("full.h5"), 0);
}
END_TEST

/* The whole command on such a file system: it says so and ends with 2, its exit handlers included.
 */
START_TEST(command_on_a_full_file_system)
{
    const pid_t child = fork();
    if (child == 0) {
        static dp_run run;
        char line[1024];
        const struct rlimit limit = {60 << 10, 60 << 10};
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        (void)snprintf(line, sizeof line,
                       "attend --random 1 --seq 128 --heads 1 --stages all -o '%s'",
                       scratch("full_command.h5"));
        run_directp(&run, line);
        (void)fprintf(stderr, "status %d: %s", run.status, run.err);
        _exit(run.status == 2 && strstr(run.err, "cannot be written") != NULL ? 0 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    ck_assert_int_eq(scratch_count("full_command.h5"), 0);
}
END_TEST

/* No verb writes onto a file it reads, under whichever option the file is named. */
START_TEST(no_verb_replaces_its_input)
{
    static dp_run run;
    static const char *const lines[] = {"attend %s --stages output -o %s",
                                        "attend %s --codes %s",
                                        "range %s -o %s",
                                        "guard %s -o %s",
                                        "fit %s --bootstrap 0 --grid 0 -o %s",
                                        "matrix %s --sections overflow -o %s",
                                        "quantize %s --format mxfp4 -o %s",
                                        "swizzle %s:/quantize/q_scale -o %s",
                                        "diff %s -o %s",
                                        "diff %s --junit %s",
                                        "diff copy --against %s -o %s",
                                        "diff copy --against %s --junit %s",
                                        "record %s -o %s"};
    char line[1600], input[512], copy[512];
    (void)snprintf(input, sizeof input, "%s", scratch("an_input.h5"));
    (void)snprintf(copy, sizeof copy, "%s", scratch("a_copy.h5"));
    (void)snprintf(line, sizeof line,
                   "attend --random 1 --seq 40 --dim 32 --heads 1 --stages all -o '%s'", input);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    (void)snprintf(line, sizeof line, "cp '%s' '%s'", input, copy);
    ck_assert_int_eq(system(line), 0);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        size_t used = 0;
        for (const char *c = lines[i]; *c != '\0' && used < sizeof line - 600; c++) {
            const bool is_copy = strncmp(c, " copy", 5) == 0;
            const bool is_input = strncmp(c, " %s", 3) == 0;
            if (is_copy || is_input) {
                used += (size_t)snprintf(line + used, sizeof line - used, " %s",
                                         is_copy ? copy : input);
                c += is_copy ? 4 : 2;
            } else {
                line[used++] = *c;
            }
        }
        line[used] = '\0';
        run_directp(&run, line);
        ck_assert_msg(run.status == 2, "%s: status %d %s", line, run.status, run.err);
        (void)snprintf(line, sizeof line, "cmp -s '%s' '%s'", input, copy);
        ck_assert_msg(system(line) == 0, "%s: the input has changed", lines[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("output");
    TCase *cases = tcase_create("output");
    tcase_add_test(cases, commit_replaces_and_abandon_keeps);
    tcase_add_test(cases, targets_that_are_refused);
    tcase_add_test(cases, signals_leave_nothing);
    tcase_add_test(cases, full_file_system);
    tcase_add_test(cases, command_on_a_full_file_system);
    tcase_add_test(cases, no_verb_replaces_its_input);
    suite_add_tcase(suite, cases);
    const int status = dp_run_suite(suite);
    scratch_remove();
    return status;
}
