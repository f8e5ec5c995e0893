// The software rasteriser and the PNG files of its pictures.
#include "hw/error.h"

#include <array>
#include "tests/catch.h"
#include <cstdint>
#include <string>
#include <vector>

#include "viz/picture/picture.h"
#include "viz/picture/rasterise.h"

namespace {

using namespace moebius;
using namespace moebius::viz;

constexpr std::uint32_t kBlack = 0xff000000, kRed = 0xff0000ff;
constexpr unsigned char kWhite[1] = {255};
constexpr Texture kPlain{kWhite, 1, 1};

int count(const Picture& picture, std::uint32_t colour) {
  return static_cast<int>(std::count(picture.pixels.begin(), picture.pixels.end(), colour));
}

Picture drawn(const std::vector<Vertex>& vertices, const std::vector<std::uint16_t>& indices,
              Clip clip = {0, 0, 16, 16}) {
  Picture picture(16, 16, kBlack);
  rasterise(vertices, indices, kPlain, clip, picture);
  return picture;
}

std::vector<Vertex> rectangle(float x0, float y0, float x1, float y1, std::uint32_t colour) {
  return {{x0, y0, 0, 0, colour}, {x1, y0, 0, 0, colour}, {x1, y1, 0, 0, colour}, {x0, y1, 0, 0, colour}};
}

}  // namespace

TEST_CASE("a rectangle covers the pixels whose centres it holds") {
  const Picture picture = drawn(rectangle(2, 3, 6, 5, kRed), {0, 1, 2, 0, 2, 3});
  CHECK(count(picture, kRed) == 8);  // 4 x 2
  CHECK(picture.at(2, 3) == kRed);
  CHECK(picture.at(6, 3) == kBlack);
  CHECK(count(drawn(rectangle(2.6f, 3, 3.4f, 4, kRed), {0, 1, 2, 0, 2, 3}), kRed) ==
        0);  // between two centres
}

TEST_CASE("what lies outside the clip is not drawn, nor outside the picture") {
  CHECK(count(drawn(rectangle(0, 0, 16, 16, kRed), {0, 1, 2, 0, 2, 3}, {4, 4, 6, 8}), kRed) == 8);
  CHECK(count(drawn(rectangle(-100, -100, 100, 100, kRed), {0, 1, 2, 0, 2, 3}, {-50, -50, 50, 50}), kRed) ==
        256);
}

TEST_CASE("alpha blends over what is there") {
  // Half (128/255) of 255 over black: 128.
  const Picture picture = drawn(rectangle(0, 0, 16, 16, 0x800000ff), {0, 1, 2, 0, 2, 3});
  CHECK((picture.at(5, 5) & 0xff) == 128);
}

TEST_CASE("two triangles that share an edge draw each pixel of it once") {
  // A diamond around a pixel centre, cut in two by its diagonal: with half alpha a pixel drawn twice would be
  // brighter.
  const std::vector<Vertex> diamond{{8.5f, 2.5f, 0, 0, 0x800000ff},
                                    {14.5f, 8.5f, 0, 0, 0x800000ff},
                                    {8.5f, 14.5f, 0, 0, 0x800000ff},
                                    {2.5f, 8.5f, 0, 0, 0x800000ff}};
  const Picture picture = drawn(diamond, {0, 1, 2, 0, 2, 3});
  for (const std::uint32_t pixel : picture.pixels) CHECK(((pixel & 0xff) == 0 || (pixel & 0xff) == 128));
  // |x - 8| + |y - 8| < 6 holds for 61 centres; of the 24 on the edges some belong to it.
  CHECK(count(picture, 0xff000080) >= 61);
  CHECK(count(picture, 0xff000080) <= 85);
}

TEST_CASE("pictures of few and of many colours survive their files") {
  Picture few(5, 3, kRed), many(40, 40, kBlack);
  few.at(4, 2) = 0xff112233;
  for (int i = 0; i < 1600; ++i)
    many.pixels[static_cast<std::size_t>(i)] = kBlack | static_cast<std::uint32_t>(i * 1237);
  CHECK(picture_of_png(png_of(few), "few").pixels == few.pixels);
  CHECK(picture_of_png(png_of(many), "many").pixels == many.pixels);
  CHECK(png_of(few).size() < 100);
}

TEST_CASE("damaged pictures are errors") {
  const std::string bytes = png_of(Picture(9, 9, kRed));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    INFO(size);
    CHECK_THROWS_AS(picture_of_png(bytes.substr(0, size), "cut"), Error);
  }
  std::string other = bytes;
  other[24] = 16;  // bits a sample
  CHECK_THROWS_AS(picture_of_png(other, "16 bits"), Error);
}
