# SPDX-License-Identifier: MIT
# What a format keeps of exact softmax probabilities. Run `gnuplot range.gp` in this folder after
# an edit; `directp plot range --reset` brings the original back.
load "range_settings.gp"

set encoding utf8
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror out
# Okabe and Ito's colours first: told apart without full colour vision, and by shape.
array color[12] = ["#d55e00", "#0072b2", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#000000", \
                   "#8c6d00", "#7f7f7f", "#5254a3", "#8c564b", "#bcbd22"]
array mark[5] = [7, 5, 9, 11, 13]
array hollow[5] = [6, 4, 8, 10, 12]
n = words(formats)

# ---- Loss, by length (curves) or by input (points) ----
set terminal pngcairo size 1150,1350 font "sans,12" noenhanced
set output "range_loss.png"
bottom = by_length ? 0.06 : 0.12
set multiplot layout 3,1 title sprintf( \
  "What a format keeps of exact softmax probabilities (blocks of %d keys%s)", block, \
  by_length ? sprintf(", %d heads, %d rows, D = %d, N(0,1) inputs", heads, rows, dim) : "") \
  font ",14" margins 0.09,0.80,bottom,0.92 spacing 0,0.08
set logscale y 10
if (by_length) {
  set logscale x 2
  set xrange [word(lengths, 1) / 1.15:word(lengths, words(lengths)) * 1.15]
  set xtics ()
  do for [i = 1:words(lengths)] { set xtics add (word(lengths, i) real(word(lengths, i))) }
} else {
  set xrange [0.4:cases + 0.6]
  set xtics () rotate by 25 right font ",10"
  do for [i = 1:cases] {
    if (cases <= 40) { set xtics add (value(sprintf("label_%d", i)) i) }
  }
}
array heading[3] = ["Blocks whose scale is zero", "Probability stored as zero (lost mass)", \
                    "Error of the output PV"]
array unit[3] = ["fraction of blocks", "fraction of all probability", "relative L2 error"]
do for [panel = 1:3] {
  floor0 = value(sprintf("floor_%d", panel))
  floored = value(sprintf("floored_%d", panel))
  rugged = value(sprintf("rugged_%d", panel))
  note = ""
  if (floored > 0) { note = note . sprintf("   [%d exactly 0: hollow, on the line \"0\"]", floored) }
  if (rugged > 0) { note = note . sprintf("   [%d not finite: crosses on the axis]", rugged) }
  set title heading[panel] . note
  set ylabel unit[panel]
  set yrange [floored + rugged > 0 ? floor0 * 0.6 : floor0 * 5:*]
  set format y "%g"
  set ytics auto
  if (floored > 0) { set ytics add ("0" floor0) }
  if (panel == 3 && by_length) { set xlabel "sequence length S (keys)" } else { unset xlabel }
  if (!by_length && panel < 3) {
    set for [i = 1:cases] xtics add ("" i)
  }
  if (!by_length && panel == 3 && cases <= 40) {
    set for [i = 1:cases] xtics add (value(sprintf("label_%d", i)) i)
  }
  if (panel == 1) {
    set key at graph 1.02, graph 1.0 left top Left reverse samplen 2 spacing 1.3
  } else { unset key }
  v = 2 * panel
  # Inputs stand side by side, each format a little to the right of the one before.
  shift(f) = by_length ? 0 : (f - 0.5 * (n + 1)) * 0.6 / n
  if (floored > 0) {
    set arrow 1 from graph 0, first floor0 to graph 1, first floor0 nohead lc rgb "#999999" dt 3
  } else { unset arrow 1 }
  if (by_length) {
    plot for [f = 1:n] "range_points.dat" index f - 1 skip 1 \
           using 1:(column(v + 1) == 0 ? column(v) : NaN) with linespoints \
           lc rgb color[f] pt mark[(f - 1) % 5 + 1] ps 1.2 lw 1.6 title word(formats, f), \
         for [f = 1:n] "range_points.dat" index f - 1 skip 1 \
           using ($1 * (1 + 0.012 * (f - 0.5 * (n + 1)))):(column(v + 1) == 1 ? floor0 : NaN) with points \
           lc rgb color[f] pt hollow[(f - 1) % 5 + 1] ps 1.2 lw 1.6 notitle, \
         for [f = 1:n] "range_points.dat" index f - 1 skip 1 \
           using 1:(column(v + 1) == 2 ? floor0 * 0.6 : NaN) with points \
           lc rgb color[f] pt 2 ps 1.4 lw 2 notitle
  } else {
    plot for [f = 1:n] "range_points.dat" index f - 1 skip 1 \
           using ($1 + shift(f)):(column(v + 1) == 0 ? column(v) : NaN) with points \
           lc rgb color[f] pt mark[(f - 1) % 5 + 1] ps 1.2 lw 1.6 title word(formats, f), \
         for [f = 1:n] "range_points.dat" index f - 1 skip 1 \
           using ($1 + shift(f)):(column(v + 1) == 1 ? floor0 : NaN) with points \
           lc rgb color[f] pt hollow[(f - 1) % 5 + 1] ps 1.2 lw 1.6 notitle, \
         for [f = 1:n] "range_points.dat" index f - 1 skip 1 \
           using ($1 + shift(f)):(column(v + 1) == 2 ? floor0 * 0.6 : NaN) with points \
           lc rgb color[f] pt 2 ps 1.4 lw 2 notitle
  }
}
unset multiplot
reset

