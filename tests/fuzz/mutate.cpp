#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace moebius::fuzz {

namespace {

constexpr std::size_t kLongestInput = std::size_t{1} << 20;
constexpr std::size_t kLongestPiece = 64;  // of what is copied, cut or repeated at once, as a rule

// SplitMix64: every index is a state of its own, so that inputs do not depend on those before.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t index) : state_(seed * 0x9e3779b97f4a7c15u ^ (index << 20)) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t count) { return count == 0 ? 0 : static_cast<std::size_t>(next() % count); }

  // Mostly short, now and then as long as `most`.
  std::size_t length(std::size_t most) {
    return below(std::min(most, below(16) == 0 ? most : kLongestPiece) + 1);
  }

 private:
  std::uint64_t state_;
};

// What breaks parsers: bounds of integers, bytes of UTF-8, and the words and signs of JSON.
constexpr std::array<std::string_view, 36> kWords{"{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  ",",
                                                  ":",
                                                  "\"",
                                                  "\\",
                                                  "//",
                                                  "/*",
                                                  "*/",
                                                  "\n",
                                                  "null",
                                                  "true",
                                                  "NaN",
                                                  "-Infinity",
                                                  "1e999",
                                                  "-0",
                                                  "0.1",
                                                  "1e-7",
                                                  "\\u0000",
                                                  "\\ud800",
                                                  "\\udc00",
                                                  "\xc3\xa9",
                                                  "\xff",
                                                  "\xef\xbb\xbf",
                                                  "\xf4\x90\x80\x80",
                                                  "\"a\":",
                                                  "\"\"",
                                                  "[[[[[[[[[",
                                                  "\"1 GB\"",
                                                  "400 Gb/s",
                                                  "2147483648",
                                                  "-9223372036854775808",
                                                  "18446744073709551616",
                                                  "9007199254740993"};
constexpr std::array<std::uint64_t, 12> kNumbers{0,
                                                 1,
                                                 0x7f,
                                                 0x80,
                                                 0xff,
                                                 0x7fff,
                                                 0xffff,
                                                 0x7fffffff,
                                                 0x80000000,
                                                 0xffffffff,
                                                 0x7fffffffffffffff,
                                                 0xffffffffffffffff};

class Mutator {
 public:
  Mutator(const std::vector<std::string>& seeds, std::uint64_t seed, std::uint64_t index)
      : seeds_(seeds), random_(seed, index), text_(seeds[random_.below(seeds.size())]) {}

  std::string mutated() {
    for (std::size_t changes = 1 + random_.length(8); changes > 0; --changes) change();
    if (text_.size() > kLongestInput) text_.resize(kLongestInput);
    return std::move(text_);
  }

 private:
  void change() {
    switch (random_.below(10)) {
      case 0:
        return flip_bit();
      case 1:
        return set_byte();
      case 2:
        return set_number();
      case 3:
        return insert(kWords[random_.below(kWords.size())]);
      case 4:
        return insert(piece_of(seeds_[random_.below(seeds_.size())]));
      case 5:
        return insert(piece_of(text_));
      case 6:
        return cut();
      case 7:
        return repeat();
      case 8:
        return swap_pieces();
      case 9:
        return truncate();
    }
  }

  void flip_bit() {
    if (!text_.empty()) text_[random_.below(text_.size())] ^= static_cast<char>(1 << random_.below(8));
  }
  void set_byte() {
    if (!text_.empty()) text_[random_.below(text_.size())] = static_cast<char>(random_.next());
  }
  // A little-endian number over what is there, off by a little: the sizes and offsets of binary files.
  void set_number() {
    const std::size_t width = std::size_t{1} << random_.below(4);
    if (text_.size() < width) return;
    const std::uint64_t number = kNumbers[random_.below(kNumbers.size())] + random_.below(3) - 1;
    const std::size_t at = random_.below(text_.size() - width + 1);
    for (std::size_t i = 0; i < width; ++i) text_[at + i] = static_cast<char>(number >> (8 * i));
  }
  void insert(std::string piece) { text_.insert(random_.below(text_.size() + 1), piece); }
  void insert(std::string_view piece) { insert(std::string(piece)); }
  std::string piece_of(const std::string& text) {
    const std::size_t at = random_.below(text.size());
    return text.substr(at, random_.length(text.size() - at));
  }
  void cut() {
    const std::size_t at = random_.below(text_.size());
    text_.erase(at, random_.length(text_.size() - at));
  }
  void repeat() {
    const std::string piece = piece_of(text_);
    const std::size_t times = random_.length(1024);
    std::string repeated;
    for (std::size_t i = 0; i < times && repeated.size() < kLongestInput / 4; ++i) repeated += piece;
    insert(std::move(repeated));
  }
  void swap_pieces() {
    const std::string piece = piece_of(text_);
    cut();
    insert(piece);
  }
  void truncate() {
    if (random_.below(4) == 0) text_.resize(random_.below(text_.size() + 1));
  }

  const std::vector<std::string>& seeds_;
  Random random_;
  std::string text_;
};

}  // namespace

std::string make_input(const std::vector<std::string>& seeds, std::uint64_t seed, std::uint64_t index) {
  return Mutator(seeds, seed, index).mutated();
}

}  // namespace moebius::fuzz
