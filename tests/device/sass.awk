# SPDX-License-Identifier: MIT
# Output of nvdisasm -c to a table, one line a kernel: instructions up to the end, those before the first
# 16 bytes of codes are stored, and how often the named ones occur in the whole kernel.
BEGIN {
  names = "F2FP FFMA2 FFMA MUFU PRMT IDP FSETP LDS"
  n_names = split(names, name, " ")
  printf "target,kernel,instructions,before_first_publish"
  for (i = 1; i <= n_names; i++) printf ",%s", tolower(name[i])
  print ",local"
}
function flush_kernel(  i) {
  if (kernel == "") return
  printf "%s,%s,%d,%d", target, kernel, total, before
  for (i = 1; i <= n_names; i++) printf ",%d", count[name[i]]
  printf ",%d\n", local
}
/^\.text\./ {
  flush_kernel()
  kernel = substr($1, 7); sub(/:$/, "", kernel)
  total = before = local = ended = 0; published = 0; split("", count)
  next
}
/^[ \t]*\/\*[0-9a-f]+\*\// {
  line = $0
  sub(/^[ \t]*\/\*[0-9a-f]+\*\/[ \t]*/, "", line)
  sub(/^@!?U?P[0-9T]+[ \t]+/, "", line)
  split(line, word, /[ ;]/); op = word[1]; base = op; sub(/\..*/, "", base)
  if (ended && (base == "BRA" || base == "NOP")) next # padding behind the last EXIT
  if (!published && op ~ /^STG.*\.128/) { published = 1; before = total }
  total++
  if (base == "EXIT") ended = 1
  if (base == "STL" || base == "LDL") local++
  if (base == "F2FP" && op !~ /E2M1/) next
  if (base == "MUFU" && op !~ /EX2/) next
  if (base == "IDP" && op !~ /4A/) next
  count[base]++
}
END { flush_kernel() }
