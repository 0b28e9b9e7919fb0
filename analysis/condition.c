/* SPDX-License-Identifier: MIT
 *
 * Parsing conditions into postfix programs.
 */
#include "analysis/condition_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    dp_condition *to;
    const char *text, *at; /* the whole argument, and where the parser is */
    int subject;           /* first column named, -1 */
    int depth;
    dp_error *error;
} parser;

enum { MOST_DEPTH = 32 };

static void blanks(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n') {
        p->at++;
    }
}

static bool refuse(const parser *p, const char *what)
{
    return dp_fail(p->error, "--fail-if: '%.120s', character %zu: %s: see --help for conditions",
                   p->text, (size_t)(p->at - p->text) + 1, what);
}

static bool emit(parser *p, dp_operation operation)
{
    if (p->to->length == DP_CONDITION_LENGTH) {
        return refuse(p, "the condition is too long: split it");
    }
    p->to->program[p->to->length++] = operation;
    return true;
}

static size_t word_length(const char *at)
{
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_') {
        length++;
    }
    return length;
}

static bool unknown_name(const parser *p, size_t length)
{
    char names[768] = "";
    size_t used = 0;
    for (int c = 0; c < DP_RUN_NUMBERS && used < sizeof names; c++) {
        const int added =
            snprintf(names + used, sizeof names - used, " %s", dp_run_columns[c].name);
        used += added > 0 ? (size_t)added : 0;
    }
    return dp_fail(p->error, "--fail-if: there is no '%.*s': use one of%s, or last, best, median",
                   length < 40 ? (int)length : 40, p->at, names);
}

static bool take_column(parser *p, int *column)
{
    const size_t length = word_length(p->at);
    for (int c = 0; c < DP_RUN_NUMBERS; c++) {
        if (strlen(dp_run_columns[c].name) == length &&
            strncmp(dp_run_columns[c].name, p->at, length) == 0) {
            *column = c;
            p->at += length;
            return true;
        }
    }
    return unknown_name(p, length);
}

static bool take_reference(parser *p, dp_operation_kind *kind)
{
    static const char *const names[] = {"last", "best", "median"};
    const size_t length = word_length(p->at);
    for (int i = 0; i < 3; i++) {
        if (strlen(names[i]) == length && strncmp(names[i], p->at, length) == 0) {
            *kind = (dp_operation_kind)(DP_PUSH_LAST + i);
            p->at += length;
            return true;
        }
    }
    return false;
}

static bool take_name(parser *p)
{
    dp_operation operation = {.kind = DP_PUSH_COLUMN, .column = -1};
    if (take_reference(p, &operation.kind)) {
        if (*p->at != '.') {
            return emit(p, operation); /* of the subject, known at the end of the condition */
        }
        p->at++;
    }
    if (!take_column(p, &operation.column)) {
        return false;
    }
    if (operation.kind == DP_PUSH_COLUMN && p->subject < 0) {
        p->subject = operation.column;
    }
    return emit(p, operation);
}

static bool take_number(parser *p)
{
    char *end = NULL;
    dp_operation operation = {.kind = DP_PUSH_NUMBER};
    if (p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X')) {
        return refuse(p, "numbers are decimal");
    }
    operation.number = strtod(p->at, &end);
    if (end == p->at || word_length(end) > 0) {
        return refuse(p, "this is no number");
    }
    p->at = end;
    if (*p->at == '%') {
        operation.number /= 100.0;
        p->at++;
    }
    return emit(p, operation);
}

static bool take_sum(parser *p);

static bool take_factor(parser *p)
{
    blanks(p);
    if (++p->depth > MOST_DEPTH) {
        return refuse(p, "nested too deeply");
    }
    bool good;
    if (*p->at == '-') {
        p->at++;
        good = take_factor(p) && emit(p, (dp_operation){.kind = DP_NEGATE});
    } else if (*p->at == '(') {
        p->at++;
        good = take_sum(p);
        blanks(p);
        good = good && (*p->at == ')' || refuse(p, "a ')' is missing"));
        p->at += good;
    } else if (isdigit((unsigned char)*p->at) || *p->at == '.') {
        good = take_number(p);
    } else if (word_length(p->at) > 0) {
        good = take_name(p);
    } else {
        good = refuse(p, *p->at == '\0' ? "it ends where a number or a name is due"
                                        : "a number or a name is due here");
    }
    p->depth--;
    blanks(p);
    return good;
}

static bool take_product(parser *p)
{
    bool good = take_factor(p);
    while (good && (*p->at == '*' || *p->at == '/')) {
        const dp_operation_kind kind = *p->at++ == '*' ? DP_MULTIPLY : DP_DIVIDE;
        good = take_factor(p) && emit(p, (dp_operation){.kind = kind});
    }
    return good;
}

