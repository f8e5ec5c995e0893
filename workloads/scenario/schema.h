// The JSON Schema (draft 2020-12) of the scenario file. It is not written by hand: the functions that read a
// scenario describe themselves (see Section), so a key, a default or a name cannot be in one and not in the
// other.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/document.h"

namespace moebius {

// What a place in the file may hold. Objects have properties; arrays have `items`.
struct Description {
  Value keywords;  // "type", "description", "enum", ...
  std::vector<std::pair<std::string, std::shared_ptr<Description>>> properties;
  std::vector<std::string> required;
  std::shared_ptr<Description> items;
  bool closed = false;  // no other keys than the properties
};
using DescriptionPtr = std::shared_ptr<Description>;

DescriptionPtr description_of(std::string_view type, std::string_view help);  // an empty type: any

// Values for keywords.
Value text_value(std::string_view text);
Value number_value(double number);  // an integer when it is one
Value boolean_value(bool boolean);
Value array_value(std::vector<Value> items);
void set_keyword(Value& object, std::string_view key, Value value);

// The schema of all scenario kinds, as `moebius schema` prints it: strict JSON text, ending with a newline.
std::string scenario_schema();

}  // namespace moebius
