#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Write the table of ref/forward/REAL.md again: real_table.sh DIRECTP [FILE.h5...]. Without files,
# those of data/real. Prints the Markdown; the page keeps it between its two marks.
set -e
here=$(cd "$(dirname "$0")/.." && pwd)
directp=$1
shift
[ $# -gt 0 ] || set -- "$here"/data/real/*.h5
"$directp" attend "$@" --table --csv | awk -F, '
NR == 1 { next }
{ sub(/\r$/, "") }
{
    name = $5 ($6 == "-" ? "" : " " $6)
    if (!(name in seen)) { seen[name] = 1; order[++names] = name }
    row = $1 "," $2 "," $4
    if (!(row in known)) {
        known[row] = 1
        rows[++count] = row
        head[row] = sprintf("| %s | %s | %.0f | %s |", $1, $2, $3, $4)
    }
    cell[row, name] = sprintf("%.3f / %.3f%s", $7, $8, $11 + 0 > 0 ? ", **" $11 "**" : "")
}
END {
    line = "| file | head | largest logit | smooth |"
    rule = "|---|---|---|---|"
    for (i = 1; i <= names; i++) { line = line " " order[i] " |"; rule = rule "---|" }
    print line
    print rule
    for (r = 1; r <= count; r++) {
        line = head[rows[r]]
        for (i = 1; i <= names; i++) line = line " " cell[rows[r], order[i]] " |"
        print line
    }
}'
