/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <math.h>

#include "analysis/commands.h"
#include "analysis/options.h"
#include "analysis/report.h"
#include "formats/catalog.h"
#include "formats/e8m0.h"

/* One column set for every format; a cell that makes no sense stays blank. */
static const dp_column columns[] = {
    {"code", NULL, -1},  /* 0x7E */
    {"bits", NULL, -1},  /* sign exponent mantissa, apart */
    {"value", NULL, -1}, /* exact in f32, 9 significant digits */
    {"value_hex", "hex value", -1},
    {"f32_bits", "f32 bits", -1},
    {"kind", NULL, -1},     /* zero, subnormal, normal, largest, inf, nan */
    {"midpoint", NULL, -1}, /* between this and the next larger magnitude */
    {"midpoint_hex", "hex midpoint", -1},
    {"tie_code", "tie to", -1}, /* code of the midpoint, nearest even, saturating */
    {"tie_value", "tie value", -1},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

typedef struct {
    dp_minifloat format;
    bool e8m0;
    int width; /* bits of a code */
} subject;

/* "1 1111 110" */
static void bits_text(const subject *s, uint32_t code, char text[40])
{
    const int mantissa = s->e8m0 ? 0 : s->format.mantissa_bits;
    const int exponent = s->e8m0 ? 8 : s->format.exponent_bits;
    int used = 0;
    for (int bit = s->width - 1; bit >= 0; bit--) {
        text[used++] = (code >> bit & 1u) != 0 ? '1' : '0';
        if (bit == mantissa + exponent || (bit == mantissa && mantissa > 0)) {
            text[used++] = ' ';
        }
    }
    text[used] = '\0';
}

static void hex_cell(dp_report *report, double value)
{
    char text[48];
    if (isfinite(value)) {
        (void)snprintf(text, sizeof text, "%a", value);
    } else {
        (void)dp_f64_text(value, text);
    }
    dp_report_text(report, text);
}

static const char *kind_of(const subject *s, uint32_t code)
{
    const dp_minifloat f = s->format;
    const uint32_t magnitude = code & dp_minifloat_magnitude_mask(f);
    if (dp_minifloat_is_nan(code, f)) {
        return "nan";
    }
    if (dp_minifloat_is_inf(code, f)) {
        return "inf";
    }
    if (magnitude == 0) {
        return "zero";
    }
    return magnitude == dp_minifloat_max_code(f) ? "largest"
           : (magnitude >> f.mantissa_bits) == 0 ? "subnormal"
                                                 : "normal";
}

static void add_tie(dp_report *report, const subject *s, double midpoint, uint32_t tie, float value)
{
    dp_report_f64(report, midpoint);
    hex_cell(report, midpoint);
    dp_report_bits(report, tie, (s->width + 3) / 4);
    dp_report_f32(report, value);
}

/* The midpoint is exact in f32 except beyond bf16's largest value. */
static void add_code(dp_report *report, const subject *s, uint32_t code)
{
    char text[40];
    const dp_minifloat f = s->format;
    const uint32_t f32_bits = dp_minifloat_decode(code, f);
    const float value = dp_f32_from_bits(f32_bits);
    bits_text(s, code, text);
    dp_report_bits(report, code, (s->width + 3) / 4);
    dp_report_text(report, text);
    dp_report_f32(report, value);
    hex_cell(report, (double)value);
    dp_report_bits(report, f32_bits, 8);
    dp_report_text(report, kind_of(s, code));
    const uint32_t magnitude = code & dp_minifloat_magnitude_mask(f);
    if (magnitude > dp_minifloat_max_code(f) || dp_minifloat_is_nan(code, f)) {
        for (int i = 6; i < COLUMNS; i++) {
            dp_report_blank(report);
        }
        return;
    }
    const bool negative = (code & dp_minifloat_sign_bit(f)) != 0;
    const double half = dp_minifloat_midpoint(magnitude, f);
    const double midpoint = negative ? -half : half;
    const uint32_t tie = dp_minifloat_encode(dp_f32_bits((float)midpoint), f, DP_ENCODE_PTX);
    add_tie(report, s, midpoint, tie, dp_f32_from_bits(dp_minifloat_decode(tie, f)));
}

static void add_scale(dp_report *report, const subject *s, uint32_t code)
{
    char text[40];
    const float value = dp_e8m0_to_f32((dp_e8m0){(uint8_t)code});
    bits_text(s, code, text);
    dp_report_bits(report, code, 2);
    dp_report_text(report, text);
    dp_report_f32(report, value);
    hex_cell(report, (double)value);
    dp_report_bits(report, dp_f32_bits(value), 8);
    dp_report_text(report, code == DP_E8M0_NAN   ? "nan"
                           : code == DP_E8M0_MAX ? "largest"
                                                 : "normal");
    if (code >= DP_E8M0_MAX) {
        for (int i = 6; i < COLUMNS; i++) {
            dp_report_blank(report);
        }
        return;
    }
    const double midpoint = ldexp(1.5, (int)code - 127);
    const dp_e8m0_encode nearest = {DP_E8M0_NEAREST_EVEN, true};
    const dp_e8m0 tie = dp_e8m0_from_f32((float)midpoint, nearest);
    add_tie(report, s, midpoint, tie.bits, dp_e8m0_to_f32(tie));
}

/* One line of the summary, in text or JSON. */
static void say_code(dp_json *json, const char *key, const subject *s, uint32_t code, double value)
{
    char text[48];
    char number[32];
    if (json == NULL) {
        printf("  %-22s 0x%0*X  %s", key, (s->width + 3) / 4, code, dp_f64_text(value, number));
        (void)snprintf(text, sizeof text, "%a", value);
        printf(isfinite(value) ? "  %s\n" : "\n", text);
        return;
    }
    dp_json_key(json, key);
    dp_json_object_line(json);
    dp_json_key(json, "code");
    dp_json_bits(json, code, (s->width + 3) / 4);
    dp_json_member_f64(json, "value", value);
    dp_json_close(json);
}

static void say_number(dp_json *json, const char *key, int64_t value)
{
    if (json == NULL) {
        printf("  %-22s %lld\n", key, (long long)value);
    } else {
        dp_json_member_i64(json, key, value);
    }
}

static void say_text(dp_json *json, const char *key, const char *text)
{
    if (json == NULL) {
        printf("  %-22s %s\n", key, text);
    } else {
        dp_json_member_text(json, key, text);
    }
}

static void summarise_scale(dp_json *json, const subject *s)
{
    say_text(json, "format", "e8m0");
    say_number(json, "exponent_bits", 8);
    say_number(json, "mantissa_bits", 0);
    say_number(json, "bias", 127);
    say_code(json, "smallest", s, 0, ldexp(1.0, -127));
    say_code(json, "one", s, DP_E8M0_ONE, 1.0);
    say_code(json, "largest", s, DP_E8M0_MAX, ldexp(1.0, 127));
    say_code(json, "nan", s, DP_E8M0_NAN, (double)NAN);
    say_text(json, "ties",
             "to the even code, at the arithmetic midpoint 1.5 * 2^k; rounding to "
             "nearest is one of four rules and never the default of a scale");
}

static void summarise(dp_json *json, const subject *s)
{
    if (s->e8m0) {
        summarise_scale(json, s);
        return;
    }
    const dp_minifloat f = s->format;
    const uint32_t max_code = dp_minifloat_max_code(f);
    const double threshold = dp_minifloat_midpoint(max_code, f);
    say_text(json, "format", f.name);
    say_number(json, "sign_bits", f.has_sign);
    say_number(json, "exponent_bits", f.exponent_bits);
    say_number(json, "mantissa_bits", f.mantissa_bits);
    say_number(json, "bias", f.bias);
    say_code(json, "largest", s, max_code, dp_minifloat_max(f));
    say_code(json, "smallest_normal", s, 1u << f.mantissa_bits, dp_minifloat_min_normal(f));
    say_code(json, "smallest_subnormal", s, 1u, dp_minifloat_min_subnormal(f));
    if (f.has_sign != 0 && f.top != DP_TOP_FNUZ) {
        say_code(json, "minus_zero", s, dp_minifloat_sign_bit(f), -0.0);
    }
    if (f.top == DP_TOP_IEEE) {
        say_code(json, "inf", s, max_code + 1u, (double)INFINITY);
    }
    if (f.top != DP_TOP_FINITE) {
        say_code(json, "nan", s, dp_minifloat_encode(DP_F32_NAN_CUDA, f, DP_ENCODE_PTX),
                 (double)NAN);
    }
    const uint32_t inf = DP_F32_INF;
    const float reached = (float)threshold;
    say_code(json, "overflow_threshold", s,
             dp_minifloat_encode(dp_f32_bits(reached), f, DP_ENCODE_NONSAT), threshold);
    say_code(json, "inf_saturating", s, dp_minifloat_encode(inf, f, DP_ENCODE_PTX),
             dp_minifloat_value(dp_minifloat_encode(inf, f, DP_ENCODE_PTX), f));
    say_code(json, "inf_non_saturating", s, dp_minifloat_encode(inf, f, DP_ENCODE_NONSAT),
             dp_minifloat_value(dp_minifloat_encode(inf, f, DP_ENCODE_NONSAT), f));
    say_code(json, "nan_saturating", s, dp_minifloat_encode(DP_F32_NAN_CUDA, f, DP_ENCODE_PTX),
             dp_minifloat_value(dp_minifloat_encode(DP_F32_NAN_CUDA, f, DP_ENCODE_PTX), f));
    say_text(json, "ties", "to the even code");
}

static dp_report *make_rows(const subject *s)
{
    dp_report *report = dp_report_new(NULL, columns, COLUMNS);
    const uint32_t codes = (uint32_t)1 << s->width;
    for (uint32_t code = 0; report != NULL && code < codes; code++) {
        if (s->e8m0) {
            add_scale(report, s, code);
        } else {
            add_code(report, s, code);
        }
    }
    return report;
}

static bool print_table(const subject *s, dp_style style, bool rows, dp_error *error)
{
    dp_report *report = rows ? make_rows(s) : dp_report_new(NULL, columns, COLUMNS);
    if (report == NULL) {
        return dp_fail(error, "table: memory ran short: free some and try again");
    }
    bool good = true;
    if (style == DP_STYLE_JSON) {
        dp_json json;
        dp_json_start(&json, stdout);
        dp_json_object(&json);
        summarise(&json, s);
        if (rows) {
            dp_json_key(&json, "codes");
            good = dp_report_json(report, &json, error);
        }
        dp_json_close(&json);
        dp_json_finish(&json);
    } else {
        if (style == DP_STYLE_TEXT) {
            summarise(NULL, s);
            printf(rows ? "\n" : "  (every code: --all)\n");
        }
        if (rows) {
            good = dp_report_print(report, style, stdout, error);
        }
    }
    dp_report_free(report);
    return good;
}

/* The format of this name, any case. */
static bool find_subject(const char *name, subject *s, dp_error *error)
{
    char lower[16] = "";
    for (size_t i = 0; name[i] != '\0' && i < sizeof lower - 1; i++) {
        lower[i] = (char)tolower((unsigned char)name[i]);
    }
    *s = (subject){.e8m0 = strcmp(lower, "e8m0") == 0 || strcmp(lower, "ue8m0") == 0, .width = 8};
    if (s->e8m0) {
        return true;
    }
    if (strlen(name) < sizeof lower && dp_catalog_find(lower, &s->format)) {
        s->width = s->format.has_sign + s->format.exponent_bits + s->format.mantissa_bits;
        return true;
    }
    char known[256] = "";
    for (size_t i = 0; i < dp_catalog_size(); i++) {
        const size_t used = strlen(known);
        (void)snprintf(known + used, sizeof known - used, "%s ", dp_catalog_at(i).name);
    }
    return dp_fail(error, "table: there is no format '%.64s': give one of %se8m0", name, known);
}

int dp_cmd_table(int argc, char **argv)
{
    bool json = false;
    bool csv = false;
    bool all = false;
    const dp_option options[] = {
        DP_FLAG("all", &all, "list every code of a 16-bit format too, as --csv always does"),
        DP_JSON(&json), DP_CSV(&csv)};
    const dp_usage usage = {
        .verb = "table",
        .operands = "FORMAT",
        .summary = "Print a number format, generated from its field widths and bias: every code, "
                   "its value, the midpoint to the next larger magnitude and the code a tie there "
                   "goes to (nearest even, saturating), limits and special codes.",
        .notes = "Formats: e2m1 e2m3 e3m2 e4m3 ue4m3 e5m2 ue5m3 e4m3fnuz e5m2fnuz e8m0 fp16 bf16.\n"
                 "overflow_threshold is the smallest magnitude that nearest rounding takes beyond "
                 "the\nlargest code; beside it stands the code of exactly that value without "
                 "saturation.",
        .example = "directp table e4m3 --csv > e4m3.csv",
        .least = 1,
        .most = 1,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    dp_error error = {""};
    dp_style style;
    subject s;
    if (!dp_style_of(json, csv, &style, &error) || !find_subject(argv[1], &s, &error) ||
        !print_table(&s, style, all || s.width <= 8 || style == DP_STYLE_CSV, &error)) {
        return dp_report_error(&error);
    }
    return DP_EXIT_SAME;
}
