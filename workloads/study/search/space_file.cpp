#include "workloads/study/search/space_file.h"

#include <charconv>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/reader.h"

namespace moebius {

const StudyAxis* SpaceFile::find(const std::string& pointer) const {
  for (const StudyAxis& axis : axes) {
    if (axis.pointer == pointer) return &axis;
  }
  return nullptr;
}

bool SpaceFile::touches(const std::string& pointer) const {
  for (const StudyAxis& axis : axes) {
    if (axis.pointer == pointer || axis.pointer.starts_with(pointer + "/") ||
        pointer.starts_with(axis.pointer + "/"))
      return true;
  }
  return false;
}

std::vector<int> SpaceFile::numbers(const StudyAxis& axis, int least) const {
  std::vector<int> all;
  for (const std::string& value : axis.values) {
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() || number < least)
      throw input_error(fmt::format("{}: {}: expected whole numbers of at least {}, found {}", file,
                                    axis.pointer, least, value));
    all.push_back(number);
  }
  return all;
}

std::vector<bool> SpaceFile::booleans(const StudyAxis& axis) const {
  std::vector<bool> all;
  for (const std::string& value : axis.values) {
    if (value != "true" && value != "false")
      throw input_error(fmt::format("{}: {}: expected true or false, found {}", file, axis.pointer, value));
    all.push_back(value == "true");
  }
  return all;
}

SpaceFile load_space(const std::string& path) {
  SpaceFile space{path, {}};
  if (path.empty()) return space;
  const Document document = load_document(path);
  Reader top(document);
  top.text("$schema", "");
  top.integer("moebius", {1, 1});
  const std::string kind = top.text("kind");
  if (kind != "search-space")
    top.place_of("kind").fail(fmt::format("expected \"search-space\", found \"{}\"", kind));
  top.text("name", "");
  space.axes = read_varied(top);
  if (space.axes.empty()) top.place().fail("expected `vary` with what the search varies, found none");
  top.finish();
  return space;
}

}  // namespace moebius
