/* SPDX-License-Identifier: MIT
 *
 * A verb of the command: `directp NAME [options] [files]`. Each lives in analysis/cmd_NAME.c and
 * has one line in analysis/verbs.c.
 */
#ifndef DP_ANALYSIS_VERB_H
#define DP_ANALYSIS_VERB_H

#include "formats/error.h"

/* Exit statuses, those of diff(1). */
enum {
    DP_EXIT_SAME = 0,      /* success, or nothing differs */
    DP_EXIT_DIFFERENT = 1, /* differences (or forbidden values) were found */
    DP_EXIT_ERROR = 2      /* bad usage, bad input, an output that could not be written */
};

/* argv[0] is the verb's name. Returns an exit status; has printed its own error. */
typedef int dp_verb_main(int argc, char **argv);

typedef struct {
    const char *name;
    const char *summary; /* one line for `directp --help` */
    dp_verb_main *run;
} dp_verb;

/* Every verb that exists, in the order of the help text; ends with a NULL name. */
extern const dp_verb dp_verbs[];

/* The whole command: argv[1] chooses the verb. Flushes standard output and turns a failed write
 * (a full disk) into DP_EXIT_ERROR. */
int dp_command(int argc, char **argv);

/* Print "directp: TEXT" on standard error as one line (control characters are shown as '?') and
 * return DP_EXIT_ERROR. */
int dp_report_error(const dp_error *error);
/* The same for something that is worth knowing but stops nothing: "directp: warning: TEXT". */
void dp_report_warning(const char *format, ...) DP_PRINTF(1, 2);

#endif
