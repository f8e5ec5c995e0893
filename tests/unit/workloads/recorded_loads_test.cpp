// Tables of recorded expert loads, right and wrong.
#include "workloads/scenario/popularity_keys.h"

#include "hw/error.h"
#include "tests/process.h"

#include "tests/catch.h"

using namespace moebius;

namespace {

// What reading the text says after the file's name; empty when it is read.
std::string refusal_of_loads(const std::string& text) {
  const test::Scratch scratch;
  const std::string path = scratch.write("loads.csv", text);
  try {
    read_recorded_loads(path);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return std::string(error.what()).substr(path.size());
  }
  return "";
}

constexpr const char* kHeader = "step,layer,expert,tokens\n";

}  // namespace

TEST_CASE("recorded loads may stand in any order, absent experts had no tokens, steps begin again") {
  const test::Scratch scratch;
  const RecordedLoadsPtr loads = read_recorded_loads(
      scratch.write("loads.csv", std::string(kHeader) + "1,4,0,7\n0,4,2,5\n0,4,0,1.5\n1,4,1,2\n"));
  CHECK(loads->steps() == 2);
  CHECK(loads->experts() == 3);
  CHECK(loads->at(0, 4) == std::vector<double>{1.5, 0, 5});
  CHECK(loads->at(3, 4) == std::vector<double>{7, 2, 0});
  CHECK(loads->has(4));
  CHECK_FALSE(loads->has(5));
}

TEST_CASE("recorded loads that make no sense are refused with their line") {
  CHECK(refusal_of_loads("") == ": expected a header line, found none");
  CHECK(refusal_of_loads("step,layer,tokens\n") ==
        ":1: expected columns step, layer, expert, tokens, found no expert");
  CHECK(refusal_of_loads(kHeader) == ": expected rows of counts, found none");
  const auto row = [](const char* text) { return refusal_of_loads(std::string(kHeader) + text); };
  CHECK(row("0,1,-1,3\n") == ":2: expert: expected a whole number from 0 to 65535, found -1");
  CHECK(row("0,1.5,1,3\n") == ":2: layer: expected a whole number from 0 to 4095, found 1.5");
  CHECK(row("0,1,1,3\n0,1,1,3\n") == ":3: expert 1 of layer 1 stands twice in step 0");
  CHECK(row("0,1,1,-3\n") == ":2: tokens: expected at least 0, found -3");
  CHECK(row("0,1,1,3\n2,1,1,3\n") == ": step 1: expected tokens in layer 1, found none");
  CHECK(row("0,1,1,3\n0,2,1,0\n") == ": step 0: expected tokens in layer 2, found none");
  CHECK(row("1048575,1,65535,3\n") ==
        ": expected at most 16777216 counts, found 1048576 steps x 1 layers x 65536 experts");
}

TEST_CASE("recorded loads must be those of the model's layers and experts") {
  const auto popularity = [](int experts, std::vector<int> layers) {
    std::map<int, std::vector<double>> counts;
    for (const int layer : layers) counts[layer] = std::vector<double>(experts, 1.0);
    return Popularity{.kind = PopularityKind::kRecorded,
                      .recorded = std::make_shared<const RecordedLoads>(std::vector{counts})};
  };
  Model model;
  model.id = "m";
  model.layers = 3;
  model.first_dense = 1;
  model.experts.routed = 4;
  CHECK(problem_of(popularity(4, {1, 2}), model) == "");
  CHECK(problem_of(popularity(4, {0, 1}), model) == "expected counts of layer 2 of m, found none");
  CHECK(problem_of(popularity(5, {1, 2}), model) == "expected counts of the 4 experts of m, found 5");
}
