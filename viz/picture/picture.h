// A picture in memory and as a PNG file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moebius::viz {

struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint32_t>
      pixels;  // row by row from the top; red in the lowest byte, then green, blue, alpha

  Picture() = default;
  Picture(int w, int h, std::uint32_t colour)
      : width(w), height(h), pixels(static_cast<std::size_t>(w) * static_cast<std::size_t>(h), colour) {}
  std::uint32_t& at(int x, int y) { return pixels[static_cast<std::size_t>(y) * width + x]; }
  std::uint32_t at(int x, int y) const { return pixels[static_cast<std::size_t>(y) * width + x]; }
};

// PNG (ISO/IEC 15948) without alpha: a palette of up to 256 colours where they suffice, else 24 bits; the
// same bytes for the same picture.
std::string png_of(const Picture& picture);
// Of files that png_of() wrote; anything else, truncated and garbled ones included, is an input_error.
Picture picture_of_png(const std::string& bytes, const std::string& name);

}  // namespace moebius::viz
