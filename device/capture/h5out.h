/* SPDX-License-Identifier: MIT
 *
 * The writing half of a capture file: groups, attributes, compressed integer datasets.
 * Every function returns false after recording an error, and does nothing once one is recorded.
 */
#ifndef DP_DEVICE_CAPTURE_H5OUT_H
#define DP_DEVICE_CAPTURE_H5OUT_H

#include "formats/error.h"

DP_BEGIN_C

typedef struct dp_h5out dp_h5out;

/* Create `path`.part. gzip level 1..9. NULL on error. */
dp_h5out *dp_h5out_open(const char *path, int level, dp_error *error);

/* Close and rename to `path`; on a recorded error remove the partial file instead. */
bool dp_h5out_close(dp_h5out *out);

/* Start the group /capture/NAME; later attributes and datasets go there. NULL = the root. */
bool dp_h5out_group(dp_h5out *out, const char *name);
bool dp_h5out_text(dp_h5out *out, const char *name, const char *value);
bool dp_h5out_int(dp_h5out *out, const char *name, int64_t value);

/* A dataset of `bytes`-wide (1, 2, 4) unsigned integers, shape [rows] (columns = 0) or
 * [rows, columns], chunked, shuffled and deflated. `axes` may be NULL. */
bool dp_h5out_uint(dp_h5out *out, const char *name, const char *axes, int bytes, size_t rows,
                   size_t columns, const void *data);

/* A text attribute of one dataset of the current group. */
bool dp_h5out_dataset_text(dp_h5out *out, const char *dataset, const char *name, const char *value);

DP_END_C

#endif
