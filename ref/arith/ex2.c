/* SPDX-License-Identifier: MIT
 *
 * 2^x for ex2.approx.ftz.f32, in 64-bit fixed point.
 *
 * x = n + f, f in [0, 1) a multiple of 2^-49 (a smaller |x| gives 1). 2^f = 2^(i/64) * exp(r ln 2)
 * with r < 2^-6. The fixed-point error is below 2^-60; over all inputs the closest that 2^f comes
 * to the midpoint of two f32 without being exact is farther than that (the exhaustive test
 * decides).
 */
#include "ref/arith/bits64.h"
#include "ref/arith/sfu.h"

#define FRACTION_BITS 49
#define LN2           UINT64_C(0xB17217F7D1CF79AC) /* ln 2 * 2^64 */

/* 2^(i/64) * 2^63, rounded to nearest; the test derives them again. */
static const uint64_t power[64] = {
    UINT64_C(0x8000000000000000), UINT64_C(0x8164D1F3BC030773), UINT64_C(0x82CD8698AC2BA1D7),
    UINT64_C(0x843A28C3ACDE4046), UINT64_C(0x85AAC367CC487B15), UINT64_C(0x871F61969E8D1010),
    UINT64_C(0x88980E8092DA8527), UINT64_C(0x8A14D575496EFD9A), UINT64_C(0x8B95C1E3EA8BD6E7),
    UINT64_C(0x8D1ADF5B7E5BA9E6), UINT64_C(0x8EA4398B45CD53C0), UINT64_C(0x9031DC431466B1DC),
    UINT64_C(0x91C3D373AB11C336), UINT64_C(0x935A2B2F13E6E92C), UINT64_C(0x94F4EFA8FEF70961),
    UINT64_C(0x96942D3720185A00), UINT64_C(0x9837F0518DB8A96F), UINT64_C(0x99E0459320B7FA65),
    UINT64_C(0x9B8D39B9D54E5539), UINT64_C(0x9D3ED9A72CFFB751), UINT64_C(0x9EF5326091A111AE),
    UINT64_C(0xA0B0510FB9714FC2), UINT64_C(0xA27043030C496819), UINT64_C(0xA43515AE09E6809E),
    UINT64_C(0xA5FED6A9B15138EA), UINT64_C(0xA7CD93B4E965356A), UINT64_C(0xA9A15AB4EA7C0EF8),
    UINT64_C(0xAB7A39B5A93ED337), UINT64_C(0xAD583EEA42A14AC6), UINT64_C(0xAF3B78AD690A4375),
    UINT64_C(0xB123F581D2AC2590), UINT64_C(0xB311C412A9112489), UINT64_C(0xB504F333F9DE6484),
    UINT64_C(0xB6FD91E328D17791), UINT64_C(0xB8FBAF4762FB9EE9), UINT64_C(0xBAFF5AB2133E45FB),
    UINT64_C(0xBD08A39F580C36BF), UINT64_C(0xBF1799B67A731083), UINT64_C(0xC12C4CCA66709456),
    UINT64_C(0xC346CCDA24976407), UINT64_C(0xC5672A115506DADD), UINT64_C(0xC78D74C8ABB9B15D),
    UINT64_C(0xC9B9BD866E2F27A3), UINT64_C(0xCBEC14FEF2727C5D), UINT64_C(0xCE248C151F8480E4),
    UINT64_C(0xD06333DAEF2B2595), UINT64_C(0xD2A81D91F12AE45A), UINT64_C(0xD4F35AABCFEDFA1F),
    UINT64_C(0xD744FCCAD69D6AF4), UINT64_C(0xD99D15C278AFD7B6), UINT64_C(0xDBFBB797DAF23755),
    UINT64_C(0xDE60F4825E0E9124), UINT64_C(0xE0CCDEEC2A94E111), UINT64_C(0xE33F8972BE8A5A51),
    UINT64_C(0xE5B906E77C8348A8), UINT64_C(0xE8396A503C4BDC68), UINT64_C(0xEAC0C6E7DD24392F),
    UINT64_C(0xED4F301ED9942B84), UINT64_C(0xEFE4B99BDCDAF5CB), UINT64_C(0xF281773C59FFB13A),
    UINT64_C(0xF5257D152486CC2C), UINT64_C(0xF7D0DF730AD13BB9), UINT64_C(0xFA83B2DB722A033A),
    UINT64_C(0xFD3E0C0CF486C175)};

