// An iteration as two half batches, so that dispatch and combine of one travel while the other computes
// (DeepSeek's two-microbatch overlap in prefill and decode; SGLang's two_batch_overlap).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "workloads/schedule/batch.h"
#include "workloads/serving/lower.h"

namespace moebius {

using HalfBatches = std::pair<std::vector<BatchPtr>, std::vector<BatchPtr>>;  // each by replica

// Between sequences where either half then has 48% of the rows at least (SGLang's
// tbo_token_distribution_threshold), otherwise through a sequence: its first tokens in the first half. None
// where a batch has one row, since all ranks must meet in both halves.
std::optional<HalfBatches> halves_of(const std::vector<BatchPtr>& batches);

// Prompts: attention and experts of the two in turn, cut where one would wait for its tokens. Decoding: five
// stages a layer (decode_stages.h), the second half two of them behind the first.
FragmentPtr lower_two_batches(const FragmentPtr& first, const FragmentPtr& second, bool decodes);

}  // namespace moebius
