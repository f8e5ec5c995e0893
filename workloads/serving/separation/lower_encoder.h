// One iteration of a vision encoder on one rank as a fragment: patches of some images in, tokens of the
// language model out.
#pragma once

#include "workloads/schedule/fragment.h"
#include "workloads/serving/separation/encoder_plan.h"

namespace moebius {

struct EncoderWork {
  EncoderPlan plan;
  int outputs = 0;  // columns of the language model
};

// Attention sees both ways: what a causal pass leaves out is a causal pass of the patches in reverse, so that
// two of them do what one kernel of a whole square does. Weights in BF16.
FragmentPtr lower_encoder(const EncoderWork& work, int images);

}  // namespace moebius
