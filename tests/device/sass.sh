#!/bin/sh
# SPDX-License-Identifier: MIT
# sass.sh NVCC SOURCE FOLDER [NVDISASM]
# Compile the producers and read what came out: registers and spills as ptxas reports them, the promised
# instructions in the PTX and, where nvdisasm is given, in the machine code, with their counts beside the
# committed table (data/sass/producer.csv, refreshed by hand from FOLDER/producer.csv).
set -u
nvcc=$1 source=$2 folder=$3 nvdisasm=${4:-}
file=device/native/producer.cu
failed=0
fail() { echo "sass: $*" >&2; failed=1; }
mkdir -p "$folder" || exit 2
cd "$source" || exit 2

# compile ARCH SUFFIX OUTPUT-OPTION
compile() {
  "$nvcc" -std=c++17 -I. --fmad=false -arch="$1" "$3" -Xptxas -v "$file" -o "$folder/producer.$1.$2" \
    >"$folder/$1.$2.log" 2>&1 || { cat "$folder/$1.$2.log" >&2; fail "$1: nvcc failed"; return 1; }
}

resources() { # ARCH
  grep -q ' spill stores' "$folder/$1.cubin.log" || fail "$1: ptxas reports no resources"
  grep ' spill stores' "$folder/$1.cubin.log" |
    grep -v '0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' &&
    fail "$1: a producer spills"
  most=$(sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' "$folder/$1.cubin.log" | sort -n | tail -1)
  [ "${most:-999}" -le 128 ] || fail "$1: a producer takes $most registers, 128 at most"
  echo "$1: at most $most registers, no spills"
}

ptx() { # ARCH: the promised instructions, as PTX names them
  for want in cvt.rn.satfinite.relu.e2m1x2.f32 fma.rn.ftz.f32x2 ex2.approx.ftz.f32 prmt.b32 \
    dp4a.u32.u32; do
    grep -qF "$want" "$folder/producer.$1.ptx" || fail "$1: $want is missing from the PTX"
  done
}

# field KERNEL TARGET COLUMN of producer.csv
field() { awk -F, -v k="$1" -v t="$2" -v c="$3" '$1 == t && $2 == k { print $c }' "$folder/producer.csv"; }

at_least() { # ARCH KERNEL COLUMN NAME NUMBER
  got=$(field "$2" "$1" "$3")
  [ "${got:-0}" -ge "$5" ] || fail "$1 $2: ${got:-0} $4, at least $5 expected"
}

machine_code() { # ARCH
  for kernel in producer_affine producer_affine_native producer_cubic producer_ex2; do
    at_least "$1" $kernel 5 'F2FP E2M1' 64
    at_least "$1" $kernel 6 FFMA2 64
    at_least "$1" $kernel 9 PRMT 32
    at_least "$1" $kernel 10 IDP.4A 4
  done
  at_least "$1" producer_affine_native 8 'MUFU.EX2' 32
  at_least "$1" producer_ex2 8 'MUFU.EX2' 128
  [ "$(field producer_affine "$1" 8)" = 0 ] || fail "$1: the affine map takes MUFU.EX2"
  shortest=$(field producer_affine "$1" 4)
  for kernel in affine_native cubic ex2 tree table; do
    other=$(field producer_$kernel "$1" 4)
    [ "$shortest" -lt "${other:-0}" ] ||
      fail "$1: $shortest instructions before the affine map publishes, $kernel needs ${other:-0}"
  done
  awk -F, -v t="$1" '$1 == t && $13 != 0 { exit 1 }' "$folder/producer.csv" ||
    fail "$1: a producer uses local memory"
}

for arch in sm_100a sm_103a; do
  compile $arch cubin -cubin && resources $arch
  compile $arch ptx -ptx && ptx $arch
done
compile sm_90a cubin -cubin && resources sm_90a

if [ -n "$nvdisasm" ]; then
  for arch in sm_90a sm_100a sm_103a; do
    "$nvdisasm" -c "$folder/producer.$arch.cubin" >"$folder/$arch.sass" || fail "$arch: nvdisasm failed"
    awk -v target=$arch -f tests/device/sass.awk "$folder/$arch.sass" >"$folder/$arch.csv"
  done
  sed -n 1p "$folder/sm_90a.csv" >"$folder/producer.csv"
  for arch in sm_90a sm_100a sm_103a; do
    sed 1d "$folder/$arch.csv" | sort >>"$folder/producer.csv"
  done
  machine_code sm_100a
  machine_code sm_103a
  cat "$folder/producer.csv"
  if "$nvcc" --version | grep -qF V13.0.88; then
    cmp "$folder/producer.csv" data/sass/producer.csv || fail "the counts differ from data/sass"
  fi
else
  echo "no disassembler: the machine code was not read (-DDIRECTP_NVDISASM=FILE)"
fi
exit $failed
