# SPDX-License-Identifier: MIT
# Rates over the runs of a history. Run `gnuplot history.gp` in this folder after an edit;
# `directp plot history --reset` brings the original back.
load "history_settings.gp"
set encoding utf8
array color[12] = ["#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf", "#e377c2", \
                   "#7f7f7f", "#bcbd22", "#000000", "#5254a3", "#637939"]
array mark[5] = [7, 5, 9, 11, 13]
shown = 0
last_panel = 0
do for [p = 1:panels] {
  if (value(sprintf("known_%d", p)) > 0) { shown = shown + 1; last_panel = p }
}
if (shown == 0) { shown = 1; last_panel = 1 }

# A panel takes 210 pixels, the title 60, the labels of the runs 120.
height = 180 + 210 * shown
set terminal pngcairo size 1200,height font "sans,12" noenhanced
set output "history.png"
set multiplot layout shown,1 title sprintf("%s: %d run%s%s", source, runs, runs == 1 ? "" : "s", \
  series < all_series ? sprintf("   [first %d of %d series]", series, all_series) : "") \
  font ",14" margins 0.09,0.74,120.0 / height,1.0 - 70.0 / height spacing 0,45.0 / height
set border 3
set tics nomirror out
set grid ytics lc rgb "#dddddd"
set xrange [0.5:runs + 0.5]
unset key
size_of_points = runs > 100 ? 0.5 : runs > 40 ? 0.8 : 1.2
first = 1
do for [p = 1:panels] {
  if (value(sprintf("known_%d", p)) == 0 && !(shown == 1 && p == last_panel)) { continue }
  least = value(sprintf("least_%d", p))
  most = value(sprintf("most_%d", p))
  logarithmic = value(sprintf("log_%d", p))
  floor0 = value(sprintf("floor_%d", p))
  zeros = value(sprintf("zeros_%d", p))
  set title value(sprintf("column_%d", p)) . ": " . value(sprintf("meaning_%d", p)) \
    font ",11" offset 0,-0.6
  set xtics () rotate by 35 right font ",9"
  do for [i = 1:ticks] {
    set xtics add ((p == last_panel ? value(sprintf("tick_%d", i)) : "") value(sprintf("tick_at_%d", i)))
  }
  unset logscale y
  unset arrow
  set ytics auto font ",9"
  set format y "%g"
  if (logarithmic) {
    set logscale y 10
    set format y "%.0e"
    set yrange [zeros > 0 ? floor0 * 0.6 : floor0 * 5:most * 2 < 1 ? most * 2 : 1.2]
    if (zeros > 0) {
      set ytics add ("0" floor0)
      set arrow 1 from graph 0, first floor0 to graph 1, first floor0 nohead lc rgb "#999999" dt 3
    }
  } else {
    # Room above and below, and for a single value around it; rates stay within 0 and 1 in view.
    span = most - least
    room = span > 0 ? 0.12 * span : (most != 0 ? 0.1 * abs(most) : 0.5)
    low = least == 0 ? -0.04 * (most > 0 ? most : 1) : least - room
    top = most == 0 ? 1 : most + room
    if (most <= 1 && top > 1) { top = 1 + 0.05 * (1 - low) }
    set yrange [low:top]
  }
  unset label
  if (first) {
    # The legend, one line a series, whatever the height of the panel.
    do for [s = 1:series] {
      set label s value(sprintf("name_%d", s)) at screen 0.765, screen 1.0 - (62.0 + 19 * s) / height \
        left offset 1.2,0 font ",10" point pt mark[(s - 1) % 5 + 1] ps 1.2 lc rgb color[s]
    }
    if (failures > 0) {
      set label 99 "a condition of --fail-if held" at screen 0.765, \
        screen 1.0 - (62.0 + 19 * (series + 1)) / height left offset 1.2,0 font ",10" \
        point pt 6 ps 1.8 lw 1.6 lc rgb "#d62728"
    }
  }
  y(c) = logarithmic && column(c) <= 0 ? floor0 : column(c)
  plot for [s = 1:series] "history.dat" index s - 1 using 1:(y(p + 1)) with linespoints \
         lc rgb color[s] pt mark[(s - 1) % 5 + 1] ps size_of_points lw 1.4 \
         notitle, \
       for [s = 1:series] "history.dat" index s - 1 \
         using 1:(column(panels + 2) == 1 ? y(p + 1) : NaN) with points pt 6 lw 1.6 \
         ps size_of_points + 1.0 lc rgb "#d62728" notitle
  first = 0
}
unset multiplot
