// The drawing of a heat map: a band for each tier, a row for each wire, time to the right.
#include <algorithm>

#include <fmt/format.h>

#include "hw/svg.h"
#include "workloads/report/heat_map.h"

namespace moebius {
namespace {

constexpr SvgPage kTierPage{
    .left = 150, .top = 60, .width = 960, .row = 14, .gap = 18, .right = 30, .bottom = 60};

double height_of(const HeatMap& map) {
  double height = kTierPage.top + kTierPage.bottom + static_cast<double>(map.marks.size()) * kTierPage.row;
  for (const HeatMap::Tier& tier : map.tiers)
    height += static_cast<double>(tier.wires.size() + 1) * kTierPage.row + kTierPage.gap;
  return height;
}

// Neighbouring columns of one colour are one box.
void draw_row(Svg& svg, double y, const std::string& name, const std::vector<double>& share) {
  svg.text(kTierPage.left - 8, y + kTierPage.row - 4, name, SvgAnchor::kEnd, 10);
  const double width = kTierPage.width / static_cast<double>(share.size());
  for (std::size_t first = 0; first < share.size();) {
    std::size_t last = first + 1;
    const std::string colour = heat_colour(share[first]);
    while (last < share.size() && heat_colour(share[last]) == colour) ++last;
    svg.box({kTierPage.left + width * static_cast<double>(first), y,
             width * static_cast<double>(last - first), kTierPage.row - 1},
            colour, fmt::format("{}: {:.1f}%", name, 100 * share[first]));
    first = last;
  }
}

void draw_axis(Svg& svg, double y, Time end) {
  constexpr int kMarks = 6;
  svg.line(kTierPage.left, y, kTierPage.left + kTierPage.width, y, "#404040");
  for (int i = 0; i <= kMarks; ++i) {
    const double x = kTierPage.left + kTierPage.width * i / kMarks;
    svg.line(x, y, x, y + 4, "#404040");
    svg.text(x, y + 18, to_text(Time{end.ns * i / kMarks}), SvgAnchor::kMiddle, 10);
  }
}

void draw_marks(Svg& svg, double bottom, const HeatMap& map) {
  double label = bottom + 34;
  for (const HeatMap::Mark& mark : map.marks) {
    const double x = kTierPage.left + kTierPage.width * mark.time.seconds() / map.end.seconds();
    svg.line(x, kTierPage.top - 6, x, label - 10, "#c00000");
    svg.text(x, label, fmt::format("{}, {}", mark.what, to_text(mark.time)),
             x > kTierPage.left + kTierPage.width / 2 ? SvgAnchor::kEnd : SvgAnchor::kStart, 10);
    label += kTierPage.row;
  }
}

void draw_legend(Svg& svg) {
  constexpr int kSteps = 20;
  const double x = kTierPage.left + kTierPage.width - 200;
  for (int i = 0; i < kSteps; ++i) svg.box({x + i * 10.0, 22, 10, 10}, heat_colour((i + 0.5) / kSteps));
  svg.text(x - 6, 31, "idle", SvgAnchor::kEnd, 10);
  svg.text(x, 46, "0%", SvgAnchor::kStart, 10);
  svg.text(x + 200, 46, "100%", SvgAnchor::kEnd, 10);
}

}  // namespace

std::string to_svg(const HeatMap& map, const std::string& title) {
  Svg svg(kTierPage.left + kTierPage.width + kTierPage.right, height_of(map));
  svg.text(kTierPage.left, 24, title, SvgAnchor::kStart, 15);
  svg.text(kTierPage.left, 42, "how busy the network is: share of each wire's capacity over time",
           SvgAnchor::kStart, 11);
  draw_legend(svg);
  double y = kTierPage.top;
  for (const HeatMap::Tier& tier : map.tiers) {
    draw_row(svg, y, tier.name + " mean", tier.mean);
    y += kTierPage.row;
    for (const HeatMap::Row& row : tier.wires) {
      draw_row(svg, y, row.name, row.share);
      y += kTierPage.row;
    }
    y += kTierPage.gap;
  }
  draw_axis(svg, y, map.end);
  draw_marks(svg, y, map);
  return svg.finish();
}

}  // namespace moebius
