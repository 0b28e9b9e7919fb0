# SPDX-License-Identifier: MIT
# Where and how far a kernel differs from the oracle. Run `gnuplot diff.gp` in this folder after an
# edit; `directp plot diff --reset` brings the original back.
load "diff_settings.gp"

set encoding utf8
set tics nomirror out
headline = sprintf("%s: stage %s (%s), %d of %d elements differ%s", source, stage, dataset, \
                   mismatches, elements, diagnosis eq "" ? "" : sprintf("\nmistake: %s", diagnosis))

# ---- Where: query rows x keys, all heads together ----
set terminal pngcairo size 1000,900 font "sans,12" noenhanced
set output "diff_map.png"
set title headline
set xlabel across
set ylabel "row (all heads together)"
set xrange [0:columns]
set yrange [rows:0]
set cbrange [1:*]
set logscale cb 10
set cbtics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, \
             100000, 1000000)
set cblabel "mismatches in a cell"
set palette defined (0 "#fee8c8", 0.5 "#fc8d59", 1 "#7f0000")
set object 1 rectangle from graph 0,0 to graph 1,1 fillcolor rgb "#eef3f7" behind
if (tile > 0) {
  do for [i = 1:int(columns / tile)] {
    if (i * tile < columns) {
      set arrow from i * tile, graph 0 to i * tile, graph 1 nohead front lc rgb "#90808080"
    }
  }
}
do for [i = 1:int(rows / 128)] {
  if (i * 128 < rows) {
    set arrow from graph 0, first i * 128 to graph 1, first i * 128 nohead front lc rgb "#90808080"
  }
}
plot "diff_map.dat" using 1:2:3 with image notitle
unset object 1
unset arrow
unset logscale cb

# ---- How far ----
set terminal pngcairo size 1000,600 font "sans,12" noenhanced
set output "diff_histogram.png"
set title headline
set xlabel "distance (codes, bytes or ulps): from this power of two up to the next"
set ylabel "mismatches"
set xrange [low - 1:high + 1]
set yrange [0.5:*]
set logscale y 10
set grid ytics lc rgb "#dddddd"
set border 3
set style fill solid 0.8 border
set boxwidth 0.8
set xtics rotate by 45 right
plot "diff_histogram.dat" using 1:2:xtic(3) with boxes lc rgb "#d62728" notitle
