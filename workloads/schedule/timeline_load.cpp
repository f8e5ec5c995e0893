// Reads a timeline file. It may come from anywhere: sizes are checked before they are used, and every index
// before it is given out.
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/file_bytes.h"
#include "workloads/schedule/span_columns.h"
#include "workloads/schedule/timeline.h"
#include "workloads/schedule/timeline_columns.h"

namespace moebius {

namespace {

using mtl::Section;

template <class T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class E>
bool is_one_of(E value, int count) {
  return static_cast<int>(value) < count;
}

bool is_amount(double value) {
  return value >= 0 && std::isfinite(value);
}

bool is_index(std::int64_t value, std::size_t size) {
  return value >= 0 && value < static_cast<std::int64_t>(size);
}

// `count` of the numbers from `first` on exist, and each is an index before `own`.
bool are_earlier(const std::vector<std::int32_t>& numbers, std::int64_t first, std::int64_t count,
                 std::int32_t own) {
  if (first < 0 || count < 0 || first + count > static_cast<std::int64_t>(numbers.size())) return false;
  return std::all_of(numbers.begin() + first, numbers.begin() + first + count,
                     [own](std::int32_t number) { return number >= 0 && number < own; });
}

}  // namespace

// What MappedTimeline and SpanColumns share: a file of which all but the spans is read and checked.
struct TimelineFile {
  static constexpr std::size_t kSpanColumns = 12;

  template <class Source>
  TimelineFile(const Source& source, const std::string& given_name) : name(given_name), file(source) {
    read_sections();
    read_tables();
    check_tables();
  }

  [[noreturn]] void fail(const std::string& sentence) const {
    throw input_error(fmt::format("{}: {}", name, sentence));
  }

  void read_sections() {
    if (file.size() < sizeof(mtl::FileHeader))
      fail(fmt::format("too short for a timeline: {} bytes", file.size()));
    const auto header = load<mtl::FileHeader>(file.data());
    if (std::memcmp(header.magic, mtl::kMagic, sizeof(mtl::kMagic)) != 0) fail("not a timeline of moebius");
    if (header.version != mtl::kVersion) {
      fail(fmt::format("timeline of version {}, expected {}", header.version, mtl::kVersion));
    }
    if (header.bytes != file.size())
      fail(fmt::format("{} bytes, expected {}: truncated?", file.size(), header.bytes));
    if (header.sections > (file.size() - sizeof(header)) / sizeof(Section)) {
      fail(fmt::format("{} sections do not fit in {} bytes", header.sections, file.size()));
    }
    for (std::uint32_t i = 0; i < header.sections; ++i) {
      sections.push_back(load<Section>(file.data() + sizeof(header) + i * sizeof(Section)));
    }
  }

  // The next section, which must be `expected`, `width` bytes a row and inside the file. Returns its data.
  const char* section(std::string_view expected, std::size_t width, std::uint64_t most, std::size_t& rows) {
    if (next == sections.size()) fail(fmt::format("section {} is missing", expected));
    const Section& s = sections[next++];
    const std::string_view found(s.name, strnlen(s.name, sizeof(s.name)));
    if (found != expected || s.row_bytes != width)
      fail(fmt::format("section {} is not what it should be", expected));
    const bool inside = s.rows <= most && s.offset % 8 == 0 && s.offset <= file.size() &&
                        s.rows <= (file.size() - s.offset) / width;
    if (!inside) fail(fmt::format("section {} reaches over the end of the file", expected));
    rows = s.rows;
    return file.data() + s.offset;
  }

  std::vector<std::string> read_texts(std::string_view table) {
    std::size_t left = 0;
    const char* from = section(table, 1, mtl::kMaxTextBytes, left);
    std::vector<std::string> texts;
    while (left > 0) {
      const std::size_t length = left < sizeof(std::uint32_t) ? left : load<std::uint32_t>(from);
      if (left < sizeof(std::uint32_t) + length) fail(fmt::format("{}: a text reaches over the end", table));
      texts.emplace_back(from + sizeof(std::uint32_t), length);
      from += sizeof(std::uint32_t) + length;
      left -= sizeof(std::uint32_t) + length;
    }
    return texts;
  }

