# SPDX-License-Identifier: MIT
# Codes a policy makes against the codes of 2^x. Run `gnuplot codes.gp` in this folder after an
# edit; `directp plot codes --reset` brings the original back.
load "codes_settings.gp"

set encoding utf8
# Okabe and Ito's colours: told apart without full colour vision, and by shape.
array color[8] = ["#d55e00", "#0072b2", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#000000", \
                  "#8c6d00"]
array mark[8] = [7, 5, 9, 11, 13, 6, 4, 8]
codes = "0 0.5 1 1.5 2 3 4 6"

# ---- Confusion, one panel a file ----
columns = files < 3 ? files : 3
lines = (files + columns - 1) / columns
width = 80 + 480 * columns
height = 60 + 520 * lines
set terminal pngcairo size width,height font "sans,12" noenhanced
set output "codes_confusion.png"
set multiplot layout lines,columns title \
  "Codes made by ideal code, % of the row" font ",14" \
  margins 70.0 / width,1.0 - 20.0 / width,60.0 / height,1.0 - 95.0 / height \
  spacing 70.0 / width,115.0 / height
set palette defined (0 "#ffffff", 5 "#deebf7", 50 "#6baed6", 100 "#08519c")
set cbrange [0:100]
unset colorbox
unset key
set xrange [-0.5:7.5]
set yrange [7.5:-0.5]
set tics out nomirror scale 0
set xtics ()
set ytics ()
do for [i = 1:8] {
  set xtics add (word(codes, i) i - 1)
  set ytics add (word(codes, i) i - 1)
}
set xlabel "code made (its value)"
set border 15
do for [f = 1:files] {
  set title value(sprintf("label_%d", f)) . "\n" . value(sprintf("note_%d", f)) font ",11"
  if ((f - 1) % columns == 0) { set ylabel "ideal code (its value)" } else { unset ylabel }
  set for [i = 0:7] arrow i + 1 from i - 0.5, i - 0.5 to i + 0.5, i - 0.5 nohead front lc rgb "#d62728"
  set for [i = 0:7] arrow i + 11 from i - 0.5, i + 0.5 to i + 0.5, i + 0.5 nohead front lc rgb "#d62728"
  set for [i = 0:7] arrow i + 21 from i - 0.5, i - 0.5 to i - 0.5, i + 0.5 nohead front lc rgb "#d62728"
  set for [i = 0:7] arrow i + 31 from i + 0.5, i - 0.5 to i + 0.5, i + 0.5 nohead front lc rgb "#d62728"
  plot "codes_confusion.dat" index f - 1 using 2:1:3 with image, \
       "" index f - 1 using 2:1:($4 > 0 && $3 < 55 ? \
         ($3 < 0.05 ? "<0.1" : sprintf("%.1f", $3)) : "") with labels font ",11" tc rgb "#222222", \
       "" index f - 1 using 2:1:($4 > 0 && $3 >= 55 ? sprintf("%.1f", $3) : "") \
         with labels font ",11" tc rgb "#ffffff"
}
unset multiplot
reset

# ---- Match by distance and by block exponent ----
load "codes_settings.gp"
set encoding utf8
set terminal pngcairo size 1100,1250 font "sans,12" noenhanced
set output "codes_match.png"
set border 3
set tics nomirror out
set grid ytics xtics back lt 1 lw 1 lc rgb "#dddddd"
set multiplot layout 3,1 title "Share of codes equal to those of 2^x under the same working byte" \
  font ",14" margins 0.09,0.97,0.055,0.93 spacing 0,0.105
set yrange [0:1.02]
set ylabel "share of lanes"
set key at graph 0.99, graph 0.72 right top Left reverse samplen 2 spacing 1.3
set title "by distance of the score from the nearest rounding midpoint"
set xlabel "distance in x, the log2 of the value to be rounded, in octaves"
set xrange [0:2.05]
set xtics 0, 0.25, 1.75
set xtics add ("more" 2.015625)
plot for [f = 1:files] "codes_distance.dat" index f - 1 \
       using 1:($2 > 0 ? $3 / $2 : NaN) with linespoints lc rgb color[(f - 1) % 8 + 1] \
       pt mark[(f - 1) % 8 + 1] ps 0.8 lw 1.6 title value(sprintf("label_%d", f))
unset key
set title "by the block's raw byte u (2^(u-127) is the power of two next to its largest probability)"
set xlabel "raw byte u"
set xtics auto
set xrange [least_byte - 1:most_byte + 1]
plot for [f = 1:files] "codes_byte.dat" index f - 1 \
       using 1:($2 > 0 ? $3 / $2 : NaN) with linespoints lc rgb color[(f - 1) % 8 + 1] \
       pt mark[(f - 1) % 8 + 1] ps 0.9 lw 1.6 notitle
set title "how many lanes have that byte"
set ylabel "lanes (count)"
set logscale y 10
set yrange [0.7:*]
set format y "10^%T"
plot for [f = 1:files] "codes_byte.dat" index f - 1 \
       using 1:($2 > 0 ? $2 : NaN) with linespoints lc rgb color[(f - 1) % 8 + 1] \
       pt mark[(f - 1) % 8 + 1] ps 0.9 lw 1.6 notitle
unset multiplot
