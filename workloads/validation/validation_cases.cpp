// Which scenarios a command line of paths stands for.
#include <filesystem>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/folder_files.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/validation/claims/claim.h"
#include "workloads/validation/measured_rows.h"
#include "workloads/validation/validation.h"

namespace moebius {

namespace {

namespace fs = std::filesystem;

bool expects_something(const Document& document) {
  const Value* rows = document.root.kind == Value::Kind::kObject ? document.root.find("expect") : nullptr;
  return rows != nullptr && !rows->items.empty();
}

ValidationCase case_of(const fs::path& file, Document document) {
  return {fs::absolute(file).parent_path().filename().string(), file.stem().string(), std::move(document)};
}

void add_directory(const fs::path& directory, std::vector<ValidationCase>& cases) {
  for (const fs::path& file : files_below(directory, ".json")) {
    Document document = load_scenario(file.string());
    if (expects_something(document)) cases.push_back(case_of(file, std::move(document)));
  }
}

bool is_table(const fs::path& file, const Document* document) {
  return file.extension() == ".csv" || file.extension() == ".gz" ||
         (document != nullptr && document->root.kind == Value::Kind::kArray);
}

void add_table(const std::string& table, const std::string& mapping, std::vector<ValidationCase>& cases) {
  if (mapping.empty())
    throw input_error(fmt::format(
        "{}: a table of measured rows: expected --mapping FILE, which says what its columns are", table));
  for (ValidationCase& row : measured_cases(table, mapping)) cases.push_back(std::move(row));
}

void add_file(const std::string& path, const std::string& mapping, std::vector<ValidationCase>& cases) {
  if (is_table(path, nullptr)) return add_table(path, mapping, cases);
  Document document = load_scenario(path);
  if (is_table(path, &document)) return add_table(path, mapping, cases);
  if (!expects_something(document))
    throw input_error(fmt::format("{}: /expect: expected at least one figure, found none", path));
  cases.push_back(case_of(path, std::move(document)));
}

}  // namespace

std::vector<ValidationCase> cases_of(const std::vector<std::string>& paths, const std::string& mapping) {
  std::vector<ValidationCase> cases;
  for (const std::string& path : paths) {
    std::error_code none;  // of one that cannot be looked at: those who read it say so
    if (fs::is_directory(path, none)) {
      add_directory(path, cases);
    } else if (!is_claim(path)) {
      add_file(path, mapping, cases);
    }
  }
  return cases;
}

}  // namespace moebius
