/* SPDX-License-Identifier: MIT
 *
 * Scale layouts [L1]-[L8]: published offsets, bijection and padding by exhaustion over small
 * shapes, whole-buffer round trips for odd sizes.
 */
#include <stdlib.h>

#include "formats/layout.h"
#include "support.h"

static const dp_layout kinds[] = {DP_LAYOUT_LINEAR, DP_LAYOUT_128X4, DP_LAYOUT_SM120,
                                  DP_LAYOUT_128X4_SWAPPED};
enum { KINDS = 4 };

/* The offsets of the public report, 256 rows x 8 columns, both forms. */
START_TEST(case_65_swizzle_offsets)
{
    static const struct {
        size_t row, col, offset, swapped;
    } golden[] = {{1, 0, 16, 4},      {32, 0, 4, 128},      {33, 1, 21, 133},
                  {127, 3, 511, 511}, {128, 0, 1024, 1024}, {129, 5, 1553, 1541}};
    const dp_layout_map right = {DP_LAYOUT_128X4, 256, 8};
    const dp_layout_map wrong = {DP_LAYOUT_128X4_SWAPPED, 256, 8};
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        ck_assert_uint_eq(dp_layout_offset(right, golden[i].row, golden[i].col), golden[i].offset);
        ck_assert_uint_eq(dp_layout_offset(wrong, golden[i].row, golden[i].col), golden[i].swapped);
    }
    const dp_layout_map padded = {DP_LAYOUT_128X4, 130, 48 / 16};
    ck_assert_uint_eq(dp_layout_bytes(padded), 256 * 4);
}
END_TEST

/* Second derivation of [L2] and [L3]: CuTe shapes and strides, walked from the fastest mode. */
START_TEST(atoms_equal_their_strides)
{
    dp_tally tally = {0};
    const dp_layout_map big = {DP_LAYOUT_128X4, 384, 12};
    for (size_t tile = 0; tile < 3; tile++) {
        for (size_t k_tile = 0; k_tile < 3; k_tile++) {
            for (size_t a = 0; a < 32; a++) { /* ((32,4),4) : ((16,4),1), 512 bytes an atom */
                for (size_t b = 0; b < 4; b++) {
                    for (size_t c = 0; c < 4; c++) {
                        const size_t want = (tile * 3 + k_tile) * 512 + a * 16 + b * 4 + c;
                        const size_t got =
                            dp_layout_offset(big, tile * 128 + b * 32 + a, k_tile * 4 + c);
                        if (!dp_tally_check(&tally, got == want)) {
                            dp_tally_note(&tally, "128x4 %zu %zu %zu: %zu not %zu", a, b, c, got,
                                          want);
                        }
                    }
                }
            }
        }
    }
    const dp_layout_map sm120 = {DP_LAYOUT_SM120, 192, 8};
    for (size_t tile = 0; tile < 3; tile++) {
        for (size_t kb = 0; kb < 8; kb++) {
            for (size_t a = 0; a < 16; a++) {
                for (size_t b = 0; b < 4; b++) {
                    const size_t want = tile * 64 * 8 + kb / 4 * 256 + a * 16 + b * 4 + kb % 4;
                    const size_t got = dp_layout_offset(sm120, tile * 64 + b * 16 + a, kb);
                    if (!dp_tally_check(&tally, got == want)) {
                        dp_tally_note(&tally, "sm120 %zu %zu %zu: %zu not %zu", a, b, kb, got,
                                      want);
                    }
                }
            }
        }
    }
    dp_assert_tally(tally, 9 * 512 + 3 * 512);
}
END_TEST

/* Every byte of the buffer is either one (row, col) or padding, and offset and coord are
 * inverse. */
static void check_bijection(dp_tally *tally, dp_layout_map map)
{
    const size_t bytes = dp_layout_bytes(map);
    size_t live = 0;
    for (size_t offset = 0; offset < bytes; offset++) {
        size_t row = 0;
        size_t col = 0;
        const bool real = dp_layout_coord(map, offset, &row, &col);
        live += real ? 1u : 0u;
        const bool inside = row < dp_layout_padded_rows(map) && col < dp_layout_padded_cols(map);
        if (!dp_tally_check(tally, inside && dp_layout_offset(map, row, col) == offset &&
                                       real == (row < map.rows && col < map.cols))) {
            dp_tally_note(tally, "%s %zux%zu offset %zu -> (%zu,%zu)", dp_layout_name(map.kind),
                          map.rows, map.cols, offset, row, col);
        }
    }
    if (!dp_tally_check(tally, live == map.rows * map.cols)) {
        dp_tally_note(tally, "%s %zux%zu: %zu live bytes", dp_layout_name(map.kind), map.rows,
                      map.cols, live);
    }
}

