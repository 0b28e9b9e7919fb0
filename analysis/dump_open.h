/* SPDX-License-Identifier: MIT
 *
 * Parts of opening a dump: extents, scale layouts, and the launch its attributes describe.
 */
#ifndef DP_ANALYSIS_DUMP_OPEN_H
#define DP_ANALYSIS_DUMP_OPEN_H

#include "analysis/dump.h"

/* Which datasets are there, their extents, heads and windows; inputs when they are there. */
bool dp_dump_take_shapes(dp_dump *dump, dp_error *error);
/* A scale tensor in another layout than linear, into memory. */
bool dp_dump_take_pages(dp_dump *dump, dp_dump_id id, const char *layout, dp_error *error);
/* Global scales and the key order. */
bool dp_dump_take_scales(dp_dump *dump, dp_error *error);
bool dp_dump_take_launch(dp_dump *dump, const dp_dump_overrides *overrides, dp_error *error);

#endif
