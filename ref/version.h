/* SPDX-License-Identifier: MIT */
#ifndef DP_REF_VERSION_H
#define DP_REF_VERSION_H

#include "formats/base.h"

DP_BEGIN_C
/* "0.1.0": the version every file the project writes records in its `producer` attribute. */
const char *dp_version(void);
DP_END_C

#endif
