#include "workloads/training/rank_placement.h"

#include <charconv>

#include <fmt/format.h>

#include "hw/trimmed.h"

namespace moebius {
namespace {

std::optional<std::int32_t> number_of(std::string_view text, std::int64_t most) {
  text = trimmed(text);
  std::int32_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value >= most)
    return std::nullopt;
  return value;
}

bool add_run(std::string_view part, std::int64_t most, std::vector<std::int32_t>& devices) {
  const std::size_t dash = part.find('-');
  const auto first = number_of(part.substr(0, dash), most);
  const auto last = dash == std::string_view::npos ? first : number_of(part.substr(dash + 1), most);
  if (!first || !last) return false;
  const std::int32_t step = *last < *first ? -1 : 1;
  for (std::int32_t device = *first;; device += step) {
    if (static_cast<std::int64_t>(devices.size()) == most) return false;
    devices.push_back(device);
    if (device == *last) return true;
  }
}

}  // namespace

std::string device_ranges(const std::vector<std::int32_t>& devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t end = i + 1;
    const std::int32_t step = end < devices.size() && devices[end] < devices[i] ? -1 : 1;
    while (end < devices.size() && devices[end] == devices[end - 1] + step) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", devices[i]);
    if (end > i + 1) text += fmt::format("-{}", devices[end - 1]);
    i = end;
  }
  return text;
}

std::optional<std::vector<std::int32_t>> parse_device_ranges(std::string_view text, std::int64_t most) {
  std::vector<std::int32_t> devices;
  while (true) {
    const std::size_t comma = text.find(',');
    if (!add_run(text.substr(0, comma), most, devices)) return std::nullopt;
    if (comma == std::string_view::npos) return devices;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace moebius
