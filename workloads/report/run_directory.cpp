#include "workloads/report/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "hw/error.h"
#include "hw/json_text.h"
#include "workloads/report/heat_map.h"

namespace moebius {

namespace {

namespace fs = std::filesystem;

constexpr std::array kFilesOfRun{"timeline.mtl", "report.json", "report.txt",
                                 "network.svg",  "experts.svg", "cluster.svg"};

void make_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    throw run_error(fmt::format("{}: cannot create the directory: {}", directory.string(), error.message()));
}

std::string text_of(const Value* value) {
  if (value == nullptr) return "";
  return value->kind == Value::Kind::kString ? value->text : value->excerpt();
}

std::string fact_of(const Timeline& timeline, std::string_view name) {
  for (const auto& [key, value] : timeline.facts)
    if (key == name) return value;
  return "";
}

// None: that of an earlier run goes.
void write_picture(const std::string& path, const std::string& picture) {
  std::error_code ignored;  // a picture that does not go away
  if (!picture.empty()) {
    write_file(path, picture);
  } else if (fs::is_regular_file(path, ignored)) {
    fs::remove(path, ignored);
  }
}

}  // namespace

DirectoryLock::DirectoryLock(const std::string& directory)
    : descriptor_(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

MadeDirectories::MadeDirectories(const std::string& directory) {
  std::error_code error;
  for (fs::path at = fs::absolute(directory).lexically_normal(); !fs::exists(at, error);
       at = at.parent_path())
    if (at.has_filename()) made_.push_front(at.string());
  for (const std::string& made : made_) unfinished_.emplace_back(made);
  make_directory(directory);
}

MadeDirectories::~MadeDirectories() {
  for (; !made_.empty(); made_.pop_back()) rmdir(made_.back().c_str());  // refused where something is there
}

std::unique_ptr<MadeDirectories> require_directory(const std::string& directory,
                                                   std::initializer_list<const char*> files) {
  if (directory.empty()) return nullptr;
  auto made = std::make_unique<MadeDirectories>(directory);
  for (const char* name : files) require_writable((fs::path(directory) / name).string());
  return made;
}

std::unique_ptr<MadeDirectories> require_run_directory(const std::string& directory) {
  return require_directory(directory, {"timeline.mtl", "report.txt", "report.json"});
}

void write_run(const std::string& directory, const RunTexts& texts, const Timeline& timeline) {
  make_directory(directory);
  const DirectoryLock lock(directory);
  const fs::path base(directory);
  save_timeline(timeline, (base / "timeline.mtl").string());
  write_file((base / "report.txt").string(), texts.text);
  write_file((base / "report.json").string(), texts.json);
  const HeatMap map = heat_map(timeline);
  write_picture((base / "network.svg").string(),
                map.empty() ? "" : to_svg(map, fact_of(timeline, "scenario")));
  write_picture((base / "experts.svg").string(), texts.experts);
  write_picture((base / "cluster.svg").string(), texts.queues);
}

RunDirectory::RunDirectory(const std::string& wanted, std::initializer_list<const char*> runs)
    : path_(wanted), temporary_(wanted.empty()) {
  if (!temporary_) return;
  std::string name = (fs::temp_directory_path() / "moebius-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw run_error(fmt::format("{}: cannot create a temporary directory: {}", name, std::strerror(errno)));
  }
  path_ = name;
  unfinished_.emplace_back(path_);
  for (const char* run : runs) {
    unfinished_.emplace_back(path(run));
    for (const char* file : kFilesOfRun) unfinished_.emplace_back(path(run) + "/" + file);
  }
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;  // nothing can be done about a temporary directory that does not go away
  if (temporary_) fs::remove_all(path_, ignored);
}

Document load_report(const std::string& file) {
  constexpr std::array kObjects{"breakdown", "memory",     "network", "uncertainty", "provenance",
                                "requests",  "ttft_s",     "tpot_s",  "itl_s",       "e2e_s",
                                "kv",        "pools",      "series",  "classes",     "cost",
                                "cluster",   "collective", "rl",      "sla",         "request_time_s"};
  Document report = load_document(file);
  if (report.root.kind != Value::Kind::kObject || report.root.find("kind") == nullptr)
    throw input_error(fmt::format("{}: expected a run's report, found {}", file, report.root.excerpt()));
  for (const char* key : kObjects) {
    const Value* part = report.root.find(key);
    const bool sound =
        part == nullptr || part->kind == Value::Kind::kObject || part->kind == Value::Kind::kNull;
    if (!sound)
      throw input_error(fmt::format("{}: /{}: expected an object, found {}", file, key, part->excerpt()));
  }
  return report;
}

void require_one_run(const std::string& file, const Value& report, const SpanColumns& timeline) {
  const Value* provenance = report.find("provenance");
  const bool told = provenance != nullptr && provenance->kind == Value::Kind::kObject;
  const std::array<std::array<std::string, 3>, 3> facts{
      {{"scenario", text_of(report.find("scenario")), timeline.fact("scenario")},
       {"seed", text_of(report.find("seed")), timeline.fact("seed")},
       {"schedule", told ? text_of(provenance->find("schedule")) : "", timeline.fact("schedule_hash")}}};
  for (const auto& [what, here, there] : facts)
    if (!here.empty() && !there.empty() && here != there)
      throw input_error(
          fmt::format("{}: expected the report of the run whose timeline is beside it, of {} {}, "
                      "found one of {} {}",
                      file, what, json_excerpt(there), what, json_excerpt(here)));
}

std::string timeline_path(const std::string& run) {
  std::error_code error;
  const fs::path path(run);
  const fs::path timeline = fs::is_directory(path, error) ? path / "timeline.mtl" : path;
  if (!fs::is_regular_file(timeline, error)) {
    throw input_error(
        fmt::format("{}: expected a run's directory or timeline, found nothing", timeline.string()));
  }
  return timeline.string();
}

std::string report_file(const std::string& run) {
  std::error_code error;
  const fs::path path(run);
  return ((fs::is_regular_file(path, error) ? path.parent_path() : path) / "report.json").string();
}

std::vector<std::string> files_of_run(const std::string& run) {
  const fs::path timeline(timeline_path(run));
  std::vector<std::string> files{timeline.string()};
  for (const char* name : kFilesOfRun) files.push_back((timeline.parent_path() / name).string());
  return files;
}

}  // namespace moebius
