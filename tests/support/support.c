/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

int dp_run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

uint64_t dp_rng_u64(dp_rng *rng)
{
    uint64_t z = (rng->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint32_t dp_rng_u32(dp_rng *rng)
{
    return (uint32_t)(dp_rng_u64(rng) >> 32);
}

uint32_t dp_rng_below(dp_rng *rng, uint32_t bound)
{
    return (uint32_t)(((uint64_t)dp_rng_u32(rng) * bound) >> 32);
}

double dp_rng_unit(dp_rng *rng)
{
    return (double)(dp_rng_u64(rng) >> 11) * 0x1p-53;
}

double dp_rng_normal(dp_rng *rng)
{
    const double u = 1.0 - dp_rng_unit(rng);
    const double v = dp_rng_unit(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

float dp_rng_nasty_f32(dp_rng *rng)
{
    static const uint32_t specials[] = {0x00000000u, 0x00000001u, 0x007FFFFFu, 0x00800000u,
                                        0x3F800000u, 0x7F7FFFFFu, 0x7F800000u, 0x7F800001u,
                                        0x7FC00000u, 0x7FFFFFFFu, 0x00400000u, 0x33800000u};
    const uint32_t sign = dp_rng_u32(rng) & DP_F32_SIGN;
    switch (dp_rng_below(rng, 6)) {
    case 0:
        return dp_f32_from_bits(dp_rng_u32(rng));
    case 1:
        return (float)dp_rng_normal(rng);
    case 2: { /* a power of two, up to 3 ulp away */
        const uint32_t exponent = dp_rng_below(rng, 255) << 23;
        const uint32_t bits = exponent + dp_rng_below(rng, 7) - 3u;
        return dp_f32_from_bits((bits & DP_F32_ABS) | sign);
    }
    case 3: { /* few significant bits, exponents where the narrow formats live */
        const uint32_t exponent = (127u - 20u + dp_rng_below(rng, 40)) << 23;
        return dp_f32_from_bits(exponent | (dp_rng_below(rng, 32) << 18) | sign);
    }
    case 4: /* the same, one ulp off */
        return dp_f32_from_bits(
            (((127u - 20u + dp_rng_below(rng, 40)) << 23) | (dp_rng_below(rng, 32) << 18) | sign) +
            dp_rng_below(rng, 3) - 1u);
    default:
        return dp_f32_from_bits(specials[dp_rng_below(rng, sizeof specials / sizeof specials[0])] |
                                sign);
    }
}

void dp_tally_note(dp_tally *tally, const char *format, ...)
{
    if (tally->first[0] != '\0') {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(tally->first, sizeof tally->first, format, arguments);
    va_end(arguments);
}

void dp_tally_merge(dp_tally *a, const dp_tally *b)
{
    a->cases += b->cases;
    a->mismatches += b->mismatches;
    if (a->first[0] == '\0') {
        memcpy(a->first, b->first, sizeof a->first);
    }
}

const char *dp_source_path(char *buffer, size_t size, const char *relative)
{
    const char *root = getenv("DIRECTP_SOURCE");
    (void)snprintf(buffer, size, "%s/%s", root != NULL ? root : ".", relative);
    return buffer;
}