/* 2^f * 2^63 for f = fraction / 2^49. */
static uint64_t exp2_fraction(uint64_t fraction)
{
    const unsigned index = (unsigned)(fraction >> (FRACTION_BITS - 6));
    const uint64_t r = (fraction << (64 - FRACTION_BITS)) & ((UINT64_C(1) << 58) - 1);
    const uint64_t z = dp_mul_high(r, LN2); /* r ln 2 * 2^64 */
    const uint64_t one = UINT64_C(1) << 63;
    /* exp(z) - 1 = z (1 + z/2 (1 + z/3 (...))); z < 2^-6.5, so the term z^8/8! is below 2^-67. */
    uint64_t q = one + dp_mul_high(z, one) / 7;
    for (unsigned k = 6; k >= 2; k--) {
        q = one + dp_mul_high(z, q) / k;
    }
    return power[index] + 2 * dp_mul_high(power[index], dp_mul_high(z, q));
}

/* The 24-bit significand of 2^f, rounded to nearest; 2^24 if it rounds up to 2. */
static uint32_t rounded_exp2(uint64_t fraction)
{
    const uint64_t y = exp2_fraction(fraction);
    return (uint32_t)((y >> 40) + ((y >> 39) & 1));
}

uint32_t dp_ex2_octave(uint32_t i)
{
    return (127u << 23) + rounded_exp2((uint64_t)i << (FRACTION_BITS - 23));
}

/* Results that no arithmetic is needed for; true if x is one of these. */
static bool special(uint32_t x, uint32_t *result)
{
    const uint32_t magnitude = x & DP_F32_ABS;
    if (magnitude > DP_F32_INF) {
        *result = DP_F32_NAN_CUDA;
    } else if (x < DP_F32_SIGN && magnitude >= 0x43000000u) { /* x >= 128 */
        *result = DP_F32_INF;
    } else if (x > DP_F32_SIGN && magnitude > 0x42FC0000u) { /* x < -126 */
        *result = 0;
    } else {
        return false;
    }
    return true;
}

uint32_t dp_ex2_exact(uint32_t x)
{
    uint32_t result;
    if (special(x, &result)) {
        return result;
    }
    const int field = (int)((x >> 23) & 0xFFu);
    if (field < 127 - 26) { /* |x| ln 2 < 2^-26: nearer to 1 than to its neighbours */
        return 0x3F800000u;
    }
    const uint64_t one = UINT64_C(1) << FRACTION_BITS;
    const uint64_t sig = (x & 0x7FFFFFu) | 0x800000u;
    const uint64_t fixed = sig << (field - (150 - FRACTION_BITS));
    /* 127 is added first, so that the sum is positive and its integer part is the exponent field.
     */
    const uint64_t biased = x < DP_F32_SIGN ? 127 * one + fixed : 127 * one - fixed;
    return ((uint32_t)(biased >> FRACTION_BITS) << 23) - 0x800000u +
           rounded_exp2(biased & (one - 1));
}

/* The reduction of the captured unit: k = floor(x * 2^23), where bits of |x| below 2^-23 are
 * dropped first and a negative fraction is complemented by ones, not by twos. Two's complement
 * integer. */
static uint32_t reduce(uint32_t x)
{
    const int field = (int)((x >> 23) & 0xFFu);
    const uint32_t sig = (x & 0x7FFFFFu) | 0x800000u;
    const uint32_t a = field < 127 - 23 ? 0
                       : field < 127    ? sig >> (127 - field)
                                        : sig << (field - 127);
    if (x < DP_F32_SIGN) {
        return a;
    }
    return (a & 0x7FFFFFu) == 0 ? 0u - a : ~a;
}

/* octave: result bits of 2^f, f = (k mod 2^23) / 2^23; the result is 2^floor(k / 2^23) times it. */
static uint32_t scale(uint32_t octave, uint32_t k)
{
    const uint32_t result = octave + (k & ~0x7FFFFFu);
    return result < 0x00800000u || result >= DP_F32_SIGN ? 0 : result;
}

uint32_t dp_ex2_captured(const dp_sfu_table *table, uint32_t x)
{
    uint32_t result;
    if (special(x, &result)) {
        return result;
    }
    const uint32_t k = reduce(x);
    const uint32_t i = k & 0x7FFFFFu;
    return scale(dp_ex2_octave(i) - 0x00800000u + (uint32_t)dp_sfu_delta(table, i), k);
}

uint32_t dp_ex2_unit(const dp_sfu_unit *unit, uint32_t x)
{
    uint32_t result;
    if (special(x, &result)) {
        return result;
    }
    const uint32_t k = reduce(x);
    return scale(0x3F800000u + dp_sfu_unit_ex2(unit, k & 0x7FFFFFu), k);
}
