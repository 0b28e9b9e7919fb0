/* SPDX-License-Identifier: MIT
 *
 * All 2^32 f32 inputs through every bulk path, for every format and the policies that kernels meet
 * in practice, against the scalar definition [F1].
 */
#include "bulk_support.h"
#include "formats/bulk_plan.h"
#include "formats/parallel.h"

enum { CHUNK = 1 << 15, THREADS = 256, MODES = 4 };

typedef struct {
    dp_bulk_format format;
    int mode; /* of sweep_policy */
    int e8m0; /* -1, or a mode of dp_e8m0_encode */
    dp_tally tallies[THREADS];
} sweep_job;

static inline dp_encode sweep_policy(int mode)
{
    dp_encode how = mode % 2 == 0 ? DP_ENCODE_PTX : DP_ENCODE_NONSAT;
    if (mode >= 2) {
        how.round = DP_RZ;
        how.overflow = mode == 2 ? DP_OVERFLOW_SATFINITE : DP_OVERFLOW_IEEE754;
    }
    return how;
}

static dp_e8m0_encode e8m0_policy(int mode)
{
    const dp_e8m0_encode how = {(dp_e8m0_round)(mode % 4), mode >= 4};
    return how;
}

/* The scalar definition with format and policy known to the compiler: ten times as fast as the same
 * code with both as variables. */
static inline void define(uint32_t first, dp_minifloat f, dp_encode how, dp_bulk_width width,
                          uint8_t *want)
{
    for (uint32_t i = 0; i < CHUNK; i++) {
        const uint32_t code = dp_minifloat_encode(first + i, f, how);
        const uint16_t word = (uint16_t)code;
        if (width == DP_BULK_WORDS) {
            memcpy(want + 2 * i, &word, sizeof word);
        } else if (width == DP_BULK_BYTES) {
            want[i] = (uint8_t)code;
        } else {
            want[i / 2] = (uint8_t)(i % 2 == 0 ? code : want[i / 2] | (code << 4));
        }
    }
}

#define DEFINE(format, name, mode, width)                                                          \
    case (int)(format)*MODES + (mode):                                                             \
        define(first, dp_##name##_format(), sweep_policy(mode), width, want);                      \
        break;
#define DEFINE_MODES(format, name, width)                                                          \
    DEFINE(format, name, 0, width)                                                                 \
    DEFINE(format, name, 1, width)                                                                 \
    DEFINE(format, name, 2, width)                                                                 \
    DEFINE(format, name, 3, width)

static void reference(const sweep_job *job, uint32_t first, uint8_t *want)
{
    if (job->e8m0 >= 0) {
        const dp_e8m0_encode how = e8m0_policy(job->e8m0);
        for (uint32_t i = 0; i < CHUNK; i++) {
            want[i] = dp_e8m0_from_f32(dp_f32_from_bits(first + i), how).bits;
        }
        return;
    }
    switch ((int)job->format * MODES + job->mode) {
        DEFINE_MODES(DP_BULK_E2M1X2, e2m1, DP_BULK_NIBBLES)
        DEFINE_MODES(DP_BULK_E4M3, e4m3, DP_BULK_BYTES)
        DEFINE_MODES(DP_BULK_UE4M3, ue4m3, DP_BULK_BYTES)
        DEFINE_MODES(DP_BULK_E5M2, e5m2, DP_BULK_BYTES)
        DEFINE_MODES(DP_BULK_UE5M3, ue5m3, DP_BULK_BYTES)
        DEFINE_MODES(DP_BULK_BF16, bf16, DP_BULK_WORDS)
        DEFINE_MODES(DP_BULK_FP16, fp16, DP_BULK_WORDS)
    default:
        ck_abort_msg("no reference for format %d", (int)job->format);
    }
}

static void run_path(sweep_job *job, const float *x, dp_path path, uint8_t *codes)
{
    const dp_bulk_options options = bulk_on(path, 1);
    if (job->e8m0 >= 0) {
        dp_bulk_encode_e8m0(x, CHUNK, e8m0_policy(job->e8m0), &options, (dp_e8m0 *)codes);
    } else {
        dp_bulk_encode_f32(job->format, x, CHUNK, sweep_policy(job->mode), &options, codes);
    }
}

static void sweep_chunk(sweep_job *job, uint32_t first, dp_tally *tally)
{
    float x[CHUNK];
    uint8_t want[2 * CHUNK], codes[2 * CHUNK];
    for (uint32_t i = 0; i < CHUNK; i++) {
        x[i] = dp_f32_from_bits(first + i);
    }
    reference(job, first, want);
    const size_t bytes = dp_bulk_bytes(job->format, CHUNK);
    for (int p = 0; p < BULK_PATHS; p++) {
        if (bulk_has(bulk_paths[p])) {
            memset(codes, 0xA5, sizeof codes);
            run_path(job, x, bulk_paths[p], codes);
            tally->cases += CHUNK - 1;
            if (!dp_tally_check(tally, memcmp(codes, want, bytes) == 0)) {
                dp_tally_note(tally, "%s format %d, f32 from %08x on", dp_path_name(bulk_paths[p]),
                              (int)job->format, first);
            }
        }
    }
}

static void sweep_share(void *context, size_t first, size_t last, int thread)
{
    sweep_job *job = context;
    for (size_t i = first; i < last; i++) {
        sweep_chunk(job, (uint32_t)(i * CHUNK), &job->tallies[thread]);
    }
}

static void sweep(dp_bulk_format format, int mode, int e8m0)
{
    sweep_job *job = calloc(1, sizeof *job);
    ck_assert_ptr_nonnull(job);
    job->format = format;
    job->mode = mode;
    job->e8m0 = e8m0;
    dp_parallel_for(0, (size_t)1 << 32 >> 15, 16, sweep_share, job);
    dp_tally total = {0};
    for (int i = 0; i < THREADS; i++) {
        dp_tally_merge(&total, &job->tallies[i]);
    }
    free(job);
    dp_assert_tally(total, (uint64_t)1 << 32);
}

START_TEST(every_f32)
{
    const dp_bulk_format formats[] = {DP_BULK_E2M1X2, DP_BULK_E4M3, DP_BULK_UE4M3, DP_BULK_E5M2,
                                      DP_BULK_UE5M3,  DP_BULK_BF16, DP_BULK_FP16};
    sweep(formats[_i / MODES], _i % MODES, -1);
}
END_TEST

START_TEST(every_f32_to_e8m0)
{
    sweep(DP_BULK_E8M0, 0, _i);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sweep_bulk");
    TCase *tests = tcase_create("sweep");
    tcase_add_loop_test(tests, every_f32, 0, 7 * MODES);
    tcase_add_loop_test(tests, every_f32_to_e8m0, 0, 8);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
