#include "workloads/study/search/document_changes.h"

#include "hw/document_step.h"

namespace moebius {

const Value* value_at(const Value& root, std::string_view pointer) {
  const Value* value = &root;
  while (value != nullptr && !pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view key = pointer.substr(0, pointer.find('/'));
    value = step_into(*value, key);
    pointer.remove_prefix(key.size());
  }
  return value;
}

std::string text_at(const Document& document, const std::string& pointer) {
  const Value* value = value_at(document.root, pointer);
  return value == nullptr ? "" : one_line(*value);
}

Document changed(Document base, const std::vector<Assignment>& changes) {
  for (const Assignment& change : changes) set_at_pointer(base, change.pointer, change.value);
  return base;
}

}  // namespace moebius
