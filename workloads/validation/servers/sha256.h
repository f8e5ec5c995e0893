// SHA-256 (FIPS 180-4): which rows of a table are kept apart must not depend on this program.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace moebius {

std::array<std::uint8_t, 32> sha256(std::string_view text);  // most significant byte first

// The hash as one large number, modulo a small one.
int sha256_modulo(std::string_view text, int divisor);

}  // namespace moebius
