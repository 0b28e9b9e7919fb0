/* SPDX-License-Identifier: MIT
 *
 * write_presets_page FILE: the target presets_page writes formats/PRESETS.md with it.
 */
#include "presets_page.h"

int main(int argc, char **argv)
{
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (out == NULL) {
        (void)fprintf(stderr, "directp: write_presets_page: cannot write: name one file\n");
        return 2;
    }
    dp_write_presets_page(out);
    return fclose(out) == 0 ? 0 : 2;
}
