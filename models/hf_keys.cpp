#include "models/hf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace moebius {

HfKeys::HfKeys(const Value& value, Place place) : HfKeys(value, std::move(place), std::make_shared<Log>()) {}

HfKeys::HfKeys(const Value& value, Place place, std::shared_ptr<Log> log)
    : value_(&value), reader_(value, std::move(place)), log_(std::move(log)) {}

bool HfKeys::has(std::string_view key) const {
  const Value* found = value_->find(key);
  return found != nullptr && found->kind != Value::Kind::kNull;
}

bool HfKeys::is_text(std::string_view key) const {
  return has(key) && value_->find(key)->kind == Value::Kind::kString;
}

bool HfKeys::read(std::string_view key) {
  if (!has(key)) return false;
  log_->emplace_back(key, reader_.place_of(key));
  return true;
}

const Place* HfKeys::read_at(std::string_view key) const {
  const auto found =
      std::find_if(log_->rbegin(), log_->rend(), [&](const auto& row) { return row.first == key; });
  return found == log_->rend() ? nullptr : &found->second;
}

int HfKeys::size(std::initializer_list<std::string_view> keys, double high) {
  const auto present = std::find_if(keys.begin(), keys.end(), [&](std::string_view key) { return has(key); });
  const std::string_view key = present == keys.end() ? *keys.begin() : *present;
  read(key);
  return static_cast<int>(reader_.integer(key, {1, high}));
}

int HfKeys::size_or(std::string_view key, double high, int otherwise, double low) {
  return read(key) ? static_cast<int>(reader_.integer(key, {low, high})) : otherwise;
}

int HfKeys::uniform_or(std::string_view key, double high, int otherwise) {
  if (!has(key) || value_->find(key)->kind != Value::Kind::kArray) return size_or(key, high, otherwise);
  const std::vector<int> all = sizes(key, high);
  if (all.empty()) return otherwise;
  if (std::any_of(all.begin(), all.end(), [&](int size) { return size != all.front(); })) {
    reader_.place_of(key).fail("expected the same number for every layer, found different ones");
  }
  return all.front();
}

double HfKeys::number_or(std::string_view key, double otherwise) {
  return read(key) ? reader_.number(key, {0, 1e6}) : otherwise;
}

bool HfKeys::flag_or(std::string_view key, bool otherwise) {
  return read(key) ? reader_.boolean(key) : otherwise;
}

std::string HfKeys::text_or(std::string_view key, std::string otherwise) {
  return read(key) ? reader_.text(key) : std::move(otherwise);
}

std::vector<int> HfKeys::sizes(std::string_view key, double high) {
  std::vector<int> sizes;
  if (!read(key)) return sizes;
  const Value& array = reader_.value(key);
  Place place = reader_.place_of(key);
  if (array.kind != Value::Kind::kArray)
    place.fail(fmt::format("expected an array, found {}", array.excerpt()));
  for (const Value& item : array.items) {
    const bool fits = item.kind == Value::Kind::kInteger && item.integer >= 0 && item.integer <= high;
    if (!fits) place.fail(fmt::format("expected integers from 0 to {:.0f}, found {}", high, item.excerpt()));
    sizes.push_back(static_cast<int>(item.integer));
  }
  return sizes;
}

std::vector<std::string> HfKeys::texts(std::string_view key) {
  return read(key) ? reader_.texts(key) : std::vector<std::string>{};
}

HfKeys HfKeys::object(std::string_view key) {
  const Value& value = reader_.value(key);
  Place place = reader_.place_of(key);
  if (value.kind != Value::Kind::kObject)
    place.fail(fmt::format("expected an object, found {}", value.excerpt()));
  return HfKeys(value, place, log_);
}

}  // namespace moebius
