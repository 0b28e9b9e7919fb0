#!/bin/sh
# SPDX-License-Identifier: MIT
# The main job, alone on a fresh Debian 12 as root: install, build, measure, compare, find a planted
# mistake, record, draw.
#   sh analysis/run.sh        results and pictures in out/, a summary at the end; exit 1 if a step fails
#   LABEL=v2 sh analysis/run.sh        label of this run in out/history.h5 (default: the commit)
set -eu
cd "$(dirname "$0")/.."
mkdir -p build out
. analysis/setup.sh

steps=9
step=0
failures=0
summary=out/summary.txt

# begin TEXT: the next step; shown on a terminal.
begin() {
    step=$((step + 1))
    if [ -t 2 ]; then say "[$step/$steps] $1"; fi
}

# note TEXT: a line of the summary.
note() { printf '%s\n' "$*" >>"$summary.part"; }

ok() { note "ok      $1"; }
failed() {
    note "FAILED  $1"
    failures=$((failures + 1))
}

# expect STATUS FILE COMMAND...: standard output to FILE, whole or not at all. False, and a failed
# step, when the exit status is not STATUS; the other steps still run.
expect() {
    wanted=$1
    target=$2
    shift 2
    got=0
    "$@" >"$target.part" || got=$?
    if [ "$got" -eq "$wanted" ]; then
        mv "$target.part" "$target"
    else
        rm -f "$target.part" "$target"
        failed "'$*' ended with status $got, not $wanted"
        return 1
    fi
}

# plot KIND DIR FILES...: pictures, and their names in out/plots.txt
plot() {
    kind=$1
    folder=$2
    shift 2
    if expect 0 out/plot.txt $directp plot "$kind" "$@" -o "$folder"; then
        cat out/plot.txt >>out/plots.txt
        rm out/plot.txt
    fi
}

# show TITLE FILE: a result on the terminal, where it is short enough to be read.
show() {
    if [ -f "$2" ]; then
        printf '\n%s\n' "$1"
        cat "$2"
    fi
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
configure_and_build directp wrong_kernel
directp=build/analysis/directp
label=${LABEL:-$(git describe --always --dirty 2>/dev/null || $directp --version)}
rm -f "$summary" "$summary.part" out/plots.txt out/*.part
: >out/plots.txt

begin "range: what formats keep of exact probabilities"
expect 0 out/range_random.csv $directp range --random 20260814 --seed-plus-seq \
    --seq 128,256,512,1024,2048,4096,8192 --csv -o out/range_random.h5 &&
    plot range out/random out/range_random.h5
expect 0 out/range_real.txt $directp range data/real/*.h5 -o out/range_real.h5 &&
    plot range out/real out/range_real.h5
compared=out/range_compared.txt
if compare out/range_random.csv data/published/range.csv >"$compared"; then
    ok "range: $(tail -n 1 "$compared")"
else
    failed "range: $(tail -n 1 "$compared")"
fi

begin "oracle: Direct-P on a real tensor"
tensor=data/real/qwen15_layer00.h5
for format in nvfp4 mxfp4; do
    expect 0 "out/quantize_$format.txt" $directp quantize "$tensor:/inputs/k" \
        --format $format --recipe PTX -o "out/quantize_$format.h5" || :
done
expect 0 out/attend.txt $directp attend "$tensor" --policy accurate --smooth-k --per-head &&
    ok "oracle: $(awk '$2 == "all" { print $1 " on '"$tensor"', cosine " $3 }' out/attend.txt)"
expect 0 out/codes.txt $directp attend "$tensor" --policy accurate --smooth-k \
    --codes out/codes.h5 && plot codes out/codes out/codes.h5

begin "diff: what an H200 returned, against the oracle"
for dump in data/device/*.h5; do
    name=$(basename "$dump" .h5)
    expect 0 "out/diff_$name.csv" $directp diff "$dump" --csv &&
        ok "diff $name: $(awk -F, 'NR > 1 { all += $4; wrong += $5 }
            END { printf "%d of %d elements differ", wrong, all }' "out/diff_$name.csv")"
done

begin "device: the kernels on a GPU, if there is one"
expect 0 out/device.txt $directp device diff --if-present --random 1 --seq 1024 --heads 4 \
    --policy fast --epoch R && ok "device: $(sed '1s/^no device: device:/none:/;1q' out/device.txt)"

begin "planted mistakes: found at their stage and named"
expect 0 out/scores.txt $directp attend --random 1 --seq 256 --heads 2 --policy fast --epoch S \
    --stages score -o out/scores.h5 || :
# planted MISTAKE NAME: a kernel with a mistake, and the name it should be given
planted() {
    expect 0 out/kernel.txt build/analysis/wrong_kernel "$1" out/scores.h5 "out/kernel_$1.h5" &&
        expect 1 "out/kernel_$1.txt" $directp diff "out/kernel_$1.h5" -o "out/report_$1.h5" ||
        return 0
    where=$(sed -n 's/^First wrong stage: //p' "out/kernel_$1.txt")
    if grep -q "^Diagnosis: $2:" "out/kernel_$1.txt"; then
        ok "planted '$1': $where, named $2"
    else
        failed "planted '$1': $where, not named $2"
    fi
    plot diff "out/diff_$1" "out/report_$1.h5"
}
planted shift shift-missing
planted truncate truncated
expect 0 out/kernel.txt build/analysis/wrong_kernel none out/scores.h5 out/kernel_none.h5 &&
    expect 0 out/kernel_none.txt $directp diff out/kernel_none.h5 &&
    ok "the same kernel without a mistake: no difference"
rm -f out/kernel.txt

begin "record: rates of this run into out/history.h5"
expect 0 out/record.txt $directp record data/device/*.h5 -o out/history.h5 --label "$label" \
    --fail-if 'mismatches>0, lost_mass > 1.01*last, code_match < last - 0.001' &&
    ok "record: $(head -n 1 out/record.txt)"
expect 1 out/record_planted.txt $directp record out/kernel_truncate.h5 -o out/history.h5 \
    --label "$label" --fail-if 'code_mismatches>0' 2>out/record_planted.log &&
    ok "record of a wrong kernel: $(sed -n 's/^directp: //p' out/record_planted.log)"
plot history out/history out/history.h5

begin "fit: the map from scores to codes"
expect 0 out/fit.txt $directp fit --sigma 1 --objective match -o out/fit.h5 &&
    plot fit out/fit out/fit.h5

begin "matrix: formats and routes side by side"
expect 0 out/matrix.txt $directp matrix --seq 256 --heads 16 --sections formats,density -o out/matrix.h5 &&
    plot matrix out/matrix out/matrix.h5

begin "pictures and summary"
while read -r picture; do
    [ -s "$picture" ] || failed "picture $picture is missing"
done <out/plots.txt
ok "$(wc -l <out/plots.txt | tr -d ' ') pictures"

show "Range on real tensors" out/range_real.txt
show "Quantizing K of $tensor" out/quantize_nvfp4.txt
show "" out/quantize_mxfp4.txt
show "Direct-P on $tensor" out/attend.txt
show "A planted mistake, found" out/kernel_truncate.txt
show "Range beside the published figures" out/range_compared.txt
printf '\nPictures: %s\n\nSummary (out/summary.txt)\n' "$(tr '\n' ' ' <out/plots.txt)"
mv "$summary.part" "$summary"
cat "$summary"
if [ "$failures" -gt 0 ]; then
    say "$0: $failures steps failed"
    exit 1
fi
