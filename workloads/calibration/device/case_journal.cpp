#include "workloads/calibration/device/case_journal.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "hw/error.h"
#include "hw/json_text.h"
#include "hw/profile_device.h"

namespace moebius {
namespace {

constexpr const char* kFormat = "moebius-calibration-1";
constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20;
constexpr Range kSeconds{0, 1e6};

std::string key_text(const JournalKey& key) {
  return fmt::format("{{\"journal\": \"{}\", \"device\": {}, \"version\": {}, \"plan\": \"{:016x}\"}}",
                     kFormat, json_string(key.device), json_string(key.version), key.plan);
}

// All whole lines.
std::string lines_of(const std::string& path) {
  if (std::filesystem::file_size(path) > kMostBytes)
    throw input_error(fmt::format("{}: expected a calibration's journal, found over 64 MiB", path));
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  return text;
}

// One array of the lines' objects, each on the line where it stood.
Document document_of(const std::string& path, std::string text) {
  std::string lines = "{\"lines\": [";
  if (!text.empty()) text.pop_back();
  for (const char c : text) lines += c == '\n' ? std::string(",\n") : std::string(1, c);
  return parse_document(lines + "]}", path);
}

CaseResult read_result(Reader& reader) {
  CaseResult result;
  result.took = reader.number("took", kSeconds);
  if (reader.has("refused")) {
    result.refused = reader.text("refused");
    return result;
  }
  result.measured.seconds = reader.number("seconds", {kAboveZero, kSeconds.high});
  result.measured.spread = reader.number("spread", {0, 1e6});
  result.measured.repetitions = static_cast<int>(reader.integer("repetitions", {1, 1e9}));
  return result;
}

void require_key(Reader& reader, const JournalKey& key) {
  if (const std::string format = reader.text("journal"); format != kFormat)
    reader.place_of("journal").fail(fmt::format("expected \"{}\", found {}", kFormat, json_excerpt(format)));
  const auto require = [&](const char* name, const std::string& expected) {
    const std::string found = reader.text(name);
    if (found == expected) return;
    reader.place_of(name).fail(fmt::format(
        "the journal of another calibration: expected {}, found {}; remove the file to start anew",
        json_string(expected), json_string(found)));
  };
  require("device", key.device);
  require("version", key.version);
  require("plan", fmt::format("{:016x}", key.plan));
  reader.finish();
}

}  // namespace

CaseJournal::CaseJournal(const std::string& path, const JournalKey& key) : path_(path) {
  std::error_code none;
  const bool there = std::filesystem::exists(path, none);
  if (there) read(key);
  file_.reset(std::fopen(path.c_str(), "ab"));
  if (!file_) throw run_error(fmt::format("{}: cannot be written", path));
  if (!there || std::filesystem::file_size(path) == 0) write(key_text(key));
}

void CaseJournal::read(const JournalKey& key) {
  const std::string text = lines_of(path_);
  if (!text.empty()) {
    const Document document = document_of(path_, text);
    Reader root(document);
    std::vector<Reader> lines = root.objects("lines");
    require_key(lines.front(), key);
    for (std::size_t i = 1; i < lines.size(); ++i) {
      Reader& line = lines[i];
      if (line.has("figures")) {
        figures_ = read_device_figures(line.object("figures"));
        spent_ += line.number("took", kSeconds);
      } else {
        const std::string name = line.text("case");
        spent_ += (results_[name] = read_result(line)).took;
      }
      line.finish();
    }
  }
  resumed_ = results_.size();
  std::filesystem::resize_file(path_, text.size());
}

const CaseResult* CaseJournal::find(const std::string& text) const {
  const auto found = results_.find(text);
  return found == results_.end() ? nullptr : &found->second;
}

void CaseJournal::add(const std::string& text, const CaseResult& result) {
  results_[text] = result;
  spent_ += result.took;
  const std::string what =
      result.refused.empty()
          ? fmt::format("\"seconds\": {}, \"spread\": {}, \"repetitions\": {}", result.measured.seconds,
                        result.measured.spread, result.measured.repetitions)
          : fmt::format("\"refused\": {}", json_string(result.refused));
  write(fmt::format("{{\"case\": {}, {}, \"took\": {:.6f}}}", json_string(text), what, result.took));
}

void CaseJournal::add(const DeviceFigures& figures, double took) {
  figures_ = figures;
  spent_ += took;
  write(fmt::format("{{\"figures\": {}, \"took\": {:.6f}}}", to_json(figures), took));
}

void CaseJournal::write(const std::string& line) {
  if (std::fprintf(file_.get(), "%s\n", line.c_str()) < 0 || std::fflush(file_.get()) != 0)
    throw run_error(fmt::format("{}: cannot be written", path_));
}

void CaseJournal::remove() {
  file_.reset();
  std::error_code none;
  std::filesystem::remove(path_, none);
}

}  // namespace moebius
