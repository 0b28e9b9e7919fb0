# SPDX-License-Identifier: MIT
# Output of nvdisasm -c to a table, one line a kernel: instructions up to the end (functions it calls
# included), those before the first store to global memory, and how often the named ones occur.
BEGIN {
  names = "F2FP.E2M1 F2FP.E4M3 FFMA2 FFMA HFMA2 MUFU.EX2 PRMT IDP.4A FSETP LDS"
  n_names = split(names, name, " ")
  printf "target,kernel,instructions,before_first_publish"
  for (i = 1; i <= n_names; i++) printf ",%s", tolower(name[i])
  print ",local"
  n_kernels = split("quantize_plain quantize_values quantize_folded produce_kernel", wanted, " ")
}
function flush_kernel(  i) {
  if (kernel == "") return
  printf "%s,%s,%d,%d", target, kernel, total, before
  for (i = 1; i <= n_names; i++) printf ",%d", count[name[i]]
  printf ",%d\n", local
}
/^\.text\./ {
  flush_kernel()
  symbol = substr($1, 7); sub(/:$/, "", symbol)
  kernel = symbol ~ /^producer_/ ? symbol : ""
  for (i = 1; i <= n_kernels; i++) {
    if (index(symbol, wanted[i])) kernel = wanted[i] (symbol ~ /ILb1E/ ? "_ordered" : "")
  }
  total = before = local = ended = 0; published = 0; split("", count)
  next
}
/^[ \t]*\/\*[0-9a-f]+\*\// {
  line = $0
  sub(/^[ \t]*\/\*[0-9a-f]+\*\/[ \t]*/, "", line)
  sub(/^@!?U?P[0-9T]+[ \t]+/, "", line)
  split(line, word, /[ ;]/); op = word[1]; base = op; sub(/\..*/, "", base)
  if (ended && (base == "BRA" || base == "NOP")) next # padding behind the last EXIT
  if (!published && op ~ /^STG/) { published = 1; before = total }
  total++
  if (base == "EXIT" || base == "RET") ended = 1
  if (base == "STL" || base == "LDL") local++
  if (op ~ /^F2FP.*\.E2M1/) count["F2FP.E2M1"]++
  if (op ~ /^F2FP\.SATFINITE\.E4M3/) count["F2FP.E4M3"]++
  if (op ~ /^MUFU\.EX2/) count["MUFU.EX2"]++
  if (op ~ /^IDP\.4A/) count["IDP.4A"]++
  count[base]++
}
END { flush_kernel() }
