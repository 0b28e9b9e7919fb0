/* SPDX-License-Identifier: MIT
 *
 * The page that `directp report` writes: whole, alone, legible, with the figures of the other
 * verbs; its charts by their coordinates, its verdict from made-up measures, and the digest it
 * bears.
 */
#include <math.h>

#include "analysis/page.h"
#include "analysis/sha256.h"
#include "analysis/svg.h"
#include "scratch.h"

enum { PAGE_SIZE = 4 << 20 };

/* ---- digest ------------------------------------------------------------------------------------
 */

/* FIPS 180-4's examples, and lengths around the padding's edge against one another. */
START_TEST(digest)
{
    static const char long_text[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static char many[1000000];
    char hex[65], other[65];
    uint64_t bytes = 0;
    dp_error error = {""};
    dp_sha256("", 0, hex);
    ck_assert_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    dp_sha256("abc", 3, hex);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    dp_sha256(long_text, 56, hex);
    ck_assert_str_eq(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    memset(many, 'a', sizeof many);
    dp_sha256(many, sizeof many, hex);
    ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    for (size_t size = 50; size < 140; size++) {
        FILE *file = fopen(scratch("digest"), "wb");
        (void)fwrite(many, 1, size, file);
        (void)fclose(file);
        dp_sha256(many, size, hex);
        ck_assert(dp_sha256_file(scratch("digest"), other, &bytes, &error));
        ck_assert_str_eq(hex, other);
        ck_assert_uint_eq(bytes, size);
        dp_sha256(many, size - 1, other);
        ck_assert_str_ne(hex, other);
    }
    ck_assert(!dp_sha256_file(scratch("none"), hex, &bytes, &error));
}
END_TEST

/* ---- charts ------------------------------------------------------------------------------------
 */

/* What a chart function writes. */
static const char *drawn(void (*draw)(FILE *out, const void *chart), const void *chart)
{
    static char text[1 << 20];
    FILE *file = fopen(scratch("chart"), "wb");
    draw(file, chart);
    (void)fclose(file);
    return scratch_text(scratch("chart"), text, sizeof text);
}

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (const char *p = text; (p = strstr(p, what)) != NULL; p++) {
        count++;
    }
    return count;
}

static void draw_dots(FILE *out, const void *chart)
{
    dp_svg_dots_draw(out, chart);
}
static void draw_lines(FILE *out, const void *chart)
{
    dp_svg_lines_draw(out, chart);
}
static void draw_ranges(FILE *out, const void *chart)
{
    dp_svg_ranges_draw(out, chart);
}
static void draw_strips(FILE *out, const void *chart)
{
    dp_svg_strips_draw(out, chart);
}
static void draw_cells(FILE *out, const void *chart)
{
    dp_svg_cells_draw(out, chart);
}

typedef struct {
    double left, right, y;
    char text[40];
} label;

/* Texts of each chart stay inside it and apart from one another, letters taken as 5.2 units wide.
 */
static int legible(const char *page)
{
    int charts = 0;
    for (const char *svg = page; (svg = strstr(svg, "<svg ")) != NULL; charts++) {
        static label labels[4000];
        int count = 0;
        double height = 0.0;
        const char *end = strstr(svg, "</svg>");
        ck_assert_int_eq(sscanf(svg, "<svg viewBox=\"0 0 400 %lf\"", &height), 1);
        for (const char *p = svg; (p = strstr(p, "<text ")) != NULL && p < end; p++) {
            double x = 0.0;
            char anchor[16];
            label *l = &labels[count];
            ck_assert_int_eq(
                sscanf(p, "<text x=\"%lf\" y=\"%lf\" text-anchor=\"%15[a-z]\"", &x, &l->y, anchor),
                3);
            const char *text = strchr(p, '>') + 1;
            double letters = 0.0;
            for (const char *t = text; *t != '<'; t++) { /* an entity is one letter */
                letters += 1.0;
                t += *t == '&' ? strcspn(t, ";") : 0;
            }
            (void)snprintf(l->text, sizeof l->text, "%.*s", (int)strcspn(text, "<"), text);
            const double wide = 5.2 * letters;
            const double share =
                strcmp(anchor, "start") == 0 ? 0.0 : (strcmp(anchor, "end") == 0 ? 1.0 : 0.5);
            l->left = x - share * wide;
            l->right = l->left + wide;
            ck_assert_msg(l->left >= -1.0 && l->right <= 401.0 && l->y > 8.0 && l->y < height,
                          "'%s' from %g to %g at %g of %g", l->text, l->left, l->right, l->y,
                          height);
            for (int i = 0; i < count; i++) {
                const bool apart = labels[i].right <= l->left || l->right <= labels[i].left ||
                                   fabs(labels[i].y - l->y) >= 8.5;
                const bool same = labels[i].left == l->left && labels[i].y == l->y;
                ck_assert_msg(apart || same || strchr("&", l->text[0]) != NULL,
                              "'%s' over '%s' at %g, %g", l->text, labels[i].text, l->left, l->y);
            }
            ck_assert_int_lt(++count, 4000);
        }
        svg = end;
    }
    return charts;
}

START_TEST(marks_stand_at_their_values)
{
    static const char *const rows[] = {"abcd", "b<&\"'"};
    static const double values[2][2] = {{0.1, NAN}, {1000.0, 0.0}};
    static const bool marked[2] = {true, true};
    const dp_svg_series series[2] = {{"x", values[0], marked}, {"y", values[1], NULL}};
    const dp_svg_dots chart = {.title = "t",
                               .x = {.low = 0.01, .high = 1.0, .log = true, .label = "u"},
                               .rows = rows,
                               .row_count = 2,
                               .series = series,
                               .series_count = 2,
                               .mark = "lost"};
    const char *text = drawn(draw_dots, &chart);
    /* names of 5 letters: the axis runs from 12 + 6*5 + 8 = 50 to 386, 0.1 is its middle */
    ck_assert_ptr_nonnull(strstr(text, "<circle cx=\"218.0\" cy=\"15.0\""));
    ck_assert_int_eq(count_of(text, "<circle"), 2); /* and the legend's; NaN is left out */
    ck_assert_ptr_nonnull(strstr(text, "<text x=\"392.0\" y=\"22.0\" text-anchor=\"start\">&gt;<"));
    ck_assert_ptr_nonnull(strstr(text, "text-anchor=\"end\">&lt;<")); /* 0 has no place on a log */
    ck_assert_ptr_nonnull(strstr(text, ">b&lt;&amp;&quot;&#39;<"));
    ck_assert_int_eq(count_of(text, "l12 12m0-12l-12 12"), 2); /* one cross, and its legend */
    ck_assert_ptr_nonnull(strstr(text, ">0.02<"));
    dp_svg_dots crowded = chart; /* more ticks than there is room for their numbers */
    crowded.x = (dp_svg_axis){.low = 1e-4, .high = 0.3, .log = true, .label = "u"};
    text = drawn(draw_dots, &crowded);
    ck_assert_int_eq(legible(text), 1);
    ck_assert(strstr(text, ">0.0001<") != NULL && strstr(text, ">0.0002<") == NULL);
}
END_TEST

START_TEST(curves_break_and_step)
{
    static const double at[4] = {0, 1, 2, 3}, y[4] = {0.0, 1.0, NAN, 0.5};
    const dp_svg_series series = {"s", y, NULL};
    dp_svg_lines chart = {.title = "t",
                          .x = {.low = 0, .high = 4, .label = "x"},
                          .y = {.low = 0, .high = 1, .label = "y"},
                          .at = at,
                          .count = 4,
                          .series = &series,
                          .series_count = 1};
    const char *text = drawn(draw_lines, &chart);
    ck_assert_ptr_nonnull(strstr(text, "d=\"M44.0 210.0L129.5 22.0M300.5 116.0\""));
    chart.steps = true;
    text = drawn(draw_lines, &chart);
    ck_assert_ptr_nonnull(strstr(text, "L86.8 210.0L86.8 22.0L172.2 22.0M257.8 116.0L343.2 116.0"));
}
END_TEST

START_TEST(bars_strips_and_cells)
{
    static const char *const names[] = {"h", "second"};
    static const double low[4] = {-10, -1000, 0, 5}, high[4] = {10, 1000, 0, 6};
    const dp_svg_ranges ranges = {.title = "t",
                                  .x = {.low = -100, .high = 100, .label = "x"},
                                  .band_low = -50,
                                  .band_high = 50,
                                  .band = "band",
                                  .rows = names,
                                  .row_count = 2,
                                  .low = low,
                                  .high = high,
                                  .bars = names,
                                  .bar_count = 2};
    const char *text = drawn(draw_ranges, &ranges);
    /* the axis runs from 48 to 386: 1.69 units an octave */
    ck_assert_ptr_nonnull(strstr(text, "<rect x=\"132.5\" y=\"8.0\" width=\"169.0\""));
    ck_assert_ptr_nonnull(strstr(text, "<rect x=\"200.1\" y=\"11.0\" width=\"33.8\""));
    ck_assert_ptr_nonnull(strstr(text, "<rect x=\"48.0\" y=\"21.5\" width=\"338.0\""));
    ck_assert_int_eq(count_of(text, ">&lt;<"), 1);
    ck_assert_int_eq(count_of(text, ">&gt;<"), 1);
    ck_assert_ptr_nonnull(strstr(text, "width=\"2.0\"")); /* a point is still seen */
    static const double edges[2] = {-50, 50};
    const dp_svg_strips strips = {.title = "t",
                                  .x = {.low = -100, .high = 100, .label = "x"},
                                  .rows = names,
                                  .row_count = 1,
                                  .edges = edges,
                                  .names = (const char *const[]){"0", "1", "2"},
                                  .pieces = 3};
    text = drawn(draw_strips, &strips);
    ck_assert_int_eq(count_of(text, "<rect"), 3);
    ck_assert_ptr_nonnull(strstr(text, "width=\"181.0\"")); /* the middle half of 24 to 386 */
    static const double cells[4] = {1.0, 0.0, 0.25, 0.75};
    const dp_svg_cells matrix = {.title = "t",
                                 .cells = cells,
                                 .rows = 2,
                                 .columns = 2,
                                 .row_names = names,
                                 .column_names = names,
                                 .x = "x",
                                 .y = "y",
                                 .most = 1.0,
                                 .print = true};
    text = drawn(draw_cells, &matrix);
    ck_assert(strstr(text, ">100.0<") && strstr(text, ">25.0<") && strstr(text, ">75.0<"));
    ck_assert_int_eq(count_of(text, "<rect"), 4); /* an empty cell has none; and the ground */
}
END_TEST

/* ---- verdict ------------------------------------------------------------------------------------
 */

static dp_guard_head heads_of_page[2];
static dp_guard_effect effects[DP_PAGE_OPERATORS][2][2];

static void page_of(dp_page *page)
{
    memset(page, 0, sizeof *page);
    memset(heads_of_page, 0, sizeof heads_of_page);
    page->heads = 2;
    page->guard.count = 2;
    page->guard.heads = heads_of_page;
    for (int i = 0; i < DP_PAGE_OPERATORS; i++) {
        page->run[i].present = i != DP_PAGE_GUARDED;
        for (int which = 0; which < 2; which++) {
            page->run[i].whole[which].rel_l2 =
                dp_page_operators[i].class == DP_PAGE_FP4 ? 0.2 : 0.18;
            effects[i][which][0].rel_l2 = 0.1;
            effects[i][which][1].rel_l2 = 0.25;
            page->run[i].head[which] = effects[i][which];
            heads_of_page[0].scores[which].safe = heads_of_page[1].scores[which].safe = true;
        }
    }
}

START_TEST(verdict_from_measures)
{
    static dp_page p;
    page_of(&p);
    dp_page_verdict v = dp_page_judge(&p);
    ck_assert(v.policy == DP_PAGE_FAST && !v.smooth && v.direct && v.fp4_suffices);
    ck_assert(v.error == 0.2 && v.worst == 0.25 && v.worst_head == 1);
    p.run[DP_PAGE_ACCURATE].whole[0].rel_l2 = 0.195; /* not worth another kernel */
    ck_assert_int_eq(dp_page_judge(&p).policy, DP_PAGE_FAST);
    p.run[DP_PAGE_ACCURATE].whole[0].rel_l2 = 0.15;
    ck_assert_int_eq(dp_page_judge(&p).policy, DP_PAGE_ACCURATE);
    p.run[DP_PAGE_ACCURATE].whole[0].zero_rows = 1; /* the better one loses a row */
    ck_assert_int_eq(dp_page_judge(&p).policy, DP_PAGE_FAST);
    p.run[DP_PAGE_FAST].whole[1].rel_l2 = 0.1;
    v = dp_page_judge(&p);
    ck_assert(v.policy == DP_PAGE_FAST && v.smooth && v.error == 0.1);
    heads_of_page[1].scores[1].safe = false; /* smoothed, a head leaves the bounds: luck */
    v = dp_page_judge(&p);
    ck_assert(v.policy == DP_PAGE_FAST && !v.smooth);
    heads_of_page[0].scores[0].safe = false;
    v = dp_page_judge(&p);
    ck_assert(v.policy == 3 &&
              !v.smooth); /* the first with a reference of its own that keeps all */
    for (int i = 0; i < DP_PAGE_DIRECT; i++) {
        p.run[i].whole[0].nonfinite_rows = p.run[i].whole[1].nonfinite_rows = 1;
    }
    v = dp_page_judge(&p);
    ck_assert(!v.direct && v.policy == DP_PAGE_DIRECT);
    page_of(&p);
    p.run[DP_PAGE_GUARDED].whole[0].rel_l2 = 0.01; /* was not run */
    ck_assert_int_eq(dp_page_judge(&p).policy, DP_PAGE_FAST);
    for (int i = 0; i < DP_PAGE_OPERATORS; i++) {
        const bool fp8 = dp_page_operators[i].class == DP_PAGE_FP8_PV;
        p.run[i].whole[0].rel_l2 = fp8 ? 0.1 + 0.01 * i : p.run[i].whole[0].rel_l2;
    }
    v = dp_page_judge(&p);
    ck_assert(fabs(v.fp8_error - 0.21) < 1e-12 && v.fp4_suffices);
    p.run[v.fp8].whole[0].rel_l2 = 0.15;
    ck_assert(!dp_page_judge(&p).fp4_suffices && fabs(dp_page_judge(&p).qk_error - 0.18) < 1e-12);
    for (int i = 0; i < DP_PAGE_OPERATORS; i++) {
        p.run[i].whole[0].nonfinite_rows = p.run[i].whole[1].nonfinite_rows = 1;
    }
    v = dp_page_judge(&p);
    ck_assert(v.policy == -1 && !v.direct && isnan(v.error) && !v.fp4_suffices);
}
END_TEST

/* ---- the page
 * ------------------------------------------------------------------------------------ */

/* Every tag closed in order, every attribute in quotes, no bare & or <. Returns the tags counted.
 */
static int well_formed(const char *page)
{
    static char stack[64][16];
    int depth = 0, tags = 0;
    for (const char *p = page; *p != '\0'; p++) {
        if (*p == '&') {
            ck_assert_msg(strchr(p, ';') != NULL && strchr(p, ';') - p <= 6, "%.40s", p);
        }
        if (*p != '<' || strncmp(p, "<!DOCTYPE html>", 15) == 0) {
            continue;
        }
        const bool closing = p[1] == '/';
        char name[16];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(p + 1 + closing, " />"),
                       p + 1 + closing);
        const char *end = p + 1;
        for (int quotes = 0; *end != '>' || quotes % 2 == 1; end++) {
            ck_assert_msg(*end != '\0' && *end != '<', "%.60s", p);
            quotes += *end == '"';
            ck_assert_msg(*end != '=' || end[1] == '"' || quotes % 2 == 1, "%.60s", p);
        }
        if (closing) {
            ck_assert_msg(depth > 0 && strcmp(stack[depth - 1], name) == 0, "%.60s closes %s", p,
                          depth > 0 ? stack[depth - 1] : "nothing");
            depth--;
        } else if (end[-1] != '/') {
            ck_assert_int_lt(depth, 64);
            (void)snprintf(stack[depth++], 16, "%s", name);
        }
        tags++;
        p = end;
    }
    ck_assert_int_eq(depth, 0);
    return tags;
}

