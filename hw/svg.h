// A drawing as SVG text: rectangles, lines, words. Coordinates in pixels, y downwards.
#pragma once

#include <string>
#include <string_view>

namespace moebius {

struct SvgBox {
  double x = 0, y = 0, width = 0, height = 0;
};

// Where the drawing stands on its page, and the height of its rows.
struct SvgPage {
  double left = 0, top = 0, width = 0, row = 0, gap = 0, right = 0, bottom = 0;
};

// Sizes of words in pixels; where `x` of a text is.
enum class SvgAnchor { kStart, kMiddle, kEnd };

class Svg {
 public:
  Svg(double width, double height);

  // `fill`: a colour such as "#d04020"; `hint`, shown where the pointer rests, may be empty.
  void box(const SvgBox& at, std::string_view fill, std::string_view hint = {});
  void line(double x1, double y1, double x2, double y2, std::string_view stroke);
  void text(double x, double y, std::string_view words, SvgAnchor anchor = SvgAnchor::kStart,
            double size = 12);
  std::string finish() const;  // the whole file

 private:
  std::string text_;
};

// A colour between white and dark red for a share from 0 to 1; beyond 1 as 1.
std::string heat_colour(double share);

}  // namespace moebius
