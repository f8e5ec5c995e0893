#include "hw/fabric/library_settings.h"

namespace moebius {

const std::vector<FactRow>& library_rows() {
  constexpr Range kChunk{.low = 1024, .high = 1 << 30};
  static const std::vector<FactRow> rows{
      {"library_chunk", FactForm::kQuantity, Dimension::kBytes, kChunk, false},
      {"library_least_chunk", FactForm::kQuantity, Dimension::kBytes, kChunk, false},
      {"library_simple_only", FactForm::kFlag, {}, {}, false},
      {"library_in_switch", FactForm::kFlag, {}, {}, false},
  };
  return rows;
}

LibrarySettings library_settings(const FabricSpec& fabric) {
  LibrarySettings settings;
  for (const Fact& fact : fabric.facts) {
    if (fact.name == "library_chunk") settings.chunk = fact.value;
    if (fact.name == "library_least_chunk") settings.least_chunk = fact.value;
    if (fact.name == "library_simple_only") settings.simple_only = fact.value != 0;
    if (fact.name == "library_in_switch") settings.in_switch = fact.value != 0;
  }
  return settings;
}

}  // namespace moebius
