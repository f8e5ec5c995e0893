// A gzip file as tests write it: RFC 1952 around RFC 1951's stored blocks, nothing compressed.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace moebius {

inline std::uint32_t crc_of(const std::string& text) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

inline std::string little_endian(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFFU);
  return text;
}

inline void write_stored_gzip(const std::string& path, const std::string& text) {
  std::string file("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  constexpr std::size_t kMost = 65535;
  for (std::size_t at = 0; at == 0 || at < text.size(); at += kMost) {
    const std::string block = text.substr(at, kMost);
    const auto size = static_cast<std::uint32_t>(block.size());
    file += static_cast<char>(at + kMost >= text.size() ? 1 : 0);
    file += little_endian(size, 2) + little_endian(~size, 2) + block;
  }
  file += little_endian(crc_of(text), 4) + little_endian(static_cast<std::uint32_t>(text.size()), 4);
  std::ofstream(path, std::ios::binary) << file;
}

}  // namespace moebius
