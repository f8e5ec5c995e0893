#include "workloads/validation/recorded/record_options.h"

#include <chrono>
#include <ctime>
#include <filesystem>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "hw/error.h"
#include "hw/folder_files.h"
#include "hw/new_file.h"
#include "workloads/accuracy/accuracy_page.h"
#include "workloads/calibration/page/accuracy_table.h"
#include "workloads/validation/recorded/gathered_tables.h"
#include "workloads/version.h"

namespace moebius {

namespace {

std::string today() {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
}

AccuracyRecord record_at(const std::string& path) {
  return stands(path) ? read_record(load_document(path)) : AccuracyRecord{};
}

// Which of the two a page has.
std::string section_in(const std::string& page) {
  for (const char* name : {"accuracy", "accuracy-rows"}) {
    try {
      read_section(page, name);
      return name;
    } catch (const Error&) {
    }
  }
  throw input_error(fmt::format(
      "{}: expected a section between <!-- accuracy --> and <!-- /accuracy -->, or accuracy-rows", page));
}

// "../../" of a page two folders below the root.
std::string way_up(const std::string& page) {
  std::string up;
  const std::filesystem::path folder = std::filesystem::path(page).lexically_normal().parent_path();
  if (folder.is_relative())
    for (const auto& part : folder) up += part.empty() || part == "." ? "" : "../";
  return up;
}

}  // namespace

CommandOptions record_options(RecordOptions& options) {
  return {{.name = "--record",
           .target = &options.record,
           .help = "a file that keeps the errors of this run: workloads/accuracy/record.json is built in",
           .excludes = {"--fit-hosts", "--scenarios"}},
          {.name = "--from",
           .target = &options.from,
           .help = "keeps those of kernels and, of the tables in this directory, of collectives, too",
           .check = existing_directory,
           .needs = {"--record"}},
          {.name = "--recorded",
           .target = &options.recorded,
           .help = "run nothing: errors by class of the built-in record, and whether its intervals hold",
           .excludes = {"PATH", "--mapping", "--json", "--markdown", "--rows", "--fit-hosts",
                        "--scenarios"}},
          {.name = "--write",
           .target = &options.write,
           .help = "run nothing: write the record (built in, or --record FILE) into the section of a README",
           .excludes = {"PATH", "--mapping", "--json", "--markdown", "--rows", "--fit-hosts",
                        "--scenarios"}}};
}

std::string shown_record(const RecordOptions& options) {
  const AccuracyRecord record = options.record.empty() ? shipped_record() : record_at(options.record);
  if (record.sources.empty()) throw input_error("validate: the record has no rows");
  std::string text = options.recorded ? accuracy_text(record) : "";
  for (const std::string& page : options.write) {
    const std::string section = section_in(page);
    write_section(page, section,
                  section == "accuracy" ? accuracy_section(record) : accuracy_rows(record, way_up(page)));
    text += fmt::format("{}: section {}\n", page, section);
  }
  return text;
}

std::string classes_text(std::vector<AccuracySource> sources) {
  AccuracyRecord record;
  for (AccuracySource& source : sources) record.replace(std::move(source));
  return accuracy_text(record);
}

RecordKeeper::RecordKeeper(const RecordOptions& options, const Catalog& catalog, const std::string& data)
    : options_(options) {
  if (!options.record.empty()) require_writable(options.record);
  if (options.from.empty()) return;
  keep(gathered_kernels(catalog, data));
  keep(gathered_collectives(catalog, options.from));
}

void RecordKeeper::keep(std::vector<AccuracySource> sources) {
  if (options_.record.empty() || sources.empty()) return;
  AccuracyRecord record = record_at(options_.record);
  record.date = today();
  record.commit = build_commit();
  for (AccuracySource& source : sources) record.replace(std::move(source));
  write_file(options_.record, record_text(record));
}

}  // namespace moebius
