#!/bin/sh
# SPDX-License-Identifier: MIT
# Every public header alone: as C11, as C++17, with every compiler given. Then the mistakes that the
# wrapper types are there to stop: each must be refused, and its correct twin taken.
# usage: headers.sh SOURCE_DIR COMPILER... (a compiler whose name ends in ++ compiles C++)
set -eu
source=$1
shift
status=0
count=0

# compile COMPILER < program
compile() {
  case $1 in
    *++) "$1" -x c++ -std=c++17 -Wall -Wextra -Werror -I "$source" -fsyntax-only - ;;
    *) "$1" -x c -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I "$source" -fsyntax-only - ;;
  esac
}

fail() {
  echo "$*" >&2
  status=1
}

for compiler in "$@"; do
  for header in $(cd "$source" && find formats ref -name '*.h' | sort); do
    case $compiler:$header in
      *++:*_internal.h | *++:*_plan.h) continue ;; # private to C sources
    esac
    printf '#include "%s"\n#include "%s"\n' "$header" "$header" | compile "$compiler" ||
      fail "$compiler: $header does not stand alone"
    count=$((count + 1))
  done
  while IFS='|' read -r verdict statement; do
    [ -n "$verdict" ] || continue
    program='#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/e8m0.h"
#include "formats/ue4m3.h"
float probe(dp_e4m3 a, dp_e5m2 b, dp_e2m1 c, dp_e8m0 d, dp_ue4m3 e, dp_e2m1x2 f);
float probe(dp_e4m3 a, dp_e5m2 b, dp_e2m1 c, dp_e8m0 d, dp_ue4m3 e, dp_e2m1x2 f)
{ (void)a; (void)b; (void)c; (void)d; (void)e; (void)f; '"$statement"' return 0.0f; }'
    if printf '%s\n' "$program" | compile "$compiler" 2>/dev/null; then
      got=compiles
    else
      got=refused
    fi
    [ "$got" = "$verdict" ] || fail "$compiler: '$statement' is $got, must be $verdict"
    count=$((count + 1))
  done <<'MISTAKES'
compiles|a = dp_e4m3_from_f32(dp_e5m2_to_f32(b), DP_ENCODE_PTX);
refused|a = b;
refused|return dp_e4m3_to_f32(b);
refused|return dp_e4m3_to_f32(e);
refused|return dp_e2m1_to_f32(a);
refused|return dp_e2m1_to_f32(f);
refused|return dp_e8m0_to_f32(e);
refused|return dp_e4m3_to_f32((unsigned char)1);
refused|d = dp_e8m0_from_f32(1.0f, DP_ENCODE_PTX);
refused|a = dp_e5m2_from_f32(1.0f, DP_ENCODE_PTX);
MISTAKES
done
echo "$count compilations"
exit $status