START_TEST(layouts_are_bijections)
{
    dp_tally tally = {0};
    for (int k = 0; k < KINDS; k++) {
        for (size_t rows = 1; rows <= 140; rows++) {
            for (size_t cols = 1; cols <= 9; cols++) {
                const dp_layout_map map = {kinds[k], rows, cols};
                check_bijection(&tally, map);
            }
        }
        const dp_layout_map odd = {kinds[k], 389, 37};
        check_bijection(&tally, odd);
    }
    dp_assert_tally(tally, 1000000);
}
END_TEST

START_TEST(buffers_survive_the_round_trip)
{
    static const size_t rows[] = {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 130, 257};
    static const size_t cols[] = {1, 2, 3, 4, 5, 7, 8, 13};
    dp_rng rng = {65};
    dp_tally tally = {0};
    for (int k = 0; k < KINDS; k++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            for (size_t j = 0; j < sizeof cols / sizeof cols[0]; j++) {
                const dp_layout_map map = {kinds[k], rows[i], cols[j]};
                const size_t n = rows[i] * cols[j];
                uint8_t *linear = malloc(n);
                uint8_t *back = malloc(n);
                uint8_t *stored = malloc(dp_layout_bytes(map));
                ck_assert(linear && back && stored);
                for (size_t e = 0; e < n; e++) {
                    linear[e] = (uint8_t)(1u + dp_rng_below(&rng, 255));
                }
                memset(stored, 0xAA, dp_layout_bytes(map));
                dp_layout_swizzle(map, linear, stored);
                dp_layout_unswizzle(map, stored, back);
                size_t zeros = 0;
                for (size_t e = 0; e < dp_layout_bytes(map); e++) {
                    zeros += stored[e] == 0 ? 1u : 0u;
                }
                if (!dp_tally_check(&tally, memcmp(linear, back, n) == 0 &&
                                                zeros == dp_layout_bytes(map) - n &&
                                                dp_layout_dirty_padding(map, stored) == 0)) {
                    dp_tally_note(&tally, "%s %zux%zu", dp_layout_name(kinds[k]), rows[i], cols[j]);
                }
                free(linear);
                free(back);
                free(stored);
            }
        }
    }
    dp_assert_tally(tally, KINDS * 96);
}
END_TEST

/* Reading a padded buffer as if it were unpadded (the second half of case 65) must be visible. */
START_TEST(case_65_wrong_layout_shows)
{
    uint8_t linear[130 * 3];
    uint8_t back[130 * 3];
    uint8_t stored[256 * 4];
    for (size_t i = 0; i < sizeof linear; i++) {
        linear[i] = (uint8_t)(1 + i % 251);
    }
    const dp_layout_map map = {DP_LAYOUT_128X4, 130, 3};
    const dp_layout_map swapped = {DP_LAYOUT_128X4_SWAPPED, 130, 3};
    dp_layout_swizzle(map, linear, stored);
    dp_layout_unswizzle(swapped, stored, back);
    size_t same = 0;
    for (size_t i = 0; i < sizeof linear; i++) {
        same += linear[i] == back[i] ? 1u : 0u;
    }
    ck_assert_uint_lt(same, sizeof linear / 4);
    dp_layout_swizzle(swapped, linear, stored);
    dp_layout_unswizzle(swapped, stored, back);
    ck_assert_mem_eq(linear, back, sizeof linear);
    stored[dp_layout_bytes(map) - 1] = 7;
    ck_assert_uint_gt(dp_layout_dirty_padding(map, stored), 0);
}
END_TEST

START_TEST(pages_are_bijections)
{
    dp_tally tally = {0};
    for (int kind = DP_PAGES_Q; kind <= DP_PAGES_DUDA; kind++) {
        for (size_t tokens = 1; tokens <= 300; tokens += tokens < 8 ? 1 : 29) {
            const dp_pages pages = {(dp_pages_kind)kind, 2, 3, tokens};
            size_t live = 0;
            for (size_t offset = 0; offset < dp_pages_bytes(pages); offset++) {
                dp_pages_at at;
                const bool real = dp_pages_coord(pages, offset, &at);
                live += real ? 1u : 0u;
                if (real && !dp_tally_check(&tally, dp_pages_offset(pages, at) == offset &&
                                                        at.batch < 2 && at.head < 3)) {
                    dp_tally_note(&tally, "kind %d tokens %zu offset %zu", kind, tokens, offset);
                }
            }
            const size_t blocks = kind == DP_PAGES_V ? 128 * ((tokens + 31) / 32) : 8 * tokens;
            if (!dp_tally_check(&tally, live == 6 * blocks * dp_pages_copies(pages.kind))) {
                dp_tally_note(&tally, "kind %d tokens %zu: %zu live", kind, tokens, live);
            }
        }
    }
    dp_assert_tally(tally, 100000);
}
END_TEST

