/* SPDX-License-Identifier: MIT */
#include "presets_page.h"

#include <float.h>
#include <math.h>

#include "formats/nvfp4.h"
#include "formats/preset.h"
#include "formats/ue4m3.h"

enum { SHOWN = 6 };

typedef struct {
    const char *title;
    size_t n;
    float x[SHOWN];
} sample;

static const sample fp4_samples[] = {
    {"zeros", 2, {0.0f, -0.0f}},          {"ties", 6, {6.0f, 0.75f, 1.25f, 3.5f, -0.25f, -0.0f}},
    {"amax 6.375", 2, {6.375f, 5.2f}},    {"amax 7", 3, {7.0f, 5.0f, 1.0f}},
    {"amax 7.9", 2, {7.9f, -1.0f}},       {"below 4", 2, {0x1.FFFFFEp1f, 1.0f}},
    {"amax 0.03", 2, {0.03f, 0.01f}},     {"amax 0.004", 3, {0.004f, -0.001f, 0.0f}},
    {"amax 3000", 2, {3000.0f, -900.0f}}, {"amax 2^-130", 2, {0x1p-130f, 0.0f}},
    {"NaN", 3, {1.0f, NAN, -3.0f}},       {"Inf", 3, {1.0f, INFINITY, -3.0f}},
};
static const sample fp8_samples[] = {
    {"zeros", 2, {0.0f, -0.0f}},      {"amax 150", 2, {150.0f, 1.0625f}},
    {"amax 448", 2, {448.0f, 0.01f}}, {"amax 449", 2, {449.0f, 1.0f}},
    {"amax 512", 2, {512.0f, -1.0f}}, {"amax 500", 2, {500.0f, 17.0f}},
    {"amax 672", 2, {672.0f, 1.0f}},  {"amax 2^-130", 2, {0x1p-130f, 0.0f}},
    {"NaN", 3, {1.0f, NAN, -3.0f}},   {"Inf", 3, {1.0f, INFINITY, -3.0f}},
};

/* A block whose scale or codes turn on the order of operations: searched for, so that the page
 * shows one whatever the constants are. */
static bool differs(const dp_block_plan *a, const dp_block_plan *b, const sample *s, bool scales)
{
    uint8_t codes[2][DP_BLOCK_MAX];
    uint8_t scale[2][4];
    size_t bad = 0;
    (void)dp_block_quantize_one(a, s->x, s->n, codes[0], scale[0], NULL, &bad);
    (void)dp_block_quantize_one(b, s->x, s->n, codes[1], scale[1], NULL, &bad);
    return scales ? scale[0][0] != scale[1][0]
                  : scale[0][0] == scale[1][0] && memcmp(codes[0], codes[1], s->n) != 0;
}

static dp_block_plan plan_of(const char *name)
{
    dp_preset found;
    dp_block_plan plan;
    const dp_global none = {DP_GLOBAL_NONE, 1.0f};
    memset(&plan, 0, sizeof plan);
    if (dp_preset_find(name, &found, NULL)) {
        (void)dp_block_plan_make(&found.recipe, none, &plan, NULL);
    }
    return plan;
}

/* amax next to 6 * (midpoint of two scales) where amax/6 and amax * fl(1/6) are cast apart. */
static sample scale_edge(void)
{
    const dp_block_plan divides = plan_of("PTX:nvfp4");
    const dp_block_plan multiplies = plan_of("DUDA:nvfp4");
    for (unsigned code = 0x20; code < 0x70; code++) {
        const dp_ue4m3 low = {(uint8_t)code};
        const dp_ue4m3 high = {(uint8_t)(code + 1)};
        const float amax = 3.0f * (dp_ue4m3_to_f32(low) + dp_ue4m3_to_f32(high));
        for (int ulp = -3; ulp <= 3; ulp++) {
            const sample s = {"amax/6 or amax*fl(1/6)",
                              1,
                              {dp_f32_from_bits((uint32_t)((int64_t)dp_f32_bits(amax) + ulp))}};
            if (differs(&divides, &multiplies, &s, true)) {
                return s;
            }
        }
    }
    return fp4_samples[0];
}

