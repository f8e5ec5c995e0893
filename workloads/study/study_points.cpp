#include "workloads/study/study_points.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "hw/file_bytes.h"
#include "hw/folder_files.h"
#include "hw/json_text.h"
#include "workloads/perform/perform.h"
#include "workloads/routing/random_stream.h"
#include "workloads/scenario/named_files.h"
#include "workloads/schedule/hash.h"
#include "workloads/version.h"

namespace moebius {

namespace {

// Which of `count` equal parts of the range of a value the sample lies in: a permutation that the number of
// the value keys. Four rounds of Feistel's network permute the least even number of bits that holds them all;
// what lands beyond goes on until it does not.
std::int64_t part_of(std::int64_t sample, std::int64_t count, std::uint64_t value) {
  const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1)));
  const int half = std::max(1, (bits + 1) / 2);
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto at = static_cast<std::uint64_t>(sample);
  do {
    std::uint64_t left = at >> half, right = at & mask;
    for (std::uint64_t round = 1; round <= 4; ++round) {
      const std::uint64_t mixed = RandomStream::finalise(right ^ (round << 32) ^ ((value + 1) << 40)) & mask;
      left = std::exchange(right, left ^ mixed);
    }
    at = (left << half) | right;
  } while (at >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(at);
}

std::string drawn(const UncertainValue& value, std::uint64_t number, std::int64_t sample,
                  std::int64_t samples) {
  RandomStream random(RandomStream::finalise((number << 32) ^ static_cast<std::uint64_t>(sample)));
  const double share =
      (static_cast<double>(part_of(sample, samples, number)) + random.unit()) / static_cast<double>(samples);
  const double at = value.whole ? std::floor(value.low + share * (value.high - value.low + 1))
                                : value.low + share * (value.high - value.low);
  return value.unit.empty() ? fmt::format("{}", at) : json_string(fmt::format("{}{}", at, value.unit));
}

}  // namespace

StudyPoint point_of(const Study& study, std::int64_t index) {
  StudyPoint point;
  point.index = index;
  const auto seeds = static_cast<std::int64_t>(study.seeds.size());
  point.seed = study.seeds[index % seeds];
  const std::int64_t sample = index / seeds % study.samples;
  std::int64_t rest = point.combination = index / seeds / study.samples;
  const auto cases = static_cast<std::int64_t>(study.cases.size());
  const std::vector<Assignment>& chosen = study.cases[rest % cases];
  rest /= cases;
  point.settings.resize(study.axes.size());
  for (std::size_t i = study.axes.size(); i-- > 0;) {
    const auto count = static_cast<std::int64_t>(study.axes[i].values.size());
    point.settings[i] = {study.axes[i].pointer, study.axes[i].values[rest % count]};
    rest /= count;
  }
  point.settings.insert(point.settings.end(), chosen.begin(), chosen.end());
  for (std::size_t i = 0; i < study.uncertain.size(); ++i) {
    const UncertainValue& value = study.uncertain[i];
    point.settings.push_back({value.pointer, drawn(value, i, sample, study.samples)});
  }
  return point;
}

Document scenario_of(const Study& study, const StudyPoint& point) {
  Document scenario = study.base;
  for (const Assignment& change : point.settings) set_at_pointer(scenario, change.pointer, change.value);
  set_at_pointer(scenario, "/seed", std::to_string(point.seed));
  return scenario;
}

std::string key_of(const Document& scenario, const std::string& means) {
  const std::string text =
      fmt::format("{}\n{}{}\n{}", version_text(), means, named_files_mark(scenario), to_json(scenario.root));
  return fmt::format("{:016x}{:016x}", Hash().add(text).value(), Hash().add(text.size()).add(text).value());
}

std::string data_mark(const std::string& data_dir) {
  if (data_dir.empty()) return "";
  Hash hash;
  for (const std::filesystem::path& file : files_below(data_dir, ".json")) {
    const FileBytes bytes(file.string());
    hash.add(file.lexically_relative(data_dir).string()).add(std::string_view(bytes.data(), bytes.size()));
  }
  return fmt::format(" data {:016x}", hash.value());
}

std::string settings_json(const StudyPoint& point) {
  std::string text = "{";
  for (const Assignment& change : point.settings)
    text += fmt::format("{}{}: {}", text.size() > 1 ? ", " : "", json_string(change.pointer), change.value);
  return text + "}";
}

}  // namespace moebius
