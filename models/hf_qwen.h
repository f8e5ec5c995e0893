// Qwen 2 to 3.5 of Hugging Face configurations, and MiMo, which follows it.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

Model qwen2(HfKeys& keys);
Model qwen2_moe(HfKeys& keys);
Model qwen3(HfKeys& keys);
Model qwen3_moe(HfKeys& keys);
Model qwen3_next(HfKeys& keys);
Model qwen3_5(HfKeys& keys);  // the dense ones; those with experts are as qwen3_next()
Model mimo(HfKeys& keys);     // MiMo-7B: Qwen2 with modules that predict further tokens

}  // namespace moebius
