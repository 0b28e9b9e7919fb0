/* SPDX-License-Identifier: MIT
 *
 * Where the scale of (row, block) lies in a buffer: pure index functions, each with its inverse.
 * A row is what a block runs along the columns of (a token of Q or K, a head-dim index of V); a
 * column is the number of the block in its row. Rules L1.. of FORMATS.md; the numbers stand in
 * brackets.
 */
#ifndef DP_FORMATS_LAYOUT_H
#define DP_FORMATS_LAYOUT_H

#include "formats/base.h"

DP_BEGIN_C

/* Order of the scale bytes of one matrix [L1]. */
typedef enum {
    DP_LAYOUT_LINEAR,       /* row major, no padding                                            */
    DP_LAYOUT_128X4,        /* tcgen05, cuBLAS, CUTLASS: 512-byte atoms of 128 rows x 4 [L2]    */
    DP_LAYOUT_SM120,        /* 256-byte atoms of 64 rows x 4, 16-row interleave [L3]            */
    DP_LAYOUT_128X4_SWAPPED /* wrong on purpose: 32 and 4 exchanged, so row major in the atom [L4]
                             */
} dp_layout;

/* A matrix of scales and its order. */
typedef struct {
    dp_layout kind;
    size_t rows; /* 1 .. */
    size_t cols; /* blocks a row, 1 .. */
} dp_layout_map;

/* Rows of an atom: rows are padded to a multiple of this. Columns are padded to a multiple of 4. */
DP_INLINE size_t dp_layout_atom_rows(dp_layout kind)
{
    return kind == DP_LAYOUT_LINEAR ? 1u : kind == DP_LAYOUT_SM120 ? 64u : 128u;
}
DP_INLINE size_t dp_layout_atom_cols(dp_layout kind)
{
    return kind == DP_LAYOUT_LINEAR ? 1u : 4u;
}

/* Rows and columns with their padding. */
DP_INLINE size_t dp_layout_padded_rows(dp_layout_map map)
{
    const size_t atom = dp_layout_atom_rows(map.kind);
    return (map.rows + atom - 1u) / atom * atom;
}
DP_INLINE size_t dp_layout_padded_cols(dp_layout_map map)
{
    const size_t atom = dp_layout_atom_cols(map.kind);
    return (map.cols + atom - 1u) / atom * atom;
}

/* Bytes of the whole buffer, padding included. */
DP_INLINE size_t dp_layout_bytes(dp_layout_map map)
{
    return dp_layout_padded_rows(map) * dp_layout_padded_cols(map);
}

/* Offset inside a 512-byte atom, row 0..127, col 0..3; 32 rows lie 16 bytes apart [L2]. */
DP_INLINE size_t dp_atom_128x4_offset(size_t row, size_t col)
{
    return (row % 32u) * 16u + (row / 32u) * 4u + col;
}
DP_INLINE void dp_atom_128x4_coord(size_t offset, size_t *row, size_t *col)
{
    *row = offset / 16u + (offset / 4u % 4u) * 32u;
    *col = offset % 4u;
}

/* Byte of (row, col). row < padded rows, col < padded columns. */
DP_INLINE size_t dp_layout_offset(dp_layout_map map, size_t row, size_t col)
{
    const size_t tiles = dp_layout_padded_cols(map) / dp_layout_atom_cols(map.kind);
    switch (map.kind) {
    case DP_LAYOUT_128X4:
        return (row / 128u * tiles + col / 4u) * 512u + dp_atom_128x4_offset(row % 128u, col % 4u);
    case DP_LAYOUT_SM120:
        return (row / 64u * tiles + col / 4u) * 256u + (row % 16u) * 16u + (row % 64u / 16u) * 4u +
               col % 4u;
    case DP_LAYOUT_128X4_SWAPPED:
        return (row / 128u * tiles + col / 4u) * 512u + row % 128u * 4u + col % 4u;
    default:
        return row * map.cols + col;
    }
}

/* The inverse: row and column of a byte, offset < dp_layout_bytes. False when the byte is padding;
 * row and col are set all the same. */
DP_INLINE bool dp_layout_coord(dp_layout_map map, size_t offset, size_t *row, size_t *col)
{
    const size_t tiles = dp_layout_padded_cols(map) / dp_layout_atom_cols(map.kind);
    if (map.kind == DP_LAYOUT_LINEAR) {
        *row = offset / map.cols;
        *col = offset % map.cols;
        return *row < map.rows;
    }
    const size_t atom_rows = dp_layout_atom_rows(map.kind);
    const size_t atom = offset / (atom_rows * 4u);
    const size_t inside = offset % (atom_rows * 4u);
    if (map.kind == DP_LAYOUT_128X4) {
        dp_atom_128x4_coord(inside, row, col);
    } else if (map.kind == DP_LAYOUT_SM120) {
        *row = inside / 16u + (inside / 4u % 4u) * 16u;
        *col = inside % 4u;
    } else {
        *row = inside / 4u;
        *col = inside % 4u;
    }
    *row += atom / tiles * atom_rows;
    *col += atom % tiles * 4u;
    return *row < map.rows && *col < map.cols;
}

/* Find a layout by name: linear, 128x4, sm120, 128x4-swapped; and the name of one. */
bool dp_layout_find(const char *name, dp_layout *kind);
const char *dp_layout_name(dp_layout kind);

