/* SPDX-License-Identifier: MIT
 *
 * What the files of the HDF5 layer share.
 */
#ifndef DP_ANALYSIS_H5_INTERNAL_H
#define DP_ANALYSIS_H5_INTERNAL_H

#include "analysis/h5.h"

/* A number type as it is stored. */
typedef struct {
    dp_h5_type type; /* DP_H5_OTHER for integers of a size without a dp_h5_type, and non-numbers */
    bool integer;    /* an integer (or an enumeration of integers) without padding bits */
    bool is_signed;
    bool big_endian;
    size_t size; /* bytes */
} dp_h5_stored;

/* Classify a file type; never fails, unknown things are DP_H5_OTHER. */
dp_h5_stored dp_h5_classify(hid_t type);
/* "unsigned 8-bit integer", "8-bit float (4 exponent bits, 3 mantissa bits)", "string", ... */
void dp_h5_describe_type(hid_t type, char *text, size_t size);
/* Reverse the bytes of each element when the stored order is not the machine's. */
void dp_h5_to_native(void *data, size_t count, dp_h5_stored stored);
/* Element number i of native integers of the stored size. */
int64_t dp_h5_integer_at(const void *data, size_t i, dp_h5_stored stored);
/* Does an unsigned 64-bit value exceed int64_t? (It would come out negative.) */
bool dp_h5_integer_fits(const void *data, size_t i, dp_h5_stored stored);

/* Let a child process walk the file that open_file(context) opens; false, with an error, when HDF5
 * crashed or never came back. A file HDF5 refuses in good order passes: opening it says why. */
bool dp_h5_probe(const char *path, hid_t (*open_file)(void *), void *context, dp_error *error);

/* HDF5's own innermost complaint about the last failure, for the end of an error text. */
const char *dp_h5_detail(char text[160]);
/* Silence HDF5's automatic printing; called before anything else. */
void dp_h5_quiet(void);
/* False, with an error, when `path` does not lead to an object inside the file. */
bool dp_h5_check_path(const dp_h5 *file, const char *path, dp_error *error);
/* dims as "[4, 2048, 128]". */
const char *dp_h5_dims_text(int rank, const uint64_t *dims, char text[200]);

#endif
