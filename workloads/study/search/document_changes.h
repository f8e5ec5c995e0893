// Scenario documents with changes, for plans of a search.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hw/document.h"
#include "workloads/study/study.h"

namespace moebius {

// Nothing where nothing stands there; steps through objects and arrays.
const Value* value_at(const Value& root, std::string_view pointer);
// The value at a pointer as JSON in one line; empty where nothing stands.
std::string text_at(const Document& document, const std::string& pointer);
Document changed(Document base, const std::vector<Assignment>& changes);

}  // namespace moebius