static bool take_sum(parser *p)
{
    bool good = take_product(p);
    while (good && (*p->at == '+' || *p->at == '-')) {
        const dp_operation_kind kind = *p->at++ == '+' ? DP_ADD : DP_SUBTRACT;
        good = take_product(p) && emit(p, (dp_operation){.kind = kind});
    }
    return good;
}

static bool take_comparison(parser *p, dp_operation_kind *kind)
{
    static const struct {
        const char *text;
        dp_operation_kind kind;
    } all[] = {{"<=", DP_AT_MOST}, {">=", DP_AT_LEAST}, {"==", DP_EQUAL},
               {"!=", DP_UNEQUAL}, {"<", DP_LESS},      {">", DP_MORE}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strncmp(p->at, all[i].text, strlen(all[i].text)) == 0) {
            *kind = all[i].kind;
            p->at += strlen(all[i].text);
            return true;
        }
    }
    return refuse(p, *p->at == '=' ? "'=' alone is no comparison, '==' is"
                                   : "a comparison is due here: < <= > >= == or !=");
}

/* Bare references are those of the subject; "best" needs a column that can be better. */
static bool resolve(parser *p)
{
    for (size_t i = 0; i < p->to->length; i++) {
        dp_operation *o = &p->to->program[i];
        if (o->kind < DP_PUSH_LAST || o->kind > DP_PUSH_MEDIAN) {
            continue;
        }
        if (o->column < 0) {
            o->column = p->subject;
        }
        if (o->column < 0) {
            return refuse(p, "last, best or median of what? Write last.NAME");
        }
        if (o->kind == DP_PUSH_BEST && dp_run_columns[o->column].better == 0) {
            return dp_fail(p->error,
                           "--fail-if: best.%s: neither more nor less of it is better: "
                           "use last or median",
                           dp_run_columns[o->column].name);
        }
    }
    return true;
}

static bool take_condition(parser *p)
{
    dp_operation_kind kind = DP_LESS;
    blanks(p);
    const char *from = p->at;
    p->subject = -1;
    if (!take_sum(p) || !take_comparison(p, &kind) || !take_sum(p) ||
        !emit(p, (dp_operation){.kind = kind}) || !resolve(p)) {
        return false;
    }
    size_t length = (size_t)(p->at - from);
    while (length > 0 && isspace((unsigned char)from[length - 1])) {
        length--;
    }
    if (length >= sizeof p->to->text) {
        return refuse(p, "the condition is too long: split it");
    }
    memcpy(p->to->text, from, length);
    p->to->text[length] = '\0';
    return *p->at == '\0' || *p->at == ',' ||
           refuse(p, "the condition should end here; separate conditions with ','");
}

static bool parse_text(dp_conditions *all, const char *text, dp_error *error)
{
    parser p = {.text = text, .at = text, .error = error};
    for (;;) {
        if (all->count == DP_CONDITIONS) {
            return dp_fail(error, "--fail-if: more than %d conditions: use fewer", DP_CONDITIONS);
        }
        p.to = &all->item[all->count];
        if (!take_condition(&p)) {
            return false;
        }
        all->count++;
        if (*p.at == '\0') {
            return true;
        }
        p.at++;
    }
}

dp_conditions *dp_conditions_parse(const char *const *texts, size_t count, dp_error *error)
{
    dp_conditions *all = calloc(1, sizeof *all);
    bool good = all != NULL;
    if (!good) {
        (void)dp_fail(error, "--fail-if: not enough memory");
    }
    for (size_t i = 0; good && i < count; i++) {
        good = parse_text(all, texts[i], error);
    }
    if (!good) {
        free(all);
        return NULL;
    }
    return all;
}

void dp_conditions_free(dp_conditions *conditions)
{
    free(conditions);
}

bool dp_conditions_use(const dp_conditions *conditions, dp_run_number column)
{
    for (size_t i = 0; conditions != NULL && i < conditions->count; i++) {
        for (size_t k = 0; k < conditions->item[i].length; k++) {
            const dp_operation *o = &conditions->item[i].program[k];
            if (o->kind == DP_PUSH_COLUMN && o->column == (int)column) {
                return true;
            }
        }
    }
    return false;
}

bool dp_conditions_use_history(const dp_conditions *conditions)
{
    for (size_t i = 0; conditions != NULL && i < conditions->count; i++) {
        for (size_t k = 0; k < conditions->item[i].length; k++) {
            const dp_operation_kind kind = conditions->item[i].program[k].kind;
            if (kind >= DP_PUSH_LAST && kind <= DP_PUSH_MEDIAN) {
                return true;
            }
        }
    }
    return false;
}

char *dp_conditions_help(const char *before)
{
    const size_t size = strlen(before) + 4096;
    char *text = malloc(size);
    if (text == NULL) {
        return NULL;
    }
    int used = snprintf(text, size, "%s", before);
    for (int c = 0; c < DP_RUN_NUMBERS; c++) {
        used += snprintf(text + used, size - (size_t)used, "\n  %-22s %s", dp_run_columns[c].name,
                         dp_run_columns[c].meaning);
    }
    return text;
}
