/* SPDX-License-Identifier: MIT
 *
 * Parts of opening a dump: extents, scale layouts, and the launch its attributes describe.
 */
#ifndef DP_ANALYSIS_DUMP_OPEN_H
#define DP_ANALYSIS_DUMP_OPEN_H

#include "analysis/dump.h"

/* Which datasets are there, their extents, heads and windows; inputs when they are there. */
bool dp_dump_take_shapes(dp_dump *dump, dp_error *error);
/* How a dataset lies in the file, its view opened; and rows of it, undone. */
bool dp_dump_take_store(dp_dump *dump, dp_dump_id id, dp_error *error);
bool dp_dump_read_stored(const dp_dump *dump, dp_dump_id id, dp_dump_at at, size_t rows, void *data,
                         dp_error *error);
/* The attribute row_first of the datasets and of the root; afterwards the strips they make. */
bool dp_dump_take_windows(dp_dump *dump, dp_dump_id id, dp_error *error);
bool dp_dump_make_strips(dp_dump *dump, dp_error *error);
/* A scale tensor in another layout than linear, into memory. */
bool dp_dump_take_pages(dp_dump *dump, dp_dump_id id, const char *layout, dp_error *error);
/* Global scales and the key order. */
bool dp_dump_take_scales(dp_dump *dump, dp_error *error);
bool dp_dump_take_launch(dp_dump *dump, const dp_dump_overrides *overrides, dp_error *error);

#endif
