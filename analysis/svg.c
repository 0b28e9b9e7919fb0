/* SPDX-License-Identifier: MIT */
#include "analysis/svg.h"

#include <math.h>
#include <string.h>

enum { LINE = 17, LETTER = 11, RIGHT = DP_SVG_WIDTH - 14, WIDE = 6 /* of a letter, about */ };
#define INK  "#222222"
#define GRID "#dddddd"

static const char *const COLORS[DP_SVG_SERIES] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#000000", "#e69f00", "#56b4e9", "#8c6d00"};

void dp_svg_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            (void)fputs("&lt;", out);
            break;
        case '>':
            (void)fputs("&gt;", out);
            break;
        case '&':
            (void)fputs("&amp;", out);
            break;
        case '"':
            (void)fputs("&quot;", out);
            break;
        case '\'':
            (void)fputs("&#39;", out);
            break;
        default:
            (void)fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        }
    }
}

const char *dp_svg_color(size_t series)
{
    return COLORS[series % DP_SVG_SERIES];
}

static void start(FILE *out, const char *title, int height)
{
    (void)fprintf(
        out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" font-size=\"%d\" fill=\"" INK "\"><title>",
        DP_SVG_WIDTH, height, LETTER);
    dp_svg_text(out, title);
    (void)fputs("</title>\n", out);
}

static void finish(FILE *out)
{
    (void)fputs("</svg>\n", out);
}

static void put(FILE *out, double x, double y, const char *anchor, const char *text)
{
    (void)fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    dp_svg_text(out, text);
    (void)fputs("</text>\n", out);
}

static void line(FILE *out, double x1, double y1, double x2, double y2, const char *stroke)
{
    (void)fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
                  x1, y1, x2, y2, stroke);
}

static void box(FILE *out, double x, double y, double w, double h, const char *fill)
{
    (void)fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
                  x, y, w, h, fill);
}

/* 0 at low, 1 at high. */
static double place(const dp_svg_axis *axis, double value)
{
    return axis->log ? log(value / axis->low) / log(axis->high / axis->low)
                     : (value - axis->low) / (axis->high - axis->low);
}

/* The mark of a series: shapes differ as well as colours. */
static void mark(FILE *out, size_t series, double x, double y)
{
    const char *color = dp_svg_color(series);
    const double r = 4.0;
    switch (series % DP_SVG_SERIES) {
    case 0:
        (void)fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\"/>\n", x, y, r,
                      color);
        break;
    case 1:
        (void)fprintf(out, "<path d=\"M%.1f %.1fl5 5l-5 5l-5-5z\" fill=\"%s\"/>\n", x, y - 5.0,
                      color);
        break;
    case 2:
        (void)fprintf(out, "<path d=\"M%.1f %.1fl5 9h-10z\" fill=\"%s\"/>\n", x, y - 5.0, color);
        break;
    case 3:
        box(out, x - r, y - r, 2.0 * r, 2.0 * r, color);
        break;
    case 4:
        (void)fprintf(out,
                      "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"none\" stroke=\"%s\" "
                      "stroke-width=\"1.6\"/>\n",
                      x, y, r, color);
        break;
    case 5:
        (void)fprintf(out, "<path d=\"M%.1f %.1fl5-9h-10z\" fill=\"%s\"/>\n", x, y + 5.0, color);
        break;
    default:
        (void)fprintf(out, "<path d=\"M%.1f %.1fv10m-5-5h10\" stroke=\"%s\" stroke-width=\"2\"/>\n",
                      x, y - 5.0, color);
    }
}

/* Names of the series in lines below `y`; returns the height used. dry: measure only. */
static int legend(FILE *out, const char *const *names, size_t count, int y, bool lines, bool dry)
{
    int x = 8;
    int used = LINE;
    for (size_t i = 0; i < count; i++) {
        const int width = 22 + WIDE * (int)strlen(names[i]) + 8;
        if (x > 8 && x + width > DP_SVG_WIDTH) {
            x = 8;
            used += LINE;
        }
        if (!dry) {
            if (lines) {
                (void)fprintf(out,
                              "<path d=\"M%d %dh16\" stroke=\"%s\" stroke-width=\"2\" "
                              "stroke-dasharray=\"%s\"/>\n",
                              x, y + used - 6, dp_svg_color(i),
                              i == 0 ? "none" : (i == 1 ? "6 2" : (i == 2 ? "2 2" : "7 2 2 2")));
            } else {
                mark(out, i, x + 8, y + used - 6);
            }
            put(out, x + 20, y + used - 2, "start", names[i]);
        }
        x += width;
    }
    return used;
}

