#include "workloads/study/search/space_check.h"

#include <optional>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/reader.h"

namespace moebius {
namespace {

// One step of a JSON pointer (RFC 6901).
std::string escaped_pointer(std::string_view pointer) {
  std::string step;
  for (const char c : pointer) step += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return step;
}

// What a scenario with the axis's first value says of the axis's key; nothing when the key is known.
std::optional<std::string> unknown_key(const StudyAxis& axis, const Document& scenario,
                                       const Library& library) {
  const std::string at = scenario.file + ": --set /";
  try {
    Document tried = scenario;
    set_at_pointer(tried, axis.pointer, axis.values.front());
    read_scenario(tried, library.hardware, library.models);
  } catch (const Error& error) {
    const std::string sentence = error.what();
    const std::size_t unknown = sentence.find(": unknown key ");
    if (!sentence.starts_with(at) || unknown == std::string::npos) return std::nullopt;
    const std::string place = sentence.substr(at.size() - 1, unknown - at.size() + 1);
    if (axis.pointer == place || axis.pointer.starts_with(place + "/")) return sentence.substr(unknown + 2);
  }
  return std::nullopt;
}

// Of an axis, in the file of the space.
Place place_of_axis(const std::string& file, const std::string& pointer) {
  const Document space = load_document(file);
  const Value* vary = space.root.find("vary");
  const Value* axis = vary == nullptr ? nullptr : vary->find(pointer);
  return {file, "/vary/" + escaped_pointer(pointer), axis == nullptr ? 1 : axis->line};
}

}  // namespace

void require_known_keys(const SpaceFile& space, const Document& scenario, const Library& library) {
  for (const StudyAxis& axis : space.axes)
    if (const auto sentence = unknown_key(axis, scenario, library))
      place_of_axis(space.file, axis.pointer).fail(*sentence);
}

}  // namespace moebius
