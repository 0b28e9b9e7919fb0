/* SPDX-License-Identifier: MIT */
#include "ref/arith/byteops.h"

/* Which of the eight source bytes goes to byte j under a mode other than the index mode. */
static unsigned source_byte(unsigned j, unsigned selector, dp_prmt_mode mode)
{
    switch (mode) {
    case DP_PRMT_F4E:
        return selector + j;
    case DP_PRMT_B4E:
        return (selector - j) & 7u;
    case DP_PRMT_ECL:
        return j > selector ? j : selector;
    case DP_PRMT_ECR:
        return j < selector ? j : selector;
    case DP_PRMT_RC16:
        return (selector & 1u) * 2u + (j & 1u);
    case DP_PRMT_RC8:
    case DP_PRMT_INDEX:
    default:
        return selector;
    }
}

uint32_t dp_prmt(uint32_t a, uint32_t b, uint32_t c, dp_prmt_mode mode)
{
    const uint64_t source = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (unsigned j = 0; j < 4; j++) {
        const uint32_t nibble = c >> (4 * j) & 0xFu;
        const unsigned from = mode == DP_PRMT_INDEX ? nibble & 7u : source_byte(j, c & 3u, mode);
        uint32_t byte = (uint32_t)(source >> (8 * from)) & 0xFFu;
        if (mode == DP_PRMT_INDEX && (nibble & 8u) != 0) {
            byte = (byte & 0x80u) != 0 ? 0xFFu : 0u;
        }
        result |= byte << (8 * j);
    }
    return result;
}

static uint32_t extend(uint32_t word, unsigned j, bool is_signed)
{
    const uint32_t byte = word >> (8 * j) & 0xFFu;
    return is_signed ? (byte ^ 0x80u) - 0x80u : byte;
}

uint32_t dp_dp4a(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed)
{
    for (unsigned j = 0; j < 4; j++) {
        c += extend(a, j, a_signed) * extend(b, j, b_signed);
    }
    return c;
}

uint32_t dp_represented_sum_x2(const uint32_t word[DP_SUM_CODES / 8])
{
    const uint32_t low_weights = 0x03020100u;  /* 2 * {0, 0.5, 1, 1.5} */
    const uint32_t high_weights = 0x0C080604u; /* 2 * {2, 3, 4, 6} */
    uint32_t bytes = 0;
    for (unsigned k = 0; k < DP_SUM_CODES / 8; k++) {
        bytes = dp_add_bytes(bytes, dp_prmt(low_weights, high_weights, word[k], DP_PRMT_INDEX));
        bytes =
            dp_add_bytes(bytes, dp_prmt(low_weights, high_weights, word[k] >> 16, DP_PRMT_INDEX));
    }
    return dp_dp4a(bytes, 0x01010101u, 0, false, false);
}

uint32_t dp_represented_sum_x2_plain(const uint8_t *packed, size_t codes)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < codes; i++) {
        const unsigned code = (unsigned)packed[i / 2] >> (4 * (i % 2)) & 0xFu;
        if (code < 8u) {
            /* Doubled E2M1 magnitude: mantissa for exponent 0, else (2 + mantissa) * 2^(exponent -
             * 1). */
            const unsigned exponent = code >> 1;
            const unsigned mantissa = code & 1u;
            sum += exponent == 0 ? mantissa : (2u + mantissa) << (exponent - 1);
        }
    }
    return sum;
}
