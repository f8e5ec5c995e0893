#include "workloads/report/expert_map.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "hw/svg.h"

namespace moebius {
namespace {

constexpr SvgPage kExpertPage{
    .left = 90, .top = 70, .width = 1024, .row = 9, .gap = 40, .right = 30, .bottom = 30};

// Copies over the mean of a layer.
std::vector<double> ratios_of(const ExpertFigures& experts, int layer) {
  const auto first = experts.copies.begin() + std::ptrdiff_t{layer} * experts.experts;
  const double mean = std::accumulate(first, first + experts.experts, 0.0) / experts.experts;
  std::vector<double> ratios;
  for (auto at = first; at != first + experts.experts; ++at) ratios.push_back(mean > 0 ? *at / mean : 0);
  return ratios;
}

double largest_ratio(const ExpertFigures& experts) {
  double most = 0;
  for (int layer = 0; layer < experts.layers; ++layer) {
    const std::vector<double> ratios = ratios_of(experts, layer);
    most = std::max(most, *std::max_element(ratios.begin(), ratios.end()));
  }
  return most;
}

// Neighbouring experts of one colour are one box.
void draw_layer(Svg& svg, double y, const std::vector<double>& ratios, double most) {
  const double width = kExpertPage.width / static_cast<double>(ratios.size());
  for (std::size_t first = 0; first < ratios.size();) {
    const std::string colour = heat_colour(ratios[first] / most);
    std::size_t last = first + 1;
    while (last < ratios.size() && heat_colour(ratios[last] / most) == colour) ++last;
    svg.box({kExpertPage.left + width * static_cast<double>(first), y,
             width * static_cast<double>(last - first), kExpertPage.row - 1},
            colour, fmt::format("expert {}: {:.2f} of the mean", first, ratios[first]));
    first = last;
  }
}

double draw_pool(Svg& svg, double y, const std::string& name, const ExpertFigures& experts) {
  const double most = largest_ratio(experts);
  svg.text(kExpertPage.left, y - 6,
           fmt::format("{}: darkest {:.2f} times the mean of a layer; balancedness of ranks {:.3f}", name,
                       most, 1 / experts.imbalance),
           SvgAnchor::kStart, 11);
  for (int layer = 0; layer < experts.layers; ++layer, y += kExpertPage.row) {
    if (layer % 4 == 0)
      svg.text(kExpertPage.left - 6, y + kExpertPage.row - 1,
               fmt::format("layer {}", experts.layer_numbers[layer]), SvgAnchor::kEnd, 9);
    draw_layer(svg, y, ratios_of(experts, layer), most);
  }
  return y + kExpertPage.gap;
}

bool counted(const ServicePoolFigures& pool) {
  return pool.experts && largest_ratio(*pool.experts) > 0;
}

}  // namespace

std::string experts_svg(const Report& report) {
  if (!report.service) return "";
  const ServiceFigures& service = *report.service;
  double height = kExpertPage.top + kExpertPage.bottom;
  for (const ServicePoolFigures& pool : service.pools)
    if (counted(pool)) height += pool.experts->layers * kExpertPage.row + kExpertPage.gap;
  if (height == kExpertPage.top + kExpertPage.bottom) return "";
  Svg svg(kExpertPage.left + kExpertPage.width + kExpertPage.right, height);
  svg.text(kExpertPage.left, 24, report.scenario->name, SvgAnchor::kStart, 15);
  svg.text(kExpertPage.left, 42, "how often tokens used each expert: a row a layer, experts to the right",
           SvgAnchor::kStart, 11);
  double y = kExpertPage.top;
  for (const ServicePoolFigures& pool : service.pools)
    if (counted(pool)) y = draw_pool(svg, y, pool.run.name, *pool.experts);
  return svg.finish();
}

}  // namespace moebius
