/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "formats/parallel.h"
#include "support.h"

enum { ITEMS = 10007 };

static void add_one(void *context, size_t first, size_t last, int thread)
{
    unsigned char *touched = context;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        touched[i]++;
    }
}

START_TEST(each_item_is_done_once)
{
    unsigned char *touched = malloc(ITEMS);
    ck_assert_ptr_nonnull(touched);
    for (int threads = 0; threads < 9; threads++) {
        for (size_t grain = 0; grain < 3 * ITEMS; grain = grain * 7 + 1) {
            memset(touched, 0, ITEMS);
            dp_parallel_for(threads, ITEMS, grain, add_one, touched);
            dp_tally tally = {0};
            for (size_t i = 0; i < ITEMS; i++) {
                if (!dp_tally_check(&tally, touched[i] == 1)) {
                    dp_tally_note(&tally, "item %zu done %d times", i, touched[i]);
                }
            }
            dp_assert_tally(tally, ITEMS);
        }
    }
    free(touched);
}
END_TEST

START_TEST(nothing_to_do_calls_nothing)
{
    dp_parallel_for(4, 0, 1, add_one, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parallel");
    TCase *tests = tcase_create("parallel");
    tcase_add_test(tests, each_item_is_done_once);
    tcase_add_test(tests, nothing_to_do_calls_nothing);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
