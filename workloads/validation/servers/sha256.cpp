#include "workloads/validation/servers/sha256.h"

#include <bit>
#include <cmath>
#include <string>

namespace moebius {
namespace {

using Words = std::array<std::uint32_t, 64>;

// The first 32 bits of the fraction of the root of the first primes (sections 4.2.2 and 5.3.3).
template <std::size_t N>
std::array<std::uint32_t, N> root_fractions(long double (*root)(long double)) {
  std::array<std::uint32_t, N> words{};
  std::size_t found = 0;
  for (int candidate = 2; found < N; ++candidate) {
    bool prime = true;
    for (int d = 2; d * d <= candidate; ++d) prime = prime && candidate % d != 0;
    if (!prime) continue;
    const long double value = root(static_cast<long double>(candidate));
    words[found++] = static_cast<std::uint32_t>((value - std::floor(value)) * 4294967296.0L);
  }
  return words;
}

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
         bytes[3];
}

// To whole blocks: one bit, zeros, the length in bits.
std::string padded(std::string_view text) {
  std::string bytes(text);
  bytes += '\x80';
  while (bytes.size() % 64 != 56) bytes += '\0';
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(bits >> shift);
  return bytes;
}

Words schedule_of(const std::uint8_t* block) {
  Words w{};
  for (int i = 0; i < 16; ++i) w[i] = big_endian(block + std::size_t{4} * i);
  for (int i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    const std::uint32_t s0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3);
    const std::uint32_t s1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  return w;
}

void add_block(std::array<std::uint32_t, 8>& state, const std::uint8_t* block, const Words& k) {
  const Words w = schedule_of(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> sums{a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state[i] += sums[i];
}

}  // namespace

std::array<std::uint8_t, 32> sha256(std::string_view text) {
  static const Words kCubes = root_fractions<64>([](long double x) { return std::cbrt(x); });
  auto state = root_fractions<8>([](long double x) { return std::sqrt(x); });
  const std::string bytes = padded(text);
  for (std::size_t at = 0; at < bytes.size(); at += 64)
    add_block(state, reinterpret_cast<const std::uint8_t*>(bytes.data()) + at, kCubes);
  std::array<std::uint8_t, 32> hash{};
  for (int i = 0; i < 32; ++i) hash[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return hash;
}

int sha256_modulo(std::string_view text, int divisor) {
  int rest = 0;
  for (const std::uint8_t byte : sha256(text)) rest = (rest * 256 + byte) % divisor;
  return rest;
}

}  // namespace moebius
