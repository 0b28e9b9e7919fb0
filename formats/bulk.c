/* SPDX-License-Identifier: MIT
 *
 * Bulk conversions: choice of path, division among threads, and the scalar route for policies that
 * no kernel does.
 */
#include "formats/bulk.h"

#include "formats/bulk_plan.h"
#include "formats/parallel.h"

/* Elements a thread takes at a time: a multiple of every kernel's block, so that packed bytes and
 * padded tails never cross two threads' shares. */
enum { GRAIN = 1 << 16 };
/* Output from here on leaves the caches before anyone reads it: written around them. */
enum { STREAM_BYTES = 1 << 22 };

static bool machine_has(dp_path path)
{
#if defined(__x86_64__)
    if (path == DP_PATH_AVX512) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vbmi");
    }
    if (path == DP_PATH_AVX2) {
        return __builtin_cpu_supports("avx2");
    }
#else
    if (path == DP_PATH_AVX512 || path == DP_PATH_AVX2) {
        return false;
    }
#endif
    return true;
}

dp_path dp_path_resolve(dp_path path)
{
    if (path == DP_PATH_AUTO) {
        path = DP_PATH_AVX512;
    }
    while (!machine_has(path)) {
        path = (dp_path)(path - 1);
    }
    return path;
}

const char *dp_path_name(dp_path path)
{
    static const char *const names[] = {"auto", "scalar", "portable", "avx2", "avx512"};
    return names[path];
}

typedef struct {
    const dp_bulk_kernels *kernels; /* NULL: the scalar definition */
    dp_bulk_options options;
    dp_bulk_format format;
    dp_bulk_width width;
    bool stream;
    /* encode */
    dp_encode how;
    dp_bulk_plan plan;
    dp_e8m0_encode how_e8m0;
    dp_bulk_e8m0_plan plan_e8m0;
    dp_bulk_source source;
    /* decode */
    bool to_bf16;
    dp_bulk_table table;
    const uint8_t *from;
    uint8_t *to;
} bulk_job;

static const dp_bulk_kernels *kernels_of(dp_path path)
{
    switch (dp_path_resolve(path)) {
#if defined(__x86_64__)
    case DP_PATH_AVX512:
        return &dp_bulk_avx512;
    case DP_PATH_AVX2:
        return &dp_bulk_avx2;
#endif
    case DP_PATH_PORTABLE:
        return &dp_bulk_portable;
    default:
        return NULL;
    }
}

static void start_job(bulk_job *job, dp_bulk_format format, const dp_bulk_options *options,
                      size_t output_bytes)
{
    memset(job, 0, sizeof *job);
    if (options != NULL) {
        job->options = *options;
    }
    job->kernels = kernels_of(job->options.path);
    job->format = format;
    job->width = dp_bulk_width_of(format);
    job->stream = output_bytes >= STREAM_BYTES;
}

static void run_job(bulk_job *job, size_t n, dp_parallel_body *body)
{
    dp_parallel_for(job->options.threads, n, GRAIN, body, job);
}

static uint32_t encode_scalar_one(const bulk_job *job, size_t i)
{
    dp_encode how = job->how;
    if (how.round == DP_RS) {
        if (job->options.random_words != NULL) {
            how.random = job->options.random_words[i];
        } else if (job->options.random != NULL) {
            how.random = job->options.random(job->options.random_context, i);
        }
    }
    return dp_minifloat_encode(dp_bulk_load(job->source, i), dp_bulk_description(job->format), how);
}

static void encode_scalar(const bulk_job *job, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        const uint32_t code = encode_scalar_one(job, i);
        const uint16_t word = (uint16_t)code;
        switch (job->width) {
        case DP_BULK_NIBBLES: /* first is even: a share starts at a whole byte */
            job->to[i / 2] = (uint8_t)(i % 2 == 0 ? code : job->to[i / 2] | (code << 4));
            break;
        case DP_BULK_BYTES:
            job->to[i] = (uint8_t)code;
            break;
        case DP_BULK_WORDS:
            memcpy(job->to + 2 * i, &word, sizeof word);
            break;
        }
    }
}

static void encode_share(void *context, size_t first, size_t last, int thread)
{
    const bulk_job *job = context;
    (void)thread;
    if (job->kernels == NULL || !job->plan.vector) {
        encode_scalar(job, first, last);
        return;
    }
    job->kernels->encode(&job->plan, job->width, dp_bulk_advance(job->source, first), last - first,
                         job->to + dp_bulk_bytes(job->format, first), job->stream);
}

static void encode_any(dp_bulk_format format, dp_bulk_source source, size_t n, dp_encode how,
                       const dp_bulk_options *options, void *codes)
{
    if (format == DP_BULK_E8M0) {
        return;
    }
    bulk_job job;
    start_job(&job, format, options, dp_bulk_bytes(format, n));
    job.how = how;
    job.plan = dp_bulk_plan_encode(format, how);
    job.source = source;
    job.to = codes;
    run_job(&job, n, encode_share);
}

void dp_bulk_encode_f32(dp_bulk_format format, const float *x, size_t n, dp_encode how,
                        const dp_bulk_options *options, void *codes)
{
    const dp_bulk_source source = {x, false};
    encode_any(format, source, n, how, options, codes);
}

void dp_bulk_encode_bf16(dp_bulk_format format, const dp_bf16 *x, size_t n, dp_encode how,
                         const dp_bulk_options *options, void *codes)
{
    const dp_bulk_source source = {x, true};
    encode_any(format, source, n, how, options, codes);
}

