#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: consumer.sh CMAKE BUILD_DIR THIS_DIR WORK_DIR COMPILER [FLAGS]
set -eu
cmake=$1 build=$2 here=$3 work=$4 compiler=$5 flags=${6-}
prefix=$work/prefix
rm -rf "$prefix" "$work/consumer"
"$cmake" --install "$build" --prefix "$prefix" >/dev/null

"$cmake" -S "$here/project" -B "$work/consumer" -DCMAKE_C_COMPILER="$compiler" \
  -DCMAKE_C_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
"$cmake" --build "$work/consumer" >/dev/null
"$work/consumer/consumer"

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name directp.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046,SC2086 # several words each, on purpose
"$compiler" -std=c11 $flags $(pkg-config --cflags directp) "$here/consumer.c" \
  $(pkg-config --libs directp) -o "$work/consumer/with_pkg_config"
"$work/consumer/with_pkg_config"

# Nothing private leaks out, and no installed file names the build or source tree.
private=$(find "$prefix" -name '*_internal.h' -o -name '*_plan.h')
[ -z "$private" ] || { echo "installed but private: $private" >&2; exit 1; }
leaks=$(grep -rlIF "$(dirname "$(dirname "$here")")/" "$prefix/lib"*/cmake "$PKG_CONFIG_PATH" || true)
leaks=$(for file in $leaks; do grep -vF "$prefix" "$file" | grep -qF "$(dirname "$(dirname "$here")")/" && echo "$file"; done || true)
[ -z "$leaks" ] || { echo "paths of the source tree in: $leaks" >&2; exit 1; }
