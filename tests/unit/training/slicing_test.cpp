#include "workloads/training/pipeline/slicing.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "small_job.h"

using namespace moebius;

TEST_CASE("slices are contiguous, cover all layers, and only the ends hold embedding and head") {
  Model model = small_model();
  model.layers = 13;
  const auto slices = slice_balanced(model, 4096, 5);
  int next = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    CHECK(slices[i].first_layer == next);
    CHECK(slices[i].num_layers >= 1);
    CHECK(slices[i].has_embedding == (i == 0));
    CHECK(slices[i].has_head == (i == 4));
    next += slices[i].num_layers;
  }
  CHECK(next == 13);
}

// Exhaustive search over all cuts of eight layers into three stages.
TEST_CASE("no other cut has a smaller largest stage") {
  Model model = small_model();
  model.layers = 8;
  model.vocabulary = 4096;
  const auto load = [&](int begin, int end, bool tail) {
    double sum = tail ? 2.0 * model.hidden * model.vocabulary : 0;
    for (int i = begin; i < end; ++i) sum += layer_flops_per_token(model, i, 512, true).value;
    return sum;
  };
  double best = 1e300;
  for (int a = 1; a < 7; ++a) {
    for (int b = a + 1; b < 8; ++b)
      best = std::min(best, std::max({load(0, a, false), load(a, b, false), load(b, 8, true)}));
  }
  double ours = 0;
  for (const StageSlice& slice : slice_balanced(model, 512, 3)) {
    ours = std::max(ours, load(slice.first_layer, slice.first_layer + slice.num_layers, slice.has_head));
  }
  CHECK(ours == Approx(best));
}

TEST_CASE("a large head leaves fewer layers on the last stage") {
  Model model = small_model();
  model.layers = 8;
  model.vocabulary = 100'000;
  const auto slices = slice_balanced(model, 512, 2);
  CHECK(slices[1].num_layers < slices[0].num_layers);
}

TEST_CASE("even slices hold as many layers each, with the ends as many but one on these") {
  const auto counts = [](const std::vector<StageSlice>& slices) {
    std::vector<int> layers;
    for (const StageSlice& slice : slices) layers.push_back(slice.num_layers);
    return layers;
  };
  TrainingPlan plan;
  plan.pp = 4;
  Model model = small_model();
  model.vocabulary = 100'000;
  model.layers = 12;
  plan.slicing = Slicing::kEven;
  CHECK(counts(slices_of(model, plan, 512)) == std::vector<int>{3, 3, 3, 3});
  model.layers = 14;
  plan.slicing = Slicing::kEvenWithEnds;
  CHECK(counts(slices_of(model, plan, 512)) == std::vector<int>{3, 4, 4, 3});
  // Ends that are all of their stages' share (Megatron-LM's account-for-embedding and -loss of 94 layers on
  // 96).
  model.layers = 2;
  const std::vector<StageSlice> thin = slices_of(model, plan, 512);
  CHECK(counts(thin) == std::vector<int>{0, 1, 1, 0});
  CHECK(layers_text(thin[0]) == "no layers");
  CHECK(layers_text(thin[2]) == "layers 1..1");
}

TEST_CASE("a stage of twice the speed holds twice the layers") {
  Model model = small_model();
  model.layers = 9;
  model.vocabulary = 1;  // the head weighs nothing
  const auto slices = slice_balanced(model, 512, 2, {2e12, 1e12});
  CHECK(slices[0].num_layers == 6);
  CHECK(slices[1].num_layers == 3);
}
