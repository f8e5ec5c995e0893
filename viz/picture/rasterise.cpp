#include "viz/picture/rasterise.h"

#include <algorithm>
#include <cmath>

namespace moebius::viz {
namespace {

std::uint32_t channel(std::uint32_t colour, int shift) {
  return colour >> shift & 0xff;
}

// (a * b) / 255, rounded.
std::uint32_t scaled(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t product = a * b + 128;
  return (product + (product >> 8)) >> 8;
}

void blend(std::uint32_t& under, std::uint32_t colour, std::uint32_t alpha) {
  if (alpha == 0) return;
  std::uint32_t mixed = 0xff000000;
  for (int shift = 0; shift < 24; shift += 8)
    mixed |= (scaled(channel(colour, shift), alpha) + scaled(channel(under, shift), 255 - alpha)) << shift;
  under = mixed;
}

std::uint32_t texel(const Texture& texture, float u, float v) {
  const int x = std::clamp(static_cast<int>(u * static_cast<float>(texture.width)), 0, texture.width - 1);
  const int y = std::clamp(static_cast<int>(v * static_cast<float>(texture.height)), 0, texture.height - 1);
  return texture.texels[static_cast<std::size_t>(y) * texture.width + x];
}

// First pixel whose centre is at or beyond `x`.
int first_centre(float x) {
  return static_cast<int>(std::ceil(x - 0.5f));
}

// Two triangles that make an upright rectangle of one colour, as nearly all of them do.
bool is_rectangle(const Vertex& a, const Vertex& b, const Vertex& c, const Vertex& d) {
  return a.y == b.y && b.x == c.x && c.y == d.y && d.x == a.x && a.colour == b.colour &&
         b.colour == c.colour && c.colour == d.colour && a.x <= c.x && a.y <= c.y;
}

void fill_rectangle(const Vertex& a, const Vertex& c, const Texture& texture, const Clip& clip,
                    Picture& picture) {
  const int x0 = std::max(first_centre(a.x), clip.x0), x1 = std::min(first_centre(c.x), clip.x1);
  const int y0 = std::max(first_centre(a.y), clip.y0), y1 = std::min(first_centre(c.y), clip.y1);
  const float du = c.x > a.x ? (c.u - a.u) / (c.x - a.x) : 0, dv = c.y > a.y ? (c.v - a.v) / (c.y - a.y) : 0;
  const std::uint32_t alpha = a.colour >> 24;
  const bool plain = a.u == c.u && a.v == c.v;
  for (int y = y0; y < y1; ++y) {
    const float v = a.v + (static_cast<float>(y) + 0.5f - a.y) * dv;
    for (int x = x0; x < x1; ++x) {
      const float u = a.u + (static_cast<float>(x) + 0.5f - a.x) * du;
      blend(picture.at(x, y), a.colour, plain ? alpha : scaled(alpha, texel(texture, u, v)));
    }
  }
}

float edge(const Vertex& a, const Vertex& b, float x, float y) {
  return (b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x);
}

// An edge's pixels belong to the triangle on its left or top.
bool owns(const Vertex& a, const Vertex& b) {
  return (a.y == b.y && b.x < a.x) || b.y > a.y;
}

void fill_triangle(Vertex a, Vertex b, const Vertex& c, const Texture& texture, const Clip& clip,
                   Picture& picture) {
  float area = edge(a, b, c.x, c.y);
  if (area < 0) std::swap(a, b), area = -area;
  if (area == 0) return;
  const int x0 = std::max(first_centre(std::min({a.x, b.x, c.x})), clip.x0);
  const int x1 = std::min(first_centre(std::max({a.x, b.x, c.x})) + 1, clip.x1);
  const int y0 = std::max(first_centre(std::min({a.y, b.y, c.y})), clip.y0);
  const int y1 = std::min(first_centre(std::max({a.y, b.y, c.y})) + 1, clip.y1);
  for (int y = y0; y < y1; ++y) {
    for (int x = x0; x < x1; ++x) {
      const float px = static_cast<float>(x) + 0.5f, py = static_cast<float>(y) + 0.5f;
      const float wa = edge(b, c, px, py), wb = edge(c, a, px, py), wc = edge(a, b, px, py);
      const bool inside = (wa > 0 || (wa == 0 && owns(b, c))) && (wb > 0 || (wb == 0 && owns(c, a))) &&
                          (wc > 0 || (wc == 0 && owns(a, b)));
      if (!inside) continue;
      const float u = (wa * a.u + wb * b.u + wc * c.u) / area, v = (wa * a.v + wb * b.v + wc * c.v) / area;
      std::uint32_t colour = 0;
      for (int shift = 0; shift < 32; shift += 8) {
        const float mixed = (wa * static_cast<float>(channel(a.colour, shift)) +
                             wb * static_cast<float>(channel(b.colour, shift)) +
                             wc * static_cast<float>(channel(c.colour, shift))) /
                            area;
        colour |= static_cast<std::uint32_t>(std::clamp(mixed + 0.5f, 0.0f, 255.0f)) << shift;
      }
      blend(picture.at(x, y), colour, scaled(colour >> 24, texel(texture, u, v)));
    }
  }
}

}  // namespace

void rasterise(std::span<const Vertex> vertices, std::span<const std::uint16_t> indices,
               const Texture& texture, const Clip& given, Picture& picture) {
  const Clip clip{std::max(given.x0, 0), std::max(given.y0, 0), std::min(given.x1, picture.width),
                  std::min(given.y1, picture.height)};
  for (std::size_t i = 0; i + 3 <= indices.size(); i += 3) {
    const Vertex &a = vertices[indices[i]], &b = vertices[indices[i + 1]], &c = vertices[indices[i + 2]];
    if (i + 6 <= indices.size() && indices[i] == indices[i + 3] && indices[i + 2] == indices[i + 4]) {
      const Vertex& d = vertices[indices[i + 5]];
      if (is_rectangle(a, b, c, d)) {
        fill_rectangle(a, c, texture, clip, picture);
        i += 3;
        continue;
      }
    }
    fill_triangle(a, b, c, texture, clip, picture);
  }
}

}  // namespace moebius::viz
