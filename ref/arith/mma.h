/* SPDX-License-Identifier: MIT
 *
 * Matrix units, one output element at a time: what an instruction returns for a row of A, a column
 * of B, their block scales and the accumulator, bit for bit. Rules and grades: ref/arith/MMA.md.
 *
 * An instruction is a row of a table (dp_mma_desc); what hardware leaves open is a field of
 * dp_mma_switches. Nothing here uses floating point, so no rounding mode, FTZ or DAZ set by the
 * caller changes a bit.
 *
 * Sources: PTX ISA 9.1 (types, shapes, scales); MMA-Sim 2.1.1 (MIT) and arXiv 2511.10909;
 * Khattak and Mikaitis, arXiv 2512.07004.
 */
#ifndef DP_REF_ARITH_MMA_H
#define DP_REF_ARITH_MMA_H

#include "formats/base.h"
#include "formats/error.h"

DP_BEGIN_C

/* Element formats of A and B. */
typedef enum {
    DP_MMA_E4M3,
    DP_MMA_E5M2,
    DP_MMA_E2M3,
    DP_MMA_E3M2,
    DP_MMA_E2M1,
    DP_MMA_F16,
    DP_MMA_BF16,
    DP_MMA_TF32, /* 32-bit patterns of which the low 13 bits are ignored */
    DP_MMA_FORMATS
} dp_mma_format;

/* Block scales of A and B. */
typedef enum { DP_MMA_NO_SCALE, DP_MMA_UE8M0, DP_MMA_UE4M3 } dp_mma_scale;

/* Which arithmetic an instruction follows. */
typedef enum {
    DP_MMA_FUSED,    /* products aligned and summed one by one: MMA.md rules 10 to 16 */
    DP_MMA_GROUPED,  /* exact sums of 16 products, scaled, then aligned: rules 20 to 26 */
    DP_MMA_EMULATED, /* FP8 mma.sync made of f16 instructions and an add: rules 30 to 33 */
    DP_MMA_UNKNOWN   /* exists, but nothing is known about its arithmetic: always refused */
} dp_mma_family;

/* The one conversion at the end of an instruction. */
typedef enum {
    DP_MMA_F32_RZ,   /* truncate to f32 */
    DP_MMA_E8M13_RZ, /* truncate to 13 fraction bits, kept in an f32 */
    DP_MMA_F16_RNE   /* round to nearest even to f16 */
} dp_mma_result;

/* One instruction with one pair of element types. The first five fields are the names used in
 * capture files; arch may list several targets separated by spaces. */
typedef struct {
    const char *instruction; /* e.g. "wgmma", "tcgen05.mma.kind::mxf4nvf4.block16.ue4m3" */
    const char *atype;       /* "e4m3" "e5m2" "e2m3" "e3m2" "e2m1" "f16" "bf16" "tf32" */
    const char *btype;
    const char *dtype; /* type of C and D: "f32" or "f16" */
    const char *arch;  /* e.g. "sm_100a sm_103a" */
    dp_mma_family family;
    dp_mma_format a, b;
    dp_mma_scale scale;
    uint8_t block;         /* consecutive k that share a scale; 0 without scales */
    uint8_t k;             /* products of one instruction: longer rows chain in increasing k */
    uint8_t terms;         /* terms fused at once besides C: products, or groups of 16 */
    uint8_t fraction;      /* F: fraction bits kept below the largest exponent */
    dp_mma_result result;  /* final conversion */
    int16_t zero_exponent; /* e0: the exponent of a term that is zero */
    char grade;            /* 'V' checked against hardware files, 'M' public model, '?' inferred */
} dp_mma_desc;

/* What is not settled in public. Zero-initialised = the defaults. Fields hold the constants next to
 * them; names and values as text: dp_mma_switches_text. */