static const char *number(double value, char text[32])
{
    (void)snprintf(text, 32, "%.6g", value);
    return text;
}

/* A round step that cuts `span` in four to eight. */
static double step_of(double span)
{
    const double power = pow(10.0, floor(log10(span / 4.0)));
    const double rest = span / 4.0 / power;
    return power * (rest >= 5.0 ? 5.0 : (rest >= 2.0 ? 2.0 : 1.0));
}

/* The ticks of an axis in ascending order; returns how many. */
static int ticks_of(const dp_svg_axis *axis, double ticks[32])
{
    int count = 0;
    if (!axis->log) {
        const double step = step_of(axis->high - axis->low);
        for (double t = ceil(axis->low / step - 1e-9) * step;
             t <= axis->high + step * 1e-9 && count < 32; t += step) {
            ticks[count++] = fabs(t) < step * 1e-9 ? 0.0 : t;
        }
        return count;
    }
    const double decades = log10(axis->high / axis->low);
    for (int e = (int)floor(log10(axis->low)); e <= (int)ceil(log10(axis->high)); e++) {
        static const double within[3] = {1.0, 2.0, 5.0};
        for (int k = 0; k < (decades < 3.5 ? 3 : 1); k++) {
            const double t = within[k] * pow(10.0, e);
            if (t >= axis->low * (1 - 1e-9) && t <= axis->high * (1 + 1e-9) && count < 32) {
                ticks[count++] = t;
            }
        }
    }
    return count;
}

/* Vertical grid lines from top to bottom with numbers and the label below. */
static void x_axis(FILE *out, const dp_svg_axis *axis, double left, double right, double top,
                   double bottom)
{
    double ticks[32];
    char text[32];
    const int count = ticks_of(axis, ticks);
    double last = -100.0;
    for (int i = 0; i < count; i++) {
        const double x = left + (right - left) * place(axis, ticks[i]);
        line(out, x, top, x, bottom, GRID);
        const double half = 0.5 * WIDE * (double)strlen(number(ticks[i], text));
        if (x - half > last) {
            put(out, x, bottom + 13.0, "middle", text);
            last = x + half + 3.0;
        }
    }
    put(out, 0.5 * (left + right), bottom + 28.0, "middle", axis->label);
}

static void y_axis(FILE *out, const dp_svg_axis *axis, double left, double right, double top,
                   double bottom)
{
    double ticks[32];
    char text[32];
    const int count = ticks_of(axis, ticks);
    for (int i = 0; i < count; i++) {
        const double y = bottom - (bottom - top) * place(axis, ticks[i]);
        line(out, left, y, right, y, GRID);
        put(out, left - 4.0, y + 4.0, "end", number(ticks[i], text));
    }
    put(out, 4.0, top - 6.0, "start", axis->label);
}

/* Room for names at the left. */
static double left_of(const char *const *rows, size_t count)
{
    size_t wide = 2;
    for (size_t i = 0; i < count; i++) {
        wide = strlen(rows[i]) > wide ? strlen(rows[i]) : wide;
    }
    return 12.0 + WIDE * (double)wide;
}

static void names_of(const dp_svg_series *series, size_t count, const char *names[DP_SVG_SERIES])
{
    for (size_t i = 0; i < count && i < DP_SVG_SERIES; i++) {
        names[i] = series[i].name;
    }
}

/* A value on the axis, held at its ends; beyond tells on which side it lies. */
static double held(const dp_svg_axis *axis, double value, int *beyond)
{
    const bool below = axis->log ? !(value >= axis->low) : value < axis->low;
    *beyond = value > axis->high ? 1 : (below ? -1 : 0);
    return *beyond > 0 ? 1.0 : (*beyond < 0 ? 0.0 : place(axis, value));
}

