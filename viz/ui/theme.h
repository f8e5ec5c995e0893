// Colours, dark and light. A colour is red in the lowest byte, then green, blue, alpha.
#pragma once

#include <cstdint>

#include "viz/data/colouring.h"

namespace moebius::viz {

using Colour = std::uint32_t;

constexpr Colour colour_of(unsigned red, unsigned green, unsigned blue, unsigned alpha = 255) {
  return red | green << 8 | blue << 16 | alpha << 24;
}
constexpr Colour with_alpha(Colour colour, unsigned alpha) {
  return (colour & 0xffffff) | alpha << 24;
}

struct Theme {
  bool dark = true;
  Colour background, panel, grid, text, faint_text, accent, warning, run_a, run_b, filtered, select;

  Colour category(ColourBy colouring, std::uint8_t category) const;
  Colour series(int index) const;   // of charts: eight that are told apart, then their light and dark shades
  Colour heat(double share) const;  // 0 to 1: from the background over blue and yellow to red
};

Theme theme_of(bool dark);
// Sets ImGui's own style to it, at `scale` times the size.
void apply(const Theme& theme, float scale);

}  // namespace moebius::viz