  std::vector<std::int32_t> read_numbers(std::string_view table) {
    std::size_t rows = 0;
    const char* from = section(table, sizeof(std::int32_t), mtl::kMaxTableRows, rows);
    std::vector<std::int32_t> numbers(rows);
    if (rows > 0) std::memcpy(numbers.data(), from, rows * sizeof(std::int32_t));
    return numbers;
  }

  // Calls take(column, data, rows) for each column of a table; all have equally many rows.
  template <class Row, class Take>
  void each_column(std::uint64_t most, Take&& take) {
    std::size_t column = 0, rows = 0;
    mtl::columns(static_cast<const Row*>(nullptr), [&](std::string_view table, auto field) {
      std::size_t found = 0;
      const char* data = section(table, mtl::width_of<Row>(field), most, found);
      if (column > 0 && found != rows) fail(fmt::format("{}: {} rows, expected {}", table, found, rows));
      rows = found;
      take(column++, data, rows, field);
    });
  }

  template <class Row>
  std::vector<Row> read_table() {
    std::vector<Row> table;
    each_column<Row>(mtl::kMaxTableRows, [&](std::size_t, const char* data, std::size_t rows, auto field) {
      table.resize(rows);
      for (Row& row : table) {
        auto& cell = field(row);
        std::memcpy(&cell, data, sizeof(cell));
        data += sizeof(cell);
      }
    });
    return table;
  }

  void read_tables() {
    const std::vector<std::string> texts = read_texts("facts");
    if (texts.size() % 2 != 0) fail("a fact without a value");
    for (std::size_t i = 0; i < texts.size(); i += 2) tables.facts.emplace_back(texts[i], texts[i + 1]);
    tables.fragments = read_texts("fragments");
    tables.counters = read_texts("counters");
    tables.class_ranks = read_numbers("classes.rank");
    tables.class_sizes = read_numbers("classes.size");
    tables.dependencies = read_numbers("dependencies");
    tables.afters = read_numbers("afters");
    tables.ops = read_table<OpRow>();
    tables.submissions = read_table<SubmissionRow>();
    tables.follows = read_table<FollowRow>();
    tables.samples = read_table<CounterSample>();
    each_column<Span>(mtl::kMaxSpans, [&](std::size_t column, const char* data, std::size_t rows, auto) {
      span_columns[column] = data;
      num_spans = rows;
    });
    if (next != sections.size()) fail(fmt::format("{} unknown sections", sections.size() - next));
  }

  void check_tables() {
    const std::size_t num_classes = tables.class_ranks.size();
    if (tables.class_sizes.size() != num_classes) fail("classes.rank and classes.size differ in length");
    for (std::size_t i = 0; i < num_classes; ++i) {
      if (tables.class_ranks[i] < 0 || tables.class_sizes[i] <= 0) fail(fmt::format("class {} is empty", i));
    }
    check_ops();
    for (std::size_t i = 0; i < tables.submissions.size(); ++i) {
      const SubmissionRow& s = tables.submissions[i];
      const bool sound = s.sequence == static_cast<std::int64_t>(i) &&
                         is_index(s.fragment, tables.fragments.size()) &&
                         is_index(s.rank_class, num_classes) &&
                         are_earlier(tables.afters, s.first_after, s.num_after, s.sequence);
      if (!sound) fail(fmt::format("submission {} is inconsistent", i));
    }
    for (std::size_t i = 0; i < tables.follows.size(); ++i) {
      const FollowRow& f = tables.follows[i];
      const bool sound = is_index(f.sequence, tables.submissions.size()) && f.before_sequence >= 0 &&
                         f.before_sequence < f.sequence && f.op >= 0 && f.before_op >= 0 &&
                         (i == 0 || tables.follows[i - 1].sequence <= f.sequence);
      if (!sound) fail(fmt::format("wait {} of a single op is inconsistent", i));
    }
    for (std::size_t i = 0; i < tables.samples.size(); ++i) {
      const CounterSample& s = tables.samples[i];
      const bool sound = is_index(s.counter, tables.counters.size()) && is_index(s.rank_class, num_classes) &&
                         std::isfinite(s.value);
      if (!sound) fail(fmt::format("sample {} is inconsistent", i));
    }
  }

