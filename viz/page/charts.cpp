#include "viz/page/charts.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "viz/page/html.h"

namespace moebius::viz {

namespace {

// Told apart by people who do not see all colours (Okabe and Ito 2008), and between them some more.
constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                              "#56b4e9", "#8a6fdf", "#7f7f7f", "#b5a642", "#a65f4d"};

std::string colour_of(const Part& part, std::size_t place) {
  return part.colour.empty() ? colour(place) : part.colour;
}

}  // namespace

std::string colour(std::size_t n) {
  return kColours[n % kColours.size()];
}

std::string stacked_bar(const std::vector<Part>& parts, std::optional<double> limit) {
  double sum = 0;
  for (const Part& part : parts) sum += part.value;
  const double whole = std::max(sum, limit.value_or(0));
  if (!(whole > 0)) return "";
  std::string bar = "<div class=\"bar\">", key = "<div class=\"key\">";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!(parts[i].value > 0)) continue;
    const std::string fill = colour_of(parts[i], i);
    bar += fmt::format("<i style=\"width:{:.3f}%;background:{}\"></i>", 100 * parts[i].value / whole, fill);
    key += fmt::format("<span><i style=\"background:{}\"></i>{} {} ({:.1f}%)</span>", fill, parts[i].name,
                       escaped(parts[i].shown), 100 * parts[i].value / sum);
  }
  if (limit)
    bar += fmt::format("<span class=\"limit\" style=\"left:{:.3f}%\"></span>", 99.8 * *limit / whole);
  return bar + "</div>\n" + key + "</div>\n";
}

std::string bars(const std::vector<Part>& parts, std::optional<double> limit) {
  double most = limit.value_or(0);
  for (const Part& part : parts) most = std::max(most, part.value);
  if (!(most > 0)) return "";
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string mark =
        limit ? fmt::format("<span class=\"limit\" style=\"left:{:.2f}%\"></span>", 99.5 * *limit / most)
              : "";
    text += fmt::format(
        "<div class=\"row\"><span>{}</span><span class=\"track\"><i "
        "style=\"width:{:.2f}%;background:{}\"></i>{}"
        "</span><span class=\"end\">{}</span></div>\n",
        parts[i].name, 100 * parts[i].value / most, colour_of(parts[i], i), mark, escaped(parts[i].shown));
  }
  return text;
}

}  // namespace moebius::viz
