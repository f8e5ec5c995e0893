// Draws triangles into a picture in software, so that screens become pictures without a display: the same
// pixels on every machine and build (single precision, one rounding an operation; see viz.cmake).
#pragma once

#include <cstdint>
#include <span>

#include "viz/picture/picture.h"

namespace moebius::viz {

// As Dear ImGui gives them.
struct Vertex {
  float x = 0, y = 0;
  float u = 0, v = 0;        // in the texture, 0 to 1
  std::uint32_t colour = 0;  // as in Picture
};

// Coverage of glyphs and of plain white, one byte a texel.
struct Texture {
  const unsigned char* texels = nullptr;
  int width = 0, height = 0;
};

struct Clip {
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // pixels, half open
};

// Three indices a triangle; all are below vertices.size(). Pixels whose centres lie inside are blended over
// what is there; a pixel on an edge that two triangles share is drawn once.
void rasterise(std::span<const Vertex> vertices, std::span<const std::uint16_t> indices,
               const Texture& texture, const Clip& clip, Picture& picture);

}  // namespace moebius::viz