/* Nothing that a browser would fetch or run. */
static void stands_alone(const char *page)
{
    static const char *const bad[] = {"http",    "src=",  "url(",    "<script", "@import", "<link",
                                      "<iframe", "href=", "<object", "onload",  "<img"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(strstr(page, bad[i]) == NULL, "%s: %.60s", bad[i], strstr(page, bad[i]));
    }
}

static char page_text[PAGE_SIZE];

static const char *make_page(const char *arguments)
{
    static dp_run run;
    char line[1400];
    (void)snprintf(line, sizeof line, "report %s -o %s", arguments, scratch("."));
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s: %s", arguments, run.err);
    return scratch_text(scratch("report.html"), page_text, sizeof page_text);
}

static double after(const char *text, const char *what)
{
    const char *at = strstr(text, what);
    ck_assert_msg(at != NULL, "no '%s'", what);
    return strtod(at + strlen(what), NULL);
}

/* A cell of the first row of a CSV document. */
static double column(const char *csv, const char *name)
{
    int index = 0;
    const char *p = csv;
    for (; strncmp(p, name, strlen(name)) != 0; p += strcspn(p, ",") + 1) {
        ck_assert_int_lt(++index, 64);
    }
    for (p = strchr(csv, '\n') + 1; index > 0; index--) {
        p = strchr(p, ',') + 1;
    }
    return strtod(p, NULL);
}

