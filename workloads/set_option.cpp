#include "workloads/set_option.h"

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

void apply_set(const std::string& set, Document& document) {
  const std::size_t equals = set.find('=');
  if (set.empty() || set[0] != '/' || equals == std::string::npos)
    throw input_error(fmt::format("--set: expected /json/pointer=value, found \"{}\"", set));
  set_at_pointer(document, set.substr(0, equals), set.substr(equals + 1));
}

void apply_sets(const std::vector<std::string>& sets, Document& document) {
  for (const std::string& set : sets) apply_set(set, document);
}

}  // namespace moebius
