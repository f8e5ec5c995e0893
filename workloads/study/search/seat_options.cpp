#include "workloads/study/search/seat_options.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "workloads/study/search/divisors.h"
#include "workloads/study/search/document_changes.h"

namespace moebius {
namespace {

constexpr std::array kDegreeKeys{"/attention/tp", "/attention/cp", "/ep/degree", "/two_batch_overlap",
                                 "/microbatches"};

// Values of one degree of a seat.
class SeatAxes {
 public:
  SeatAxes(const PoolSeat& seat, const SpaceFile& given) : seat_(seat), given_(given) {}

  std::vector<int> numbers(const char* key, std::vector<int> otherwise) const {
    const StudyAxis* axis = given_.find(seat_.pointer + key);
    return axis != nullptr ? given_.numbers(*axis) : std::move(otherwise);
  }

  std::vector<bool> overlaps(bool possible) const {
    const StudyAxis* axis = given_.find(seat_.pointer + "/two_batch_overlap");
    if (axis == nullptr) return possible ? std::vector<bool>{false, true} : std::vector<bool>{false};
    std::vector<bool> values;
    for (const std::string& value : axis->values) {
      if (value == "false" || possible) values.push_back(value == "true");
    }
    return values;
  }

 private:
  const PoolSeat& seat_;
  const SpaceFile& given_;
};

std::vector<int> expert_degrees(const PoolSeat& seat, const Model& model, int tp) {
  if (model.experts.routed == 0) return {1};
  return tp > 1 ? divisors(tp, tp) : divisors(seat.devices, model.experts.routed);
}

// Devices that one prompt may be cut over; decoding has none to cut.
std::vector<int> prompt_cuts(const PoolSeat& seat, const SeatAxes& axes, int tp) {
  if (seat.role != PoolRole::kPrefill || tp > 1) return {1};
  return axes.numbers("/attention/cp", {1});
}

// All that `base` says of a phase but what an option says.
std::string rest_of(const Document& base, const std::string& pointer) {
  constexpr std::array kOwn{"pool", "attention", "ep", "experts", "microbatches", "two_batch_overlap"};
  const Value* phase = value_at(base.root, pointer);
  std::string text;
  if (phase == nullptr || phase->kind != Value::Kind::kObject) return text;
  for (std::size_t i = 0; i < phase->keys.size(); ++i) {
    const std::string& key = phase->keys[i];
    if (std::find(kOwn.begin(), kOwn.end(), key) != kOwn.end()) continue;
    text += fmt::format(", \"{}\": {}", key, one_line(phase->items[i]));
  }
  return text;
}

// All that `base` says of a phase's expert parallelism but its degree, behind `first`. Two half batches have
// to be told how tokens travel: where the plan does not, by the kernels made for the phase. On one pool
// decode says where shared experts are computed.
std::string experts_of(const Document& base, const std::string& phase, const std::string& first,
                       const SeatOption& option, bool decodes, bool one_pool = false) {
  const std::string said = text_at(base, phase + "/ep/dispatch");
  const bool chosen = option.overlapped && (said.empty() || said == R"("auto")");
  std::string text = first;
  const auto add = [&](const std::string& key, const std::string& value) {
    text += fmt::format(R"({}"{}": {})", text.empty() ? "" : ", ", key, value);
  };
  const Value* experts = value_at(base.root, phase + "/ep");
  if (experts != nullptr && experts->kind == Value::Kind::kObject) {
    for (std::size_t i = 0; i < experts->keys.size(); ++i) {
      const std::string& key = experts->keys[i];
      if (key == "degree" || (one_pool && key == "shared_experts") ||
          (chosen && (key == "dispatch" || key == "communication_sms")))
        continue;
      add(key, one_line(experts->items[i]));
    }
  }
  if (chosen) add("dispatch", decodes ? R"("deepep-low-latency")" : R"("deepep")");
  return text;
}

std::string overlap(const SeatOption& option) {
  return option.overlapped ? R"(, "two_batch_overlap": true)" : "";
}

// Of the ranks that cut prompts.
std::string attended(const PoolSeat& seat, const SeatOption& option, const Document& base) {
  const std::string by = option.cp > 1 ? text_at(base, seat.pointer + "/attention/attend_by") : "";
  return by.empty() ? "" : R"(, "attend_by": )" + by;
}

std::string of_attention(const PoolSeat& seat, const SeatOption& option, const Document& base) {
  const bool decodes = seat.role != PoolRole::kPrefill;
  if (!seat.expert_pool.empty()) {
    // What is said of experts beside attention need not hold for those that stand apart.
    const bool own = !text_at(base, seat.pointer + "/experts/pool").empty();
    return fmt::format(
        R"({{"attention": {{"pool": "{}", "tp": 1}}, "experts": {{"pool": "{}"}}, "microbatches": {}{})",
        seat.pool, seat.expert_pool, option.microbatches,
        own ? fmt::format(R"(, "ep": {{{}}})", experts_of(base, seat.pointer, "", option, decodes)) : "");
  }
  const std::string degree = fmt::format(R"("degree": {})", option.ep);
  return fmt::format(R"({{"pool": "{}", "attention": {{"tp": {}, "cp": {}{}}}, "ep": {{{}}}{})", seat.pool,
                     option.tp, option.cp, attended(seat, option, base),
                     experts_of(base, seat.pointer, degree, option, decodes), overlap(option));
}

}  // namespace

std::vector<SeatOption> seat_options(const PoolSeat& seat, const Model& model, const SpaceFile& given) {
  const SeatAxes axes(seat, given);
  std::vector<SeatOption> options;
  if (!seat.expert_pool.empty()) {
    for (const int microbatches : axes.numbers("/microbatches", {2, 3, 4}))
      options.push_back({.microbatches = microbatches});
    return options;
  }
  for (const int tp : axes.numbers("/attention/tp", divisors(seat.node, seat.node)))
    for (const int cp : prompt_cuts(seat, axes, tp))
      for (const int ep : axes.numbers("/ep/degree", expert_degrees(seat, model, tp)))
        for (const bool overlapped : axes.overlaps(tp == 1 && ep > 1))
          options.push_back({tp, cp, ep, overlapped});
  return options;
}

bool is_degree_of_seat(const std::string& pointer) {
  return std::any_of(kDegreeKeys.begin(), kDegreeKeys.end(),
                     [&](const char* key) { return pointer.ends_with(key); });
}

std::vector<Assignment> seat_settings(const PoolSeat& seat, const SeatOption& option, const Document& base) {
  std::vector<Assignment> settings{
      {seat.pointer, of_attention(seat, option, base) + rest_of(base, seat.pointer) + "}"}};
  if (seat.role == PoolRole::kBoth && !seat.pointer.starts_with("/plan/pools/")) {
    settings.push_back(
        {"/plan/prefill",
         fmt::format(R"({{"ep": {{{}}}{}{}}})", experts_of(base, "/plan/prefill", "", option, false, true),
                     overlap(option), rest_of(base, "/plan/prefill"))});
  }
  return settings;
}

std::string option_text(const PoolSeat& seat, const SeatOption& option) {
  if (!seat.expert_pool.empty()) return fmt::format("{} microbatches", option.microbatches);
  std::string text = fmt::format("tp {}", option.tp);
  if (option.cp > 1) text += fmt::format(", cp {}", option.cp);
  if (option.ep > 1) text += fmt::format(", ep {}", option.ep);
  if (option.overlapped) text += ", two batches";
  return text;
}

}  // namespace moebius
