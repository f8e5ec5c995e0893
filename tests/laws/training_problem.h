// Small problems of a search for training plans.
#pragma once

#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/traffic/idle_transfers.h"
#include "tests/laws/simulator.h"
#include "workloads/study/search/search_request.h"
#include "workloads/study/search/space_file.h"

namespace moebius {

// A few small layers on one or two nodes; what is drawn differs in everything that decides. `ahead`: modules
// that predict a token ahead stand behind the head.
inline Document training_problem(std::uint32_t seed, bool ahead = false) {
  std::mt19937 random(seed);
  const auto one_of = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  const int nodes = one_of({1, 2}), experts = one_of({8, 16});
  Document document = parse_document(
      fmt::format(R"({{"moebius": 1, "kind": "training", "name": "problem {}", "seed": {},
        "model": {{"base": "mixtral-8x22b", "layers": {}, "hidden": {}, "experts": {{"routed": {}, "active": 2, "width": {}}}}},
        "cluster": {{"pools": [{{"name": "a", "accelerator": "{}", "node": "hgx-8", "nodes": {}}}],
                     "fabric": {{"type": "rail-optimised-clos", "nic": "{} Gb/s"}}}},
        "plan": {{"memory_reserve": "{} GB"}},
        "workload": {{"sequence_length": {}, "global_batch": {}, "micro_batch": 1}}}})",
                  seed, seed, one_of({4, 5}), one_of({1024, 2048}), experts, one_of({1024, 4096}),
                  random() % 2 == 0 ? "h100-sxm" : "h800-sxm", nodes, one_of({100, 400}), one_of({2, 74, 78}),
                  one_of({256, 512}), one_of({16, 32})),
      "problem");
  if (ahead) set_at_pointer(document, "/model/mtp_layers", "1");
  // Without experts rows need not be cut over tensor-parallel ranks.
  if (seed % 5 == 0)
    set_at_pointer(document, "/model",
                   R"({"base": "llama-3.1-8b", "layers": 4, "hidden": 1024, "dense_width": 4096})");
  return document;
}

inline SpaceFile training_space(std::uint32_t seed) {
  const std::vector<std::vector<StudyAxis>> all{{{"/plan/pp/schedule", {"\"1f1b\"", "\"zb-v\""}},
                                                 {"/plan/cp", {"1", "2"}},
                                                 {"/plan/dp/zero", {"0", "1"}}},
                                                {{"/plan/pp/schedule", {"\"dualpipe\"", "\"interleaved\""}},
                                                 {"/plan/cp", {"1"}},
                                                 {"/plan/overlap/two_batch", {"false", "true"}},
                                                 {"/plan/dp/zero", {"1"}}},
                                                {{"/plan/pp/schedule", {"\"zb-h1\"", "\"gpipe\""}},
                                                 {"/plan/cp", {"1"}},
                                                 {"/plan/dp/zero", {"1", "3"}}}};
  SpaceFile space{"space", all[seed % all.size()]};
  space.axes.push_back(
      {"/plan/tp/attention", seed % 2 == 0 ? std::vector<std::string>{"1"} : std::vector<std::string>{"2"}});
  space.axes.push_back({"/plan/tp/expert", {"1"}});
  space.axes.push_back({"/plan/ep/degree", {"1", "4"}});
  space.axes.push_back({"/plan/pp/degree", {"2", "4"}});
  space.axes.push_back({"/plan/pp/virtual", {"2"}});
  space.axes.push_back({"/workload/micro_batch", {"1"}});
  space.axes.push_back({"/plan/recompute", {R"({"policy": "none"})", R"({"policy": "full"})"}});
  space.axes.push_back({"/plan/offload", {R"({"optimizer": false})"}});
  space.axes.push_back({"/plan/overlap/dispatch_combine", {"true"}});
  space.axes.push_back({"/plan/dp/overlap_gradients", {"true"}});
  return space;
}

inline SearchRequest training_request(const Library& library) {
  SearchRequest request;
  request.rough = simulator(NetworkDetail::kAlphaBeta);
  request.fine = simulator(NetworkDetail::kFluid);
  request.transfers = idle_transfers;
  request.library = &library;
  request.top = 1;
  request.refine = 0;
  return request;
}

}  // namespace moebius