/* Whole buffers, one byte a scale. `linear` holds rows*cols bytes row major, `stored`
 * dp_layout_bytes(map). Swizzling writes 0 into the padding. The buffers may not overlap. */
void dp_layout_swizzle(dp_layout_map map, const uint8_t *linear, uint8_t *stored);
void dp_layout_unswizzle(dp_layout_map map, const uint8_t *stored, uint8_t *linear);
/* Padding bytes that are not 0: a buffer that has some was not written by this layout. */
size_t dp_layout_dirty_padding(dp_layout_map map, const uint8_t *stored);

/* The two codes of a byte exchanged, in place: what a pack with its operands flipped made [L8]. */
void dp_nibble_swap(uint8_t *payload, size_t bytes);

/* Scale pages: 512-byte atoms arranged by batch, tile and head [L5]. */
typedef enum {
    DP_PAGES_Q,            /* [batch][tile of 128 tokens][2*head + half of D][512]               */
    DP_PAGES_K_DUPLICATED, /* the same, each tile stored twice: pages 2t and 2t+1                */
    DP_PAGES_K64,          /* [batch][tile of 64 tokens][2*head + half][512], upper rows unused  */
    DP_PAGES_V,            /* [batch][tile of 128 keys][head][512]: row = head-dim index         */
    DP_PAGES_DUDA          /* [batch][page of 128 tokens][head][1024], half of D inside          */
} dp_pages_kind;

/* Shapes: head dim 128. Q, K, DuDa: row = token, col = block of 16 along the head dim (0..7).
 * V: row = head-dim index (0..127), col = block of 32 keys of the whole sequence. */
typedef struct {
    dp_pages_kind kind;
    size_t batch;
    size_t heads;
    size_t tokens; /* any; the last tile is padded */
} dp_pages;

typedef struct {
    size_t batch, head, row, col;
    size_t copy; /* 0, or 1 for the duplicate of a K tile */
} dp_pages_at;

DP_INLINE size_t dp_pages_tile_tokens(dp_pages_kind kind)
{
    return kind == DP_PAGES_K64 ? 64u : 128u;
}
DP_INLINE size_t dp_pages_copies(dp_pages_kind kind)
{
    return kind == DP_PAGES_K_DUPLICATED ? 2u : 1u;
}
/* 512-byte atoms of one head and tile. */
DP_INLINE size_t dp_pages_halves(dp_pages_kind kind)
{
    return kind == DP_PAGES_V ? 1u : 2u;
}
DP_INLINE size_t dp_pages_tiles(dp_pages p)
{
    const size_t tile = dp_pages_tile_tokens(p.kind);
    return (p.tokens + tile - 1u) / tile;
}
DP_INLINE size_t dp_pages_bytes(dp_pages p)
{
    return p.batch * dp_pages_tiles(p) * dp_pages_copies(p.kind) * p.heads *
           dp_pages_halves(p.kind) * 512u;
}

/* Byte of a scale. */
DP_INLINE size_t dp_pages_offset(dp_pages p, dp_pages_at at)
{
    const size_t tile_tokens = dp_pages_tile_tokens(p.kind);
    const bool v = p.kind == DP_PAGES_V;
    const size_t tile = v ? at.col / 4u : at.row / tile_tokens;
    const size_t page = at.batch * dp_pages_tiles(p) * dp_pages_copies(p.kind) +
                        tile * dp_pages_copies(p.kind) + at.copy;
    const size_t halves = dp_pages_halves(p.kind);
    const size_t atom = (page * p.heads + at.head) * halves + (v ? 0u : at.col / 4u);
    return atom * 512u + dp_atom_128x4_offset(v ? at.row : at.row % tile_tokens, at.col % 4u);
}

/* The inverse; false when the byte is padding. */
DP_INLINE bool dp_pages_coord(dp_pages p, size_t offset, dp_pages_at *at)
{
    const size_t tile_tokens = dp_pages_tile_tokens(p.kind);
    const size_t copies = dp_pages_copies(p.kind);
    const size_t halves = dp_pages_halves(p.kind);
    const bool v = p.kind == DP_PAGES_V;
    size_t atom = offset / 512u;
    dp_atom_128x4_coord(offset % 512u, &at->row, &at->col);
    const bool unused = at->row >= tile_tokens;
    const size_t half = atom % halves;
    atom /= halves;
    at->head = atom % p.heads;
    atom /= p.heads;
    at->copy = atom % copies;
    atom /= copies;
    const size_t tile = atom % dp_pages_tiles(p);
    at->batch = atom / dp_pages_tiles(p);
    at->col += (v ? tile : half) * 4u;
    at->row += v ? 0u : tile * tile_tokens;
    const size_t tokens = v ? at->col * 32u : at->row;
    return !unused && tokens < p.tokens;
}

/* Row order of K in SageAttention3 (d1a57a5): the token that stored row r of each 32 comes from,
 * and the inverse [L6]. */
DP_INLINE size_t dp_sage3_k_token(size_t stored_row)
{
    const size_t r = stored_row % 32u;
    return stored_row - r + (r / 8u) * 2u + (r % 8u / 2u) * 8u + r % 2u;
}
DP_INLINE size_t dp_sage3_k_stored_row(size_t token)
{
    const size_t c = token % 32u;
    return token - c + (c % 8u / 2u) * 8u + (c / 8u) * 2u + c % 2u;
}

DP_END_C

#endif