/* The page formulas written out with the letters of their sources. */
START_TEST(pages_match_their_formulas)
{
    dp_tally tally = {0};
    const size_t H = 5;
    const size_t S = 640;
    for (size_t b = 0; b < 2; b++) {
        for (size_t h = 0; h < H; h++) {
            for (size_t t = 0; t < S; t += 7) {
                for (size_t c = 0; c < 8; c++) {
                    const size_t r = t % 128;
                    const size_t column = 2 * h + c / 4;
                    const size_t in = r % 32 * 16 + r / 32 * 4 + c % 4;
                    const size_t in64 = t % 32 * 16 + t % 64 / 32 * 4 + c % 4;
                    const dp_pages_at at = {b, h, t, c, 0};
                    const dp_pages_at at1 = {b, h, t, c, 1};
                    const dp_pages q = {DP_PAGES_Q, 2, H, S};
                    const dp_pages k = {DP_PAGES_K_DUPLICATED, 2, H, S};
                    const dp_pages k64 = {DP_PAGES_K64, 2, H, S};
                    const dp_pages duda = {DP_PAGES_DUDA, 2, H, S};
                    const size_t n = t / 128;
                    const bool ok =
                        dp_pages_offset(q, at) ==
                            ((b * (S / 128) + n) * 2 * H + column) * 512 + in &&
                        dp_pages_offset(k, at) ==
                            ((b * 2 * (S / 128) + 2 * n) * 2 * H + column) * 512 + in &&
                        dp_pages_offset(k, at1) ==
                            ((b * 2 * (S / 128) + 2 * n + 1) * 2 * H + column) * 512 + in &&
                        dp_pages_offset(k64, at) ==
                            ((b * (S / 64) + t / 64) * 2 * H + column) * 512 + in64 &&
                        /* (32,4,1,4,2,heads) : (16,4,1024,1,512,1024) */
                        dp_pages_offset(duda, at) == (b * (S / 128) + n) * H * 1024 + r % 32 * 16 +
                                                         r / 32 * 4 + c % 4 + c / 4 * 512 +
                                                         h * 1024;
                    if (!dp_tally_check(&tally, ok)) {
                        dp_tally_note(&tally, "b %zu h %zu t %zu c %zu", b, h, t, c);
                    }
                }
            }
            for (size_t d = 0; d < 128; d++) {
                for (size_t block = 0; block < S / 32; block++) {
                    const dp_pages v = {DP_PAGES_V, 2, H, S};
                    const dp_pages_at at = {b, h, d, block, 0};
                    const size_t want = ((b * (S / 128) + block / 4) * H + h) * 512 + d % 32 * 16 +
                                        d / 32 * 4 + block % 4;
                    if (!dp_tally_check(&tally, dp_pages_offset(v, at) == want)) {
                        dp_tally_note(&tally, "V d %zu block %zu", d, block);
                    }
                }
            }
        }
    }
    dp_assert_tally(tally, 20000);
}
END_TEST

START_TEST(sage3_row_order_inverts)
{
    bool seen[64] = {false};
    for (size_t r = 0; r < 64; r++) {
        const size_t token = dp_sage3_k_token(r);
        /* bit form of the same map */
        ck_assert_uint_eq(token, (r & ~(size_t)31) | (r & 1) | ((r & 24) >> 2) | ((r & 6) << 2));
        ck_assert_uint_eq(dp_sage3_k_stored_row(token), r);
        ck_assert(!seen[token]);
        seen[token] = true;
    }
}
END_TEST

START_TEST(nibbles_swap_back)
{
    uint8_t bytes[256];
    for (int i = 0; i < 256; i++) {
        bytes[i] = (uint8_t)i;
    }
    dp_nibble_swap(bytes, 256);
    ck_assert_uint_eq(bytes[0x72], 0x27);
    dp_nibble_swap(bytes, 256);
    for (int i = 0; i < 256; i++) {
        ck_assert_uint_eq(bytes[i], (unsigned)i);
    }
}
END_TEST

START_TEST(names_are_found)
{
    for (int k = 0; k < KINDS; k++) {
        dp_layout found = DP_LAYOUT_LINEAR;
        ck_assert(dp_layout_find(dp_layout_name(kinds[k]), &found));
        ck_assert_int_eq((int)found, (int)kinds[k]);
    }
    dp_layout untouched = DP_LAYOUT_SM120;
    ck_assert(!dp_layout_find("128x5", &untouched));
    ck_assert_int_eq((int)untouched, (int)DP_LAYOUT_SM120);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layout");
    TCase *tests = tcase_create("layout");
    tcase_add_test(tests, case_65_swizzle_offsets);
    tcase_add_test(tests, case_65_wrong_layout_shows);
    tcase_add_test(tests, atoms_equal_their_strides);
    tcase_add_test(tests, layouts_are_bijections);
    tcase_add_test(tests, buffers_survive_the_round_trip);
    tcase_add_test(tests, pages_are_bijections);
    tcase_add_test(tests, pages_match_their_formulas);
    tcase_add_test(tests, sage3_row_order_inverts);
    tcase_add_test(tests, nibbles_swap_back);
    tcase_add_test(tests, names_are_found);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
