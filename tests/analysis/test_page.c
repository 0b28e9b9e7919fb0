/* SPDX-License-Identifier: MIT
 *
 * The page that `directp report` writes: whole, alone, and with the figures of the other verbs.
 */
#include "scratch.h"

START_TEST(page_of_a_real_tensor)
{
    static dp_run run;
    static char text[65536];
    char path[512], line[1400], expected[64];
    (void)dp_source_path(path, sizeof path, "data/real/minilm_layer0.h5");
    (void)snprintf(line, sizeof line, "report %s -o %s", path, scratch("."));
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    (void)scratch_text(scratch("report.html"), text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "<svg"));
    ck_assert_ptr_nonnull(strstr(text, "</html>"));
    ck_assert_ptr_null(strstr(text, "http"));
    ck_assert_ptr_null(strstr(text, "src="));
    (void)snprintf(line, sizeof line, "attend %s --policy fast --epoch R --csv", path);
    run_directp(&run, line);
    const char *row = strstr(run.out, "fast,all,");
    ck_assert_ptr_nonnull(row);
    (void)snprintf(expected, sizeof expected, "<td>%.6f<td>", strtod(row + 9, NULL));
    ck_assert_msg(strstr(text, expected) != NULL, "no %s", expected);
    assert_refused("report nowhere.h5", "nowhere.h5");
    scratch_remove();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("page");
    TCase *tests = tcase_create("page");
    tcase_add_test(tests, page_of_a_real_tensor);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
