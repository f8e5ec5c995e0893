// A small model that answers requests on the host.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "real/host/host_executor.h"
#include "tests/cross/small_training.h"
#include "workloads/serving/serving.h"

namespace moebius {

// Latent attention whose queries choose four keys each; prompts are longer than that and shorter.
inline Model small_sparse_model() {
  Model model = small_model(AttentionKind::kMla);
  model.indexer = {.heads = 3, .head_dim = 8, .top = 4};
  return model;
}

inline std::vector<Model> small_models_of_each_attention() {
  return {small_model(AttentionKind::kGqa), small_model(AttentionKind::kMla), small_sparse_model()};
}

// Requests of different lengths; experts drawn by popularity, so that what a token uses is its own.
inline ServingJob small_service(const Model& model) {
  ServingJob job;
  job.model = model;
  job.plan.max_batch = 3;
  job.plan.token_budget = 40;
  job.plan.block_tokens = 4;
  job.plan.fold = false;
  job.workload = {.requests = 8,
                  .input = {3, 17},
                  .output = {1, 9},
                  .popularity = {.kind = PopularityKind::kZipf, .exponent = 0.5},
                  .seed = 5};
  job.ranks_per_node = 8;
  return job;
}

using Tokens = std::vector<std::vector<std::int32_t>>;

template <class Real>
Serving::ReadTensor reader_of(const HostExecutor<Real>& host) {
  return [&host](int rank, std::uint32_t key) {
    const std::vector<Real> values = host.tensor(rank, key);
    return std::vector<float>(values.begin(), values.end());
  };
}

// What the requests are answered, by request.
template <class Real>
Tokens answers(const ServingJob& job, const HostOptions& options) {
  Serving serving(job);
  Recorder recorder(serving.layout(), {.detail = Detail::kNone});
  HostExecutor<Real> host(serving.layout(), recorder, options);
  execute(serving, host, recorder);
  return serving.generated(reader_of(host));
}

// In double and without rounding, so that two ways of computing one number, or sums in another order, differ
// by their last places alone: no two logits of these models lie so near each other.
inline HostOptions exact_options(std::uint64_t seed, const PromptBook* prompts = nullptr) {
  HostOptions options;
  options.seed = seed;
  options.exact = true;
  options.prompts = prompts;
  return options;
}

inline Tokens exact_answers(const ServingJob& job) {
  return answers<double>(job, exact_options(job.workload.seed));
}

// The pool twice, once for each phase.
inline CarriedService in_two_pools(CarriedService service) {
  service.pools.push_back(service.pools.front());
  service.pools[0].rules.role = PoolRole::kPrefill;
  service.pools[1].rules.role = PoolRole::kDecode;
  service.pools[0].rules.name = "prefill";
  service.pools[1].rules.name = "decode";
  return service;
}

}  // namespace moebius
