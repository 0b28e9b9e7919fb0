/* SPDX-License-Identifier: MIT
 *
 * Damaged files, run through the command: the seeds of tests/fuzz, and seeds with bytes changed or
 * cut off by a generator of fixed seed. Each run ends with exit status 0 (1 for NaN scales) or with
 * 2 and one line of error; nothing crashes, hangs or leaves a file behind.
 */
#include <check.h>
#include <dirent.h>

#include "scratch.h"

enum { MOST_BYTES = 1 << 17 };

static void run_on(const char *path, dp_tally *tally, const char *what)
{
    static dp_run run;
    char line[1200];
    (void)snprintf(line, sizeof line, "quantize '%s' --format e4m3 --threads 1 -o '%s'", path,
                   scratch("result.h5"));
    run_directp(&run, line);
    const char *end = strchr(run.err, '\n');
    const bool refused = run.status == 2 && strncmp(run.err, "directp: ", 9) == 0 && end != NULL &&
                         end[1] == '\0' && run.out[0] == '\0';
    const bool served = (run.status == 0 || run.status == 1) && run.out[0] != '\0';
    if (!dp_tally_check(tally, refused || served)) {
        dp_tally_note(tally, "%s: status %d, error '%.200s'", what, run.status, run.err);
    }
}

static size_t load(const char *path, unsigned char *bytes)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    const size_t size = fread(bytes, 1, MOST_BYTES, file);
    (void)fclose(file);
    return size;
}

static void store(const char *path, const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert(file != NULL && fwrite(bytes, 1, size, file) == size);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(seeds)
{
    char folder[512];
    dp_tally tally = {0};
    (void)dp_source_path(folder, sizeof folder, "tests/fuzz/corpus");
    DIR *open = opendir(folder);
    ck_assert_ptr_nonnull(open);
    for (struct dirent *entry; (entry = readdir(open)) != NULL;) {
        char path[1024];
        if (entry->d_name[0] != '.') {
            (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            run_on(path, &tally, entry->d_name);
        }
    }
    (void)closedir(open);
    dp_assert_tally(tally, 8);
}
END_TEST

/* One to eight bytes replaced: half of them in the first 2 KiB, where the metadata are dense. */
START_TEST(changed_bytes)
{
    static const char *const names[] = {"bf16_plain.h5", "f32_gzip.h5", "bf16_latest_gzip.h5"};
    static unsigned char bytes[MOST_BYTES];
    dp_rng rng = {20261129};
    dp_tally tally = {0};
    for (int i = 0; i < 90; i++) {
        char relative[128];
        char source[512];
        char what[128];
        (void)snprintf(relative, sizeof relative, "tests/fuzz/corpus/%s", names[i % 3]);
        const size_t size = load(dp_source_path(source, sizeof source, relative), bytes);
        const uint32_t changes = 1 + dp_rng_below(&rng, 8);
        for (uint32_t j = 0; j < changes; j++) {
            const uint32_t room = dp_rng_below(&rng, 2) == 0 ? 2048u : (uint32_t)size;
            const uint32_t at = dp_rng_below(&rng, room);
            static const unsigned char favourites[] = {0x00, 0x01, 0x7F, 0x80, 0xFF};
            bytes[at] = dp_rng_below(&rng, 2) == 0 ? favourites[dp_rng_below(&rng, 5)]
                                                   : (unsigned char)dp_rng_u32(&rng);
        }
        store(scratch("damaged.h5"), bytes, size);
        (void)snprintf(what, sizeof what, "%s, change %d of seed 20261129", names[i % 3], i);
        run_on(scratch("damaged.h5"), &tally, what);
    }
    dp_assert_tally(tally, 90);
}
END_TEST

START_TEST(cut_files)
{
    static unsigned char bytes[MOST_BYTES];
    char source[512];
    dp_tally tally = {0};
    const size_t size =
        load(dp_source_path(source, sizeof source, "tests/fuzz/corpus/bf16_plain.h5"), bytes);
    for (int i = 0; i < 24; i++) {
        char what[64];
        const size_t kept = i < 12 ? (size_t)1 << i : size - (size_t)(1 << (i - 12));
        (void)snprintf(what, sizeof what, "cut to %zu of %zu bytes", kept, size);
        store(scratch("damaged.h5"), bytes, kept < size ? kept : size);
        run_on(scratch("damaged.h5"), &tally, what);
    }
    dp_assert_tally(tally, 24);
    ck_assert_int_eq(scratch_count(".tmp"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("damaged");
    TCase *cases = tcase_create("damaged");
    tcase_add_test(cases, seeds);
    tcase_add_test(cases, changed_bytes);
    tcase_add_test(cases, cut_files);
    suite_add_tcase(suite, cases);
    const int status = dp_run_suite(suite);
    scratch_remove();
    return status;
}
