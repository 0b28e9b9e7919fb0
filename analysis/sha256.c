/* SPDX-License-Identifier: MIT */
#include "analysis/sha256.h"

#include <errno.h>
#include <stdio.h>

typedef struct {
    uint32_t h[8];
    uint8_t block[64];
    size_t used;
    uint64_t bytes;
} state;

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, unsigned n)
{
    return x >> n | x << (32u - n);
}

static void compress(state *s)
{
    uint32_t w[64];
    uint32_t v[8];
    memcpy(v, s->h, sizeof v);
    for (size_t i = 0; i < 16; i++) {
        w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 |
               (uint32_t)s->block[4 * i + 2] << 8 | (uint32_t)s->block[4 * i + 3];
    }
    for (size_t i = 16; i < 64; i++) {
        const uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        const uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    for (size_t i = 0; i < 64; i++) {
        const uint32_t e = turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25);
        const uint32_t t = v[7] + e + ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[i] + w[i];
        const uint32_t a = turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22);
        const uint32_t m = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t;
        v[0] = t + a + m;
    }
    for (size_t i = 0; i < 8; i++) {
        s->h[i] += v[i];
    }
}

static state start(void)
{
    return (state){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                         0x1f83d9ab, 0x5be0cd19}};
}

static void add(state *s, const uint8_t *data, size_t size)
{
    s->bytes += size;
    while (size > 0) {
        const size_t part = size < 64 - s->used ? size : 64 - s->used;
        memcpy(s->block + s->used, data, part);
        s->used += part;
        data += part;
        size -= part;
        if (s->used == 64) {
            compress(s);
            s->used = 0;
        }
    }
}

static void finish(state *s, char hex[65])
{
    static const uint8_t pad[64] = {0x80};
    uint8_t length[8];
    const uint64_t bits = s->bytes * 8;
    for (unsigned i = 0; i < 8; i++) {
        length[i] = (uint8_t)(bits >> (56u - 8u * i));
    }
    add(s, pad, s->used < 56 ? 56 - s->used : 120 - s->used);
    add(s, length, 8);
    for (size_t i = 0; i < 8; i++) {
        (void)snprintf(hex + 8 * i, 9, "%08x", s->h[i]);
    }
}

void dp_sha256(const void *data, size_t size, char hex[65])
{
    state s = start();
    add(&s, data, size);
    finish(&s, hex);
}

bool dp_sha256_file(const char *path, char hex[65], uint64_t *bytes, dp_error *error)
{
    uint8_t buffer[16384];
    state s = start();
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return dp_fail(error, "%s: cannot read: %s", path, strerror(errno));
    }
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, file)) > 0;) {
        add(&s, buffer, got);
    }
    const bool good = ferror(file) == 0;
    (void)fclose(file);
    *bytes = s.bytes;
    finish(&s, hex);
    return good || dp_fail(error, "%s: cannot read all of it", path);
}
