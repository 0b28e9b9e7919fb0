/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/options.h"

enum { HELP_WIDTH = 79, HELP_INDENT = 26 };

/* Print text from column `column`, continuing lines at column `indent`. */
static void print_wrapped(const char *text, int column, int indent)
{
    bool first = true;
    while (*text != '\0') {
        const int length = (int)strcspn(text, " ");
        if (!first && column + 1 + length > HELP_WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", length, text);
        column += length;
        text += length + (text[length] == ' ' ? 1 : 0);
        first = false;
    }
    putchar('\n');
}

/* " (default 64)", or nothing for what starts unset. */
static void default_text(const dp_option *option, char *text, size_t size)
{
    text[0] = '\0';
    switch (option->type) {
    case DP_OPTION_INT:
        (void)snprintf(text, size, "; %.0f to %.0f (default %" PRId64 ")", option->low,
                       option->high, *(const int64_t *)option->value);
        break;
    case DP_OPTION_REAL:
        (void)snprintf(text, size, "; %g to %g (default %g)", option->low, option->high,
                       *(const double *)option->value);
        break;
    case DP_OPTION_TEXT:
    case DP_OPTION_CHOICE:
        if (*(const char *const *)option->value != NULL &&
            **(const char *const *)option->value != '\0') {
            (void)snprintf(text, size, " (default %s)", *(const char *const *)option->value);
        }
        break;
    case DP_OPTION_FLAG:
    case DP_OPTION_TEXTS:
        break;
    }
}

static void print_option(const dp_option *option)
{
    char head[256];
    char tail[128];
    char help[1024];
    char letter[8] = "    ";
    if (option->letter != '\0') {
        (void)snprintf(letter, sizeof letter, "-%c, ", option->letter);
    }
    const char *argument = option->type == DP_OPTION_CHOICE ? "NAME" : option->argument;
    (void)snprintf(head, sizeof head, "  %s--%s%s%s", letter, option->name,
                   argument != NULL ? " " : "", argument != NULL ? argument : "");
    default_text(option, tail, sizeof tail);
    (void)snprintf(help, sizeof help, "%s%s%s%s", option->help, option->choices != NULL ? ": " : "",
                   option->choices != NULL ? option->choices : "", tail);
    const int length = (int)strlen(head);
    if (length + 1 > HELP_INDENT) {
        printf("%s\n%*s", head, HELP_INDENT, "");
    } else {
        printf("%-*s", HELP_INDENT, head);
    }
    print_wrapped(help, HELP_INDENT, HELP_INDENT);
}

/* Lines of commands, each indented alike whatever the text does. */
static void print_examples(const char *text)
{
    printf("\nExample:\n");
    while (*text != '\0') {
        text += strspn(text, " ");
        const int length = (int)strcspn(text, "\n");
        printf("  %.*s\n", length, text);
        text += length + (text[length] == '\n' ? 1 : 0);
    }
}

void dp_options_help(const dp_usage *usage)
{
    printf("Usage: directp %s [options]%s%s\n\n", usage->verb,
           usage->operands[0] != '\0' ? " " : "", usage->operands);
    print_wrapped(usage->summary, 0, 0);
    printf("\nOptions:\n");
    for (size_t i = 0; i < usage->count; i++) {
        print_option(&usage->options[i]);
    }
    printf("      --help              print this\n");
    if (usage->notes != NULL) {
        printf("\n%s\n", usage->notes);
    }
    print_examples(usage->example);
    printf("\nExit status: 0 success or no difference, 1 differences found, 2 bad usage or "
           "input.\n");
}
