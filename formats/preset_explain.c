/* SPDX-License-Identifier: MIT
 *
 * A recipe in words: the formulas of its fields, so that a user can compare them with a kernel.
 */
#include <stdarg.h>
#include <stdio.h>

#include "formats/preset.h"

typedef struct {
    char *text;
    size_t size, length;
} page;

static void put(page *p, const char *format, ...) DP_PRINTF(2, 3);
static void put(page *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const size_t left = p->length < p->size ? p->size - p->length : 0;
    const int n = vsnprintf(left != 0 ? p->text + p->length : NULL, left, format, arguments);
    va_end(arguments);
    p->length += n > 0 ? (size_t)n : 0;
}

static const char *const scale_names[] = {"e4m3", "ue5m3", "e8m0", "f32"};
static const char *const rule_texts[] = {
    "t cast to the scale format",
    "2^(floor(log2 amax) - emax)",
    "2^(ceil(log2 amax) - emax)",
    "t rounded up to a power of two",
    "2^(floor(log2 a) - emax), a = amax rounded half up to the element's mantissa",
    "t to the nearest power of two, midpoint 1.5*2^k, tie to the even code",
    "t to the nearest power of two in log2",
    "t rounded down to a power of two",
    "amax to the nearest power of two, midpoint 1.5*2^k, tie to the even code",
    "2^floor or 2^ceil of log2(amax/max), lower squared error, tie to ceil",
    "t to the nearest power of two, midpoint 1.5*2^k, tie up",
};
static const char *const ratio_texts[] = {
    "fl(fl(amax/max)*g)",       "fl(fl(amax*fl(1/max))*g)", "fl(amax*fl(g/max))",
    "fl(amax*fl(g*fl(1/max)))", "fl(fl(amax/max)/d)",       "fl(amax/fl(max*d))",
};
static const char *const quotient_texts[] = {
    "fl(fl(x*g)/s)",          "fl(x/fl(s*d))",
    "fl(x*fl(g*rcp(s)))",     "fl(x*min(rcp(fl(s*d)),FLT_MAX))",
    "fl(x*fl(g/s))",          "fl(x*fl(rcp(d)/s))",
    "fl(x*2^(127-byte)*max)",
};
static const char *const byte0_texts[] = {
    "no special case", "all codes +0",    "x times 0",
    "x as it is",      "x times FLT_MAX", "x times 0 when t is 0, else no special case",
};
static const char *const zero_texts[] = {"the rule applied to 0", "amax taken as 1", "scale 1",
                                         "scale NaN"};
static const char *const nan_texts[] = {"scale NaN", "ignored by amax", "refused"};
static const char *const inf_texts[] = {"largest finite scale", "2^128 for the exponent rules",
                                        "scale NaN", "refused"};
static const char *const via_texts[] = {"", "bf16", "f16"};
static const char *const round_texts[] = {
    "nearest, ties to even",
    "toward zero",
    "toward +Inf",
    "toward -Inf",
    "stochastic",
    "nearest, ties toward zero (strict >)",
    "nearest, ties away (>=)",
};
static const char *const overflow_texts[] = {"saturates", "saturates", "Inf or NaN", "as IEEE 754"};
static const char *const global_texts[] = {"none (g = d = 1)",
                                           "g = min(448*max/amax, FLT_MAX), 1 when amax is 0",
                                           "d = amax/(448*max), 1 when amax is 0"};

static bool reads_t(const dp_block_recipe *r)
{
    return r->rule == DP_RULE_AMAX || r->rule == DP_RULE_RCEIL || r->rule == DP_RULE_ROUND ||
           r->rule == DP_RULE_ROUND_UP || r->rule == DP_RULE_ROUND_LOG2 ||
           r->rule == DP_RULE_FLOOR_RATIO || r->divisor == DP_DIVISOR_UNROUNDED;
}

static void put_scale(page *p, const dp_block_recipe *r)
{
    put(p, "scale     %s = %s\n", scale_names[r->scale], rule_texts[r->rule]);
    if (reads_t(r)) {
        put(p, "          t = %s\n", ratio_texts[r->ratio]);
    }
    if (r->scale == DP_SCALE_E4M3 || r->scale == DP_SCALE_UE5M3) {
        put(p, "          cast %s, overflow %s\n", round_texts[r->scale_encode.round],
            overflow_texts[r->scale_encode.overflow]);
    }
    if (r->scale_min > 0.0f) {
        put(p, "          t at least %.9g\n", (double)r->scale_min);
    }
    if (r->amax_zero > 0.0f) {
        put(p, "          amax up to %.9g counts as 0\n", (double)r->amax_zero);
    }
    if (r->amax_via != DP_VIA_NONE) {
        put(p, "          amax rounded to %s first\n", via_texts[r->amax_via]);
    }
    if (r->log2_f32) {
        put(p, "          log2 is rounded to f32 before floor\n");
    }
    if (r->scale == DP_SCALE_E8M0) {
        put(p, "          below 2^-127: %s\n",
            r->low == DP_E8M0_LOW_WRAP ? "the byte wraps" : "byte 0");
    }
    put(p, "amax = 0  %s\n", zero_texts[r->zero_amax]);
}

static void put_payload(page *p, const dp_block_recipe *r)
{
    put(p, "payload   %s(v), v = %s\n", r->element.name, quotient_texts[r->quotient]);
    put(p, "          s = %s", r->divisor == DP_DIVISOR_UNROUNDED ? "t" : "stored scale");
    if (r->divisor_add > 0.0f) {
        put(p, " + %.9g", (double)r->divisor_add);
    }
    if (r->divisor_min > 0.0f) {
        put(p, ", at least %.9g", (double)r->divisor_min);
    }
    put(p, "\n          %s, overflow %s%s\n", round_texts[r->payload.round],
        overflow_texts[r->payload.overflow], r->payload.drop_zero_sign ? ", -0 lost" : "");
    if (r->quotient_via != DP_VIA_NONE) {
        put(p, "          v rounded to %s first\n", via_texts[r->quotient_via]);
    }
    put(p, "byte 0    %s\n", byte0_texts[r->byte0]);
    put(p, "NaN, Inf  %s; %s\n", nan_texts[r->nan], inf_texts[r->inf]);
    if (r->ftz) {
        put(p, "FTZ       every f32 operation\n");
    }
    put(p, "value     %s\n",
        r->decode == DP_DECODE_AMPLITUDE ? "code*2^(byte-127)/max" : "code*s*d (or /g)");
    put(p, "packing   %s\n",
        r->packing == DP_PACK_HALVES ? "element j low, j + block/2 high" : "2i low, 2i+1 high");
}

size_t dp_preset_explain(const dp_preset *preset, char *text, size_t size)
{
    page p = {text, size, 0};
    const dp_block_recipe *r = &preset->recipe;
    put(&p, "%s:%s\n", preset->preset, preset->format);
    put(&p, "source    %s\n", preset->source);
    put(&p, "block     %zu elements of %s\n", r->block, r->element.name);
    put(&p, "global    %s\n", global_texts[preset->global]);
    if (preset->fold64) {
        put(&p, "fold      one scale for blocks b and b+4 of a row of 128: the candidate with the "
                "lowest squared error\n");
    }
    put_scale(&p, r);
    put_payload(&p, r);
    return p.length;
}