static void encode_e8m0_share(void *context, size_t first, size_t last, int thread)
{
    const bulk_job *job = context;
    (void)thread;
    if (job->kernels != NULL) {
        job->kernels->encode_e8m0(&job->plan_e8m0, dp_bulk_advance(job->source, first).data,
                                  last - first, job->to + first, job->stream);
        return;
    }
    for (size_t i = first; i < last; i++) {
        const float x = dp_f32_from_bits(dp_bulk_load(job->source, i));
        job->to[i] = dp_e8m0_from_f32(x, job->how_e8m0).bits;
    }
}

void dp_bulk_encode_e8m0(const float *x, size_t n, dp_e8m0_encode how,
                         const dp_bulk_options *options, dp_e8m0 *codes)
{
    bulk_job job;
    start_job(&job, DP_BULK_E8M0, options, n);
    job.how_e8m0 = how;
    job.plan_e8m0 = dp_bulk_plan_e8m0(how);
    job.source.data = x;
    job.to = (uint8_t *)codes;
    run_job(&job, n, encode_e8m0_share);
}

static uint32_t decode_scalar_one(const bulk_job *job, size_t i)
{
    if (job->width == DP_BULK_WORDS) {
        dp_bf16 code;
        memcpy(&code, job->from + 2 * i, sizeof code);
        return job->format == DP_BULK_BF16 ? (uint32_t)code.bits << 16
                                           : dp_minifloat_decode(code.bits, dp_fp16_format());
    }
    if (job->format == DP_BULK_E8M0) {
        const dp_e8m0 scale = {job->from[i]};
        return dp_f32_bits(dp_e8m0_to_f32(scale));
    }
    const dp_e2m1x2 pair = {job->from[job->width == DP_BULK_NIBBLES ? i / 2 : i]};
    const uint32_t code =
        job->width == DP_BULK_NIBBLES ? dp_e2m1x2_get(pair, (unsigned)(i % 2)).bits : pair.bits;
    return dp_minifloat_decode(code, dp_bulk_description(job->format));
}

static void decode_scalar(const bulk_job *job, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        const uint32_t bits = decode_scalar_one(job, i);
        const uint16_t half =
            (uint16_t)dp_minifloat_encode(bits, dp_bf16_format(), DP_ENCODE_NONSAT);
        if (job->to_bf16) {
            memcpy(job->to + 2 * i, &half, sizeof half);
        } else {
            memcpy(job->to + 4 * i, &bits, sizeof bits);
        }
    }
}

/* 16-bit formats to bf16 pass through f32 in pieces that stay in the first cache. */
static void words_to_bf16(const bulk_job *job, size_t first, size_t last)
{
    enum { PIECE = 1024 };
    uint8_t wide[4 * PIECE];
    for (size_t i = first; i < last; i += PIECE) {
        const size_t n = last - i < PIECE ? last - i : PIECE;
        if (job->format == DP_BULK_BF16) {
            job->kernels->bf16_to_f32(job->from + 2 * i, n, wide, false);
        } else {
            job->kernels->fp16_to_f32(job->from + 2 * i, n, wide, false);
        }
        const dp_bulk_source source = {wide, false};
        job->kernels->encode(&job->plan, DP_BULK_WORDS, source, n, job->to + 2 * i, false);
    }
}

static void decode_share(void *context, size_t first, size_t last, int thread)
{
    const bulk_job *job = context;
    const dp_bulk_kernels *kernels = job->kernels;
    const uint8_t *from = job->from + dp_bulk_bytes(job->format, first);
    const size_t n = last - first;
    (void)thread;
    if (kernels == NULL) {
        decode_scalar(job, first, last);
    } else if (job->width == DP_BULK_WORDS && job->to_bf16) {
        words_to_bf16(job, first, last);
    } else if (job->format == DP_BULK_BF16) {
        kernels->bf16_to_f32(from, n, job->to + 4 * first, job->stream);
    } else if (job->format == DP_BULK_FP16) {
        kernels->fp16_to_f32(from, n, job->to + 4 * first, job->stream);
    } else if (job->to_bf16) {
        kernels->decode_bf16(&job->table, job->width, from, n, job->to + 2 * first, job->stream);
    } else {
        kernels->decode_f32(&job->table, job->width, from, n, job->to + 4 * first, job->stream);
    }
}

static void decode_any(dp_bulk_format format, const void *codes, size_t n,
                       const dp_bulk_options *options, bool to_bf16, void *x)
{
    enum { TABLE_PAYS = 512 }; /* filling the table costs 256 scalar decodes */
    bulk_job job;
    start_job(&job, format, options, (to_bf16 ? 2 : 4) * n);
    job.to_bf16 = to_bf16;
    job.from = codes;
    job.to = x;
    if (job.width == DP_BULK_WORDS) {
        job.plan = dp_bulk_plan_encode(DP_BULK_BF16, DP_ENCODE_NONSAT);
    } else if (job.options.path == DP_PATH_AUTO && n < TABLE_PAYS) {
        job.kernels = NULL;
    } else {
        dp_bulk_table_fill(format, &job.table);
    }
    run_job(&job, n, decode_share);
}

void dp_bulk_decode_f32(dp_bulk_format format, const void *codes, size_t n,
                        const dp_bulk_options *options, float *x)
{
    decode_any(format, codes, n, options, false, x);
}

void dp_bulk_decode_bf16(dp_bulk_format format, const void *codes, size_t n,
                         const dp_bulk_options *options, dp_bf16 *x)
{
    decode_any(format, codes, n, options, true, x);
}
