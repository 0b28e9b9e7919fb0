#!/bin/sh
# SPDX-License-Identifier: MIT
# sass.sh NVCC SOURCE FOLDER [NVDISASM]
# Compile the producers and quantizers and read what came out: registers and spills as ptxas reports them,
# the promised instructions in the PTX and, where nvdisasm is given, in the machine code, with their counts
# beside the committed tables (data/sass, refreshed by hand from FOLDER/producer.csv and FOLDER/kernels.csv).
#   native/producer.cu                 the producer with its policy known to the compiler
#   kernels/{quantize,quantize_fold,stages}.cu   the kernels that also run elsewhere, emulated
set -u
nvcc=$1 source=$2 folder=$3 nvdisasm=${4:-}
failed=0
fail() { echo "sass: $*" >&2; failed=1; }
mkdir -p "$folder" || exit 2
cd "$source" || exit 2

# compile FILE ARCH SUFFIX: FOLDER/NAME.ARCH.SUFFIX and its log
compile() {
  name=$(basename "$1" .cu)
  "$nvcc" -std=c++17 -I. --fmad=false -arch="$2" "-$3" -Xptxas -v "$1" -o "$folder/$name.$2.$3" \
    >"$folder/$name.$2.$3.log" 2>&1 ||
    { cat "$folder/$name.$2.$3.log" >&2; fail "$2: nvcc failed on $1"; return 1; }
}

# resources NAME ARCH [KERNEL...]: no spills, no stack, at most 128 registers, of the named kernels or all.
# What ptxas says of a kernel follows the line with its name.
resources() {
  name=$1 arch=$2
  shift 2
  most=$(awk -v wanted="$*" '
    BEGIN { n = split(wanted, want, " ") }
    /Compiling entry function/ {
      on = n == 0
      for (i = 1; i <= n; i++) if (index($0, want[i])) { on = 1; seen[i] = 1 }
    }
    on && / spill stores/ && !/ 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/ { bad = 1 }
    on && /Used [0-9]+ registers/ { sub(/.*Used /, ""); if ($1 + 0 > most) most = $1 + 0 }
    END {
      for (i = 1; i <= n; i++) if (!seen[i]) bad = 1
      print bad || !most ? 999 : most
    }' "$folder/$name.$arch.cubin.log")
  [ "$most" -le 128 ] || fail "$arch: $name spills, is missing, or takes more than 128 registers"
  echo "$arch $name: at most $most registers, no spills"
}

ptx() { # NAME ARCH INSTRUCTION...: as PTX names them
  file=$folder/$1.$2.ptx arch=$2
  shift 2
  for want in "$@"; do
    grep -qF "$want" "$file" || fail "$arch: $want is missing from $file"
  done
}

# field KERNEL TARGET NAME of both tables
field() {
  awk -F, -v k="$1" -v t="$2" -v c="$3" 'FNR == 1 { for (i = 1; i <= NF; i++) if ($i == c) at = i }
    $1 == t && $2 == k { print $at }' "$folder/producer.csv" "$folder/kernels.csv"
}

at_least() { # ARCH KERNEL NAME NUMBER
  got=$(field "$2" "$1" "$3")
  [ "${got:-0}" -ge "$4" ] || fail "$1 $2: ${got:-0} $3, at least $4 expected"
}

machine_code() { # ARCH
  for kernel in producer_affine producer_affine_native producer_cubic producer_ex2; do
    at_least "$1" $kernel f2fp.e2m1 64
    at_least "$1" $kernel ffma2 64
    at_least "$1" $kernel prmt 32
    at_least "$1" $kernel idp.4a 4
  done
  at_least "$1" producer_affine_native mufu.ex2 32
  at_least "$1" producer_ex2 mufu.ex2 128
  [ "$(field producer_affine "$1" mufu.ex2)" = 0 ] || fail "$1: the affine map takes MUFU.EX2"
  shortest=$(field producer_affine "$1" before_first_publish)
  for kernel in affine_native cubic ex2 tree table; do
    other=$(field producer_$kernel "$1" before_first_publish)
    [ "$shortest" -lt "${other:-0}" ] ||
      fail "$1: $shortest instructions before the affine map publishes, $kernel needs ${other:-0}"
  done
  # a quarter: 32 values in pairs, whatever the policy; 3 pieces of 8 values; 2 x 32 keys; 32 values
  at_least "$1" produce_kernel f2fp.e2m1 16
  at_least "$1" produce_kernel ffma2 32
  at_least "$1" produce_kernel mufu.ex2 32
  at_least "$1" produce_kernel prmt 8
  at_least "$1" produce_kernel idp.4a 1
  for kernel in quantize_plain quantize_plain_ordered; do
    at_least "$1" $kernel f2fp.e2m1 12
    at_least "$1" $kernel f2fp.e4m3 3
  done
  at_least "$1" quantize_values f2fp.e2m1 32
  for kernel in quantize_folded quantize_folded_ordered; do
    at_least "$1" $kernel f2fp.e2m1 16
    at_least "$1" $kernel f2fp.e4m3 2
    at_least "$1" $kernel hfma2 48
  done
  awk -F, -v t="$1" '$1 == t && $NF != 0 { exit 1 }' "$folder/producer.csv" "$folder/kernels.csv" ||
    fail "$1: a kernel uses local memory"
}

# table OUTPUT NAME...: the files' kernels, target after target
table() {
  output=$1
  shift
  : >"$output"
  for arch in sm_90a sm_100a sm_103a; do
    for name in "$@"; do
      "$nvdisasm" -c "$folder/$name.$arch.cubin" >"$folder/$name.$arch.sass" ||
        fail "$arch: nvdisasm failed"
      awk -v target=$arch -f tests/device/sass.awk "$folder/$name.$arch.sass" >"$folder/part.csv"
      [ -s "$output" ] || sed -n 1p "$folder/part.csv" >"$output"
      sed 1d "$folder/part.csv" | LC_ALL=C sort >>"$output"
    done
  done
}

for arch in sm_90a sm_100a sm_103a; do
  for file in native/producer kernels/quantize kernels/quantize_fold kernels/stages; do
    compile device/$file.cu "$arch" cubin
  done
  resources producer "$arch"
  resources quantize "$arch" quantize_plain quantize_values
  resources quantize_fold "$arch" quantize_folded
  resources stages "$arch" produce_kernel
  [ "$arch" != sm_90a ] || continue
  compile device/native/producer.cu "$arch" ptx
  ptx producer "$arch" cvt.rn.satfinite.relu.e2m1x2.f32 fma.rn.ftz.f32x2 ex2.approx.ftz.f32 prmt.b32 \
    dp4a.u32.u32
  compile device/kernels/quantize.cu "$arch" ptx
  ptx quantize "$arch" cvt.rn.satfinite.e2m1x2.f32 cvt.rn.satfinite.e4m3x2.f32 max.bf16x2
done

if [ -n "$nvdisasm" ]; then
  table "$folder/producer.csv" producer
  table "$folder/kernels.csv" quantize quantize_fold stages
  machine_code sm_100a
  machine_code sm_103a
  cat "$folder/producer.csv" "$folder/kernels.csv"
  if "$nvcc" --version | grep -qF V13.0.88; then
    for name in producer kernels; do
      cmp "$folder/$name.csv" data/sass/$name.csv || fail "the counts differ from data/sass/$name.csv"
    done
  fi
else
  echo "no disassembler: the machine code was not read (-DDIRECTP_NVDISASM=FILE)"
fi
exit $failed
