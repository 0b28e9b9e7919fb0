/* SPDX-License-Identifier: MIT
 *
 * The command line of a verb as a table: the parser and the help text both read it, so that they
 * cannot disagree. Long options in the GNU manner: --name VALUE, --name=VALUE, unambiguous
 * abbreviations, operands anywhere, `--` ends the options.
 */
#ifndef DP_ANALYSIS_OPTIONS_H
#define DP_ANALYSIS_OPTIONS_H

#include "analysis/numbers.h"
#include "analysis/verb.h"

typedef enum {
    DP_OPTION_FLAG,  /* bool *: set to true */
    DP_OPTION_INT,   /* int64_t *: low .. high */
    DP_OPTION_REAL,  /* double *: low .. high */
    DP_OPTION_TEXT,  /* const char **: any text */
    DP_OPTION_TEXTS, /* dp_texts *: any text, each time the option appears */
    DP_OPTION_CHOICE /* const char **: one of `choices` */
} dp_option_type;

/* The values of an option that may be repeated. */
enum { DP_TEXTS_MOST = 32 };
typedef struct {
    const char *item[DP_TEXTS_MOST];
    size_t count;
} dp_texts;

typedef struct {
    const char *name; /* without the dashes */
    dp_option_type type;
    char letter;          /* short form, 0 for none */
    void *value;          /* holds the default before parsing; the help text prints it */
    const char *help;     /* what it is, with its unit */
    const char *argument; /* "N", "FILE"; NULL for a flag or a choice */
    double low, high;     /* inclusive, of INT (within 2^53) and REAL */
    const char *choices;  /* "one|two|three" */
    bool *given;          /* set when the option appears, may be NULL */
    const bool *random;   /* not NULL: the option is refused unless this --random was given */
} dp_option;

/* Entries of an option table. */
#define DP_FLAG(name_, value_, help_)                                                              \
    {                                                                                              \
        .name = (name_), .type = DP_OPTION_FLAG, .value = (value_), .help = (help_)                \
    }
#define DP_INT(name_, value_, low_, high_, help_)                                                  \
    {                                                                                              \
        .name = (name_), .type = DP_OPTION_INT, .value = (value_), .help = (help_),                \
        .argument = "N", .low = (low_), .high = (high_)                                            \
    }
/* An option of what --random draws. */
#define DP_INT_RANDOM(name_, value_, low_, high_, random_, help_)                                  \
    {                                                                                              \
        .name = (name_), .type = DP_OPTION_INT, .value = (value_), .help = (help_),                \
        .argument = "N", .low = (low_), .high = (high_), .random = (random_)                       \
    }
#define DP_REAL(name_, value_, low_, high_, help_)                                                 \
    {                                                                                              \
        .name = (name_), .type = DP_OPTION_REAL, .value = (value_), .help = (help_),               \
        .argument = "X", .low = (low_), .high = (high_)                                            \
    }
#define DP_TEXT(name_, value_, argument_, help_)                                                   \
    {                                                                                              \
        .name = (name_), .type = DP_OPTION_TEXT, .value = (value_), .help = (help_),               \
        .argument = (argument_)                                                                    \
    }
#define DP_TEXTS(name_, value_, argument_, help_)                                                  \
    {                                                                                              \
        .name = (name_), .type = DP_OPTION_TEXTS, .value = (value_), .help = (help_),              \
        .argument = (argument_)                                                                    \
    }
#define DP_CHOICE(name_, value_, choices_, help_)                                                  \
    {                                                                                              \
        .name = (name_), .type = DP_OPTION_CHOICE, .value = (value_), .help = (help_),             \
        .choices = (choices_)                                                                      \
    }
/* -o FILE, --output FILE */
#define DP_OUTPUT(value_, help_)                                                                   \
    {                                                                                              \
        .name = "output", .type = DP_OPTION_TEXT, .value = (value_), .help = (help_),              \
        .argument = "FILE", .letter = 'o'                                                          \
    }
#define DP_JSON(value_) DP_FLAG("json", value_, "print JSON for machines instead of text")
#define DP_CSV(value_)  DP_FLAG("csv", value_, "print comma-separated values instead of text")
#define DP_THREADS(value_)                                                                         \
    DP_INT("threads", value_, 0, 1024, "worker threads; 0 is one per online CPU")

typedef struct {
    const char *verb;
    const char *operands; /* "IN.h5[:/DATASET]", "" for none */
    const char *summary;  /* sentences, wrapped by the help text */
    const char *notes;    /* printed as it stands after the options, may be NULL */
    const char *example;  /* one command a line */
    int least, most;      /* number of operands */
    const dp_option *options;
    size_t count;
} dp_usage;

#define DP_CONTINUE (-1)

/* Parse argv against the table. Returns DP_CONTINUE with argv[1 .. *argc-1] the operands, or the
 * exit status to return at once: DP_EXIT_SAME after --help, DP_EXIT_ERROR after an error, which has
 * been printed. */
int dp_options_parse(const dp_usage *usage, int *argc, char **argv);
/* The help text of a verb on standard output. */
void dp_options_help(const dp_usage *usage);

#endif
