// What the framework of a training plan says in its place: `moebius list frameworks` shows it, errors name
// it, and a search writes it into the plans that it makes, since they change what the defaults depend on.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hw/document.h"
#include "models/model.h"
#include "workloads/scenario/section.h"
#include "workloads/schedule/op.h"

namespace moebius {

// Keys of /plan that are not given and have another value than without the framework, as JSON.
std::vector<Setting> framework_settings(const Document& document, const Model& model);
// All that a framework may say: of a model with experts, in 8 bits, by ranks that share a sequence.
std::vector<Setting> framework_settings(std::string_view framework);

// How the framework sends tokens to experts on other ranks, where the document does not say it; nothing: as
// the key's own default. It counts with such ranks alone, which a search has in some of its plans.
std::optional<Algorithm> framework_exchange(Document document, const Model& model);

// The document with these keys, and without the framework.
Document without_framework(Document document, const Model& model);

}  // namespace moebius
