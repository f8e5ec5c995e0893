// A prompt answers the same whether it is computed whole, in parts behind what the cache holds, or beside
// sequences that decode.
#include <set>

#include <catch2/catch.hpp>

#include "tests/cross/small_serving.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/latent_parts.h"
#include "workloads/serving/lower.h"

namespace moebius {
namespace {

// Iterations that are given, one after the other, on one rank.
class GivenIterations : public Workload {
 public:
  GivenIterations(const ServingJob& job, std::vector<Batch> batches)
      : job_(job),
        shape_(job_),
        layout_(make_layout(shape_.plan)),
        routes_(job_),
        batches_(std::move(batches)) {}

  const Layout& layout() const override { return layout_; }
  std::optional<Submission> next(Time) override {
    if (waits_ || done()) return std::nullopt;
    waits_ = true;
    const auto batch = std::make_shared<const Batch>(batches_[at_]);
    routes_.begin({batch});
    return Submission{.fragment = lower_iteration(shape_, {batch, shard_of(layout_.classes[0]),
                                                           [&](int layer) { return routes_.get(0, layer); }}),
                      .sequence = at_++,
                      .rank_class = 0,
                      .step = at_,
                      .microbatch = 0,
                      .after = {}};
  }
  void completed(const Completion&) override { waits_ = false; }
  bool done() const override { return at_ == static_cast<int>(batches_.size()); }
  double progress() const override { return 0; }

 private:
  ServingJob job_;
  ServingShape shape_;
  Layout layout_;
  IterationRoutes routes_;
  std::vector<Batch> batches_;
  int at_ = 0;
  bool waits_ = false;
};

std::vector<double> generated_by(const ServingJob& job, const std::vector<Batch>& batches) {
  GivenIterations iterations(job, batches);
  Recorder recorder(iterations.layout(), {.detail = Detail::kNone});
  HostExecutor<double> host(iterations.layout(), recorder, exact_options(job.workload.seed));
  execute(iterations, host, recorder);
  return host.tensor(0, generated_key());
}

constexpr int kPrompt = 44, kOutput = 3, kPages = 12;  // of 4 tokens: 47 tokens of a request

ServingJob two_requests(const Model& model) {
  ServingJob job = small_service(model);
  job.workload.requests = 2;
  job.workload.input = {kPrompt, kPrompt};
  job.workload.output = {kOutput, kOutput};
  return job;
}

BatchSequence some_of(int request, int past, int count) {
  BatchSequence sequence{request, kPrompt, past, count, {}, 1 - request};
  for (int page = 0; page < kPages; ++page) sequence.pages.push_back(request * kPages + kPages - 1 - page);
  return sequence;
}
Batch batch_of(std::vector<BatchSequence> sequences) {
  return {4, std::move(sequences)};
}

}  // namespace

// Blowing up pays from (2 * 16 + 4 - 12 - 6 = 18) * count > 16 * (8 + 6) = 224 on: 13 tokens.
TEST_CASE("a latent of 16 columns is blown up for 13 tokens and more") {
  CHECK(fewest_blown_up(small_model(AttentionKind::kMla).mla) == 13);
}

// 44 tokens whole; or 15 whole, 19 behind them blown up, 10 behind those absorbed. The other request decodes
// meanwhile. Then both decode.
TEST_CASE("prompts in parts and beside decoding sequences answer as whole ones") {
  for (const Model& model :
       {small_model(AttentionKind::kMla), small_model(AttentionKind::kGqa), small_delta_model()}) {
    const ServingJob job = two_requests(model);
    const std::vector<double> expected =
        generated_by(job, {batch_of({some_of(0, 0, kPrompt)}), batch_of({some_of(1, 0, kPrompt)}),
                           batch_of({some_of(0, kPrompt, 1), some_of(1, kPrompt, 1)}),
                           batch_of({some_of(0, kPrompt + 1, 1), some_of(1, kPrompt + 1, 1)})});
    const std::vector<double> in_parts = generated_by(
        job, {batch_of({some_of(0, 0, kPrompt)}), batch_of({some_of(1, 0, 15), some_of(0, kPrompt, 1)}),
              batch_of({some_of(1, 15, 19), some_of(0, kPrompt + 1, 1)}), batch_of({some_of(1, 34, 10)}),
              batch_of({some_of(1, kPrompt, 1)}), batch_of({some_of(1, kPrompt + 1, 1)})});
    CHECK(in_parts == expected);
    CHECK(std::set<double>(expected.begin(), expected.end()).size() > 2);  // not one token for everything
  }
}

TEST_CASE("parts that blow up and parts that absorb share an iteration") {
  const ServingJob job = two_requests(small_model(AttentionKind::kMla));
  const std::vector<double> expected =
      generated_by(job, {batch_of({some_of(0, 0, kPrompt)}), batch_of({some_of(1, 0, kPrompt)})});
  const std::vector<double> shared = generated_by(job, {batch_of({some_of(0, 0, 20), some_of(1, 0, 39)}),
                                                        batch_of({some_of(0, 20, 24), some_of(1, 39, 5)})});
  CHECK(shared == expected);
}

// Behind 15 and 34 cached tokens, or 20, of which a whole prompt stands beside: absorbed below so many in
// all, or blown up, whatever takes fewer products.
TEST_CASE("prompts that all absorb or all blow up answer as whole ones") {
  ServingJob job = two_requests(small_model(AttentionKind::kMla));
  const std::vector<double> expected =
      generated_by(job, {batch_of({some_of(0, 0, kPrompt)}), batch_of({some_of(1, 0, kPrompt)}),
                         batch_of({some_of(0, kPrompt, 1), some_of(1, kPrompt, 1)}),
                         batch_of({some_of(0, kPrompt + 1, 1), some_of(1, kPrompt + 1, 1)})});
  for (const std::int64_t below : {1, 34, 1000}) {
    INFO(below);
    job.plan.absorbed_below = below;
    CHECK(
        generated_by(
            job, {batch_of({some_of(0, 0, kPrompt)}), batch_of({some_of(1, 0, 15), some_of(0, kPrompt, 1)}),
                  batch_of({some_of(1, 15, 19), some_of(0, kPrompt + 1, 1)}), batch_of({some_of(1, 34, 10)}),
                  batch_of({some_of(1, kPrompt, 1)}), batch_of({some_of(1, kPrompt + 1, 1)})}) == expected);
    CHECK(generated_by(job,
                       {batch_of({some_of(0, 0, 20)}), batch_of({some_of(0, 20, 24), some_of(1, 0, kPrompt)}),
                        batch_of({some_of(0, kPrompt, 1), some_of(1, kPrompt, 1)}),
                        batch_of({some_of(0, kPrompt + 1, 1), some_of(1, kPrompt + 1, 1)})}) == expected);
  }
}

}  // namespace moebius
