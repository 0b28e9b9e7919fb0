/* SPDX-License-Identifier: MIT */
#include "formats/bulk_plan.h"

dp_minifloat dp_bulk_description(dp_bulk_format format)
{
    const dp_minifloat none = {"e8m0", 0, 0, 0, 0, DP_TOP_FINITE};
    switch (format) {
    case DP_BULK_E2M1:
    case DP_BULK_E2M1X2:
        return dp_e2m1_format();
    case DP_BULK_E4M3:
        return dp_e4m3_format();
    case DP_BULK_UE4M3:
        return dp_ue4m3_format();
    case DP_BULK_E5M2:
        return dp_e5m2_format();
    case DP_BULK_UE5M3:
        return dp_ue5m3_format();
    case DP_BULK_BF16:
        return dp_bf16_format();
    case DP_BULK_FP16:
        return dp_fp16_format();
    default:
        return none;
    }
}

dp_bulk_width dp_bulk_width_of(dp_bulk_format format)
{
    if (format == DP_BULK_E2M1X2) {
        return DP_BULK_NIBBLES;
    }
    return format == DP_BULK_BF16 || format == DP_BULK_FP16 ? DP_BULK_WORDS : DP_BULK_BYTES;
}

size_t dp_bulk_bytes(dp_bulk_format format, size_t n)
{
    switch (dp_bulk_width_of(format)) {
    case DP_BULK_NIBBLES:
        return n / 2 + n % 2;
    case DP_BULK_WORDS:
        return 2 * n;
    default:
        return n;
    }
}

/* Overflow of finite values and of Inf: special (Inf, else NaN) or the largest finite code [F6]. */
static void plan_overflow(dp_bulk_plan *plan, dp_minifloat f, dp_encode how)
{
    const uint32_t most = dp_minifloat_max_code(f);
    const uint32_t special = dp_minifloat_overflow_code(f);
    const bool ieee = how.overflow == DP_OVERFLOW_IEEE754;
    const bool finite_special = how.overflow == DP_OVERFLOW_SPECIAL || (ieee && !plan->truncate);
    const bool inf_special = how.overflow == DP_OVERFLOW_SPECIAL || ieee || how.inf == DP_INF_KEPT;
    plan->clamp = dp_minifloat_decode(most, f);
    if (finite_special && special != most) {
        plan->clamp += 1u << (23u - f.mantissa_bits); /* code most + 1, which is the special one */
    }
    plan->inf_code = inf_special ? special : most;
}

dp_bulk_plan dp_bulk_plan_minifloat(dp_minifloat f, dp_encode how)
{
    dp_bulk_plan plan = {.truncate = how.round == DP_RZ, .prefix = f.bias == 127};
    plan.first_field = (uint32_t)(128 - f.bias);
    /* The kernels' rounding wants a subnormal grid far above that of f32, or exactly it. */
    const bool grid = plan.prefix ? f.mantissa_bits == 7 : plan.first_field >= 64u;
    plan.vector = grid && f.mantissa_bits >= 1 && f.top != DP_TOP_FNUZ &&
                  (how.round == DP_RNE || how.round == DP_RZ) && !how.drop_zero_sign &&
                  !(plan.prefix && how.flush_subnormals);
    if (!plan.vector) {
        return plan;
    }
    plan_overflow(&plan, f, how);
    plan.mantissa_bits = f.mantissa_bits;
    plan.offset = plan.first_field << f.mantissa_bits;
    plan.sign_bit = dp_minifloat_sign_bit(f);
    plan.sign_shift = 31u - (uint32_t)(f.exponent_bits + f.mantissa_bits);
    plan.nan_code = dp_minifloat_nan_code(false, f, how.nan);
    plan.nan_sign = plan.nan_code ^ dp_minifloat_nan_code(true, f, how.nan);
    const uint32_t most = dp_minifloat_max_code(f);
    const bool clamped_above = plan.clamp != dp_minifloat_decode(most, f);
    plan.tails = plan.nan_sign != 0 || plan.inf_code != most + (clamped_above ? 1u : 0u);
    return plan;
}

dp_bulk_plan dp_bulk_plan_encode(dp_bulk_format format, dp_encode how)
{
    const dp_bulk_plan none = {.vector = false};
    return format == DP_BULK_E8M0 ? none : dp_bulk_plan_minifloat(dp_bulk_description(format), how);
}

dp_bulk_e8m0_plan dp_bulk_plan_e8m0(dp_e8m0_encode how)
{
    dp_bulk_e8m0_plan plan = {.most = how.satfinite ? DP_E8M0_MAX : DP_E8M0_NAN};
    switch (how.round) {
    case DP_E8M0_UP:
        plan.add = 0x7FFFFFu;
        plan.threshold = 0x400000u;
        break;
    case DP_E8M0_DOWN:
        plan.threshold = 0x7FFFFFu;
        break;
    case DP_E8M0_NEAREST_EVEN: /* in the subnormal binade the midpoint is 1.5 * 2^-127 [E2] */
        plan.add = 0x3FFFFFu;
        plan.even = 1u;
        plan.threshold = 0x600000u;
        break;
    case DP_E8M0_NEAREST_UP:
        plan.add = 0x400000u;
        plan.threshold = 0x5FFFFFu;
        break;
    }
    return plan;
}

void dp_bulk_table_fill(dp_bulk_format format, dp_bulk_table *table)
{
    const dp_minifloat f = dp_bulk_description(format);
    for (uint32_t code = 0; code < 256; code++) {
        const dp_e8m0 scale = {(uint8_t)code};
        table->f32[code] = format == DP_BULK_E8M0 ? dp_f32_bits(dp_e8m0_to_f32(scale))
                                                  : dp_minifloat_decode(code, f);
        table->bf16[code] =
            (uint16_t)dp_minifloat_encode(table->f32[code], dp_bf16_format(), DP_ENCODE_NONSAT);
    }
}
