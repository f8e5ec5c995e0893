// Dense GLM of Hugging Face configurations, from GLM-2 on.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

Model chatglm(HfKeys& keys);  // ChatGLM2, ChatGLM3 and GLM-4 under the keys of their own modelling code
Model glm(HfKeys& keys);
Model glm4(HfKeys& keys);  // GLM-4-0414; two further norms a layer are not in the model

}  // namespace moebius
