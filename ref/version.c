/* SPDX-License-Identifier: MIT */
#include "ref/version.h"

const char *dp_version(void)
{
    return DP_VERSION_TEXT;
}
