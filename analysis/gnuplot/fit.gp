# SPDX-License-Identifier: MIT
# A fitted map. Run `gnuplot fit.gp` in this folder after an edit; `directp plot fit --reset`
# brings the original back.
load "fit_settings.gp"
set encoding utf8
array color[8] = ["#d62728", "#000000", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#ff7f0e", \
                  "#17becf"]
array mark[8] = [7, 1, 5, 9, 11, 13, 15, 6]

# ---- The landscape of the objective, with the published pairs ----
if (grid > 0) {
  set terminal pngcairo size 1150,820 font "sans,12" noenhanced
  set output "fit_landscape.png"
  set title sprintf("Objective \"%s\" over the affine map y = A x + B  (%s)", objective, source)
  set xlabel "slope A (per octave)"
  set ylabel "offset B"
  set cblabel "objective (smaller is better)"
  set xrange [a_low:a_high]
  set yrange [b_low:b_high]
  set palette defined (0 "#08306b", 0.25 "#2171b5", 0.5 "#6baed6", 0.75 "#c6dbef", 1 "#ffffff")
  stats "fit_landscape.dat" using 3 nooutput
  set cbrange [least:least + 0.6 * (STATS_max - least)]
  set key outside right top Left reverse samplen 2 spacing 1.3 opaque
  set rmargin 42
  set colorbox user origin 0.76,0.12 size 0.02,0.45
  set table $mass_one
  set contour base
  unset surface
  set cntrparam levels discrete 1.0
  splot "fit_landscape.dat" using 1:2:5 notitle
  unset table
  set table $near_best
  set cntrparam levels discrete least * 1.02, least * 1.05, least * 1.1
  splot "fit_landscape.dat" using 1:2:3 notitle
  unset table
  unset contour
  set surface
  plot "fit_landscape.dat" using 1:2:3 with image notitle, \
       $near_best using 1:2 with lines lc rgb "#e7298a" lw 1.2 title "2, 5, 10 % above the least", \
       $mass_one using 1:2 with lines lc rgb "#ff7f0e" lw 2 dt 2 title "represented mass = that of 2^x", \
       for [m = 1:maps] "+" using (value(sprintf("degree_%d", m)) == 1 && $0 == 0 ? \
           value(sprintf("a_%d", m)) : NaN):(value(sprintf("b_%d", m))) every ::0::0 with points \
           pt mark[m] ps 2 lw 2 lc rgb color[m] \
           title (value(sprintf("degree_%d", m)) == 1 ? sprintf("%s (%.4g, %.4g)", \
           value(sprintf("name_%d", m)), value(sprintf("a_%d", m)), value(sprintf("b_%d", m))) : "")
  reset
  load "fit_settings.gp"
}

# ---- Where codes change, and what is kept ----
set terminal pngcairo size 1150,1250 font "sans,12" noenhanced
set output "fit_boundaries.png"
set multiplot layout 3,1 title sprintf("From score to code  (%s)", source) font ",14" \
  margins 0.12,0.90,0.075,0.93 spacing 0,0.085
set border 3
set tics nomirror out
set grid xtics ytics lc rgb "#dddddd"
set xrange [-4:3.2]

set title "Decision boundaries in x: each mark is where a code changes, 0 -> 0.5 to 4 -> 6 (dots: those of 2^x)"
set yrange [maps + 0.6:0.4]
set ytics ()
do for [m = 1:maps] { set ytics add (value(sprintf("name_%d", m)) m) }
plot for [m = 1:maps] "fit_boundaries.dat" index m - 1 using 2:1:(0):(0.22) with vectors \
       nohead lw 4 lc rgb color[m] notitle, \
     for [m = 1:maps] "fit_boundaries.dat" index m - 1 using 2:1:(0):(-0.22) with vectors \
       nohead lw 4 lc rgb color[m] notitle, \
     for [m = 1:maps] "fit_boundaries.dat" index 1 using 2:(m) with points pt 7 ps 0.5 \
       lc rgb "#999999" notitle

set title "Where the code is that of 2^x (bar), above the share of scores"
set xlabel offset 0,0.4 "x: score in octaves above a value of 1"
set y2range [0:*]
set y2tics
set y2label "share of scores in 1/8 octave"
plot "fit_density.dat" using 1:2 axes x1y2 with filledcurves y1=0 lc rgb "#e5e5e5" notitle, \
     for [m = 1:maps] "fit_curves.dat" using (column(1 + maps + m) == 1 ? $1 : NaN):(m) with points pt 5 ps 0.6 \
       lc rgb color[m] notitle
unset y2tics
unset y2label

set title "Share of the scores of each code of 2^x that keep it"
set xlabel offset 0,-0.9 "value of 2^x after rounding (below: share of all scores)"
set ylabel "share kept"
set yrange [0:1.02]
set ytics auto
set xrange [-0.6:9.5]
array level[8] = ["0", "0.5", "1", "1.5", "2", "3", "4", "6"]
set xtics ()
stats "fit_shares.dat" using 1 nooutput
do for [k = 0:7] {
  stats "fit_shares.dat" using 2 every ::k::k nooutput
  set xtics add (sprintf("%s\n%.3f", level[k + 1], STATS_mean) k)
}
set key right top Left reverse samplen 1
set boxwidth 0.8 / maps
set style fill solid 0.8
plot for [m = 1:maps] "fit_shares.dat" using ($1 + (m - 0.5 * (maps + 1)) * 0.8 / maps):(column(2 + m)) \
       with boxes lc rgb color[m] title value(sprintf("name_%d", m))
unset multiplot
