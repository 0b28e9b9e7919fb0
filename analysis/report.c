/* SPDX-License-Identifier: MIT */
#include "analysis/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

typedef enum { CELL_BLANK, CELL_TEXT, CELL_I64, CELL_F32, CELL_F64, CELL_BITS } cell_type;

typedef struct {
    cell_type type;
    int digits; /* of CELL_BITS */
    union {
        int64_t integer;
        uint64_t bits;
        float f32;
        double f64;
        char *text;
    } as;
} cell;

struct dp_report {
    const char *title;
    const dp_column *columns;
    size_t width;
    cell *cells;
    size_t used, room;
    size_t keys, wrap; /* of bands; wrap 0: one line a row */
    bool short_of_memory;
};

bool dp_style_of(bool json, bool csv, dp_style *style, dp_error *error)
{
    if (json && csv) {
        return dp_fail(error, "--json, --csv: both were given: choose one");
    }
    *style = json ? DP_STYLE_JSON : csv ? DP_STYLE_CSV : DP_STYLE_TEXT;
    return true;
}

dp_report *dp_report_new(const char *title, const dp_column *columns, size_t count)
{
    dp_report *report = count <= DP_REPORT_COLUMNS ? calloc(1, sizeof *report) : NULL;
    if (report != NULL) {
        report->title = title;
        report->columns = columns;
        report->width = count;
    }
    return report;
}

void dp_report_wrap(dp_report *report, size_t keys, size_t width)
{
    report->keys = keys < report->width ? keys : 0;
    report->wrap = width;
}

void dp_report_free(dp_report *report)
{
    if (report == NULL) {
        return;
    }
    for (size_t i = 0; i < report->used; i++) {
        if (report->cells[i].type == CELL_TEXT) {
            free(report->cells[i].as.text);
        }
    }
    free(report->cells);
    free(report);
}

static void add(dp_report *report, cell added)
{
    if (report->used == report->room) {
        const size_t room = report->room > 0 ? 2 * report->room : 64;
        cell *cells = realloc(report->cells, room * sizeof *cells);
        if (cells == NULL) {
            report->short_of_memory = true;
            if (added.type == CELL_TEXT) {
                free(added.as.text);
            }
            return;
        }
        report->cells = cells;
        report->room = room;
    }
    report->cells[report->used++] = added;
}

void dp_report_text(dp_report *report, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    if (copy == NULL) {
        report->short_of_memory = true;
        return;
    }
    memcpy(copy, text, size);
    add(report, (cell){.type = CELL_TEXT, .as = {.text = copy}});
}

void dp_report_i64(dp_report *report, int64_t value)
{
    add(report, (cell){.type = CELL_I64, .as = {.integer = value}});
}

void dp_report_f32(dp_report *report, float value)
{
    add(report, (cell){.type = CELL_F32, .as = {.f32 = value}});
}

void dp_report_f64(dp_report *report, double value)
{
    add(report, (cell){.type = CELL_F64, .as = {.f64 = value}});
}

void dp_report_bits(dp_report *report, uint64_t bits, int digits)
{
    add(report, (cell){.type = CELL_BITS, .digits = digits, .as = {.bits = bits}});
}

void dp_report_blank(dp_report *report)
{
    add(report, (cell){.type = CELL_BLANK});
}

size_t dp_report_rows(const dp_report *report)
{
    return report->width > 0 ? report->used / report->width : 0;
}

/* The cell as text; decimals < 0 prints as many digits as the value needs to be read back. */
static const char *cell_text(const cell *c, int decimals, char text[64])
{
    switch (c->type) {
    case CELL_TEXT:
        return c->as.text;
    case CELL_I64:
        (void)snprintf(text, 64, "%" PRId64, c->as.integer);
        return text;
    case CELL_BITS:
        (void)snprintf(text, 64, "0x%0*" PRIX64, c->digits, c->as.bits);
        return text;
    case CELL_F32:
    case CELL_F64: {
        const double value = c->type == CELL_F32 ? (double)c->as.f32 : c->as.f64;
        if (decimals >= 0 && isfinite(value) && fabs(value) < 1e15) {
            (void)snprintf(text, 64, "%.*f", decimals, value);
            return text;
        }
        return c->type == CELL_F32 ? dp_f32_text(c->as.f32, text) : dp_f64_text(value, text);
    }
    case CELL_BLANK:
        break;
    }
    text[0] = '\0';
    return text;
}

static const char *heading(const dp_column *column)
{
    return column->head != NULL ? column->head : column->key;
}

/* Width of a column in text: negative for text, which stands at the left. */
static int column_width(const dp_report *report, size_t column)
{
    char text[64];
    const dp_column *const spec = &report->columns[column];
    size_t wide = strlen(heading(spec));
    bool left = true;
    for (size_t i = column; i < report->used; i += report->width) {
        const size_t length = strlen(cell_text(&report->cells[i], spec->decimals, text));
        wide = length > wide ? length : wide;
        left = left && (report->cells[i].type == CELL_TEXT || report->cells[i].type == CELL_BLANK);
    }
    return left ? -(int)wide : (int)wide;
}

static size_t line_cells(const int *widths, size_t first, size_t last)
{
    size_t sum = 0;
    for (size_t c = first; c < last; c++) {
        sum += (size_t)abs(widths[c]) + 2;
    }
    return sum;
}

