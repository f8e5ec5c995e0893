// What the framework of a training plan says in its place: `moebius list frameworks` shows it, and a search
// writes it into the plans that it makes, since they change what the framework's defaults depend on.
#pragma once

#include <vector>

#include "hw/document.h"
#include "models/model.h"
#include "workloads/scenario/section.h"

namespace moebius {

// Keys of /plan that have another value than without its framework, as JSON; those that are given have not.
std::vector<Setting> framework_settings(const Document& document, const Model& model);

// The document with these keys, and without the framework.
Document without_framework(Document document, const Model& model);

}  // namespace moebius
