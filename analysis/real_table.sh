#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Make the table of ref/forward/REAL.md again, in its place: real_table.sh DIRECTP. With files
# (real_table.sh DIRECTP FILE.h5...) the table of those is printed instead.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
directp=$1
shift
page=
if [ $# -eq 0 ]; then
    page=$here/ref/forward/REAL.md
    set -- "$here"/data/real/*.h5
fi
table=$(mktemp)
trap 'rm -f "$table" "$table.page"' EXIT
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
}' > "$table"
if [ -z "$page" ]; then
    cat "$table"
    exit
fi
# The table of the page is the one whose first line begins with "| file |".
awk -v table="$table" '
/^\| file \|/ { while ((getline line < table) > 0) print line; inside = 1 }
inside && !/^\|/ { inside = 0 }
!inside { print }
' "$page" > "$table.page"
cat "$table.page" > "$page"
