# SPDX-License-Identifier: MIT
# Operators in the plane of their errors. Run `gnuplot matrix.gp` in this folder after an edit;
# `directp plot matrix --reset` brings the original back.
load "matrix_settings.gp"
set encoding utf8
array color[10] = [0xd62728, 0x1f77b4, 0x2ca02c, 0xff7f0e, 0x7f7f7f, 0x9467bd, 0xe377c2, 0x17becf, \
                   0x9a9b1a, 0x000000]
of_family(f) = color[int(f)]
shown = 0
do for [k = 1:words(inputs)] { shown = shown + (word(inputs, k) ne "-") }

# ---- The error plane, a panel an input ----
if (shown > 0) {
  rows = (shown + 1) / 2
  columns = shown > 1 ? 2 : 1
  set terminal pngcairo size 900 * columns,90 + 560 * rows font "sans,11" noenhanced
  set output "matrix_plane.png"
  # Labels and the list beside a panel take the same room in pixels, however many panels there are.
  left = columns > 1 ? 0.06 : 0.11
  right = columns > 1 ? 0.85 : 0.70
  bottom = rows > 1 ? 0.07 : 0.12
  top = rows > 1 ? 0.91 : 0.87
  set multiplot layout rows,columns margins left,right,bottom,top spacing 0.22,0.13 title \
    "Error against BF16 attention (" . title_text . "); hollow: published" font ",14"
  set logscale xy
  set border 3
  set tics nomirror out
  set grid lc rgb "#dddddd"
  set format "10^{%T}"
  set format x "%.0e"
  set format y "%g"
    do for [k = 1:words(inputs)] {
    if (word(inputs, k) ne "-") {
      set title "input: " . word(inputs, k)
      set xlabel "1 - cosine (below 1e-3: at 1e-3)"
      set ylabel "relative L2 (kept within 0.04 and 2)"
      set ytics (0.05, 0.1, 0.2, 0.3, 0.5, 1, 2)
      # The numbers are placed for these ranges.
      set yrange [y_low:y_high]
      set xrange [x_low:x_high]
      unset label
      load sprintf("matrix_list_%d.gp", k)
      plot "matrix_plane.dat" index k - 1 skip 1 using 1:2:(of_family($4)) with points pt 7 ps 1 \
             lc rgb variable notitle, \
           "matrix_plane.dat" index k - 1 skip 1 using 7:8:(of_family($4)) with points pt 6 ps 2 \
             lw 2 lc rgb variable notitle, \
           "matrix_plane.dat" index k - 1 skip 1 using 1:2:($9-$1):($10-$2) with vectors nohead \
             lw 0.6 lc rgb "#999999" notitle, \
           "matrix_plane.dat" index k - 1 skip 1 using 9:10:5 with labels center font ",8" notitle
    }
  }
  unset multiplot
  reset
}

# ---- Sweeps of G and of the native density ----
load "matrix_settings.gp"
if (sweep_g + sweep_density > 0) {
  sweeps = (sweep_g > 0) + (sweep_density > 0)
  set terminal pngcairo size 75 + 537 * sweeps,520 font "sans,12" noenhanced
  set output "matrix_sweep.png"
  set multiplot layout 1,sweeps title "Sweeps (" . title_text . ")" font ",14"
  set border 3
  set tics nomirror out
  set grid lc rgb "#dddddd"
  set ylabel "relative L2"
  set key right center
  # The published curves that are there; an empty title leaves a curve out of the key.
  array published[3] = ["", "", ""]
  do for [k = 1:3] {
    if (k == 3 ? sweep_density > 0 : sweep_g > 0) {
      stats "matrix_sweep.dat" index k - 1 skip 1 using (valid(3)) nooutput
      if (STATS_sum > 0) { published[k] = word("NV/NV MX/NV", k) . " published" }
    }
  }
  if (sweep_g > 0) {
    set title "Factor G inside the NVFP4 scale of P, exact maximum"
    set logscale x 2
    set xlabel "G"
    plot "matrix_sweep.dat" index 0 skip 1 using 1:2 with linespoints pt 7 lc rgb "#1f77b4" title "NV/NV", \
         "matrix_sweep.dat" index 1 skip 1 using 1:2 with linespoints pt 5 lc rgb "#d62728" title "MX/NV", \
         "matrix_sweep.dat" index 0 skip 1 using 1:3 with points pt 6 ps 2 lc rgb "#1f77b4" title published[1], \
         "matrix_sweep.dat" index 1 skip 1 using 1:3 with points pt 4 ps 2 lc rgb "#d62728" title published[2]
    unset logscale x
  }
  if (sweep_density > 0) {
    set title "Native EX2 density in stage 1, policy fast"
    set xlabel "density: 4 d of 16 pairs"
    set xtics 1
    plot "matrix_sweep.dat" index 2 skip 1 using 1:2 with linespoints pt 7 lc rgb "#2ca02c" title "measured", \
         "matrix_sweep.dat" index 2 skip 1 using 1:3 with points pt 6 ps 2 lc rgb "#2ca02c" title published[3]
  }
  unset multiplot
}

# ---- V of ones ----
reset
load "matrix_settings.gp"
if (mass > 0) {
  set terminal pngcairo size 1150,520 font "sans,12" noenhanced
  set output "matrix_mass.png"
  set title "Mass lost (above 0) or invented where V is 1: 1 - mean output  (" . title_text . ")"
  set border 3
  set tics nomirror out
  set grid ytics lc rgb "#dddddd"
  set style fill solid 0.8
  set xtics rotate by 35 right font ",10"
  set yrange [-0.08:0.08]
  set ylabel "1 - mean output (bars end at 0.08)"
  set xzeroaxis lc rgb "#000000"
  set style data histograms
  set style histogram clustered
  set bmargin 9
  set key outside
  array input[2] = ["mass in the tail", "N(0,1) scores"]
  plot for [k = 1:mass] "matrix_mass.dat" index k - 1 using 2:xtic(1) lc k title input[k]
}
