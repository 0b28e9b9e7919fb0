/* SPDX-License-Identifier: MIT
 *
 * A user's program: finds the installed package and calls into both libraries.
 */
#include <stdio.h>

#include "formats/catalog.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "ref/version.h"

int main(void)
{
    dp_minifloat format;
    if (!dp_catalog_find("e2m1", &format) || dp_minifloat_max(format) != 6.0) {
        return 1;
    }
    const dp_e4m3 code = dp_e4m3_from_f32(464.0f, DP_ENCODE_PTX);
    (void)printf("directp %s: 464 is E4M3 0x%02X\n", dp_version(), code.bits);
    return code.bits == 0x7E ? 0 : 1;
}
