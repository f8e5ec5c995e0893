#include "workloads/study/search/document_changes.h"

#include <charconv>

namespace moebius {
namespace {

const Value* step_into(const Value& value, std::string_view key) {
  if (value.kind == Value::Kind::kObject) return value.find(key);
  if (value.kind != Value::Kind::kArray) return nullptr;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  const bool whole = error == std::errc{} && end == key.data() + key.size();
  return whole && index < value.items.size() ? &value.items[index] : nullptr;
}

}  // namespace

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
