/* SPDX-License-Identifier: MIT */
#include "ref/arith/sfu.h"

const dp_sfu *dp_sfu_exact(void)
{
    static const dp_sfu exact = {"exact", NULL, NULL, NULL};
    return &exact;
}

const dp_sfu *dp_sfu_h200(void)
{
    static const dp_sfu h200 = {"h200", &dp_sfu_h200_unit, NULL, NULL};
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
    if (sfu->ex2 != NULL) {
        return dp_ex2_captured(sfu->ex2, x);
    }
    return sfu->unit != NULL ? dp_ex2_unit(sfu->unit, x) : dp_ex2_exact(x);
}

uint32_t dp_sfu_rcp(const dp_sfu *sfu, uint32_t x)
{
    if (sfu->rcp != NULL) {
        return dp_rcp_captured(sfu->rcp, x);
    }
    return sfu->unit != NULL ? dp_rcp_unit(sfu->unit, x) : dp_rcp_exact(x);
}

uint32_t dp_sfu_lg2(const dp_sfu *sfu, uint32_t x)
{
    return sfu->unit != NULL ? dp_lg2_unit(sfu->unit, x) : dp_lg2_exact(x);
}
