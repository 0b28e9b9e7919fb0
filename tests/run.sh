#!/bin/sh
# SPDX-License-Identifier: MIT
# Install, build and run the default tests, alone on a fresh Debian 12 as root. The last line says
# how many passed, failed and were skipped; exit 1 if one failed.
#   sh tests/run.sh
#   DIRECTP_CUDA_FROM_PYPI=1 sh tests/run.sh   fetch nvcc and the CUDA headers (version 13.0) from
#                                              PyPI into build/cuda-venv and use them
# With nvcc on the machine the CUDA headers take part; without it those tests are skipped. The
# complete sweeps are `ctest --test-dir build -L exhaustive`, the long ones `-L slow`.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
. analysis/setup.sh

# nvcc and its headers in a virtual environment; sets CUDACXX and CUDA_HOME.
cuda_from_pypi() {
    venv=build/cuda-venv
    if [ ! -x "$venv/bin/pip" ]; then
        run_logged build/venv.log python3 -m venv "$venv"
    fi
    run_logged build/pip.log "$venv/bin/pip" install --disable-pip-version-check \
        'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-nvvm==13.0.*' \
        'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*'
    nvcc=$(find "$PWD/$venv" -path '*/bin/nvcc' | head -n 1)
    [ -n "$nvcc" ] || die "the packages from PyPI hold no nvcc; see build/pip.log"
    CUDACXX=$nvcc
    CUDA_HOME=${nvcc%/bin/nvcc}
    # The packages have lib where nvcc looks for lib64.
    [ -e "$CUDA_HOME/lib64" ] || ln -s lib "$CUDA_HOME/lib64"
    export CUDACXX CUDA_HOME
}

if [ "${DIRECTP_CUDA_FROM_PYPI:-0}" = 1 ]; then
    packages="$packages python3-venv"
fi
# Where nvcc is, the machine code of its kernels is read too: with nvdisasm of the toolkit, else one that
# pip fetches into build/nvdisasm; without either that test is skipped.
if [ "${DIRECTP_CUDA_FROM_PYPI:-0}" = 1 ] || [ -n "${CUDACXX:-}" ] || command -v nvcc >/dev/null 2>&1 ||
    [ -x /usr/local/cuda/bin/nvcc ]; then
    configure_options="-DDIRECTP_FETCH_NVDISASM=ON"
    python3 -m pip --version >/dev/null 2>&1 || packages="$packages python3-pip"
fi
install_packages
if [ "${DIRECTP_CUDA_FROM_PYPI:-0}" = 1 ]; then
    cuda_from_pypi
fi
configure_and_build all

result=build/tests.xml
rm -f "$result"
ctest --test-dir build -LE 'exhaustive|slow' -j 2 --output-on-failure --output-junit tests.xml \
    >build/tests.log 2>&1 || failed_run=1
[ -f "$result" ] || { tail -n 40 build/tests.log >&2; die "ctest did not run"; }

# Attribute NAME of the <testsuite> element.
count() { sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$result" | head -n 1; }
total=$(count tests)
failed=$(count failures)
skipped=$(($(count skipped) + $(count disabled)))
if [ "$failed" -ne 0 ]; then
    cat build/tests.log >&2
elif [ "${failed_run:-0}" -ne 0 ]; then
    tail -n 40 build/tests.log >&2
fi
sed -n 's/.*(Skipped)/&/p' build/tests.log | sed 's/^[[:space:]]*/skipped: /'
echo "$((total - failed - skipped)) passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "${failed_run:-0}" -eq 0 ] && [ "$total" -gt 0 ]
