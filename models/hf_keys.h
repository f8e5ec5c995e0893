// Access to the keys of an untrusted Hugging Face configuration: null counts as absent, every integer has a
// bound, what is missing or of the wrong type is an input_error. Keys that nobody asks for are ignored. What
// was read is remembered, nested objects included, so that errors found later can say where it stands.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/reader.h"

namespace moebius {

class HfKeys {
 public:
  HfKeys(const Value& value, Place place);  // an object

  bool has(std::string_view key) const;  // present and not null
  // Not even null: what the family's own configuration class says then counts.
  bool missing(std::string_view key) const { return value_->find(key) == nullptr; }
  bool is_text(std::string_view key) const;  // present, and a string
  // The first of `keys` that is present, or an error that names the first.
  int size(std::initializer_list<std::string_view> keys, double high);
  int size(std::string_view key, double high) { return size({key}, high); }
  int size_or(std::string_view key, double high, int otherwise, double low = 0);
  // A number, or an array that repeats one number (some families list one per layer).
  int uniform_or(std::string_view key, double high, int otherwise);
  double number_or(std::string_view key, double otherwise);
  bool flag_or(std::string_view key, bool otherwise);
  std::string text(std::string_view key) { return reader_.text(key); }
  std::string text_or(std::string_view key, std::string otherwise);
  std::vector<int> sizes(std::string_view key, double high);  // an array of integers; empty when absent
  std::vector<std::string> texts(std::string_view key);       // an array of strings; empty when absent
  HfKeys object(std::string_view key);
  // Where the key that was read last under this name stands; null when none was.
  const Place* read_at(std::string_view key) const;
  const Place& place() const { return reader_.place(); }
  Place place_of(std::string_view key) const { return reader_.place_of(key); }

 private:
  using Log = std::vector<std::pair<std::string, Place>>;
  HfKeys(const Value& value, Place place, std::shared_ptr<Log> log);
  bool read(std::string_view key);  // has(), and remembered

  const Value* value_;
  Reader reader_;
  std::shared_ptr<Log> log_;
};

}  // namespace moebius
