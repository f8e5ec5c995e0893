// Degrees that a search gives one pool of a service.
#include <catch2/catch.hpp>

#include <algorithm>

#include "workloads/study/search/seat_options.h"

namespace moebius {
namespace {

Model experts_of(int routed) {
  Model model;
  model.experts.routed = routed;
  return model;
}

PoolSeat seat_of(PoolRole role) {
  return {.pointer = role == PoolRole::kPrefill ? "/plan/prefill" : "/plan/decode",
          .role = role,
          .pool = "p",
          .expert_pool = {},
          .devices = 8,
          .node = 8};
}

int most_cut(const std::vector<SeatOption>& options) {
  int most = 0;
  for (const SeatOption& option : options) most = std::max(most, option.cp);
  return most;
}

}  // namespace

TEST_CASE("prompts stay whole in a search unless its space names ranks that cut them") {
  const SpaceFile nothing{"", {}}, cuts{"s", {{"/plan/prefill/attention/cp", {"1", "4"}}}};
  const PoolSeat prompts = seat_of(PoolRole::kPrefill);
  CHECK(most_cut(seat_options(prompts, experts_of(64), nothing)) == 1);
  const std::vector<SeatOption> options = seat_options(prompts, experts_of(64), cuts);
  CHECK(most_cut(options) == 4);
  // Heads are whole where prompts are cut.
  CHECK(std::none_of(options.begin(), options.end(),
                     [](const SeatOption& option) { return option.cp > 1 && option.tp > 1; }));
  CHECK(most_cut(seat_options(seat_of(PoolRole::kDecode), experts_of(64), cuts)) == 1);
  CHECK(is_degree_of_seat("/plan/prefill/attention/cp"));
  const SeatOption cut{.tp = 1, .cp = 4, .ep = 8};
  CHECK(option_text(prompts, cut) == "tp 1, cp 4, ep 8");
  const Document plan = parse_document(R"({"plan": {"prefill": {"token_budget": 512}}})", "s.json");
  CHECK(seat_settings(prompts, cut, plan)[0].value ==
        R"({"pool": "p", "attention": {"tp": 1, "cp": 4}, "ep": {"degree": 8}, )"
        R"("token_budget": 512})");
}

TEST_CASE("a search computes shared experts where the given plan does") {
  const Document plan =
      parse_document(R"({"plan": {"decode": {"ep": {"degree": 2, "shared_experts": "fused"}}}})", "s.json");
  CHECK(seat_settings(seat_of(PoolRole::kDecode), {.tp = 1, .cp = 1, .ep = 8}, plan)[0].value ==
        R"({"pool": "p", "attention": {"tp": 1, "cp": 1}, )"
        R"("ep": {"degree": 8, "shared_experts": "fused"}})");
}

// What no option is about stays, or is left to the framework where nothing is said.
TEST_CASE("tokens travel in a search as the given plan says, or as its framework does") {
  const Document silent = parse_document(R"({"plan": {"framework": "sglang"}})", "s.json");
  const Document told = parse_document(
      R"({"plan": {"decode": {"ep": {"dispatch": "deepep", "communication_sms": 12}},
                   "prefill": {"ep": {"degree": 2, "dispatch": "all-to-all"}}}})",
      "s.json");
  PoolSeat both = seat_of(PoolRole::kBoth);
  const SeatOption plain{.tp = 1, .cp = 1, .ep = 8}, halves{.tp = 1, .cp = 1, .ep = 8, .overlapped = true};
  const auto settings = [&](const SeatOption& option, const Document& base) {
    const std::vector<Assignment> set = seat_settings(both, option, base);
    return set[0].value + " " + set[1].value;
  };
  const std::string head = R"({"pool": "p", "attention": {"tp": 1, "cp": 1}, "ep": {"degree": 8)";
  CHECK(settings(plain, silent) == head + R"(}} {"ep": {}})");
  CHECK(settings(plain, told) ==
        head + R"(, "dispatch": "deepep", "communication_sms": 12}} {"ep": {"dispatch": "all-to-all"}})");
  // Two half batches have to be told.
  CHECK(settings(halves, silent) == head +
                                        R"(, "dispatch": "deepep-low-latency"}, "two_batch_overlap": true} )"
                                        R"({"ep": {"dispatch": "deepep"}, "two_batch_overlap": true})");
  CHECK(settings(halves, told) == head + R"(, "dispatch": "deepep", "communication_sms": 12}, )"
                                         R"("two_batch_overlap": true} )"
                                         R"({"ep": {"dispatch": "all-to-all"}, "two_batch_overlap": true})");
}

}  // namespace moebius
