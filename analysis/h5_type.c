/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "analysis/h5_internal.h"

size_t dp_h5_size(dp_h5_type type)
{
    static const size_t sizes[] = {1, 2, 4, 4, 8, 2, 4, 8, 0};
    return sizes[type];
}

const char *dp_h5_name(dp_h5_type type)
{
    static const char *const names[] = {
        "unsigned 8-bit integer", "unsigned 16-bit integer", "unsigned 32-bit integer",
        "signed 32-bit integer",  "signed 64-bit integer",   "16-bit IEEE float",
        "32-bit IEEE float",      "64-bit IEEE float",       "something else"};
    return names[type];
}

static dp_h5_type integer_type(size_t size, bool is_signed)
{
    switch (size) {
    case 1:
        return DP_H5_U8;
    case 2:
        return DP_H5_U16;
    case 4:
        return is_signed ? DP_H5_I32 : DP_H5_U32;
    case 8:
        return is_signed ? DP_H5_I64 : DP_H5_OTHER;
    default:
        return DP_H5_OTHER;
    }
}

/* IEEE 754 binary16, binary32, binary64 by their layout, or DP_H5_OTHER. */
static dp_h5_type float_type(hid_t type, size_t size)
{
    static const struct {
        size_t size, exponent_bits, mantissa_bits, bias;
        dp_h5_type type;
    } known[] = {
        {2, 5, 10, 15, DP_H5_F16}, {4, 8, 23, 127, DP_H5_F32}, {8, 11, 52, 1023, DP_H5_F64}};
    size_t sign = 0;
    size_t exponent_at = 0;
    size_t exponent_bits = 0;
    size_t mantissa_at = 0;
    size_t mantissa_bits = 0;
    if (H5Tget_fields(type, &sign, &exponent_at, &exponent_bits, &mantissa_at, &mantissa_bits) <
        0) {
        return DP_H5_OTHER;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (size == known[i].size && sign == 8 * size - 1 &&
            exponent_at == known[i].mantissa_bits && exponent_bits == known[i].exponent_bits &&
            mantissa_at == 0 && mantissa_bits == known[i].mantissa_bits &&
            H5Tget_ebias(type) == known[i].bias && H5Tget_norm(type) == H5T_NORM_IMPLIED) {
            return known[i].type;
        }
    }
    return DP_H5_OTHER;
}

dp_h5_stored dp_h5_classify(hid_t type)
{
    dp_h5_stored stored = {.type = DP_H5_OTHER, .size = H5Tget_size(type)};
    const H5T_class_t class = H5Tget_class(type);
    if (class == H5T_ENUM) {
        const hid_t base = H5Tget_super(type);
        if (base >= 0) {
            stored = dp_h5_classify(base);
            stored.type = DP_H5_OTHER;
            (void)H5Tclose(base);
        }
        return stored;
    }
    if (class != H5T_INTEGER && class != H5T_FLOAT) {
        return stored;
    }
    const H5T_order_t order = H5Tget_order(type);
    if ((order != H5T_ORDER_LE && order != H5T_ORDER_BE) || H5Tget_offset(type) != 0 ||
        H5Tget_precision(type) != 8 * stored.size) {
        return stored;
    }
    stored.big_endian = order == H5T_ORDER_BE;
    if (class == H5T_FLOAT) {
        stored.type = float_type(type, stored.size);
        return stored;
    }
    stored.is_signed = H5Tget_sign(type) == H5T_SGN_2;
    stored.integer = stored.size == 1 || stored.size == 2 || stored.size == 4 || stored.size == 8;
    stored.type = integer_type(stored.size, stored.is_signed);
    return stored;
}

static void describe_float(hid_t type, char *text, size_t size)
{
    size_t unused = 0;
    size_t exponent_bits = 0;
    size_t mantissa_bits = 0;
    (void)H5Tget_fields(type, &unused, &unused, &exponent_bits, &unused, &mantissa_bits);
    (void)snprintf(text, size, "%zu-bit float (%zu exponent bits, %zu mantissa bits, bias %zu)",
                   8 * H5Tget_size(type), exponent_bits, mantissa_bits, H5Tget_ebias(type));
}

void dp_h5_describe_type(hid_t type, char *text, size_t size)
{
    static const char *const classes[] = {"integer",   "float",       "time",       "string",
                                          "bit field", "opaque type", "compound",   "reference",
                                          "enum",      "vlen list",   "array of it"};
    const H5T_class_t class = H5Tget_class(type);
    const dp_h5_stored stored = dp_h5_classify(type);
    if (class == H5T_FLOAT) {
        if (stored.type == DP_H5_OTHER) {
            describe_float(type, text, size);
        } else {
            (void)snprintf(text, size, "%s", dp_h5_name(stored.type));
        }
    } else if (class == H5T_INTEGER && stored.integer) {
        (void)snprintf(text, size, "%s %zu-bit integer", stored.is_signed ? "signed" : "unsigned",
                       8 * stored.size);
    } else if (class >= 0 && class < H5T_NCLASSES &&
               (size_t) class < sizeof classes / sizeof classes[0]) {
        (void)snprintf(text, size, "%zu-byte %s", stored.size, classes[class]);
    } else {
        (void)snprintf(text, size, "unknown type");
    }
}

static bool machine_is_big_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

void dp_h5_to_native(void *data, size_t count, dp_h5_stored stored)
{
    if (stored.big_endian == machine_is_big_endian() || stored.size < 2) {
        return;
    }
    unsigned char *bytes = data;
    for (size_t i = 0; i < count; i++, bytes += stored.size) {
        for (size_t low = 0, high = stored.size - 1; low < high; low++, high--) {
            const unsigned char swapped = bytes[low];
            bytes[low] = bytes[high];
            bytes[high] = swapped;
        }
    }
}

static uint64_t bits_at(const void *data, size_t i, size_t size)
{
    const unsigned char *at = (const unsigned char *)data + i * size;
    uint8_t b8;
    uint16_t b16;
    uint32_t b32;
    uint64_t b64;
    switch (size) {
    case 1:
        memcpy(&b8, at, 1);
        return b8;
    case 2:
        memcpy(&b16, at, 2);
        return b16;
    case 4:
        memcpy(&b32, at, 4);
        return b32;
    default:
        memcpy(&b64, at, 8);
        return b64;
    }
}

int64_t dp_h5_integer_at(const void *data, size_t i, dp_h5_stored stored)
{
    uint64_t bits = bits_at(data, i, stored.size);
    const unsigned width = 8u * (unsigned)stored.size;
    if (stored.is_signed && width < 64 && (bits >> (width - 1)) != 0) {
        bits |= ~(uint64_t)0 << width;
    }
    int64_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

bool dp_h5_integer_fits(const void *data, size_t i, dp_h5_stored stored)
{
    return stored.is_signed || dp_h5_integer_at(data, i, stored) >= 0;
}
