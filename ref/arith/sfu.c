/* SPDX-License-Identifier: MIT */
#include "ref/arith/sfu.h"

const dp_sfu *dp_sfu_exact(void)
{
    static const dp_sfu exact = {"exact", NULL, NULL, NULL};
    return &exact;
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