static void cross(FILE *out, double x, double y)
{
    (void)fprintf(
        out, "<path d=\"M%.1f %.1fl12 12m0-12l-12 12\" stroke=\"" INK "\" stroke-width=\"1.4\"/>\n",
        x - 6.0, y - 6.0);
}

void dp_svg_dots_draw(FILE *out, const dp_svg_dots *chart)
{
    const char *names[DP_SVG_SERIES] = {NULL};
    names_of(chart->series, chart->series_count, names);
    const double left = left_of(chart->rows, chart->row_count) + 8.0;
    const double right = RIGHT;
    const double top = 8.0;
    const double bottom = top + LINE * (double)chart->row_count;
    const int below = (int)bottom + 32;
    int height = below + legend(out, names, chart->series_count, 0, false, true) + 6;
    height += chart->mark != NULL ? LINE : 0;
    start(out, chart->title, height);
    x_axis(out, &chart->x, left, right, top, bottom);
    for (size_t r = 0; r < chart->row_count; r++) {
        const double y = top + LINE * ((double)r + 0.5);
        put(out, left - 16.0, y + 4.0, "end", chart->rows[r]);
        line(out, left, y, right, y, "#eeeeee");
        for (size_t s = 0; s < chart->series_count; s++) {
            const double value = chart->series[s].values[r];
            int beyond;
            if (isnan(value)) {
                continue;
            }
            const double x = left + (right - left) * held(&chart->x, value, &beyond);
            /* Marks of one row are set off a little, so that equal ones are all seen. */
            const double spread = chart->series_count > 3 ? 1.8 : 3.0;
            const double at = y + spread * ((double)s - 0.5 * (double)(chart->series_count - 1));
            mark(out, s, x, at);
            if (beyond != 0) {
                put(out, x + 6.0 * beyond, at + 4.0, beyond > 0 ? "start" : "end",
                    beyond > 0 ? ">" : "<");
            }
            if (chart->series[s].marked != NULL && chart->series[s].marked[r]) {
                cross(out, x, at);
            }
        }
    }
    const int used = legend(out, names, chart->series_count, below, false, false);
    if (chart->mark != NULL) {
        cross(out, 16.0, below + used + LINE - 6.0);
        put(out, 28.0, below + used + LINE - 2.0, "start", chart->mark);
    }
    finish(out);
}

/* Chart area of curves and planes. */
enum { TOP = 22, BOTTOM = 210 };

void dp_svg_lines_draw(FILE *out, const dp_svg_lines *chart)
{
    const char *names[DP_SVG_SERIES] = {NULL};
    names_of(chart->series, chart->series_count, names);
    const double left = 44.0;
    const double right = RIGHT;
    const double half =
        chart->steps && chart->count > 1 ? 0.5 * (chart->at[1] - chart->at[0]) : 0.0;
    start(out, chart->title,
          BOTTOM + 36 + legend(out, names, chart->series_count, 0, true, true) + 6);
    x_axis(out, &chart->x, left, right, TOP, BOTTOM);
    y_axis(out, &chart->y, left, right, TOP, BOTTOM);
    for (size_t s = 0; s < chart->series_count; s++) {
        bool drawing = false;
        (void)fprintf(
            out,
            "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" d=\"",
            dp_svg_color(s), s == 0 ? "none" : (s == 1 ? "6 2" : (s == 2 ? "2 2" : "7 2 2 2")));
        for (size_t i = 0; i < chart->count; i++) {
            const double value = chart->series[s].values[i];
            int beyond;
            if (isnan(value)) {
                drawing = false;
                continue;
            }
            const double y = BOTTOM - (BOTTOM - TOP) * held(&chart->y, value, &beyond);
            for (int end = -1; end <= (chart->steps ? 1 : -1); end += 2) {
                const double at = chart->at[i] + half * end;
                const double x = left + (right - left) * held(&chart->x, at, &beyond);
                (void)fprintf(out, "%c%.1f %.1f", drawing ? 'L' : 'M', x, y);
                drawing = true;
            }
        }
        (void)fputs("\"/>\n", out);
    }
    (void)legend(out, names, chart->series_count, BOTTOM + 32, true, false);
    finish(out);
}