typedef struct {
    /* Exponent of a group of 16 whose products are all zero, or whose scale is zero (rule 23).
     * Default: left out of the maximum (MMA-Sim 2.x). Other: takes part with the exponent of its
     * scales (MMA-Sim commit c785138). Matters when a zero block carries a large scale. */
    uint8_t zero_group;
    /* Sign of a zero result (rule 42). Default: always +0 (MMA-Sim 2.1.1). Other: -0 when the sum
     * was negative before the final conversion, or when every term carries a minus sign. */
    uint8_t zero_sign;
    /* Exponent of subnormal E2M1, E2M3, E3M2 elements in kind::f8f6f4 and kind::mxf8f6f4 (rule 12).
     * Default: the field exponent emin (MMA-Sim 2.1.1). Other: that of the normalised number, as if
     * decoded through f16 (earlier models). */
    uint8_t narrow_subnormal;
    /* How C joins an FP8 sum with F = 13 (rule 14). Default: aligned with the products. Other: the
     * products are summed and converted alone, then C is added by a two-term sum of the same unit.
     */
    uint8_t fp8_c;
    /* Sign of the zero that stands for C when the instruction computes A*B alone (rule 43).
     * Default +0. Visible only together with zero_sign = keep. */
    uint8_t disabled_c;
} dp_mma_switches;

enum { DP_MMA_ZERO_GROUP_EXCLUDED, DP_MMA_ZERO_GROUP_SCALE };    /* zero_group */
enum { DP_MMA_ZERO_SIGN_POSITIVE, DP_MMA_ZERO_SIGN_KEEP };       /* zero_sign */
enum { DP_MMA_SUBNORMAL_EMIN, DP_MMA_SUBNORMAL_NORMALISED };     /* narrow_subnormal */
enum { DP_MMA_FP8_C_EARLY, DP_MMA_FP8_C_LATE };                  /* fp8_c */
enum { DP_MMA_DISABLED_C_POSITIVE, DP_MMA_DISABLED_C_NEGATIVE }; /* disabled_c */

#define DP_MMA_NAN_F32 0x7FFFFFFFu /* the NaN of every f32 result (MMA-Sim 2.1.1) */
#define DP_MMA_NAN_F16 0x7FFFu     /* the NaN of every f16 result */

/* All instructions known here; *count rows. */
const dp_mma_desc *dp_mma_table(size_t *count);

/* The row with these names, or NULL. `arch` is one target ("sm_100a"). */
const dp_mma_desc *dp_mma_find(const char *instruction, const char *atype, const char *btype,
                               const char *dtype, const char *arch);

/* One element of D = A*B + C.
 *   desc      the instruction; DP_MMA_UNKNOWN is refused
 *   switches  NULL means the defaults
 *   k         length of a and b: a positive multiple of desc->k (the instruction chains: its D is
 *             the C of the next one, in increasing k)
 *   a, b      k element codes, one a word (4-bit codes in the low nibble); tf32 does not fit and is
 *             refused: use dp_mma_element32
 *   sfa, sfb  k / desc->block scale bytes; ignored without scales
 *   c         bits of the accumulator in dtype; dp_mma_disabled_c() when there is none
 *   d         receives the bits of the result in dtype
 * Returns false with an error for a wrong k, a missing scale, a wrong type or unknown arithmetic.
 */
bool dp_mma_element(const dp_mma_desc *desc, const dp_mma_switches *switches, size_t k,
                    const uint16_t *a, const uint16_t *b, const uint8_t *sfa, const uint8_t *sfb,
                    uint32_t c, uint32_t *d, dp_error *error);

/* The same with 32-bit words, for every type. */
bool dp_mma_element32(const dp_mma_desc *desc, const dp_mma_switches *switches, size_t k,
                      const uint32_t *a, const uint32_t *b, const uint8_t *sfa, const uint8_t *sfb,
                      uint32_t c, uint32_t *d, dp_error *error);

/* The bits of C that stand for "no C" (enable-input-d false, scale-d 0). */
uint32_t dp_mma_disabled_c(const dp_mma_desc *desc, const dp_mma_switches *switches);

/* Write "mma.NAME=VALUE" lines, one a switch. Returns the length without the final NUL, as snprintf
 * does: when it is >= size the text was cut. 256 bytes are enough. */
size_t dp_mma_switches_text(const dp_mma_switches *switches, char *text, size_t size);

/* Set one switch by name ("zero_group" or "mma.zero_group") and value ("scale"). */
bool dp_mma_switch_set(dp_mma_switches *switches, const char *name, const char *value,
                       dp_error *error);

/* Set every switch named in a text of NAME=VALUE lines. Lines whose name does not begin with "mma."
 * belong to other parts and are skipped; an unknown mma. name or value is an error. */
bool dp_mma_switches_parse(dp_mma_switches *switches, const char *text, dp_error *error);

DP_END_C

#endif
