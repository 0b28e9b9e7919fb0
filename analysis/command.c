/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/verb.h"
#include "ref/version.h"

static void print_line(const char *prefix, const char *text)
{
    char line[1200];
    (void)snprintf(line, sizeof line, "%s%s", prefix, text);
    for (char *c = line; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7F) {
            *c = '?';
        }
    }
    (void)fprintf(stderr, "%s\n", line);
}

int dp_report_error(const dp_error *error)
{
    print_line("directp: ", error->text);
    return DP_EXIT_ERROR;
}

void dp_report_warning(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_line("directp: warning: ", text);
}

static void print_help(void)
{
    printf("Usage: directp VERB [options] [files]\n"
           "Bit-exact reference arithmetic for FP4 and FP8 attention, and its measurements.\n\n"
           "Verbs:\n");
    for (const dp_verb *verb = dp_verbs; verb->name != NULL; verb++) {
        printf("  %-10s %s\n", verb->name, verb->summary);
    }
    printf("\nOptions:\n"
           "  --help     print this; `directp VERB --help` explains a verb\n"
           "  --version  print the version\n\n"
           "Exit status: 0 success or no difference, 1 differences found, 2 bad usage or input.\n");
}

static int run_verb(int argc, char **argv)
{
    dp_error error = {""};
    if (argc < 2) {
        (void)dp_fail(&error, "command line: no verb given: see directp --help");
        return dp_report_error(&error);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help();
        return DP_EXIT_SAME;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("directp %s\n", dp_version());
        return DP_EXIT_SAME;
    }
    for (const dp_verb *verb = dp_verbs; verb->name != NULL; verb++) {
        if (strcmp(argv[1], verb->name) == 0) {
            return verb->run(argc - 1, argv + 1);
        }
    }
    (void)dp_fail(&error, "command line: there is no verb '%.64s': see directp --help", argv[1]);
    return dp_report_error(&error);
}

int dp_command(int argc, char **argv)
{
    const int status = run_verb(argc, argv);
    errno = 0;
    const int flushed = fflush(stdout);
    if (flushed != 0 || ferror(stdout) != 0) {
        dp_error error = {""};
        (void)dp_fail(&error,
                      "standard output: cannot write (%s): free some space or check the pipe",
                      errno != 0 ? strerror(errno) : "a write failed");
        return dp_report_error(&error);
    }
    return status;
}
