#!/bin/sh
# SPDX-License-Identifier: MIT
# clang-format, clang-tidy, cppcheck and shellcheck over the tree. A tool that is not installed is
# skipped and said so. Exit 1 when any of them complains.
# usage: lint.sh [BUILD_DIR] [FOLDER...]   (BUILD_DIR, default build: for compile_commands.json;
# folders: default all of the product)
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- formats ref analysis device tests data
status=0

have() {
  command -v "$1" >/dev/null && return 0
  echo "lint: $1 is not installed: skipped"
  return 1
}

# files PATTERN... of the folders, tracked by git or not yet
folders=$*
files() {
  # shellcheck disable=SC2086 # a list of folders
  find $folders -type f \( -name "$1" -o -name "${2:-$1}" -o -name "${3:-$1}" \) | sort
}

if have clang-format; then
  files '*.c' '*.h' '*.cpp' | xargs clang-format --dry-run -Werror || status=1
fi
if have clang-tidy; then
  if [ -f "$build/compile_commands.json" ]; then
    files '*.c' | while read -r file; do # only what is built has a command line
      grep -q "/$file\"" "$build/compile_commands.json" && echo "$file"
    done | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p "$build" || status=1
  else
    echo "lint: $build/compile_commands.json is missing: configure first; clang-tidy skipped"
  fi
fi
if have cppcheck; then
  # Each suppression: cppcheck takes a table of inputs for dead code, or asks for style it invents.
  files '*.c' | xargs cppcheck --quiet --std=c11 -I . -I tests/support --inline-suppr \
    --enable=warning,performance,portability --error-exitcode=1 -D__x86_64__ \
    --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches \
    --suppress=unknownMacro -j "$(nproc)" || status=1
fi
if have shellcheck; then
  find . \( -name .git -o -name 'build*' -o -name out \) -prune -o -type f \
    \( -name '*.sh' -o -path './.ci/*' \) -exec shellcheck {} + || status=1
fi
[ $status -eq 0 ] && echo "lint: clean"
exit $status