  // Ops stand fragment by fragment, in order; first_op says where each fragment begins.
  void check_ops() {
    std::int32_t fragment = -1, index = 0;
    for (std::size_t i = 0; i < tables.ops.size(); ++i) {
      const OpRow& op = tables.ops[i];
      const bool enums = is_one_of(op.kind, kNumOpKinds) && is_one_of(op.dtype, kNumDTypes) &&
                         is_one_of(op.lane, kNumLanes) && is_one_of(op.phase, kNumPhases) &&
                         is_one_of(op.role, kNumRoles) && is_one_of(op.group, kNumGroupRoles) &&
                         op.second <= 1;
      const bool amounts = is_amount(op.flops) && is_amount(op.bytes) && is_amount(op.payload);
      if (!enums || !amounts || !is_index(op.fragment, tables.fragments.size()) || op.fragment < fragment) {
        fail(fmt::format("op row {} is inconsistent", i));
      }
      while (fragment < op.fragment) {
        first_op.push_back(i);
        ++fragment;
        index = 0;
      }
      if (op.index != index++) fail(fmt::format("op row {} is out of order", i));
      if (!are_earlier(tables.dependencies, op.first_dependency, op.num_dependencies, op.index))
        fail(fmt::format("op row {} depends on what is not there", i));
    }
    first_op.resize(tables.fragments.size() + 1, tables.ops.size());
  }

  void check_spans() const {
    std::tuple<std::int32_t, std::int32_t, std::int32_t> last{-1, 0, 0};
    for (std::size_t i = 0; i < num_spans; ++i) {
      const Span s = span(i);
      const std::tuple key{s.sequence, s.op, s.rank_class};
      if (key <= last || !is_sound(s)) fail(fmt::format("span {} is inconsistent", i));
      last = key;
    }
  }

  bool is_sound(const Span& s) const {
    const bool known = is_index(s.sequence, tables.submissions.size()) &&
                       tables.submissions[s.sequence].rank_class == s.rank_class &&
                       is_index(s.op, num_ops(s));
    const bool enums = is_one_of(s.lane, kNumLanes) && is_one_of(s.origin, kNumOrigins);
    const auto in_span = [&](Time t) { return t.ns >= 0 && t <= s.end; };
    return known && enums && in_span(s.start) && in_span(s.first_end) && in_span(s.mean_end) &&
           in_span(s.work_start) && is_amount(s.error);
  }

  std::size_t num_ops(const Span& s) const {
    const std::int32_t fragment = tables.submissions[s.sequence].fragment;
    return first_op[fragment + 1] - first_op[fragment];
  }

  Span span(std::size_t i) const {
    Span span;
    std::size_t column = 0;
    mtl::columns(static_cast<const Span*>(nullptr), [&](std::string_view, auto field) {
      auto& cell = field(span);
      std::memcpy(&cell, span_columns[column++] + i * sizeof(cell), sizeof(cell));
    });
    return span;
  }

