// The parts that a profile's file consists of, read and checked. Part of profile_from() (profile.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hw/profile.h"
#include "hw/reader.h"

namespace moebius {

inline constexpr std::size_t kMostProfileValues = std::size_t{1} << 20;

// One object of "tables". `values_left`: how many more values the file may hold. Throws as profile_from().
ProfileTable read_profile_table(Reader reader, const std::vector<ProfileSource>& sources,
                                std::size_t& values_left);

// The object "power". Throws as profile_from().
ProfilePower read_profile_power(Reader reader, const std::vector<ProfileSource>& sources);

HeldOut read_held_out(Reader reader);
std::vector<RejectedRows> read_rejected(Reader& reader);  // "rejected"; may be absent
std::string read_source_key(Reader& reader, const std::vector<ProfileSource>& sources);  // "source"
DType read_dtype(Reader& reader, std::string_view key);
// At most 2000 characters; required when there is nothing to stand for it.
std::string short_text(Reader& reader, std::string_view key, const std::string& otherwise = "");

}  // namespace moebius