/* One row (0: the headings) of the key columns and columns [first, last). */
static void print_row(const dp_report *report, const int *widths, size_t row, size_t keys,
                      size_t first, size_t last, FILE *stream)
{
    char text[64];
    for (size_t i = 0; i < keys + last - first; i++) {
        const size_t column = i < keys ? i : first + i - keys;
        const dp_column *const spec = &report->columns[column];
        const size_t at = row > 0 ? (row - 1) * report->width + column : 0;
        const bool end = i + 1 == keys + last - first && widths[column] < 0;
        (void)fprintf(stream, "%s%*s", i > 0 ? "  " : "",
                      end ? 0 : widths[column], /* no blanks at the end of a line */
                      row == 0 ? heading(spec)
                               : cell_text(&report->cells[at], spec->decimals, text));
    }
    (void)fputc('\n', stream);
}

static void print_text(const dp_report *report, FILE *stream)
{
    int widths[DP_REPORT_COLUMNS];
    if (report->title != NULL) {
        (void)fprintf(stream, "%s\n", report->title);
    }
    for (size_t column = 0; column < report->width; column++) {
        widths[column] = column_width(report, column);
    }
    const size_t room = report->wrap > 0 ? report->wrap + 2 : SIZE_MAX;
    size_t first = 0;
    while (first < report->width) {
        const size_t keys = first == 0 ? 0 : report->keys;
        const size_t taken = line_cells(widths, 0, keys);
        size_t last = first + 1;
        while (last < report->width && taken + line_cells(widths, first, last + 1) <= room) {
            last++;
        }
        (void)fputs(first > 0 ? "\n" : "", stream);
        for (size_t row = 0; row <= dp_report_rows(report); row++) {
            print_row(report, widths, row, keys, first, last, stream);
        }
        first = last;
    }
}

static void print_csv_field(const char *text, FILE *stream)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        (void)fputs(text, stream);
        return;
    }
    (void)fputc('"', stream);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            (void)fputc('"', stream);
        }
        (void)fputc(*text, stream);
    }
    (void)fputc('"', stream);
}

static void print_csv(const dp_report *report, FILE *stream)
{
    char text[64];
    for (size_t column = 0; column < report->width; column++) {
        (void)fputs(column > 0 ? "," : "", stream);
        print_csv_field(report->columns[column].key, stream);
    }
    (void)fputs("\r\n", stream);
    for (size_t i = 0; i < report->used; i++) {
        print_csv_field(cell_text(&report->cells[i], -1, text), stream);
        (void)fputs((i + 1) % report->width == 0 ? "\r\n" : ",", stream);
    }
}

static void json_cell(const cell *c, dp_json *json)
{
    switch (c->type) {
    case CELL_TEXT:
        dp_json_text(json, c->as.text);
        return;
    case CELL_I64:
        dp_json_i64(json, c->as.integer);
        return;
    case CELL_BITS:
        dp_json_bits(json, c->as.bits, c->digits);
        return;
    case CELL_F32:
        dp_json_f32(json, c->as.f32);
        return;
    case CELL_F64:
        dp_json_f64(json, c->as.f64);
        return;
    case CELL_BLANK:
        break;
    }
    dp_json_null(json);
}

static bool complete(const dp_report *report, dp_error *error)
{
    if (report->short_of_memory) {
        return dp_fail(error, "report: memory ran short: free some and try again");
    }
    if (report->width == 0 || report->used % report->width != 0) {
        return dp_fail(error, "report: the last row has too few cells: please report this bug");
    }
    return true;
}

bool dp_report_json(const dp_report *report, dp_json *json, dp_error *error)
{
    dp_json_array(json);
    for (size_t i = 0; i < report->used; i++) {
        const size_t column = i % report->width;
        if (column == 0) {
            dp_json_object_line(json);
        }
        dp_json_key(json, report->columns[column].key);
        json_cell(&report->cells[i], json);
        if (column + 1 == report->width) {
            dp_json_close(json);
        }
    }
    if (report->used % report->width != 0) {
        dp_json_close(json);
    }
    dp_json_close(json);
    return complete(report, error);
}

bool dp_report_print(const dp_report *report, dp_style style, FILE *stream, dp_error *error)
{
    if (!complete(report, error)) {
        return false;
    }
    if (style == DP_STYLE_TEXT) {
        print_text(report, stream);
        return true;
    }
    if (style == DP_STYLE_CSV) {
        print_csv(report, stream);
        return true;
    }
    dp_json json;
    dp_json_start(&json, stream);
    dp_json_object(&json);
    if (report->title != NULL) {
        dp_json_member_text(&json, "title", report->title);
    }
    dp_json_key(&json, "rows");
    const bool good = dp_report_json(report, &json, error);
    dp_json_close(&json);
    dp_json_finish(&json);
    return good;
}

bool dp_report_print_turned(const dp_report *report, FILE *stream, dp_error *error)
{
    char text[64];
    if (!complete(report, error)) {
        return false;
    }
    if (report->title != NULL) {
        (void)fprintf(stream, "%s\n", report->title);
    }
    for (size_t column = 0; column < report->width; column++) {
        bool blank = true;
        for (size_t i = column; i < report->used; i += report->width) {
            blank = blank && report->cells[i].type == CELL_BLANK;
        }
        if (blank) {
            continue;
        }
        (void)fprintf(stream, "%-26s", heading(&report->columns[column]));
        for (size_t i = column; i < report->used; i += report->width) {
            (void)fprintf(stream, "  %22s",
                          cell_text(&report->cells[i], report->columns[column].decimals, text));
        }
        (void)fputc('\n', stream);
    }
    return true;
}
