/* SPDX-License-Identifier: MIT */
#include "ref/arith/sfu.h"

const dp_sfu *dp_sfu_exact(void)
{
    static const dp_sfu exact = {"exact", NULL, NULL, NULL};
    return &exact;
}

/* Generated from data/ by data/embed_sfu.c when the library is built. */
extern const dp_sfu_table dp_sfu_table_ex2_h200;
extern const dp_sfu_table dp_sfu_table_rcp_h200;

const dp_sfu *dp_sfu_h200(void)
{
    static const dp_sfu h200 = {"h200", &dp_sfu_table_ex2_h200, &dp_sfu_table_rcp_h200, NULL};
    return &h200;
}

const dp_sfu *dp_sfu_by_name(const char *name)
{
    const dp_sfu *all[2] = {dp_sfu_exact(), dp_sfu_h200()};
    for (int i = 0; i < 2; i++) {
        if (strcmp(name, all[i]->name) == 0) {
            return all[i];
        }
    }
    return NULL;
}

uint32_t dp_sfu_ex2(const dp_sfu *sfu, uint32_t x)
{
    return sfu->ex2 != NULL ? dp_ex2_captured(sfu->ex2, x) : dp_ex2_exact(x);
}

uint32_t dp_sfu_rcp(const dp_sfu *sfu, uint32_t x)
{
    return sfu->rcp != NULL ? dp_rcp_captured(sfu->rcp, x) : dp_rcp_exact(x);
}

uint32_t dp_sfu_lg2(const dp_sfu *sfu, uint32_t x)
{
    (void)sfu; /* no capture of lg2 covers all exponents yet */
    return dp_lg2_exact(x);
}
