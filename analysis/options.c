/* SPDX-License-Identifier: MIT */
#include "analysis/options.h"

#include <stdio.h>

/* The option called `name` (length characters), or the only one it abbreviates. */
static const dp_option *find_long(const dp_usage *usage, const char *name, size_t length,
                                  dp_error *error)
{
    const dp_option *found = NULL;
    for (size_t i = 0; i < usage->count; i++) {
        const dp_option *option = &usage->options[i];
        if (strncmp(option->name, name, length) != 0) {
            continue;
        }
        if (option->name[length] == '\0') {
            return option;
        }
        if (found != NULL) {
            (void)dp_fail(error, "%s: --%.*s may mean --%s or --%s: write it out", usage->verb,
                          (int)length, name, found->name, option->name);
            return NULL;
        }
        found = option;
    }
    if (found == NULL || length == 0) {
        (void)dp_fail(error, "%s: there is no option --%.*s: see directp %s --help", usage->verb,
                      length < 64 ? (int)length : 64, name, usage->verb);
        return NULL;
    }
    return found;
}

static const dp_option *find_letter(const dp_usage *usage, char letter, dp_error *error)
{
    for (size_t i = 0; i < usage->count; i++) {
        if (usage->options[i].letter == letter) {
            return &usage->options[i];
        }
    }
    (void)dp_fail(error, "%s: there is no option -%c: see directp %s --help", usage->verb, letter,
                  usage->verb);
    return NULL;
}

static bool add_text(const dp_option *option, const char *text, dp_error *error)
{
    dp_texts *texts = option->value;
    if (texts->count == DP_TEXTS_MOST) {
        return dp_fail(error, "--%s: given more than %d times: join some", option->name,
                       DP_TEXTS_MOST);
    }
    texts->item[texts->count++] = text;
    return true;
}

static bool set_value(const dp_option *option, const char *text, dp_error *error)
{
    char where[80];
    (void)snprintf(where, sizeof where, "--%s", option->name);
    switch (option->type) {
    case DP_OPTION_INT:
        return dp_parse_i64(where, text, (int64_t)option->low, (int64_t)option->high,
                            (int64_t *)option->value, error);
    case DP_OPTION_REAL:
        return dp_parse_f64(where, text, option->low, option->high, (double *)option->value, error);
    case DP_OPTION_CHOICE:
        if (dp_choice_index(option->choices, text) < 0) {
            return dp_fail(error, "%s: '%.64s' is not a choice: give one of %s", where, text,
                           option->choices);
        }
        *(const char **)option->value = text;
        return true;
    case DP_OPTION_TEXT:
    case DP_OPTION_TEXTS:
        if (text[0] == '\0') {
            return dp_fail(error, "%s: the value is empty: give one", where);
        }
        if (option->type == DP_OPTION_TEXTS) {
            return add_text(option, text, error);
        }
        *(const char **)option->value = text;
        return true;
    case DP_OPTION_FLAG:
        break;
    }
    *(bool *)option->value = true;
    return true;
}

/* Take the option at argv[at]; returns how many arguments it used, 0 after an error. */
static int take_option(const dp_usage *usage, int argc, char **argv, int at, bool *used,
                       dp_error *error)
{
    const char *argument = argv[at];
    const char *attached = NULL;
    const dp_option *option;
    if (argument[1] == '-') {
        const size_t length = strcspn(argument + 2, "=");
        option = find_long(usage, argument + 2, length, error);
        attached = argument[2 + length] == '=' ? argument + 3 + length : NULL;
    } else {
        option = find_letter(usage, argument[1], error);
        attached = argument[2] != '\0' ? argument + 2 : NULL;
    }
    if (option == NULL) {
        return 0;
    }
    used[option - usage->options] = true;
    if (option->given != NULL) {
        *option->given = true;
    }
    if (option->type == DP_OPTION_FLAG) {
        if (attached != NULL) {
            (void)dp_fail(error, "--%s: it takes no value: leave out '%.64s'", option->name,
                          attached);
            return 0;
        }
        return set_value(option, "", error) ? 1 : 0;
    }
    if (attached == NULL && at + 1 >= argc) {
        (void)dp_fail(error, "--%s: its value is missing: see directp %s --help", option->name,
                      usage->verb);
        return 0;
    }
    if (!set_value(option, attached != NULL ? attached : argv[at + 1], error)) {
        return 0;
    }
    return attached != NULL ? 1 : 2;
}

static bool help_wanted(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

/* What describes random inputs would be ignored without them. */
static bool check_random(const dp_usage *usage, const bool *used, dp_error *error)
{
    for (size_t i = 0; i < usage->count; i++) {
        const dp_option *option = &usage->options[i];
        if (used[i] && option->random != NULL && !*option->random) {
            return dp_fail(error,
                           "--%s: it describes what --random draws: leave it out, or give "
                           "--random SEED",
                           option->name);
        }
    }
    return true;
}

enum { OPTIONS_MOST = 64 };

static bool parse(const dp_usage *usage, int *argc, char **argv, dp_error *error)
{
    int operands = 0;
    bool options = true;
    bool used[OPTIONS_MOST] = {false};
    for (int i = 1; i < *argc;) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
            i++;
        } else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            const int taken = take_option(usage, *argc, argv, i, used, error);
            if (taken == 0) {
                return false;
            }
            i += taken;
        } else {
            argv[1 + operands++] = argv[i++];
        }
    }
    if (operands < usage->least) {
        return dp_fail(error, "%s: %s is missing: see directp %s --help", usage->verb,
                       usage->operands, usage->verb);
    }
    if (operands > usage->most) {
        return dp_fail(error, "%s: '%.200s' is one argument too many: see directp %s --help",
                       usage->verb, argv[1 + usage->most], usage->verb);
    }
    *argc = operands + 1;
    return check_random(usage, used, error);
}

int dp_options_parse(const dp_usage *usage, int *argc, char **argv)
{
    dp_error error = {""};
    if (help_wanted(*argc, argv)) {
        dp_options_help(usage);
        return DP_EXIT_SAME;
    }
    return parse(usage, argc, argv, &error) ? DP_CONTINUE : dp_report_error(&error);
}
