/* SPDX-License-Identifier: MIT
 *
 * FTZ, DAZ and the caller's rounding direction change no byte [F1].
 */
#include <fenv.h>

#include "exact.h"
#include "formats/bf16.h"
#include "formats/catalog.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/fp16.h"
#include "formats/ue4m3.h"
#include "formats/ue5m3.h"
#include "policies.h"
#include "support.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { FTZ = 0x8000, DAZ = 0x0040 };
#endif

enum { INPUTS = 20000 };

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x100000001B3u;
}

/* A hash over what every function of the element headers returns for the same inputs. */
static uint64_t everything(const uint32_t *inputs)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (unsigned n = 0; n < INPUTS; n++) {
        const float x = dp_f32_from_bits(inputs[n]);
        const dp_encode how = dp_policies[n % DP_POLICY_COUNT];
        const dp_e8m0_encode power = {(dp_e8m0_round)(n % 4u), n % 8u < 4u};
        hash = mix(hash, dp_e2m1_from_f32(x, how).bits);
        hash = mix(hash, dp_e4m3_from_f32(x, how).bits);
        hash = mix(hash, dp_ue4m3_from_f32(x, how).bits);
        hash = mix(hash, dp_e5m2_from_f32(x, how).bits);
        hash = mix(hash, dp_ue5m3_from_f32(x, how).bits);
        hash = mix(hash, dp_fp16_from_f32(x, how).bits);
        hash = mix(hash, dp_bf16_from_f32(x, how).bits);
        hash = mix(hash, dp_e8m0_from_f32(x, power).bits);
        hash = mix(hash, dp_e2m1_from_f32(x, dp_encode_stochastic(inputs[n] * 7u, 8)).bits);
    }
    for (uint32_t code = 0; code < 0x10000u; code++) {
        hash = mix(hash, dp_f32_bits(dp_fp16_to_f32((dp_fp16){(uint16_t)code})));
        hash = mix(hash, dp_f32_bits(dp_bf16_to_f32((dp_bf16){(uint16_t)code})));
        hash = mix(hash, dp_f32_bits(dp_e5m2_to_f32((dp_e5m2){(uint8_t)code})));
        hash = mix(hash, dp_f32_bits(dp_e8m0_to_f32((dp_e8m0){(uint8_t)code})));
        hash = mix(hash, dp_f32_bits(dp_ue5m3_to_f32((dp_ue5m3){(uint8_t)code})));
    }
    return hash;
}

/* Half of them subnormal. */
static void draw(uint32_t *inputs)
{
    dp_rng rng = {0xF72u};
    for (unsigned n = 0; n < INPUTS; n++) {
        inputs[n] =
            n % 2u == 0 ? dp_rng_u32(&rng) & 0x807FFFFFu : dp_f32_bits(dp_rng_nasty_f32(&rng));
    }
}

START_TEST(rounding_directions)
{
    static uint32_t inputs[INPUTS];
    draw(inputs);
    const uint64_t want = everything(inputs);
    const int directions[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(fesetround(directions[i]), 0);
        const uint64_t got = everything(inputs);
        (void)fesetround(FE_TONEAREST);
        ck_assert_msg(got == want, "direction %u", i);
    }
}
END_TEST

START_TEST(flush_to_zero)
{
#if defined(__x86_64__)
    static uint32_t inputs[INPUTS];
    draw(inputs);
    const uint64_t want = everything(inputs);
    const unsigned saved = _mm_getcsr();
    const unsigned modes[] = {FTZ, DAZ, FTZ | DAZ, FTZ | DAZ | _MM_ROUND_UP};
    for (unsigned i = 0; i < 4; i++) {
        _mm_setcsr((saved & ~(unsigned)_MM_ROUND_MASK) | modes[i]);
        volatile float tiny = 0x1p-130f;
        const bool in_force = tiny * 0.5f == 0.0f;
        const uint64_t got = everything(inputs);
        _mm_setcsr(saved);
        ck_assert_msg(in_force, "mode %u was not in force", i);
        ck_assert_msg(got == want, "mode %u", i);
    }
#endif
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("environment");
    TCase *tests = tcase_create("environment");
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, rounding_directions);
    tcase_add_test(tests, flush_to_zero);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
