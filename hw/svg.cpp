#include "hw/svg.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moebius {
namespace {

std::string escaped(std::string_view words) {
  std::string text;
  for (const char c : words) {
    if (c == '&') text += "&amp;";
    if (c == '<') text += "&lt;";
    if (c == '>') text += "&gt;";
    if (c == '"') text += "&quot;";
    if (c != '&' && c != '<' && c != '>' && c != '"') text += c;
  }
  return text;
}

std::string_view anchor_name(SvgAnchor anchor) {
  if (anchor == SvgAnchor::kStart) return "start";
  return anchor == SvgAnchor::kMiddle ? "middle" : "end";
}

struct Rgb {
  double red, green, blue;
};

}  // namespace

Svg::Svg(double width, double height) {
  text_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} "
      "{1:g}\" "
      "font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      width, height);
}

void Svg::box(const SvgBox& at, std::string_view fill, std::string_view hint) {
  text_ += fmt::format("<rect x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{:.6g}\" fill=\"{}\"", at.x,
                       at.y, at.width, at.height, fill);
  text_ += hint.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escaped(hint));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view stroke) {
  text_ += fmt::format("<line x1=\"{:.6g}\" y1=\"{:.6g}\" x2=\"{:.6g}\" y2=\"{:.6g}\" stroke=\"{}\"/>\n", x1,
                       y1, x2, y2, stroke);
}

void Svg::text(double x, double y, std::string_view words, SvgAnchor anchor, double size) {
  text_ += fmt::format("<text x=\"{:.6g}\" y=\"{:.6g}\" font-size=\"{:g}\" text-anchor=\"{}\">{}</text>\n", x,
                       y, size, anchor_name(anchor), escaped(words));
}

std::string Svg::finish() const {
  return text_ + "</svg>\n";
}

// White, yellow, orange, dark red: lightness falls all the way, so that it reads in grey too.
std::string heat_colour(double share) {
  constexpr Rgb kStops[] = {{255, 255, 255}, {254, 217, 118}, {253, 141, 60}, {189, 0, 38}};
  constexpr int kLast = 3;
  const double at = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * kLast;
  const int from = std::min(static_cast<int>(at), kLast - 1);
  const auto mix = [&](double Rgb::*part) {
    return std::lround(kStops[from].*part + (at - from) * (kStops[from + 1].*part - kStops[from].*part));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(&Rgb::red), mix(&Rgb::green), mix(&Rgb::blue));
}

}  // namespace moebius
