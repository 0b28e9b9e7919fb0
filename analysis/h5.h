/* SPDX-License-Identifier: MIT
 *
 * HDF5 files of the project: one file is one case. Reading trusts nothing: every type, rank, size
 * and attribute is checked before a byte is used. Codes never pass through HDF5's own number
 * conversion, which misreads small floats and clamps integers: values are read in the type they are
 * stored in and decoded here. HDF5 is used from the main thread only.
 */
#ifndef DP_ANALYSIS_H5_H
#define DP_ANALYSIS_H5_H

#include <hdf5.h>

#include "analysis/output.h"

enum { DP_H5_RANK = 8 };

/* Element types, as they lie in memory (native byte order). */
typedef enum {
    DP_H5_U8,  /* codes, scale bytes; a signed file type of the same size is taken as its bits */
    DP_H5_U16, /* bf16 or f16 bits                                                             */
    DP_H5_U32, /* f32 bits                                                                     */
    DP_H5_I32,
    DP_H5_I64,
    DP_H5_F16, /* in the file IEEE binary16, in memory uint16_t bits                           */
    DP_H5_F32,
    DP_H5_F64,
    DP_H5_OTHER /* reported by dp_h5_describe only                                             */
} dp_h5_type;

size_t dp_h5_size(dp_h5_type type);      /* bytes of an element, 0 for DP_H5_OTHER */
const char *dp_h5_name(dp_h5_type type); /* "unsigned 8-bit integer" */

typedef struct {
    int rank; /* 0 .. DP_H5_RANK */
    uint64_t dims[DP_H5_RANK];
    size_t count; /* product of dims, cannot overflow */
} dp_h5_shape;

/* ---- Reading ---- */

typedef struct {
    hid_t id;
    char path[DP_PATH_SIZE];
    uint64_t bytes; /* size of the file */
    uint64_t limit; /* most bytes one dataset may take in memory */
} dp_h5;

#define DP_H5_DEFAULT_LIMIT ((uint64_t)16 << 30)

/* Open for reading; nothing but a complete HDF5 file is accepted. */
bool dp_h5_open(dp_h5 *file, const char *path, dp_error *error);
/* Open a file that lies in memory (size bytes, copied); `name` stands in error texts. */
bool dp_h5_open_image(dp_h5 *file, const char *name, const void *image, size_t size,
                      dp_error *error);
void dp_h5_close(dp_h5 *file);

/* Is there an object of this path ("/inputs/q")? Links that lead out of the file do not count. */
bool dp_h5_exists(const dp_h5 *file, const char *path);
/* True where the path is absent or holds something; an error where a link leads nowhere or out of
 * the file, which is no absence. */
bool dp_h5_leads(const dp_h5 *file, const char *path, dp_error *error);
/* Type and shape of a dataset. */
bool dp_h5_describe(const dp_h5 *file, const char *path, dp_h5_type *type, dp_h5_shape *shape,
                    dp_error *error);
/* Read a whole dataset of exactly this element type (any byte order, chunking, filter) and rank
 * (-1: any) into memory that the caller frees. The whole of it must be stored in the file: extents
 * beyond what was written, or beyond file->limit, are errors. */
bool dp_h5_read(const dp_h5 *file, const char *path, dp_h5_type type, int rank, dp_h5_shape *shape,
                void **data, dp_error *error);
/* The same for plain numbers: integers of any width, widened. */
bool dp_h5_read_integers(const dp_h5 *file, const char *path, int rank, dp_h5_shape *shape,
                         int64_t **data, dp_error *error);
/* f32 scales such as q_global: every one finite and not negative, else an error that names the
 * index. *zeros counts scales of exactly 0, which mean "no data" and must never be inverted. */
bool dp_h5_read_scales(const dp_h5 *file, const char *path, int rank, dp_h5_shape *shape,
                       float **data, size_t *zeros, dp_error *error);

/* A dataset that is read in boxes. What dp_h5_read checks is checked when it is opened. */
typedef struct {
    hid_t id, type;
    dp_h5_shape shape;
    size_t size; /* bytes of an element */
    bool big_endian;
    const dp_h5 *file;
    const char *path;
} dp_h5_view;

