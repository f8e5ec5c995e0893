// The drawing of a heat map: a band for each tier, a row for each wire, time to the right.
#include <algorithm>

#include <fmt/format.h>

#include "hw/svg.h"
#include "workloads/report/heat_map.h"

namespace moebius {
namespace {

constexpr double kLeft = 150, kTop = 60, kWidth = 960, kRow = 14, kGap = 18, kRight = 30, kBottom = 60;

double height_of(const HeatMap& map) {
  double height = kTop + kBottom + static_cast<double>(map.marks.size()) * kRow;
  for (const HeatMap::Tier& tier : map.tiers)
    height += static_cast<double>(tier.wires.size() + 1) * kRow + kGap;
  return height;
}

// Neighbouring columns of one colour are one box.
void draw_row(Svg& svg, double y, const std::string& name, const std::vector<double>& share) {
  svg.text(kLeft - 8, y + kRow - 4, name, SvgAnchor::kEnd, 10);
  const double width = kWidth / static_cast<double>(share.size());
  for (std::size_t first = 0; first < share.size();) {
    std::size_t last = first + 1;
    const std::string colour = heat_colour(share[first]);
    while (last < share.size() && heat_colour(share[last]) == colour) ++last;
    svg.box(
        {kLeft + width * static_cast<double>(first), y, width * static_cast<double>(last - first), kRow - 1},
        colour, fmt::format("{}: {:.1f}%", name, 100 * share[first]));
    first = last;
  }
}

void draw_axis(Svg& svg, double y, Time end) {
  constexpr int kMarks = 6;
  svg.line(kLeft, y, kLeft + kWidth, y, "#404040");
  for (int i = 0; i <= kMarks; ++i) {
    const double x = kLeft + kWidth * i / kMarks;
    svg.line(x, y, x, y + 4, "#404040");
    svg.text(x, y + 18, to_text(Time{end.ns * i / kMarks}), SvgAnchor::kMiddle, 10);
  }
}

void draw_marks(Svg& svg, double bottom, const HeatMap& map) {
  double label = bottom + 34;
  for (const HeatMap::Mark& mark : map.marks) {
    const double x = kLeft + kWidth * mark.time.seconds() / map.end.seconds();
    svg.line(x, kTop - 6, x, label - 10, "#c00000");
    svg.text(x, label, fmt::format("{}, {}", mark.what, to_text(mark.time)),
             x > kLeft + kWidth / 2 ? SvgAnchor::kEnd : SvgAnchor::kStart, 10);
    label += kRow;
  }
}

void draw_legend(Svg& svg) {
  constexpr int kSteps = 20;
  const double x = kLeft + kWidth - 200;
  for (int i = 0; i < kSteps; ++i) svg.box({x + i * 10.0, 22, 10, 10}, heat_colour((i + 0.5) / kSteps));
  svg.text(x - 6, 31, "idle", SvgAnchor::kEnd, 10);
  svg.text(x, 46, "0%", SvgAnchor::kStart, 10);
  svg.text(x + 200, 46, "100%", SvgAnchor::kEnd, 10);
}

}  // namespace

std::string to_svg(const HeatMap& map, const std::string& title) {
  Svg svg(kLeft + kWidth + kRight, height_of(map));
  svg.text(kLeft, 24, title, SvgAnchor::kStart, 15);
  svg.text(kLeft, 42, "how busy the network is: share of each wire's capacity over time", SvgAnchor::kStart,
           11);
  draw_legend(svg);
  double y = kTop;
  for (const HeatMap::Tier& tier : map.tiers) {
    draw_row(svg, y, tier.name + " mean", tier.mean);
    y += kRow;
    for (const HeatMap::Row& row : tier.wires) {
      draw_row(svg, y, row.name, row.share);
      y += kRow;
    }
    y += kGap;
  }
  draw_axis(svg, y, map.end);
  draw_marks(svg, y, map);
  return svg.finish();
}

}  // namespace moebius
