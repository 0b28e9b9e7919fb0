#!/bin/sh
# SPDX-License-Identifier: MIT
# The main job, alone on a fresh Debian 12 as root: install, build, measure, draw.
#   sh analysis/run.sh        results and pictures in out/; exit 1 if a published figure differs
set -eu
cd "$(dirname "$0")/.."
mkdir -p build out
. analysis/setup.sh

# save FILE COMMAND...: standard output to FILE, whole or not at all.
save() {
    target=$1
    shift
    "$@" >"$target.part" || { rm -f "$target.part"; die "'$*' failed"; }
    mv "$target.part" "$target"
}

# Measured beside published, in the six digits that were published.
compare() {
    awk -F, '
        FNR == 1 { for (i = 1; i <= NF; i++) name[FILENAME, i] = $i }
        FNR == 1 && NR != 1 {
            printf "%-5s %-11s %-13s %12s %12s %12s\n", \
                   "S", "format", "quantity", "measured", "published", "difference"
        }
        FNR == 1 { next }
        NR == FNR { for (i = 1; i <= NF; i++) got[$2, $4, name[FILENAME, i]] = $i; next }
        {
            for (i = 3; i <= NF; i++) {
                measured = sprintf("%.6f", got[$1, $2, name[FILENAME, i]])
                if (!(($1, $2, name[FILENAME, i]) in got)) measured = "missing"
                if (measured != $i) wrong++
                printf "%-5s %-11s %-13s %12s %12s %12.6f\n", $1, $2, name[FILENAME, i], \
                       measured, $i, measured - $i
                all++
            }
        }
        END { printf "%d of %d published figures differ\n", wrong, all; exit wrong > 0 || !all }
    ' "$1" "$2"
}

install_packages
configure_and_build directp
directp=build/analysis/directp

save out/range_random.csv $directp range --random 20260814 --seed-plus-seq \
    --seq 128,256,512,1024,2048,4096,8192 --csv -o out/range_random.h5
save out/plots.txt $directp plot range out/range_random.h5 -o out/random
if [ -d data/real ]; then
    save out/range_real.txt $directp range data/real/*.h5 -o out/range_real.h5
    save out/plots_real.txt $directp plot range out/range_real.h5 -o out/real
    cat out/plots_real.txt >>out/plots.txt
    rm out/plots_real.txt
fi
tensor=data/real/qwen15_layer00.h5
if [ -f "$tensor" ] && $directp --help | grep -q '^  *quantize '; then
    for format in nvfp4 mxfp4; do
        save "out/quantize_$format.txt" $directp quantize "$tensor:/inputs/k" \
            --format $format --recipe PTX -o "out/quantize_$format.h5"
    done
fi

for table in out/range_real.txt out/quantize_*.txt; do
    if [ -f "$table" ]; then cat "$table"; fi
done
compare out/range_random.csv data/published/range.csv || status=$?
echo "Pictures: $(tr '\n' ' ' <out/plots.txt)"
exit "${status:-0}"
