# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Sourced by analysis/run.sh and tests/run.sh: install what is missing, build quietly.

packages="cmake ninja-build gcc g++ libc6-dev pkg-config libhdf5-dev hdf5-tools librandom123-dev
gnuplot-nox libmpfr-dev check libopenblas-dev"

say() { printf '%s\n' "$*" >&2; }
die() { say "$0: $*"; exit 2; }

# Print the packages that are not installed.
missing_packages() {
    for package in $packages; do
        dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed' ||
            printf '%s ' "$package"
    done
}

# run_logged LOG COMMAND...: silent unless it fails.
run_logged() {
    log=$1
    shift
    if ! "$@" >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        die "'$*' failed; the whole output is in $log"
    fi
}

install_packages() {
    if ! command -v dpkg >/dev/null 2>&1; then
        say "not a Debian system: assuming that cmake, ninja, HDF5, Random123, MPFR, Check and" \
            "gnuplot are there"
        return 0
    fi
    missing=$(missing_packages)
    [ -n "$missing" ] || return 0
    [ "$(id -u)" -eq 0 ] || die "missing packages: run as root, or first: apt-get install $missing"
    say "installing: $missing"
    run_logged build/apt-update.log apt-get update
    # shellcheck disable=SC2086 # one word a package
    run_logged build/apt-install.log env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends $missing
}

# configure_and_build TARGET...: in build/, with the release preset and $configure_options.
configure_and_build() {
    say "building: minutes, longer where nvcc is found; progress is in build/build.log"
    # shellcheck disable=SC2086 # one word an option
    run_logged build/configure.log cmake --preset release ${configure_options:-}
    run_logged build/build.log cmake --build build --target "$@"
}
