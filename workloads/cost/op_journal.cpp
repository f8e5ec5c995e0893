#include "workloads/cost/op_journal.h"

#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/file_bytes.h"
#include "hw/json_text.h"
#include "hw/reader.h"
#include "workloads/report/run_directory.h"

namespace moebius {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20, kMostValues = std::size_t{1} << 23;
constexpr Range kSize{0, 1e12}, kCount{0, 2e9};

std::vector<std::pair<std::string_view, OpKind>> compute_kinds() {
  std::vector<std::pair<std::string_view, OpKind>> kinds;
  for (int i = 0; i < kNumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (!is_communication(kind)) kinds.emplace_back(to_string(kind), kind);
  }
  return kinds;
}

std::vector<std::pair<std::string_view, DType>> dtypes() {
  std::vector<std::pair<std::string_view, DType>> all;
  all.reserve(kNumDTypes);
  for (int i = 0; i < kNumDTypes; ++i)
    all.emplace_back(to_string(static_cast<DType>(i)), static_cast<DType>(i));
  return all;
}

Shape read_shape(Reader& line) {
  const auto count = [&](std::string_view key) {
    return static_cast<std::int32_t>(line.integer(key, kCount, 0));
  };
  return {.m = line.integer("m", kSize, 0),
          .n = line.integer("n", kSize, 0),
          .k = line.integer("k", kSize, 0),
          .groups = count("groups"),
          .heads = count("heads"),
          .kv_heads = count("kv_heads"),
          .head_dim = count("head_dim"),
          .v_dim = count("v_dim"),
          .kv = line.integer("kv", kSize, 0),
          .window = count("window")};
}

std::vector<std::int32_t> read_rows(Reader& line) {
  std::vector<std::int32_t> rows;
  if (!line.has("rows")) return rows;
  const Value& list = line.value("rows");
  if (list.kind != Value::Kind::kArray)
    line.place_of("rows").fail(fmt::format("expected an array of rows, found {}", list.excerpt()));
  for (const Value& value : list.items) {
    if (value.kind != Value::Kind::kInteger || value.integer < 0 || value.integer > 2'000'000'000)
      line.place_of("rows").fail(fmt::format("expected rows of 0 .. 2e9, found {}", value.excerpt()));
    rows.push_back(static_cast<std::int32_t>(value.integer));
  }
  return rows;
}

JournalLine read_line(Reader line) {
  JournalLine read;
  read.device = line.text("device");
  read.key.kind = line.choice<OpKind>("kind", compute_kinds());
  read.key.dtype = line.choice<DType>("dtype", dtypes());
  read.key.stored = line.choice<DType>("stored", dtypes(), read.key.dtype);
  read.key.summed = line.choice<DType>("summed", dtypes(), DType::kFp32);
  read.key.shape = read_shape(line);
  read.key.rows = read_rows(line);
  read.key.cores = static_cast<int>(line.integer("cores", kCount, 0));
  read.key.fused_quantise = line.boolean("fused_quantise", false);
  read.key.hot = line.boolean("hot", false);
  read.measured.seconds = line.number("seconds", {kAboveZero, 1e6});
  read.measured.spread = line.number("spread", {0, 1e3});
  read.measured.repetitions = static_cast<int>(line.integer("repetitions", {1, 2e9}));
  line.finish();
  return read;
}

std::string text_of(const JournalLine& line) {
  return fmt::format(R"({{"device": {}, {}, "seconds": {}, "spread": {}, "repetitions": {}}})",
                     json_string(line.device), to_text(line.key), line.measured.seconds, line.measured.spread,
                     line.measured.repetitions) +
         "\n";
}

// The lines as one array, so that errors name the line of the file.
std::string as_array(std::string_view text) {
  std::string array = "[";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    array += text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    array += text.empty() ? "" : ",\n";
  }
  return array + "]";
}

}  // namespace

std::vector<JournalLine> load_journal(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const FileBytes file(path);
  if (file.size() > kMostBytes)
    throw input_error(fmt::format("{}: expected at most {}, found {}", path,
                                  to_text(Bytes{static_cast<double>(kMostBytes)}),
                                  to_text(Bytes{static_cast<double>(file.size())})));
  const Document document = parse_document(as_array({file.data(), file.size()}), path,
                                           {.bytes = 2 * kMostBytes, .depth = 4, .values = kMostValues});
  if (document.root.items.size() > kMostJournalLines)
    throw input_error(fmt::format("{}: expected at most {} lines, found {}", path, kMostJournalLines,
                                  document.root.items.size()));
  std::vector<JournalLine> lines;
  for (const Value& value : document.root.items) {
    const Place place{path, "", value.line};
    if (value.kind != Value::Kind::kObject)
      place.fail(fmt::format("expected an object, found {}", value.excerpt()));
    lines.push_back(read_line(Reader(value, place)));
  }
  return lines;
}

void save_journal(const std::string& path, const std::vector<JournalLine>& lines) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!directory.empty()) std::filesystem::create_directories(directory, error);
  if (error)
    throw run_error(fmt::format("{}: cannot create the directory: {}", directory.string(), error.message()));
  std::string text;
  for (const JournalLine& line : lines) text += text_of(line);
  write_file(path, text);
}

}  // namespace moebius
