// Families of Hugging Face configurations whose layers add attention and MLP to the stream at once
// (ParallelBlock).
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

Model cohere(HfKeys& keys);    // scores of its head are scaled by a number, which is not in the model
Model cohere2(HfKeys& keys);   // nor is it here
Model falcon(HfKeys& keys);    // of all its generations; slopes on scores (ALiBi) are not in the model
Model gpt_neox(HfKeys& keys);  // one after the other where use_parallel_residual says so
Model gptj(HfKeys& keys);      // biases of its MLPs and of its head are not in the model
Model phi(HfKeys& keys);       // Phi-1, Phi-1.5 and Phi-2; nor is that of their head here
Model stablelm(HfKeys& keys);  // one after the other unless use_parallel_residual says so

}  // namespace moebius
