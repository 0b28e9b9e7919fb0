/* SPDX-License-Identifier: MIT
 *
 * Stands in for the comparison with NVIDIA's headers where they are not installed: skipped.
 */
#include <stdio.h>

int main(void)
{
    (void)puts("skipped: cuda_fp8.h, cuda_fp6.h or cuda_fp4.h not found; configure with "
               "-DDIRECTP_CUDA_INCLUDE=DIR, the folder that holds them");
    return 77;
}
