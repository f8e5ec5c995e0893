// Small charts that screens are made of, drawn where ImGui's cursor stands. Colours and text follow the
// theme.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "viz/data/counter_track.h"
#include "viz/data/time_window.h"
#include "viz/ui/theme.h"

namespace moebius::viz {

struct ChartPart {
  std::string name;
  double value = 0;
  Colour colour = 0;
};

// A word with its explanation, if the glossary has one, when the mouse rests on it.
void term(const std::string& word);
// The explanation of the item that was just drawn.
void explain(const std::string& word);

// One bar of parts one after the other on the scale 0 .. full, a line at `mark` (none when 0), and a legend
// below.
struct StackedBar {
  std::vector<ChartPart> parts;
  double full = 0, mark = 0;
  std::string mark_name;
  std::function<std::string(double)> text;  // of a value
};
void stacked_bar(const Theme& theme, const StackedBar& bar);

// Bars one below the other, each with its name and value; two values a row where `second` has as many; a line
// through all of them at `mark`, none when 0.
struct Bars {
  std::vector<ChartPart> rows, second;
  std::function<std::string(double)> text;
  double full = 0;  // of the scale; 0: the largest value
  double mark = 0;
};
void bars(const Theme& theme, const Bars& given);

// Counters over time, each a line of its smallest and largest value a pixel; a line at `limit`, none when 0.
struct LineChart {
  std::vector<const CounterTrack*> tracks;
  std::vector<std::string> names;
  TimeWindow window;
  double limit = 0;
  std::string limit_name;
  std::vector<double> marks;  // ns: moments at which something happened
  std::function<std::string(double)> text;
  float height = 180;
  bool has_ruler = false;  // stands under one: its time axis is not drawn again
};
void line_chart(const Theme& theme, const LineChart& chart);
// Pixels that the names of its lines take below a chart of `width`.
float legend_height(const LineChart& chart, float width);

// Cells of rows and columns, 0 to 1. Returns true when a cell was clicked, with its place.
struct Heat {
  std::vector<std::string> rows;
  std::vector<const std::vector<double>*> values;  // of each row; all equally many
  std::function<std::string(std::size_t row, std::size_t column)> tooltip;
  float row_height = 16;
  float names = 0;          // pixels that the names of rows take at least
  TimeWindow window{0, 0};  // of the columns; none where they are no moments
};
bool heat_chart(const Theme& theme, const Heat& heat, std::size_t& row, std::size_t& column);
// What the colours of a heat chart mean, on one line.
void heat_scale(const Theme& theme);

// For people, SI: "1.42 GB", "3.1 ms", "45.2%", "12,345".
std::string bytes_text(double bytes);
std::string seconds_text(double seconds);
std::string share_text(double share);
std::string count_text(double count);
// A time on an axis whose marks stand `step` ns apart: as many decimals as tell them apart.
std::string axis_text(double ns, double step);

}  // namespace moebius::viz