/* An element next to midpoint * scale where x/s and x * fl(1/s) fall on two sides. */
static sample payload_edge(void)
{
    static const float middles[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    const dp_block_plan divides = plan_of("PTX:nvfp4");
    const dp_block_plan multiplies = plan_of("SAGE3:nvfp4");
    for (unsigned code = 0x30; code < 0x50; code++) {
        const dp_ue4m3 byte = {(uint8_t)code};
        const float s = dp_ue4m3_to_f32(byte);
        for (int m = 0; m < 7; m++) {
            for (int ulp = -3; ulp <= 3; ulp++) {
                const float x =
                    dp_f32_from_bits((uint32_t)((int64_t)dp_f32_bits(middles[m] * s) + ulp));
                const sample edge = {"x/s or x*fl(1/s)", 2, {6.0f * s, x}};
                if (differs(&divides, &multiplies, &edge, false)) {
                    return edge;
                }
            }
        }
    }
    return fp4_samples[0];
}

/* "38 7 2 2": scale byte, then the codes. */
static void cell(char *text, size_t size, const dp_preset *row, dp_global global, const sample *s)
{
    dp_block_plan plan;
    uint8_t codes[DP_BLOCK_MAX];
    uint8_t scale[4] = {0};
    size_t bad = 0;
    (void)dp_block_plan_make(&row->recipe, global, &plan, NULL);
    if (!dp_block_quantize_one(&plan, s->x, s->n, codes, scale, NULL, &bad)) {
        (void)snprintf(text, size, "refused");
        return;
    }
    size_t used = (size_t)snprintf(text, size, "%02x", scale[0]);
    for (size_t i = 0; i < s->n && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, plan.element_bits == 4 ? " %x" : " %02x",
                                 codes[i]);
    }
}

static void header(FILE *out, const sample *samples, size_t n)
{
    (void)fprintf(out, "| preset |");
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(out, " %s |", samples[i].title);
    }
    (void)fprintf(out, "\n|---|");
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(out, "---|");
    }
    (void)fprintf(out, "\n| *elements* |");
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < samples[i].n; j++) {
            (void)fprintf(out, " %.9g", (double)samples[i].x[j]);
        }
        (void)fprintf(out, " |");
    }
    (void)fprintf(out, "\n");
}

/* One table: every preset of the format. tensor_amax > 0: with the global scale of the preset, PTX
 * taking 2688/amax as a divisor. */
static void table(FILE *out, const char *format, const sample *samples, size_t n, float tensor_amax)
{
    char first[16][64];
    bool have_first = false;
    header(out, samples, n);
    for (size_t p = 0; p < dp_preset_count(); p++) {
        const dp_preset row = dp_preset_at(p);
        const bool ptx = strcmp(row.preset, "PTX") == 0;
        if (strcmp(row.format, format) != 0 || row.fold64 ||
            (tensor_amax > 0.0f && !ptx && row.global == DP_PRESET_FLAT)) {
            continue;
        }
        dp_global global = {DP_GLOBAL_NONE, 1.0f};
        if (tensor_amax > 0.0f) {
            global = dp_preset_global(&row, tensor_amax);
        }
        if (tensor_amax > 0.0f && ptx) {
            global.kind = DP_GLOBAL_DIV;
            global.value = dp_nvfp4_global_encode(tensor_amax);
        }
        (void)fprintf(out, "| %s |", row.preset);
        for (size_t i = 0; i < n; i++) {
            char text[64];
            cell(text, sizeof text, &row, global, &samples[i]);
            const bool differs_from_first = have_first && strcmp(text, first[i]) != 0;
            (void)fprintf(out, differs_from_first ? " **%s** |" : " %s |", text);
            if (!have_first) {
                (void)snprintf(first[i], sizeof first[i], "%s", text);
            }
        }
        have_first = true;
        (void)fprintf(out, "\n");
    }
    (void)fprintf(out, "\n");
}

static void explanations(FILE *out)
{
    for (size_t p = 0; p < dp_preset_count(); p++) {
        const dp_preset row = dp_preset_at(p);
        char text[4000];
        (void)dp_preset_explain(&row, text, sizeof text);
        (void)fprintf(out, "```\n%s```\n\n", text);
    }
}

void dp_write_presets_page(FILE *out)
{
    const sample edges[2] = {scale_edge(), payload_edge()};
    (void)fprintf(
        out,
        "# Where presets differ\n\n"
        "Generated by the target `presets_page` from the library itself; a test compares it.\n"
        "A cell is the scale byte and the codes, hexadecimal; the missing elements of a block are "
        "0. **Bold** differs from the first row.\n"
        "Rules of FORMATS.md, sources in the last section.\n\n## NVFP4, no global scale\n\n");
    const size_t fp4 = sizeof fp4_samples / sizeof fp4_samples[0];
    table(out, "nvfp4", fp4_samples, fp4, 0.0f);
    (void)fprintf(out, "Two blocks on which the order of operations alone decides (B3, B6):\n\n");
    table(out, "nvfp4", edges, 2, 0.0f);
    (void)fprintf(out, "## NVFP4, global scale of a tensor whose largest magnitude is 3000\n\n");
    table(out, "nvfp4", fp4_samples, fp4, 3000.0f);
    (void)fprintf(out, "## MXFP4\n\n");
    table(out, "mxfp4", fp4_samples, fp4, 0.0f);
    (void)fprintf(out, "## MXFP8, E4M3 elements\n\n");
    table(out, "mxfp8-e4m3", fp8_samples, sizeof fp8_samples / sizeof fp8_samples[0], 0.0f);
    (void)fprintf(out, "## The recipes in words\n\n");
    explanations(out);
}