/* The figures are those of attend, guard, range and sha256sum; the same call gives the same bytes.
 */
START_TEST(page_of_a_real_tensor)
{
    static dp_run run;
    char path[512], line[1400], expected[160];
    (void)dp_source_path(path, sizeof path, "data/real/minilm_layer0.h5");
    ck_assert_int_eq(setenv("SOURCE_DATE_EPOCH", "86400", 1), 0);
    const char *page = make_page(path);
    ck_assert_int_gt(well_formed(page), 1500);
    stands_alone(page);
    ck_assert_int_eq(legible(page), 11);
    ck_assert_ptr_nonnull(strstr(page, "1970-01-02 00:00 UTC"));
    ck_assert_ptr_nonnull(strstr(page, "name=\"viewport\" content=\"width=device-width"));
    static const char *const ids[] = {"policy", "guard", "format", "error", "codes", "provenance"};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        (void)snprintf(expected, sizeof expected, "<h2 id=\"%s\">", ids[i]);
        ck_assert_msg(strstr(page, expected) != NULL, "no %s", expected);
    }
    (void)snprintf(line, sizeof line, "attend %s --policy fast --epoch R --csv", path);
    run_directp(&run, line);
    (void)snprintf(expected, sizeof expected, "<td>%.6f</td>",
                   strtod(strstr(run.out, "fast,all,") + 9, NULL));
    ck_assert_msg(strstr(page, expected) != NULL, "no %s", expected);
    ck_assert_ptr_nonnull(strstr(page, "<b>fast</b>, K as given (Direct-P, no row reference): "));
    ck_assert_ptr_nonnull(strstr(page, "<b>No guard is needed.</b>"));
    ck_assert_ptr_nonnull(strstr(page, "12 of 12 heads lie there as given"));
    ck_assert_ptr_nonnull(strstr(page, "<b>FP4 for P and V is enough.</b>"));
    (void)snprintf(line, sizeof line, "range %s --rows 256 --block 32 --formats nvfp4-g1 --csv",
                   path);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    (void)snprintf(expected, sizeof expected, "NVFP4 %.1f %%, since %.1f %% of its block scales",
                   100.0 * column(run.out, "lost_mass"), 100.0 * column(run.out, "zero_scale"));
    ck_assert_msg(strstr(page, expected) != NULL, "no %s", expected);
    ck_assert_double_eq_tol(after(page, "NVFP4 Q and K alone, with BF16 P and V, already have "),
                            0.125, 0.001);
    dp_error error = {""};
    char hex[65];
    uint64_t bytes;
    ck_assert(dp_sha256_file(path, hex, &bytes, &error));
    ck_assert_ptr_nonnull(strstr(page, hex));
    ck_assert_int_eq(unsetenv("SOURCE_DATE_EPOCH"), 0);
}
END_TEST

