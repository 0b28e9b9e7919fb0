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
  set key at screen 0.99,0.96 right top Left reverse samplen 2 spacing 1.3
  set lmargin at screen 0.07
  set rmargin at screen 0.64
  set colorbox user origin 0.74,0.10 size 0.02,0.45
  set format cb "%.2f"
  set label 99 "white: above the scale" at screen 0.74,0.065 font ",10"
  set style textbox opaque noborder margins 0.3,0.3
  do for [m = 1:maps] {
    if (value(sprintf("degree_%d", m)) == 1) {
      set label m value(sprintf("name_%d", m)) \
        at value(sprintf("a_%d", m)), value(sprintf("b_%d", m)) \
        right offset (value(sprintf("a_%d", m)) < 0.85 * a_low + 0.15 * a_high ? 7 : -1.4), \
        (m == 6 ? -0.6 : m == 5 ? 0.6 : 0) font ",10" front boxed
    }
  }
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

# ---- Where codes change, and what is kept: three panels over the same x ----
set terminal pngcairo size 1150,1250 font "sans,12" noenhanced
set output "fit_boundaries.png"
set multiplot title sprintf("From score to code  (%s)", source) font ",14"
set border 3
set tics nomirror out
set grid xtics ytics lc rgb "#dddddd"
set xrange [-4:3.2]
set lmargin at screen 0.11
set rmargin at screen 0.92
set yrange [maps + 0.6:0.4]
set ytics ()
do for [m = 1:maps] { set ytics add (value(sprintf("name_%d", m)) m) }

set title "Decision boundaries: each mark is where a code changes, 0 -> 0.5 to 4 -> 6 (dots: those of 2^x)"
set tmargin at screen 0.925
set bmargin at screen 0.685
set format x ""
plot for [m = 1:maps] "fit_boundaries.dat" index m - 1 using 2:1:(0):(0.24) with vectors \
       nohead lw 4 lc rgb color[m] notitle, \
     for [m = 1:maps] "fit_boundaries.dat" index m - 1 using 2:1:(0):(-0.24) with vectors \
       nohead lw 4 lc rgb color[m] notitle, \
     for [m = 1:maps] "fit_boundaries.dat" index 1 using 2:(m) with points pt 7 ps 0.5 \
       lc rgb "#999999" notitle

set title "Where the code is that of 2^x"
set tmargin at screen 0.635
set bmargin at screen 0.395
plot for [m = 1:maps] "fit_curves.dat" using (column(1 + maps + m) == 1 ? $1 : NaN):(m) \
       with points pt 5 ps 0.6 lc rgb color[m] notitle

set title "Scores below x whose code is another one than that of 2^x: the end is 1 - match (grey: share in 1/8 octave, right)"
set tmargin at screen 0.345
set bmargin at screen 0.06
set format x "%g"
set xlabel "x: score in octaves above a value of 1"
set ylabel "share of all scores"
set yrange [0:*]
set ytics auto
set border 11
set y2tics auto
set y2range [0:*]
set key top left Left reverse samplen 2 spacing 1.2
plot "fit_density.dat" using 1:2 axes x1y2 with boxes fs solid 1 noborder lc rgb "#e5e5e5" notitle, \
     for [m = 1:maps] "fit_density.dat" using ($1 + 0.0625):(m == 2 ? NaN : column(2 + m)) \
       smooth cumulative with lines lw 2 lc rgb color[m] \
       title (m == 2 ? "" : value(sprintf("name_%d", m)))
unset multiplot
unset y2tics
set border 3
unset lmargin
unset rmargin
unset tmargin
unset bmargin

# ---- The same by code ----
set terminal pngcairo size 1150,560 font "sans,12" noenhanced
set output "fit_codes.png"
set title sprintf("Share of the scores of each code of 2^x that keep it  (%s)", source)
set xlabel offset 0,-0.9 "value of 2^x after rounding (below: share of all scores)"
set ylabel "share kept"
set yrange [0:1.02]
set xrange [-0.6:7.6]
array level[8] = ["0", "0.5", "1", "1.5", "2", "3", "4", "6"]
set xtics ()
do for [k = 0:7] {
  stats "fit_shares.dat" using 2 every ::k::k nooutput
  set xtics add (sprintf("%s\n%.3f", level[k + 1], STATS_mean) k)
}
set bmargin 5.5
set key outside right top Left reverse samplen 1
set boxwidth 0.8 / maps
set style fill solid 0.8
plot for [m = 1:maps] "fit_shares.dat" using ($1 + (m - 0.5 * (maps + 1)) * 0.8 / maps):(column(2 + m)) \
       with boxes lc rgb color[m] title value(sprintf("name_%d", m))
