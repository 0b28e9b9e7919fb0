#!/bin/sh
# SPDX-License-Identifier: MIT
# Plant one fault after the other in a copy of the source tree, build, and see a test go red.
# usage: mutants.sh SOURCE_DIR SCRATCH_DIR [PATTERN]   (PATTERN: only the table's lines that match)
# Prints "caught FILE: EXPRESSION -> TEST"; exit 1 when a fault passes or no longer applies.
set -eu
source=$1 scratch=$2 pattern=${3:-.}
tree=$scratch/tree build=$scratch/build
mkdir -p "$tree" "$build"
jobs=$(nproc)

# A file that is the same keeps its time, so that a second run rebuilds nothing.
(cd "$source" && find . \( -name .git -o -name 'build*' -o -name out \) -prune -o -type f -print) |
  while read -r file; do
    cmp -s "$source/$file" "$tree/$file" && continue
    mkdir -p "$(dirname "$tree/$file")"
    cp "$source/$file" "$tree/$file"
  done
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O1 \
  -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DDIRECTP_CUDA=OFF -DDIRECTP_WERROR=OFF >/dev/null
ninja -C "$build" -t targets all >"$scratch/targets"

# run REGEX: build what the tests need, run them; 0 when all pass. Names of the failed in $scratch/failed.
run() {
  ctest --test-dir "$build" -N -R "$1" | sed -n 's/^ *Test *#[0-9]*: //p' >"$scratch/tests"
  [ -s "$scratch/tests" ] || { echo "no test matches $1" >&2; exit 2; }
  targets=
  while read -r test; do
    if grep -q "^$test: phony" "$scratch/targets"; then
      targets="$targets $test"
    fi
  done <"$scratch/tests"
  # shellcheck disable=SC2086 # a list of targets
  if [ -n "$targets" ] && ! ninja -C "$build" -j "$jobs" $targets >"$scratch/log" 2>&1; then
    echo "the build" >"$scratch/failed"
    return 1
  fi
  ctest --test-dir "$build" -R "$1" >"$scratch/log" 2>&1 && return 0
  sed -n 's/^[[:space:]]*[0-9]* - \([^ ]*\) (.*/\1/p' "$scratch/log" | paste -sd ' ' >"$scratch/failed"
  return 1
}

status=0 count=0
grep -v -e '^#' -e '^$' "$source/tests/mutants.txt" | grep -e "$pattern" >"$scratch/table" || {
  echo "mutants.txt: no line matches $pattern" >&2
  exit 2
}
# Every test named is green before anything is planted.
# shellcheck disable=SC2013 # a regex holds no blank
for regex in $(sed 's/.* | //' "$scratch/table" | sort -u); do
  run "$regex" || { echo "$regex fails without any fault: $(cat "$scratch/failed")" >&2; exit 2; }
done

while read -r line; do
  file=${line%% | *}
  regex=${line##* | }
  expression=${line#* | }
  expression=${expression% | *}
  count=$((count + 1))
  sed -e "$expression" "$source/$file" >"$scratch/mutant"
  if cmp -s "$scratch/mutant" "$source/$file"; then
    echo "STALE    $file: $expression: changes nothing"
    status=1
    continue
  fi
  cp "$scratch/mutant" "$tree/$file"
  if run "$regex" </dev/null; then
    echo "SURVIVED $file: $expression: passes $regex"
    status=1
  elif [ "$(cat "$scratch/failed")" = "the build" ]; then
    echo "BROKEN   $file: $expression: does not compile"
    status=1
  else
    echo "caught   $file: $expression -> $(cat "$scratch/failed")"
  fi
  cp "$source/$file" "$tree/$file"
done <"$scratch/table"
echo "$count faults"
exit $status