  std::string name;
  FileBytes file;
  std::vector<Section> sections;
  std::size_t next = 0;  // section to read
  Timeline tables;
  std::vector<std::size_t> first_op;  // of each fragment, and one more
  std::array<const char*, kSpanColumns> span_columns{};
  std::size_t num_spans = 0;
};

struct MappedTimeline::State : TimelineFile {
  template <class Source>
  State(const Source& source, const std::string& given_name) : TimelineFile(source, given_name) {
    check_spans();
  }
};

MappedTimeline::MappedTimeline(const std::string& path) : state_(std::make_unique<State>(path, path)) {}
MappedTimeline::MappedTimeline(std::span<const std::byte> file, const std::string& name)
    : state_(std::make_unique<State>(file, name)) {}
MappedTimeline::~MappedTimeline() = default;
MappedTimeline::MappedTimeline(MappedTimeline&&) noexcept = default;
MappedTimeline& MappedTimeline::operator=(MappedTimeline&&) noexcept = default;

std::size_t MappedTimeline::num_spans() const {
  return state_->num_spans;
}

Span MappedTimeline::span(std::size_t i) const {
  CHECK(i < state_->num_spans, fmt::format("span {} of {}", i, state_->num_spans));
  return state_->span(i);
}

const OpRow& MappedTimeline::op_of(const Span& span) const {
  return state_->tables.ops[state_->first_op[submission_of(span).fragment] + span.op];
}

const SubmissionRow& MappedTimeline::submission_of(const Span& span) const {
  return state_->tables.submissions[span.sequence];
}

std::string MappedTimeline::fact(std::string_view name) const {
  for (const auto& [key, value] : state_->tables.facts) {
    if (key == name) return value;
  }
  return {};
}

const Timeline& MappedTimeline::tables() const {
  return state_->tables;
}

namespace {

// Where column stands in the order of timeline_columns.h.
enum SpanColumn { kSequence = 0, kOp = 1, kRankClass = 2, kLane = 3, kStart = 7, kEnd = 8, kWorkStart = 11 };

}  // namespace

SpanColumns::SpanColumns(const std::string& path)
    : file_(std::make_unique<TimelineFile>(path, path)), size_(file_->num_spans) {
  const auto& columns = file_->span_columns;
  sequence_ = columns[kSequence], op_ = columns[kOp], rank_class_ = columns[kRankClass];
  lane_ = columns[kLane], start_ = columns[kStart], end_ = columns[kEnd], work_start_ = columns[kWorkStart];
}
SpanColumns::~SpanColumns() = default;
SpanColumns::SpanColumns(SpanColumns&&) noexcept = default;

const Timeline& SpanColumns::tables() const {
  return file_->tables;
}

const std::string& SpanColumns::name() const {
  return file_->name;
}

std::string SpanColumns::fact(std::string_view name) const {
  for (const auto& [key, value] : file_->tables.facts)
    if (key == name) return value;
  return {};
}

Span SpanColumns::span(std::size_t i) const {
  CHECK(i < size_, fmt::format("span {} of {}", i, size_));
  const Span span = file_->span(i);
  if (!file_->is_sound(span)) file_->fail(fmt::format("span {} is inconsistent", i));
  return span;
}

const OpRow& SpanColumns::op_of(const Span& span) const {
  return file_->tables.ops[file_->first_op[submission_of(span).fragment] + span.op];
}

const SubmissionRow& SpanColumns::submission_of(const Span& span) const {
  return file_->tables.submissions[span.sequence];
}

std::uint32_t SpanColumns::checked_row(std::size_t i) const {
  const std::int32_t in_submission = sequence(i), op = cell<std::int32_t>(op_, i);
  const auto& submissions = file_->tables.submissions;
  const bool known = is_index(in_submission, submissions.size()) &&
                     submissions[in_submission].rank_class == rank_class(i) &&
                     is_one_of(lane(i), kNumLanes) && start(i) >= 0 && start(i) <= end(i);
  if (!known) file_->fail(fmt::format("span {} is inconsistent", i));
  const std::int32_t fragment = submissions[in_submission].fragment;
  const std::size_t row = file_->first_op[fragment] + static_cast<std::size_t>(op);
  if (op < 0 || row >= file_->first_op[fragment + 1]) file_->fail(fmt::format("span {} is inconsistent", i));
  return static_cast<std::uint32_t>(row);
}

void SpanColumns::forget(std::size_t first, std::size_t count) const {
  std::size_t column = 0;
  mtl::columns(static_cast<const Span*>(nullptr), [&](std::string_view, auto field) {
    constexpr std::size_t width = mtl::width_of<Span>(field);
    const auto offset = static_cast<std::size_t>(file_->span_columns[column++] - file_->file.data());
    file_->file.forget(offset + first * width, count * width);
  });
}

}  // namespace moebius
