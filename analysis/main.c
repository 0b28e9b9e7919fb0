/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "ref/version.h"

int main(void)
{
    printf("directp %s\n", dp_version());
    return 0;
}
