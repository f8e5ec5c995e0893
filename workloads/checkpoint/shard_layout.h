// Where the shards of a checkpoint stand: which rank's file holds which rows or columns of which weight.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "workloads/checkpoint/checkpoint_index.h"

namespace moebius {

// "hf" (nothing), or degrees such as "tp=2,pp=2,ep=4"; those not named are 1. input_error otherwise.
std::optional<Degrees> parse_layout(const std::string& text);

// input_error when the degrees do not divide the model: "--to tp=3: ...".
void require_divides(const Degrees& degrees, const Model& model);

// Rank r of a stage holds part r of what tensor parallelism cuts and the experts of expert-parallel member r;
// what is not cut, on rank 0. Replicas are left out: a stage has max(tp, ep) files. Weights are those of
// `from`, which passed check_weights() of `model`. Stages are cut by forward FLOPs at 4,096 tokens, as a
// training plan cuts them.
CheckpointIndex sharded_index(const CheckpointIndex& from, const Model& model, const Degrees& degrees);

// Whole weights in files of at most `most_bytes`, named as Hugging Face names them; a larger weight has its
// own.
CheckpointIndex hf_index(const CheckpointIndex& from, double most_bytes);

}  // namespace moebius