void dp_svg_plane_draw(FILE *out, const dp_svg_plane *chart)
{
    enum { MOST = 64 };
    size_t order[MOST];
    const size_t count = chart->count < MOST ? chart->count : MOST;
    const double left = 44.0;
    const double right = RIGHT - left_of(chart->names, count);
    const double bottom = TOP + (12.0 * (double)count > 188.0 ? 12.0 * (double)count : 188.0);
    for (size_t i = 0; i < count; i++) { /* by y, the largest first */
        size_t at = i;
        for (; at > 0 && chart->py[order[at - 1]] < chart->py[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    start(out, chart->title,
          (int)bottom + 36 + legend(out, chart->groups, chart->group_count, 0, false, true) + 6);
    x_axis(out, &chart->x, left, right, TOP, bottom);
    y_axis(out, &chart->y, left, right, TOP, bottom);
    for (size_t i = 0; i < count; i++) {
        const size_t p = order[i];
        int beyond;
        const double x = left + (right - left) * held(&chart->x, chart->px[p], &beyond);
        const double y = bottom - (bottom - TOP) * held(&chart->y, chart->py[p], &beyond);
        const double at = TOP + (bottom - TOP) * ((double)i + 0.5) / (double)count;
        line(out, x, y, right + 8.0, at, "#bbbbbb");
        mark(out, chart->group[p], x, y);
        put(out, right + 11.0, at + 4.0, "start", chart->names[p]);
    }
    (void)legend(out, chart->groups, chart->group_count, (int)bottom + 32, false, false);
    finish(out);
}

void dp_svg_ranges_draw(FILE *out, const dp_svg_ranges *chart)
{
    const double left = left_of(chart->rows, chart->row_count);
    const double right = RIGHT;
    const double top = 8.0;
    const double tall = LINE * (double)chart->bar_count * 0.62 + 5.0;
    const double bottom = top + tall * (double)chart->row_count;
    const int below = (int)bottom + 32;
    const int names = legend(out, chart->bars, chart->bar_count, 0, false, true);
    start(out, chart->title, below + names + LINE + 6);
    int beyond;
    const double from = left + (right - left) * held(&chart->x, chart->band_low, &beyond);
    const double to = left + (right - left) * held(&chart->x, chart->band_high, &beyond);
    box(out, from, top, to - from, bottom - top, "#e8f4e8");
    x_axis(out, &chart->x, left, right, top, bottom);
    for (size_t r = 0; r < chart->row_count; r++) {
        const double y = top + tall * (double)r;
        put(out, left - 8.0, y + 0.5 * tall + 4.0, "end", chart->rows[r]);
        for (size_t b = 0; b < chart->bar_count; b++) {
            int low_side;
            int high_side;
            const double low = held(&chart->x, chart->low[r * chart->bar_count + b], &low_side);
            const double high = held(&chart->x, chart->high[r * chart->bar_count + b], &high_side);
            const double at = y + 3.0 + LINE * 0.62 * (double)b;
            const double width = fmax((right - left) * (high - low), 2.0);
            box(out, left + (right - left) * low, at, width, 7.0, dp_svg_color(b));
            if (low_side < 0) {
                put(out, left + 1.0, at + 7.5, "start", "<");
            }
            if (high_side > 0) {
                put(out, right + 2.0, at + 7.5, "start", ">");
            }
        }
    }
    for (size_t b = 0, x = 8; b < chart->bar_count; b++) {
        box(out, (double)x, below + 6.0, 12.0, 9.0, dp_svg_color(b));
        put(out, (double)x + 17.0, below + 15.0, "start", chart->bars[b]);
        x += 30 + WIDE * strlen(chart->bars[b]);
    }
    box(out, 8.0, below + LINE + 6.0, 12.0, 9.0, "#bfe0bf");
    put(out, 25.0, below + LINE + 15.0, "start", chart->band);
    finish(out);
}

/* White to dark blue. */
static void shade(double part, char color[8])
{
    const double p = part < 0.0 ? 0.0 : (part > 1.0 ? 1.0 : part);
    (void)snprintf(color, 8, "#%02x%02x%02x", (unsigned)(255.0 - 255.0 * p) & 255u,
                   (unsigned)(255.0 - 165.0 * p) & 255u, (unsigned)(255.0 - 90.0 * p) & 255u);
}

void dp_svg_cells_draw(FILE *out, const dp_svg_cells *chart)
{
    char color[8];
    char text[32];
    const double left = chart->row_names != NULL ? left_of(chart->row_names, chart->rows) : 44.0;
    const double width = (RIGHT - left) / (double)chart->columns;
    const double tall = chart->print ? 22.0 : 220.0 / (double)chart->rows;
    const double bottom = TOP + tall * (double)chart->rows;
    start(out, chart->title, (int)bottom + 38);
    put(out, 4.0, TOP - 8.0, "start", chart->y);
    box(out, left, TOP, RIGHT - left, bottom - TOP, "#f6f6f6");
    (void)fputs("<g shape-rendering=\"crispEdges\">\n", out);
    for (size_t r = 0; r < chart->rows; r++) {
        for (size_t c = 0; c < chart->columns; c++) {
            const double value = chart->cells[r * chart->columns + c];
            const double x = left + width * (double)c;
            const double y = TOP + tall * (double)r;
            if (!(value > 0.0)) {
                continue;
            }
            const double part = value / chart->most;
            size_t run = 1; /* equal cells side by side are one box */
            while (!chart->print && c + run < chart->columns &&
                   !(chart->cells[r * chart->columns + c + run] < value) &&
                   !(chart->cells[r * chart->columns + c + run] > value)) {
                run++;
            }
            shade(chart->print ? part : 0.25 + 0.75 * part, color);
            box(out, x, y, width * (double)run, tall, color);
            c += run - 1;
            if (chart->print) {
                (void)snprintf(text, sizeof text, value < 0.0005 ? "<.1" : "%.1f", 100.0 * value);
                (void)fprintf(out,
                              "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"%s\">",
                              x + 0.5 * width, y + 0.5 * tall + 4.0, part > 0.55 ? "#ffffff" : INK);
                dp_svg_text(out, text);
                (void)fputs("</text>\n", out);
            }
        }
        if (chart->row_names != NULL) {
            put(out, left - 6.0, TOP + tall * ((double)r + 0.5) + 4.0, "end", chart->row_names[r]);
        }
    }
    (void)fputs("</g>\n", out);
    for (size_t c = 0; chart->column_names != NULL && c < chart->columns; c++) {
        put(out, left + width * ((double)c + 0.5), bottom + 13.0, "middle", chart->column_names[c]);
    }
    put(out, 0.5 * (left + RIGHT), bottom + 30.0, "middle", chart->x);
    finish(out);
}

void dp_svg_strips_draw(FILE *out, const dp_svg_strips *chart)
{
    char color[8];
    const double left = left_of(chart->rows, chart->row_count);
    const double right = RIGHT;
    const double top = 8.0;
    const double tall = 24.0;
    const double bottom = top + tall * (double)chart->row_count;
    start(out, chart->title, (int)bottom + 36);
    x_axis(out, &chart->x, left, right, top, bottom);
    for (size_t r = 0; r < chart->row_count; r++) {
        const double y = top + tall * (double)r + 3.0;
        const double *edges = chart->edges + r * (chart->pieces - 1);
        put(out, left - 8.0, y + 13.0, "end", chart->rows[r]);
        for (size_t k = 0; k < chart->pieces; k++) {
            int beyond;
            const double a = k == 0 ? 0.0 : held(&chart->x, edges[k - 1], &beyond);
            const double b = k + 1 == chart->pieces ? 1.0 : held(&chart->x, edges[k], &beyond);
            const double x = left + (right - left) * a;
            const double width = (right - left) * (b - a);
            shade((double)k / (double)chart->pieces, color);
            (void)fprintf(out,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"18\" fill=\"%s\" "
                          "stroke=\"" INK "\" stroke-width=\".6\"/>\n",
                          x, y, width, color);
            if (width > WIDE * (double)strlen(chart->names[k]) + 2.0) {
                (void)fprintf(out,
                              "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"%s\">",
                              x + 0.5 * width, y + 13.0, k > 4 ? "#ffffff" : INK);
                dp_svg_text(out, chart->names[k]);
                (void)fputs("</text>\n", out);
            }
        }
    }
    finish(out);
}
