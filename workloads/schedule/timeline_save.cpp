// Writes a timeline file: the plan of its sections first, then the columns, block of rows by block of rows.
#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/new_file.h"
#include "workloads/schedule/timeline.h"
#include "workloads/schedule/timeline_columns.h"

namespace moebius {

namespace {

using mtl::Section;

// Rows that are gathered before they are written: their columns stay in the cache.
constexpr std::size_t kBlock = 8192;

std::string blob(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    const auto length = static_cast<std::uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
    bytes += text;
  }
  return bytes;
}

std::vector<std::string> flat(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : facts) {
    texts.push_back(name);
    texts.push_back(value);
  }
  return texts;
}

// The rows in the order of (sequence, op, rank class): by counting, since sequences are dense, then inside
// each.
std::vector<std::uint32_t> file_order(const std::vector<Span>& spans) {
  std::vector<std::uint32_t> first;  // of each sequence; one more than it yet
  for (const Span& span : spans) {
    CHECK(span.sequence >= 0, fmt::format("sequence {}", span.sequence));
    const auto next = static_cast<std::size_t>(span.sequence) + 1;
    if (first.size() <= next) first.resize(next + 1);
    ++first[next];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> end(first), order(spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i)
    order[end[spans[i].sequence]++] = static_cast<std::uint32_t>(i);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(spans[a].op, spans[a].rank_class) < std::tie(spans[b].op, spans[b].rank_class);
  };
  for (std::size_t sequence = 0; sequence + 1 < first.size(); ++sequence) {
    const auto begin = order.begin() + first[sequence], until = order.begin() + end[sequence];
    if (!std::is_sorted(begin, until, before)) std::sort(begin, until, before);
  }
  return order;
}

// Lays the sections out, then fills them in the same order.
class Writer {
 public:
  explicit Writer(const Timeline& timeline)
      : timeline_(timeline),
        texts_{blob(flat(timeline.facts)), blob(timeline.fragments), blob(timeline.counters)},
        order_(file_order(timeline.spans)) {}

  void save(const std::string& path) {
    plan();
    NewFile file(path);
    file.resize(bytes_);
    mtl::FileHeader header{{}, mtl::kVersion, static_cast<std::uint32_t>(sections_.size()), bytes_};
    std::copy(std::begin(mtl::kMagic), std::end(mtl::kMagic), header.magic);
    file.write_at(0, &header, sizeof(header));
    file.write_at(sizeof(header), sections_.data(), sections_.size() * sizeof(Section));
    fill(file);
    file.finish();
  }

 private:
  void plan() {
    add_section("facts", 1, texts_[0].size(), mtl::kMaxTextBytes);
    add_section("fragments", 1, texts_[1].size(), mtl::kMaxTextBytes);
    add_section("counters", 1, texts_[2].size(), mtl::kMaxTextBytes);
    plan_numbers("classes.rank", timeline_.class_ranks);
    plan_numbers("classes.size", timeline_.class_sizes);
    plan_numbers("dependencies", timeline_.dependencies);
    plan_numbers("afters", timeline_.afters);
    plan_table(timeline_.ops, mtl::kMaxTableRows);
    plan_table(timeline_.submissions, mtl::kMaxTableRows);
    plan_table(timeline_.follows, mtl::kMaxTableRows);
    plan_table(timeline_.samples, mtl::kMaxTableRows);
    plan_table(timeline_.spans, mtl::kMaxSpans);
    bytes_ = sizeof(mtl::FileHeader) + sections_.size() * sizeof(Section);
    for (Section& section : sections_) {
      bytes_ = (bytes_ + 7) / 8 * 8;
      section.offset = bytes_;
      bytes_ += section.bytes();
    }
  }

  void add_section(std::string_view name, std::size_t row_bytes, std::size_t rows, std::uint64_t most) {
    if (rows > most)
      throw run_error(fmt::format("the timeline has {} rows of {}; a file holds {}", rows, name, most));
    Section section{{}, row_bytes, rows, 0};
    CHECK(name.size() < sizeof(section.name), std::string(name));
    std::copy(name.begin(), name.end(), section.name);
    sections_.push_back(section);
  }

  void plan_numbers(std::string_view name, const std::vector<std::int32_t>& numbers) {
    add_section(name, sizeof(std::int32_t), numbers.size(), mtl::kMaxTableRows);
  }

  template <class Row>
  void plan_table(const std::vector<Row>& rows, std::uint64_t most) {
    mtl::columns(static_cast<const Row*>(nullptr), [&](std::string_view name, auto field) {
      add_section(name, mtl::width_of<const Row>(field), rows.size(), most);
    });
  }

  void fill(NewFile& file) {
    next_ = sections_.begin();
    for (const std::string& text : texts_) file.write_at((next_++)->offset, text.data(), text.size());
    for (const auto* numbers :
         {&timeline_.class_ranks, &timeline_.class_sizes, &timeline_.dependencies, &timeline_.afters}) {
      file.write_at((next_++)->offset, numbers->data(), numbers->size() * sizeof(std::int32_t));
    }
    const auto as_it_stands = [](std::size_t i) { return i; };
    fill_table(file, timeline_.ops, as_it_stands);
    fill_table(file, timeline_.submissions, as_it_stands);
    fill_table(file, timeline_.follows, as_it_stands);
    fill_table(file, timeline_.samples, as_it_stands);
    fill_table(file, timeline_.spans, [this](std::size_t i) { return order_[i]; });
  }

  template <class Row, class Order>
  void fill_table(NewFile& file, const std::vector<Row>& rows, Order order) {
    const auto first_section = next_;
    std::vector<char> buffer(kBlock * sizeof(double));
    for (std::size_t begin = 0; begin < rows.size(); begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, rows.size());
      next_ = first_section;
      mtl::columns(static_cast<const Row*>(nullptr), [&](std::string_view, auto field) {
        constexpr std::size_t width = mtl::width_of<const Row>(field);
        static_assert(width <= sizeof(double));
        for (std::size_t i = begin; i < end; ++i) {
          std::memcpy(buffer.data() + (i - begin) * width, &field(rows[order(i)]), width);
        }
        file.write_at(next_->offset + begin * width, buffer.data(), (end - begin) * width);
        ++next_;
      });
    }
    next_ = first_section;
    mtl::columns(static_cast<const Row*>(nullptr), [&](std::string_view, auto) { ++next_; });
  }

  const Timeline& timeline_;
  std::array<std::string, 3> texts_;
  std::vector<std::uint32_t> order_;
  std::vector<Section> sections_;
  std::vector<Section>::const_iterator next_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

void save_timeline(const Timeline& timeline, const std::string& path) {
  Writer(timeline).save(path);
}

}  // namespace moebius
