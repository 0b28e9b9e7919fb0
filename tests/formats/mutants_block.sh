#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Plant one fault at a time in a copy of the tree and name the tests that catch it. A fault that no
# test catches is an error.
#   sh tests/formats/mutants_block.sh [NUMBER...]        all, or the ones named
# A mutant is: file | what is wrong | sed expression. The expression must change the file.
set -eu
source_tree=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/directp-mutants.XXXXXX")
trap 'rm -rf "$work"' EXIT
tests='formats_test_(layout|block_|fold64|nvfp4_exact|presets_page)'
targets='formats_test_layout formats_test_block_cases formats_test_block_model
    formats_test_block_tensor formats_test_block_golden formats_test_fold64
    formats_test_nvfp4_exact formats_test_presets_page'

mutants() {
    cat <<'LIST'
formats/layout.h|32 and 4 exchanged in the 128x4 atom|s/(row % 32u) \* 16u + (row \/ 32u) \* 4u + col/row * 4u + col/
formats/layout.h|SM120 atom with 32-row interleave|s/(row % 16u) \* 16u/(row % 32u) * 8u/
formats/layout.h|padding taken for a row|s/return \*row < map.rows \&\& \*col < map.cols;/return *row <= map.rows \&\& *col < map.cols;/
formats/layout.h|duplicate of K page left out|s/tile \* dp_pages_copies(p.kind) + at.copy/tile * dp_pages_copies(p.kind)/
formats/block_decode.c|nibbles exchanged when reading|s/(4u \* (i % 2u))) \& 0xFu/(4u * ((i + 1u) % 2u))) \& 0xFu/
formats/block_tensor.c|nibbles exchanged when writing|s/code << (4u \* (i % 2u))/code << (4u * ((i + 1u) % 2u))/
formats/block_tensor.c|runs taken along the wrong axis|s/if (i != axis) {/if (i != 0) {/
formats/block_tensor.c|last block of a run dropped|s/(shape->length + block - 1) \/ block/(shape->length + block \/ 2) \/ block/
formats/block_payload.c|amax without abs|s/dp_f32_bits(x\[i\]) \& DP_F32_ABS;$/(dp_f32_bits(x[i]) >> 31 != 0 ? 0u : dp_f32_bits(x[i]));/
formats/block_payload.c|NaN ignored although it should propagate|s/r->nan == DP_NAN_PROPAGATE \&\& found.nans != 0/r->nan == DP_NAN_PROPAGATE \&\& found.nans > 1/
formats/block_payload.c|divided by the unrounded scale|s/r->divisor == DP_DIVISOR_UNROUNDED ? t/r->divisor == DP_DIVISOR_STORED ? t/
formats/block_payload.c|multiplied by a reciprocal instead of divided|s/dp_block_scaler how = {DP_SCALER_DIVIDE, 1.0f, s};/dp_block_scaler how = {DP_SCALER_MULTIPLY, 1.0f, 1.0f \/ s};/
formats/block_payload.c|zero scale divides|s/return r->byte0 != DP_BYTE0_VALUE;/return false;/;s/: r->byte0 != DP_BYTE0_VALUE;/: false;/
formats/block_scale.c|amax times fl(1/6) instead of amax over 6|s/return dp_block_mul(r, dp_block_div(r, amax, p->max), p->g);/return dp_block_mul(r, dp_block_mul(r, amax, p->rcp_max), p->g);/
formats/block_scale.c|exponent by log2 in f32|s/r->log2_f32 ?/true ?/
formats/block_scale.c|ceil is floor plus one|s/isinf(amax) || ldexpf(1.0f, dp_block_exponent(amax)) == amax ? 0 : 1/isinf(amax) ? 0 : 1/
formats/block_scale.c|even rounds at one bit more|s/1u << (22u - p->recipe.element.mantissa_bits)/1u << (21u - p->recipe.element.mantissa_bits)/
formats/block_scale.c|best of two: tie to floor|s/block_error(p, down, x, n) < block_error/block_error(p, down, x, n) <= block_error/
formats/block_scale.c|amplitude rounds up at ties|s/e8m0_cast(amax, DP_E8M0_NEAREST_EVEN)/e8m0_cast(amax, DP_E8M0_NEAREST_UP)/
formats/block_scale.c|low exponents wrap|s/r->low == DP_E8M0_LOW_WRAP ?/true ?/
formats/block_scale.c|scale floor ignored|s/t = t < r->scale_min ? r->scale_min : t;//
formats/block_arith.h|FTZ forgotten on results|s/return dp_block_flush(r, dp_block_flush(r, a) \* dp_block_flush(r, b));/return dp_block_flush(r, a) * dp_block_flush(r, b);/
formats/environment.h|caller's rounding mode leaks in|s/    fesetenv(FE_DFL_ENV);//
formats/block_decode.c|amplitude decoded without its sixth|s/return product \/ (double)plan->max;/return product;/
formats/block_decode.c|global divisor used as a multiplier|s/return product \/ (double)plan->g;/return product * (double)plan->g;/
formats/fold64.c|ties up in the folded codes|s/(magnitude > 0.25f) + (magnitude > 0.75f)/(magnitude > 0.25f) + (magnitude >= 0.75f)/
formats/fold64.c|last minimum wins|s/if (error < \*best_error)/if (error <= *best_error)/
formats/fold64.c|block b paired with b + 1|s/x + (b + PAIRS) \* BLOCK/x + (b + 1) * BLOCK/
formats/fold64.c|-0 keeps its sign|s/(v < 0.0f ? 8 : 0)/(signbit(v) ? 8 : 0)/
formats/nvfp4.c|exact tie taken upward|s/(ties == DP_RNE \&\& low % 2 != 0)/ties == DP_RNE/
formats/e2m1.h|packed pair exchanged|s/(element0.bits \& 0xFu) | ((uint32_t)element1.bits << 4)/(element1.bits \& 0xFu) | ((uint32_t)element0.bits << 4)/
formats/minifloat.h|ties away instead of even|s/return rest > tie || (rest == tie \&\& (quotient \& 1u) != 0);/return rest >= tie;/
LIST
}

mkdir "$work/tree"
(cd "$source_tree" && git ls-files -z --cached --others --exclude-standard | tar cf - --null -T -) |
    tar xf - -C "$work/tree"
cd "$work/tree"
cmake -S . -B build -G Ninja -DDIRECTP_ANALYSIS=OFF -DDIRECTP_CUDA=OFF -DDIRECTP_WERROR=OFF \
    -DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_BUILD_TYPE=Release > /dev/null
# shellcheck disable=SC2086
ninja -C build $targets > /dev/null
ctest --test-dir build -R "$tests" > /dev/null || {
    echo "directp: mutants: the tests fail without a fault: mend them first" >&2
    exit 2
}
mutants > list
number=0
missed=0
while IFS='|' read -r file what expression; do
    number=$((number + 1))
    if [ $# -gt 0 ] && ! echo " $* " | grep -q " $number "; then
        continue
    fi
    cp "$file" saved
    sed -i "$expression" "$file"
    if cmp -s "$file" saved; then
        echo "directp: mutants: number $number does not apply to $file: mend its expression" >&2
        exit 2
    fi
    # shellcheck disable=SC2086
    if ! ninja -C build $targets > log 2>&1; then
        caught="(does not compile)"
    else
        caught=$(ctest --test-dir build -R "$tests" 2> /dev/null | sed -n 's/.*Test *#[0-9]*: formats_test_\([a-z0-9_]*\) .*Failed.*/\1/p;s/.*Test *#[0-9]*: formats_test_\([a-z0-9_]*\) .*\*\*\*.*/\1/p' | sort -u | tr '\n' ' ')
    fi
    cp saved "$file"
    touch "$file"
    [ -n "$caught" ] || { caught="NOT CAUGHT"; missed=$((missed + 1)); }
    printf '%2d  %-24s %-48s %s\n' "$number" "$file" "$what" "$caught"
done < list
[ "$missed" -eq 0 ] || { echo "directp: mutants: $missed not caught: write the missing test" >&2; exit 1; }
