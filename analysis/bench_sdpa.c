/* SPDX-License-Identifier: MIT
 *
 * The rival of the fused forward in speed is another process's: torch, where it is installed.
 */
#include "analysis/bench_sdpa.h"

#include <stdio.h>

static const char SCRIPT[] =
    "import torch\n"
    "from torch.nn.functional import scaled_dot_product_attention as sdpa\n"
    "q, k, v = (torch.randn(1, %zu, %zu, %zu, device=\"cuda\", dtype=torch.bfloat16)\n"
    "           for _ in range(3))\n"
    "times = []\n"
    "for _ in range(30):\n"
    "    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))\n"
    "    start.record()\n"
    "    sdpa(q, k, v)\n"
    "    stop.record()\n"
    "    stop.synchronize()\n"
    "    times.append(start.elapsed_time(stop))\n"
    "print(sorted(times)[15])\n";

bool dp_bench_sdpa(size_t seq, size_t heads, size_t dim, double *ms)
{
    char script[1024];
    char command[1100];
    (void)snprintf(script, sizeof script, SCRIPT, heads, seq, dim);
    (void)snprintf(command, sizeof command, "python3 -c '%s' 2>/dev/null", script);
    FILE *pipe = popen(command, "r");
    if (pipe == NULL) {
        return false;
    }
    const bool read = fscanf(pipe, "%lf", ms) == 1;
    return pclose(pipe) == 0 && read && *ms > 0;
}