# ---- Exponents of the block scales, a panel a format, a curve a case ----
load "range_settings.gp"
k = words(scaled)
if (k > 0) {
  shown = cases < 10 ? cases : 10
  set terminal pngcairo size 1150,165 + 305 * k font "sans,12" noenhanced
  set output "range_scales.png"
  set border 3
  set tics nomirror out
  set grid ytics lc rgb "#dddddd"
  set multiplot layout k,1 title sprintf( \
    "Block scales, log2 rounded down (blocks of %d keys)%s", block, \
    shown < cases ? sprintf("   [first %d of %d cases]", shown, cases) : "") font ",14" \
    margins 0.09,0.77,70.0 / (165 + 305 * k),1.0 - 90.0 / (165 + 305 * k) \
    spacing 0,95.0 / (165 + 305 * k)
  # One axis for all panels, so that the formats can be compared from panel to panel.
  axis_least = value("least_1")
  axis_most = value("most_1")
  any_zero = 0
  do for [p = 1:k] {
    if (value(sprintf("least_%d", p)) < axis_least) { axis_least = value(sprintf("least_%d", p)) }
    if (value(sprintf("most_%d", p)) > axis_most) { axis_most = value(sprintf("most_%d", p)) }
    do for [i = 1:shown] { any_zero = any_zero + (value(sprintf("zero_%d_%d", p, i)) > 0) }
  }
  span = axis_most - axis_least
  step = span > 60 ? 10 : span > 24 ? 4 : span > 12 ? 2 : 1
  zero_at = axis_least - (span > 24 ? 3 : 2)
  divider = 0.5 * (zero_at + axis_least)
  do for [p = 1:k] {
    least = value(sprintf("least_%d", p))
    most = value(sprintf("most_%d", p))
    lowest = value(sprintf("lowest_%d", p))
    lost = 0
    do for [i = 1:shown] { lost = lost + (value(sprintf("zero_%d_%d", p, i)) > 0) }
    set title word(scaled, p) . (lowest > -127 ? \
      sprintf(": smallest scale it can store is in 2^%d", lowest) : \
      ": smallest scale it can store is 2^-127") . (lost > 0 ? "; at \"zero\": blocks whose scale is 0" : "")
    set ylabel "fraction of blocks"
    if (p == k) { set xlabel "floor(log2 scale)" } else { unset xlabel }
    set yrange [0:*]
    set xrange [(any_zero > 0 ? zero_at - 1 : axis_least - 1):axis_most + 1]
    first_tic = value(sprintf("tail_%d", p)) ? least + 0.75 * step : axis_least
    set xtics ceil(first_tic / (1.0 * step)) * step, step, axis_most
    if (value(sprintf("tail_%d", p))) { set xtics add (sprintf("<=%d", least) least) }
    unset arrow
    if (lost > 0) {
      set xtics add ("zero" zero_at)
      set arrow 1 from divider, graph 0 to divider, graph 1 nohead lc rgb "#999999" dt 3
    }
    if (p == 1) {
      set key at graph 1.02, graph 1.0 left top Left reverse samplen 2 spacing 1.2
    } else { unset key }
    plot for [i = 1:shown] "range_scales.dat" index (p - 1) * cases + i - 1 \
           using 1:2 with linespoints lc rgb color[i] pt mark[(i - 1) % 5 + 1] ps 0.8 lw 1.5 \
           title value(sprintf("label_%d", i)), \
         for [i = 1:shown] "+" every ::0::0 \
           using (zero_at):(value(sprintf("zero_%d_%d", p, i)) > 0 ? \
                            value(sprintf("zero_%d_%d", p, i)) : NaN) with points \
           lc rgb color[i] pt mark[(i - 1) % 5 + 1] ps 1.4 notitle
  }
  unset multiplot
}
