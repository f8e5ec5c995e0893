// What a model has and the schedule of serving does not: small work, which a simulation says it leaves out;
// without it answers would be those of another model, so that nothing executes it.
#pragma once

#include <string>

#include "models/model.h"

namespace moebius {

// "biases, learned positions"; empty: everything is there.
std::string left_out(const Model& model);
// The same of a training step whose numbers are computed.
std::string left_out_of_training(const Model& model);

}  // namespace moebius