/* Mean keys of growing strength: rows are lost, and the page says so and what to do. */
START_TEST(page_of_keys_with_a_mean)
{
    enum { S = 160, D = 64, H = 4 };
    static float q[H * S * D], k[H * S * D], v[H * S * D];
    dp_rng rng = {9};
    for (size_t i = 0; i < H * S * D; i++) {
        const bool first = i % D < 16;
        const double strength = (double)(i / (S * D)) * 10.0 - 12.0;
        q[i] = first ? 4.0f : (float)dp_rng_normal(&rng);
        k[i] = (float)((first ? strength : 0.0) + 0.3 * dp_rng_normal(&rng));
        v[i] = (float)dp_rng_normal(&rng);
    }
    dp_tensors t = {.batch = 1,
                    .q_heads = H,
                    .kv_heads = H,
                    .q_len = S,
                    .kv_len = S,
                    .dim = D,
                    .q = q,
                    .k = k,
                    .v = v,
                    .softmax_scale = 0.125,
                    .format = "bf16",
                    .model = (char *)"<script>alert('x')</script>",
                    .layer = 7};
    dp_error error = {""};
    char path[512];
    (void)snprintf(path, sizeof path, "%s", scratch("mean.h5"));
    size_t kv_of_q[H] = {0, 1, 2, 3};
    t.kv_of_q = kv_of_q;
    ck_assert_msg(dp_tensors_save(path, &t, &error), "%s", error.text);
    const char *page = make_page(path);
    (void)well_formed(page);
    stands_alone(page);
    (void)legible(page);
    ck_assert_ptr_nonnull(strstr(page, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;, layer 7"));
    ck_assert_ptr_nonnull(
        strstr(page, "with the mean key subtracted (Direct-P, no row reference)"));
    ck_assert_ptr_nonnull(strstr(page, "<b>fast</b> as it is loses "));
    ck_assert_ptr_nonnull(strstr(page, "<b>Subtracting the mean key is enough</b>"));
    ck_assert_ptr_nonnull(strstr(page, "2 of 4 heads lie there as given, 4 with the mean key"));
}
END_TEST

/* The same on a model's layer. */
START_TEST(page_of_a_tensor_in_danger)
{
    char path[512];
    const char *page = make_page(dp_source_path(path, sizeof path, "data/real/qwen15_layer00.h5"));
    (void)well_formed(page);
    stands_alone(page);
    (void)legible(page);
    ck_assert_ptr_nonnull(strstr(page, "with the mean key subtracted"));
    ck_assert_ptr_nonnull(strstr(page, "<b>fast</b> as it is loses 3583 of 8192 rows."));
    ck_assert_ptr_nonnull(strstr(page, "<b>Yes: an anchor, and the mean key subtracted,</b>"));
    ck_assert_ptr_nonnull(strstr(page, "<b>FP8 for P and V where the error matters</b>"));
    ck_assert_ptr_nonnull(strstr(page, "0 smooth-k+anchor; 1-3 smooth-k."));
}
END_TEST

/* A dump under a name full of markup; then with a planted fault, then without an epoch. */
START_TEST(page_of_a_dump)
{
    static dp_run run;
    static char again[PAGE_SIZE];
    char line[1300], threads[1400], name[512];
    ck_assert_int_eq(setenv("SOURCE_DATE_EPOCH", "86400", 1), 0);
    (void)snprintf(name, sizeof name, "%s", scratch("a&b<i>\"c.h5"));
    (void)snprintf(line, sizeof line,
                   "attend --random 3 --seq 128 --heads 3 --dim 32 --policy fast --epoch R "
                   "--set rebase-q1=off --stages all -o '%s'",
                   name);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    (void)snprintf(line, sizeof line, "'%s'", name);
    const char *page = make_page(line);
    (void)well_formed(page);
    stands_alone(page);
    ck_assert_int_eq(legible(page), 11);
    ck_assert_ptr_nonnull(strstr(page, "a&amp;b&lt;i&gt;&quot;c.h5"));
    (void)memcpy(again, page, strlen(page) + 1);
    (void)snprintf(threads, sizeof threads, "%s --threads 1", line);
    page = make_page(threads); /* the same bytes, whatever the threads */
    ck_assert_str_eq(page, again);
    ck_assert_ptr_nonnull(strstr(page, "Every stage in it equals the oracle."));
    hid_t file = H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t policy = H5Aopen(file, "epoch", H5P_DEFAULT);
    ck_assert(policy >= 0);
    (void)H5Aclose(policy);
    hid_t set = H5Dopen2(file, "/code/p_payload", H5P_DEFAULT);
    static uint8_t codes[3 * 128 * 64];
    ck_assert(H5Dread(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, codes) >= 0);
    for (size_t i = 0; i < 1000; i++) {
        codes[7000 + i] ^= 0x10;
    }
    ck_assert(H5Dwrite(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, codes) >= 0);
    (void)H5Dclose(set);
    (void)H5Fclose(file);
    page = make_page(line);
    (void)well_formed(page);
    ck_assert_int_eq(legible(page), 13);
    ck_assert_ptr_nonnull(strstr(page, "the first wrong dataset is <b>p_payload</b>, 1000 of "));
    file = H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT);
    ck_assert(H5Adelete(file, "epoch") >= 0);
    (void)H5Fclose(file);
    page = make_page(line);
    (void)well_formed(page);
    ck_assert_ptr_nonnull(strstr(page, "The file holds stages that could not be compared: "));
}
END_TEST

START_TEST(page_of_many_heads)
{
    static dp_run run;
    char line[700];
    (void)snprintf(line, sizeof line,
                   "attend --random 4 --seq 32 --heads 50 --dim 32 --policy fast --stages inputs "
                   "-o %s",
                   scratch("many.h5"));
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    const char *page = make_page(scratch("many.h5"));
    (void)well_formed(page);
    ck_assert_int_eq(legible(page), 11);
    ck_assert_ptr_nonnull(strstr(page, "<tr><td>49</td>")); /* tables hold every head */
    ck_assert_ptr_nonnull(strstr(page, ">head 47<"));
    ck_assert_ptr_null(strstr(page, ">head 48<")); /* charts the first 48 */
}
END_TEST

START_TEST(refusals)
{
    char line[1400], path[512];
    assert_refused("report nowhere.h5", "nowhere.h5");
    (void)dp_source_path(path, sizeof path, "data/real/minilm_layer0.h5");
    (void)snprintf(line, sizeof line, "report %s -o %s", path, path);
    assert_refused(line, "cannot make this folder");
    (void)snprintf(line, sizeof line, "report %s -o %s", path, scratch("no/such/parent"));
    assert_refused(line, "cannot make this folder");
    scratch_remove();
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("page");
    TCase *tests = tcase_create("page");
    TCase *made = tcase_create("page made"); /* CK_RUN_CASE tells them apart */
    if (argc > 1 && strcmp(argv[1], "slow") == 0) {
        tcase_add_test(tests, page_of_a_tensor_in_danger);
        suite_add_tcase(suite, tests);
        return dp_run_suite(suite);
    }
    tcase_add_test(tests, digest);
    tcase_add_test(tests, marks_stand_at_their_values);
    tcase_add_test(tests, curves_break_and_step);
    tcase_add_test(tests, bars_strips_and_cells);
    tcase_add_test(tests, verdict_from_measures);
    tcase_add_test(made, page_of_a_real_tensor);
    tcase_add_test(made, page_of_keys_with_a_mean);
    tcase_add_test(made, page_of_a_dump);
    tcase_add_test(made, page_of_many_heads);
    tcase_add_test(made, refusals);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, made);
    return dp_run_suite(suite);
}
