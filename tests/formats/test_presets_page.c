/* SPDX-License-Identifier: MIT
 *
 * The committed formats/PRESETS.md is what the presets do [P4].
 */
#include <stdlib.h>

#include "presets_page.h"
#include "support.h"

static char *whole(FILE *file)
{
    enum { LIMIT = 1 << 20 };
    char *text = calloc(1, LIMIT);
    ck_assert_ptr_nonnull(text);
    rewind(file);
    ck_assert_uint_lt(fread(text, 1, LIMIT, file), LIMIT);
    return text;
}

START_TEST(the_page_is_up_to_date)
{
    char path[1024];
    FILE *committed = fopen(dp_source_path(path, sizeof path, "formats/PRESETS.md"), "r");
    ck_assert_msg(committed != NULL, "%s: missing: build the target presets_page", path);
    FILE *generated = tmpfile();
    ck_assert_ptr_nonnull(generated);
    dp_write_presets_page(generated);
    char *want = whole(generated);
    char *have = whole(committed);
    size_t at = 0;
    while (want[at] != '\0' && want[at] == have[at]) {
        at++;
    }
    ck_assert_msg(want[at] == have[at],
                  "PRESETS.md differs at byte %zu (\"%.40s\" is now \"%.40s\"): build the target "
                  "presets_page and read the change",
                  at, have + at, want + at);
    free(want);
    free(have);
    (void)fclose(generated);
    (void)fclose(committed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("presets_page");
    TCase *tests = tcase_create("presets_page");
    tcase_add_test(tests, the_page_is_up_to_date);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
