/* SPDX-License-Identifier: MIT
 *
 * Presets: which recipe a stack follows, by name, with its source. A name is PRESET:format, such
 * as TE:nvfp4. Rules P1.. of FORMATS.md; PRESETS.md, a generated page, shows where presets differ.
 */
#ifndef DP_FORMATS_PRESET_H
#define DP_FORMATS_PRESET_H

#include "formats/block.h"

DP_BEGIN_C

/* Where the global scale comes from when the caller does not bring one [B11]. */
typedef enum {
    DP_PRESET_FLAT,        /* no global scale                                              */
    DP_PRESET_ENCODE_AMAX, /* g = min(max * 448 / amax, FLT_MAX), 1 when amax is 0         */
    DP_PRESET_DECODE_AMAX  /* d = amax / (max * 448), 1 when amax is 0                     */
} dp_preset_global_rule;

typedef struct {
    const char *preset; /* "TE"    */
    const char *format; /* "nvfp4" */
    const char *source; /* project, commit or version, and how sure the reading is */
    dp_preset_global_rule global;
    bool fold64; /* Q/K scales folded over K64: quantize with fold64.h instead of block.h */
    dp_block_recipe recipe;
} dp_preset;

size_t dp_preset_count(void);
/* index: 0 .. dp_preset_count() - 1 */
dp_preset dp_preset_at(size_t index);
/* name: "PRESET:format", letter case ignored. False when unknown; the error then names those there
 * are: "nvfp4" alone is refused, since stacks disagree about what it means. */
bool dp_preset_find(const char *name, dp_preset *preset, dp_error *error);

/* The global scale the preset gives a tensor whose largest magnitude is amax (finite, >= 0). */
dp_global dp_preset_global(const dp_preset *preset, float amax);

/* The formulas in words, one field a line, ended by a line feed; returns the length as snprintf. */
size_t dp_preset_explain(const dp_preset *preset, char *text, size_t size);

DP_END_C

#endif
