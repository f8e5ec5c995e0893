#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "hw/error.h"
#include "viz/picture/picture.h"

namespace moebius::viz {
namespace {

constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
constexpr int kLargestSide = 1 << 14;
constexpr unsigned kTrueColour = 2, kPalette = 3;  // colour types; 8 bits a sample

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::uint32_t from_big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::uint32_t checksum(const std::string& bytes) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

std::string chunk(const char* type, const std::string& data) {
  const std::string body = type + data;
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(checksum(body));
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 9);
  CHECK(result == Z_OK, fmt::format("zlib says {}", result));
  out.resize(size);
  return out;
}

void add_colour(std::string& bytes, std::uint32_t colour) {
  for (int shift = 0; shift < 24; shift += 8) bytes += static_cast<char>(colour >> shift & 0xff);
}

// Filter type 0 before each row: pictures of charts have long equal runs that filters would break.
std::string rows_of(const Picture& picture, const std::unordered_map<std::uint32_t, int>& palette) {
  std::string bytes;
  for (int y = 0; y < picture.height; ++y) {
    bytes += '\0';
    for (int x = 0; x < picture.width; ++x) {
      const std::uint32_t colour = picture.at(x, y) & 0xffffff;
      if (palette.empty())
        add_colour(bytes, colour);
      else
        bytes += static_cast<char>(palette.at(colour));
    }
  }
  return bytes;
}

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Picture read() {
    if (take(8) != kSignature) fail();
    while (true) {
      const std::uint32_t size = from_big_endian(take(4));
      const std::string_view type = take(4), data = take(size);
      take(4);  // the checksum; zlib has its own over the pixels
      if (type == "IHDR") header(data);
      if (type == "PLTE") palette_ = data;
      if (type == "IDAT") deflated_ += data;
      if (type == "IEND") return picture();
    }
  }

 private:
  [[noreturn]] void fail() const {
    throw input_error(
        fmt::format("{}: not a picture of moebius (PNG of 8 bits a sample, not interlaced)", name_));
  }
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) fail();
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  void header(std::string_view data) {
    if (data.size() != 13) fail();
    const std::uint32_t width = from_big_endian(data.substr(0, 4)),
                        height = from_big_endian(data.substr(4, 4));
    if (width == 0 || height == 0 || width > kLargestSide || height > kLargestSide) fail();
    colour_type_ = static_cast<unsigned char>(data[9]);
    const bool known = data[8] == 8 && (colour_type_ == kTrueColour || colour_type_ == kPalette);
    if (!known || data[10] != 0 || data[11] != 0 || data[12] != 0) fail();
    picture_ = Picture(static_cast<int>(width), static_cast<int>(height), 0);
  }
  Picture picture() {
    const std::size_t samples = colour_type_ == kTrueColour ? 3 : 1;
    const std::size_t stride = 1 + static_cast<std::size_t>(picture_.width) * samples;
    std::string rows(stride * static_cast<std::size_t>(picture_.height), '\0');
    uLongf size = rows.size();
    const int result = uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                                  reinterpret_cast<const Bytef*>(deflated_.data()), deflated_.size());
    if (picture_.width == 0 || result != Z_OK || size != rows.size()) fail();
    for (int y = 0; y < picture_.height; ++y) {
      const char* row = rows.data() + static_cast<std::size_t>(y) * stride;
      if (row[0] != 0) fail();
      for (int x = 0; x < picture_.width; ++x)
        picture_.at(x, y) = colour(row + 1 + static_cast<std::size_t>(x) * samples);
    }
    return std::move(picture_);
  }
  std::uint32_t colour(const char* sample) const {
    if (colour_type_ == kPalette) {
      const std::size_t at = std::size_t{3} * static_cast<unsigned char>(*sample);
      if (at + 3 > palette_.size()) fail();
      sample = palette_.data() + at;
    }
    std::uint32_t colour = 0xff000000;
    for (int i = 0; i < 3; ++i) colour |= std::uint32_t{static_cast<unsigned char>(sample[i])} << (8 * i);
    return colour;
  }

  std::string_view bytes_, palette_;
  const std::string& name_;
  std::string deflated_;
  unsigned colour_type_ = 0;
  Picture picture_;
};

}  // namespace

std::string png_of(const Picture& picture) {
  std::unordered_map<std::uint32_t, int> palette;
  std::string colours;
  for (const std::uint32_t pixel : picture.pixels) {
    if (palette.size() > 256) break;
    if (palette.try_emplace(pixel & 0xffffff, static_cast<int>(palette.size())).second)
      add_colour(colours, pixel);
  }
  const bool few = palette.size() <= 256;
  if (!few) palette.clear();
  std::string header = big_endian(static_cast<std::uint32_t>(picture.width)) +
                       big_endian(static_cast<std::uint32_t>(picture.height));
  header += {8, static_cast<char>(few ? kPalette : kTrueColour), 0, 0, 0};
  std::string bytes(kSignature);
  bytes += chunk("IHDR", header);
  if (few) bytes += chunk("PLTE", colours);
  return bytes + chunk("IDAT", deflated(rows_of(picture, palette))) + chunk("IEND", "");
}

Picture picture_of_png(const std::string& bytes, const std::string& name) {
  return Reader(bytes, name).read();
}

}  // namespace moebius::viz
