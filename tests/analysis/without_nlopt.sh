#!/bin/sh
# SPDX-License-Identifier: MIT
# -DDIRECTP_NLOPT=OFF configures, and the optimiser it builds refers to nothing of NLopt. What that
# optimiser does is tested by analysis_test_fit_pattern and analysis_test_fit_search_pattern.
# usage: without_nlopt.sh SOURCE_DIR SCRATCH_DIR GENERATOR
set -eu
rm -rf "$2"
cmake -S "$1" -B "$2" -G "$3" -DDIRECTP_NLOPT=OFF -DDIRECTP_CUDA=OFF -DDIRECTP_TESTS=OFF >/dev/null
grep -q 'DIRECTP_NLOPT:BOOL=OFF' "$2/CMakeCache.txt"
if grep -rq -e DP_HAVE_NLOPT -e libnlopt "$2/compile_commands.json" "$2"/*.ninja 2>/dev/null; then
  echo "the build still asks for NLopt" >&2
  exit 1
fi
file=analysis/fit_refine.c
command=$(sed -n "s/^ *\"command\": \"\(.*$(basename $file .c)\.c\)\",*$/\1/p" "$2/compile_commands.json")
[ -n "$command" ] || { echo "no command for $file in compile_commands.json" >&2; exit 1; }
(cd "$2" && mkdir -p "$(dirname "analysis/CMakeFiles/directp_analysis.dir/fit_refine.c.o")" && eval "$command")
object=$(find "$2" -name 'fit_refine.c.o')
if nm "$object" | grep -q nlopt; then
  echo "fit_refine.c refers to NLopt" >&2
  exit 1
fi
nm "$object" | grep -q 'T dp_fit_refine$'
