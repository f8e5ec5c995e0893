#include "workloads/study/check_study.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "workloads/report/number_text.h"
#include "workloads/study/study_points.h"

namespace moebius {

namespace {

constexpr std::int64_t kRead = 1000;

// What is wrong with a point, as an error says it; empty: nothing.
std::string invalid(const Study& study, std::int64_t index, const Library& library) {
  const StudyPoint point = point_of(study, index);
  try {
    read_scenario(scenario_of(study, point), library.hardware, library.models);
  } catch (const Error& error) {
    return fmt::format("{}: point {}, {}: {}", study.file, index, settings_json(point), error.what());
  }
  return "";
}

}  // namespace

bool is_study(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return false;  // a pipe is read once
  try {
    const Document document = load_document(path);
    const Value* kind = document.root.kind == Value::Kind::kObject ? document.root.find("kind") : nullptr;
    return kind != nullptr && kind->text == "study";
  } catch (const Error&) {
    return false;  // whoever reads it as a scenario says why
  }
}

void require_valid_point(const Study& study, const Library& library) {
  const std::int64_t read = std::min(kRead, study.points());
  for (std::int64_t i = 0; i < read; ++i)
    if (invalid(study, i * study.points() / read, library).empty()) return;
  throw input_error(invalid(study, 0, library));
}

std::string checked_study(const Study& study, const Library& library) {
  const std::int64_t read = std::min(kRead, study.points());
  for (std::int64_t i = 0; i < read; ++i)
    if (const std::string found = invalid(study, i, library); !found.empty()) throw input_error(found);
  std::string text = fmt::format("{}\nstudy of {}\n", study.name, study.base.file);
  for (const StudyAxis& axis : study.axes)
    text += fmt::format("  {:<44} {}\n", axis.pointer, fmt::join(axis.values, ", "));
  if (study.cases.size() > 1 || !study.cases.front().empty())
    text += fmt::format("  {:<44} {}\n", "cases", study.cases.size());
  for (const UncertainValue& value : study.uncertain)
    text += fmt::format("  {:<44} {} to {}{}{}\n", value.pointer, value.low, value.high, value.unit,
                        value.whole ? ", whole numbers" : "");
  if (study.samples > 1) text += fmt::format("  {:<44} {}\n", "samples", study.samples);
  text += fmt::format("  {:<44} {}\n  {:<44} {}\n", "seeds", fmt::join(study.seeds, ", "), "columns",
                      fmt::join(study.columns, ", "));
  return text +
         fmt::format("{} points, {} of them read as scenarios\n", grouped(study.points()), grouped(read));
}

}  // namespace moebius
