/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target of the HDF5 reader: any bytes either load as tensors or give one error text.
 * Build with -DDIRECTP_FUZZ=ON and clang, run `LSAN_OPTIONS=suppressions=tests/fuzz/lsan.txt
 * fuzz_h5 -max_len=65536 NEW_FOLDER tests/fuzz/corpus`. HDF5 itself is not instrumented; the seeds
 * hold one file for each way of storing things.
 */
#include <stdlib.h>

#include "analysis/tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_error error = {""};
    dp_h5 file;
    dp_tensors tensors;
    if (size == 0 || !dp_h5_open_image(&file, "fuzz", data, size, &error)) {
        return 0;
    }
    file.limit = (uint64_t)1 << 24;
    const bool loaded = dp_tensors_read(&file, &tensors, &error);
    if (loaded == (error.text[0] != '\0')) {
        abort(); /* success has no error text, failure has one */
    }
    if (loaded) {
        dp_tensors_free(&tensors);
    }
    dp_h5_shape shape;
    void *codes = NULL;
    dp_error second = {""};
    if (dp_h5_read(&file, "/quantize/q_payload", DP_H5_U8, -1, &shape, &codes, &second)) {
        free(codes);
    }
    float *scales = NULL;
    size_t zeros = 0;
    if (dp_h5_read_scales(&file, "/quantize/q_global", -1, &shape, &scales, &zeros, &second)) {
        free(scales);
    }
    int64_t *order = NULL;
    if (dp_h5_read_integers(&file, "/inputs/key_order", 1, &shape, &order, &second)) {
        free(order);
    }
    if (H5Fget_obj_count(file.id, H5F_OBJ_ALL) > 1) {
        abort(); /* an HDF5 object was left open */
    }
    dp_h5_close(&file);
    return 0;
}
