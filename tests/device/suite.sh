#!/bin/sh
# SPDX-License-Identifier: MIT
# suite.sh DIRECTP SOURCE FOLDER [full|part] [K/N]
# The kernels against the oracle on this machine's GPU: every policy and epoch over shapes and inputs, each
# stage injected, chained and fused. "full" adds the long sequences (128 GiB of memory at 32768). K/N runs
# every Nth case from the Kth (0 first), for machines that are lent by the minute. Writes FOLDER/suite.csv;
# exit 77 without a GPU.
set -u
directp=$1 source=$2 folder=$3 full=${4:-} part=${5:-0/1}
mkdir -p "$folder" || exit 2
"$directp" device probe >"$folder/probe.txt" 2>&1 || { cat "$folder/probe.txt"; exit 77; }
record=$folder/suite.csv
bad=0
echo "arguments,elements,codes,mismatches" >"$record"

number=0
run() {
  number=$((number + 1))
  [ $(((number - 1) % ${part#*/})) -eq "${part%/*}" ] || return 0
  "$directp" device diff --csv "$@" >"$folder/case.csv" 2>&1
  status=$?
  awk -F, -v a="$*" '$1 == "injected" || $1 == "chained" || $1 == "fused" ||
      $1 == "reference" {
      elements += $3; mismatches += $4; if ($2 == "p_payload") codes += 2 * $3 }
    END { printf "%s,%.0f,%.0f,%.0f\n", a, elements, codes, mismatches }' "$folder/case.csv" >>"$record"
  if [ $status -ne 0 ]; then
    bad=$((bad + 1))
    echo "exit $status: directp device diff $*"
    cat "$folder/case.csv"
  fi
}

cd "$source" || exit 2
seed=0
for policy in fast accurate guard-1.3b guard-14b wan ideal ideal-accurate cubic quadratic affine-nvnv; do
  for epoch in S R; do
    seed=$((seed + 1))
    set -- --policy $policy --epoch $epoch
    run --random $seed --seq 128 --heads 3 "$@"
    run --random $seed --seq 640 --heads 5 --batch 2 "$@" --q-factor 4
    run --random $seed --seq 1000 --heads 6 --kv-heads 2 "$@" --q-factor 10 --causal
    run --random $seed --seq 385 --heads 7 --kv-heads 1 --batch 3 --dim 64 "$@" --q-factor 1000
    for file in data/device/inputs/*.h5; do
      run "$file" "$@"
    done
  done
done
for file in data/real/*.h5; do
  for policy in fast accurate guard-14b; do
    for epoch in S R; do
      run "$file" --policy $policy --epoch $epoch
      run "$file" --policy $policy --epoch $epoch --smooth-k
    done
  done
done
if [ "$full" = full ]; then
  run --random 91 --seq 4096 --heads 3 --policy fast --epoch R
  run --random 92 --seq 8192 --heads 2 --kv-heads 1 --policy accurate --epoch R --causal
  run --random 93 --seq 16384 --heads 1 --policy guard-14b --epoch R --q-factor 4
  # more than 2^28 scores in all: compared head by head
  run --random 95 --seq 6144 --heads 8 --kv-heads 4 --policy accurate --epoch R
  run --random 94 --seq 32768 --heads 1 --policy fast --epoch S
fi
awk -F, -v bad=$bad 'NR > 1 { e += $2; c += $3; m += $4 }
  END { printf "%d cases, %d bad, %.0f elements, %.0f codes, %.0f mismatches\n", NR - 1, bad, e, c, m }' \
  "$record"
[ $bad -eq 0 ]
