/* SPDX-License-Identifier: MIT
 *
 * The page formats/PRESETS.md: the same small blocks through every preset. Written by the target
 * presets_page, compared with the committed page by test_presets_page.
 */
#ifndef DP_TESTS_PRESETS_PAGE_H
#define DP_TESTS_PRESETS_PAGE_H

#include <stdio.h>

void dp_write_presets_page(FILE *out);

#endif