/* path must outlive the view. */
bool dp_h5_view_open(dp_h5_view *view, const dp_h5 *file, const char *path, dp_h5_type type,
                     dp_error *error);
/* The box of `count` elements an axis from `start`; data holds their product. */
bool dp_h5_view_read(const dp_h5_view *view, const uint64_t *start, const uint64_t *count,
                     void *data, dp_error *error);
void dp_h5_view_close(dp_h5_view *view);

/* Attributes of an object ("/" for the root). */
bool dp_h5_has_attribute(const dp_h5 *file, const char *object, const char *name);
/* Text: fixed or variable length, ASCII or UTF-8, scalar or one element. The caller frees it. */
bool dp_h5_text(const dp_h5 *file, const char *object, const char *name, char **text,
                dp_error *error);
/* One integer or boolean of any width; one real number of any IEEE width or an integer. */
bool dp_h5_i64(const dp_h5 *file, const char *object, const char *name, int64_t *value,
               dp_error *error);
bool dp_h5_f64(const dp_h5 *file, const char *object, const char *name, double *value,
               dp_error *error);
/* A list of integers, at most 65536; the caller frees it. */
bool dp_h5_i64_list(const dp_h5 *file, const char *object, const char *name, int64_t **values,
                    size_t *count, dp_error *error);
/* schema is 1 and kind is one of "one|two"; *kind (may be NULL) is freed by the caller. */
bool dp_h5_check_root(const dp_h5 *file, const char *kinds, char **kind, dp_error *error);
/* The `format` attribute of a dataset is one of "one|two". */
bool dp_h5_check_format(const dp_h5 *file, const char *path, const char *formats, dp_error *error);

/* ---- Writing ---- */

typedef struct {
    hid_t id;
    dp_output output;
    int deflate; /* 0 (plain) to 9: shuffle and gzip what is written from now on */
} dp_h5_writer;

/* What every dataset says about itself; NULL or 0 leaves an attribute out. */
typedef struct {
    const char *format; /* "e2m1", "ue4m3", "bf16", "f32" */
    const char *axes;   /* "batch,head,seq,dim" */
    const char *layout; /* "linear", "atom128x4" */
    int64_t block;      /* elements a scale covers */
} dp_h5_labels;

/* Start a file with schema, kind and producer. The target is replaced by dp_h5_commit only, and may
 * not be one of the inputs. After a failure of any writing function the caller still calls
 * dp_h5_abandon (harmless after commit). */
bool dp_h5_create(dp_h5_writer *writer, const char *path, const char *kind,
                  const char *const *inputs, size_t input_count, dp_error *error);
/* Write a whole dataset, little-endian; groups on its path are made. */
bool dp_h5_put(dp_h5_writer *writer, const char *path, dp_h5_type type, int rank,
               const uint64_t *dims, const void *data, const dp_h5_labels *labels, dp_error *error);
/* A dataset written in parts: reserve it whole, then put boxes of it, in any order. start and count
 * have `rank` entries; data is the box, contiguous. What is never put reads as 0. */
bool dp_h5_reserve(dp_h5_writer *writer, const char *path, dp_h5_type type, int rank,
                   const uint64_t *dims, const dp_h5_labels *labels, dp_error *error);
bool dp_h5_put_part(dp_h5_writer *writer, const char *path, dp_h5_type type, int rank,
                    const uint64_t *start, const uint64_t *count, const void *data,
                    dp_error *error);
/* Attributes of an object that exists ("/" for the root). */
bool dp_h5_put_text(dp_h5_writer *writer, const char *object, const char *name, const char *text,
                    dp_error *error);
bool dp_h5_put_i64(dp_h5_writer *writer, const char *object, const char *name, int64_t value,
                   dp_error *error);
bool dp_h5_put_f64(dp_h5_writer *writer, const char *object, const char *name, double value,
                   dp_error *error);
bool dp_h5_put_i64_list(dp_h5_writer *writer, const char *object, const char *name,
                        const int64_t *values, size_t count, dp_error *error);
bool dp_h5_commit(dp_h5_writer *writer, dp_error *error);
void dp_h5_abandon(dp_h5_writer *writer);

#endif
