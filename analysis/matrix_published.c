/* SPDX-License-Identifier: MIT
 *
 * MrHuff/fp4-fa4, technical report v2: the format matrix, the sweep of G, the native density.
 */
#include "analysis/matrix.h"

#include <math.h>

#define MATRIX 20260814, 152
#define SWEEP  0, 152, 4096, 24

static const dp_matrix_published ROWS[] = {
    {"matrix", "TK NV/NV", "direct-nv-nv", 0, MATRIX, 256, 16, 0.952388, 0.320599, 0.032716},
    {"matrix", "TK MX/NV", "direct-mx-nv", 0, MATRIX, 256, 16, 0.948314, 0.320161, 0.032672},
    {"matrix", "TK NV/MX", "direct-nv-mx", 0, MATRIX, 256, 16, 0.929613, 0.373055, 0.038069},
    {"matrix", "TK MX/MX", "direct-mx-mx", 0, MATRIX, 256, 16, 0.924689, 0.380760, 0.038856},
    {"matrix", "TK NV/FP8", "direct-nv-fp8", 0, MATRIX, 256, 16, 0.9463357925, 0.3326473236,
     0.0339458622},
    {"matrix", "HAO NV/NV", "hao-nv-nv", 0, MATRIX, 256, 16, 0.982173, 0.188921, 0.019279},
    {"matrix", "HAO NV/FP8", "hao-nv-fp8", 0, MATRIX, 256, 16, 0.990301, 0.139279, 0.014213},
    {"matrix", "fast", "fast", 0, MATRIX, 256, 16, 0.944477, 0.336733, 0.034363},
    {"matrix", "accurate", "accurate", 0, MATRIX, 256, 16, 0.952746, 0.324222, 0.033086},
    {"matrix", "TK NV/NV", "direct-nv-nv", 0, MATRIX, 1024, 24, 0.960499, 0.285533, 0.014735},
    {"matrix", "TK MX/NV", "direct-mx-nv", 0, MATRIX, 1024, 24, 0.953730, 0.301114, 0.015539},
    {"matrix", "TK NV/MX", "direct-nv-mx", 0, MATRIX, 1024, 24, 0.946337, 0.323387, 0.016688},
    {"matrix", "TK MX/MX", "direct-mx-mx", 0, MATRIX, 1024, 24, 0.937614, 0.350956, 0.018111},
    {"matrix", "TK NV/FP8", "direct-nv-fp8", 0, MATRIX, 1024, 24, 0.9547038674, 0.3005865216,
     0.0155113358},
    {"matrix", "HAO NV/NV", "hao-nv-nv", 0, MATRIX, 1024, 24, 0.981844, 0.190610, 0.009836},
    {"matrix", "HAO NV/FP8", "hao-nv-fp8", 0, MATRIX, 1024, 24, 0.989974, 0.141526, 0.007303},
    {"matrix", "fast", "fast", 0, MATRIX, 1024, 24, 0.943870, 0.336680, 0.017374},
    {"matrix", "accurate", "accurate", 0, MATRIX, 1024, 24, 0.951797, 0.327066, 0.016878},
    {"g-sweep", "HAO NV/NV", "hao-nv-nv", 0, SWEEP, 0.981414557, 0.192766950, NAN},
    {"g-sweep", "shiftless", "direct-nv-nv", 0, SWEEP, 0.961779, 0.279944, NAN},
    {"g-sweep", "NV/NV", "g-nv-nv", 1, SWEEP, 0.981250703, 0.194010243, 0.004978408},
    {"g-sweep", "NV/NV", "g-nv-nv", 2, SWEEP, 0.981295228, 0.193767980, 0.004972191},
    {"g-sweep", "NV/NV", "g-nv-nv", 16, SWEEP, 0.981298447, 0.193749964, 0.004971729},
    {"g-sweep", "NV/NV", "g-nv-nv", 256, SWEEP, 0.981298447, 0.193749964, 0.004971729},
    {"g-sweep", "NV/NV", "g-nv-nv", 320, SWEEP, 0.981422722, 0.192460001, 0.004938628},
    {"g-sweep", "NV/NV", "g-nv-nv", 384, SWEEP, 0.981415391, 0.192760497, 0.004946338},
    {"g-sweep", "NV/NV", "g-nv-nv", 448, SWEEP, 0.981414318, 0.192405358, 0.004937225},
    {"g-sweep", "NV/NV", "g-nv-nv", 2688, SWEEP, 0.981409609, 0.192793190, 0.004947178},
    {"g-sweep", "MX/NV", "g-mx-nv", 1, SWEEP, 0.973014712, 0.232443854, 0.005964635},
    {"g-sweep", "MX/NV", "g-mx-nv", 2, SWEEP, 0.973044395, 0.232329547, 0.005961702},
    {"g-sweep", "MX/NV", "g-mx-nv", 16, SWEEP, 0.973046184, 0.232323334, 0.005961542},
    {"g-sweep", "MX/NV", "g-mx-nv", 256, SWEEP, 0.973046184, 0.232323334, 0.005961542},
    {"g-sweep", "MX/NV", "g-mx-nv", 320, SWEEP, 0.972753763, 0.234221503, 0.006010251},
    {"g-sweep", "MX/NV", "g-mx-nv", 384, SWEEP, 0.972928643, 0.233190939, 0.005983806},
    {"g-sweep", "MX/NV", "g-mx-nv", 416, SWEEP, 0.973068535, NAN, NAN},
    {"g-sweep", "MX/NV", "g-mx-nv", 448, SWEEP, 0.972667277, 0.234704986, 0.006022657},
    {"g-sweep", "MX/NV", "g-mx-nv", 2688, SWEEP, 0.972926736, 0.233176261, 0.005983429},
    {"density", "TK NV/MX, native EX2", "fast", 1, 20260814, 148, 4096, 24, 0.947037, 0.325258,
     0.008442},
    {"density", "TK NV/MX, native EX2", "fast", 2, 20260814, 148, 4096, 24, 0.950069, 0.314812,
     0.008171},
    {"density", "TK NV/MX, native EX2", "fast", 4, 20260814, 148, 4096, 24, 0.956047, 0.294037,
     0.007632},
};

size_t dp_matrix_published_count(void)
{
    return sizeof ROWS / sizeof ROWS[0];
}

const dp_matrix_published *dp_matrix_published_at(size_t index)
{
    return &ROWS[index < dp_matrix_published_count() ? index : 0];
}
