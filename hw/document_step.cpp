#include "hw/document_step.h"

#include <charconv>

namespace moebius {

const Value* step_into(const Value& value, std::string_view key) {
  if (value.kind == Value::Kind::kObject) return value.find(key);
  if (value.kind != Value::Kind::kArray) return nullptr;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  const bool whole = error == std::errc() && end == key.data() + key.size();
  return whole && index < value.items.size() ? &value.items[index] : nullptr;
}

}  // namespace moebius
