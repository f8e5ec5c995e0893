// Tables of requests: Azure's and BurstGPT's.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/json_text.h"
#include "workloads/serving/traffic/trace_readers.h"

namespace moebius {
namespace {

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = std::min(line.find(',', begin), line.size());
    cells.push_back(line.substr(begin, comma - begin));
    if (comma == line.size()) return cells;
    begin = comma + 1;
  }
}

// A table whose first line names its columns.
class Table {
 public:
  explicit Table(LinesPtr lines) : lines_(std::move(lines)) {
    lines_->next(header_);
    for (const std::string_view name : cells_of(header_)) {
      if (!name.empty() && column(name) >= 0)
        lines_->fail(fmt::format("expected each column once, found {} again", json_excerpt(name)));
      names_.emplace_back(name);
    }
  }

  // -1: there is none of that name.
  int column(std::string_view name) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == name) return static_cast<int>(i);
    return -1;
  }
  int required(std::string_view name) const {
    const int found = column(name);
    if (found >= 0) return found;
    if (!names_columns())
      lines_->fail(fmt::format("expected a line that names columns, \"{}\" among them, found {}", name,
                               json_excerpt(header_)));
    lines_->fail(fmt::format("expected a column \"{}\"{}", name, suggestion(std::string(name), names_)));
  }

  bool next() {
    do {
      if (!lines_->next(line_)) return false;
    } while (line_.empty());
    cells_ = cells_of(line_);
    if (cells_.size() != names_.size())
      lines_->fail(fmt::format("expected {} columns, found {}", names_.size(), cells_.size()));
    return true;
  }

  std::string_view text(int column) const { return column < 0 ? std::string_view() : cells_[column]; }
  double number(int column, double high) const {
    const std::string_view cell = text(column);
    double number = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
    if (error != std::errc() || end != cell.data() + cell.size() || !(number >= 0 && number <= high))
      fail(column, fmt::format("expected a number from 0 to {}", high));
    return number;
  }
  std::int64_t whole(int column, double high) const {
    const double found = number(column, high);
    if (found != std::trunc(found)) fail(column, fmt::format("expected a whole number from 0 to {}", high));
    return static_cast<std::int64_t>(found);
  }
  std::int64_t prompt(int column) const {
    const std::int64_t tokens = whole(column, kMostTokens);
    if (tokens == 0) fail(column, fmt::format("expected a whole number from 1 to {}", kMostTokens));
    return tokens;
  }
  [[noreturn]] void fail(int column, const std::string& sentence) const {
    lines_->fail(fmt::format("{}: {}, found {}", names_[column], sentence, json_excerpt(cells_[column])));
  }

 private:
  // Names begin with letters; rows of figures and of JSON do not.
  bool names_columns() const {
    return std::all_of(names_.begin(), names_.end(), [](const std::string& name) {
      return !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0;
    });
  }

  LinesPtr lines_;
  std::string header_, line_;
  std::vector<std::string> names_;
  std::vector<std::string_view> cells_;
};

// Nanoseconds of "2023-11-16 18:15:46.6805900", with a zone or none; nothing for another text, or a year that
// 64 bits of nanoseconds do not reach.
std::optional<std::int64_t> moment_of(std::string_view text) {
  const auto digits = [&](std::size_t at, std::size_t count) -> std::optional<int> {
    if (at + count > text.size()) return std::nullopt;
    int value = 0;
    const char* end = text.data() + at + count;
    const auto [stop, error] = std::from_chars(text.data() + at, end, value);
    return error == std::errc() && stop == end && text[at] != '-' ? std::optional(value) : std::nullopt;
  };
  const auto year = digits(0, 4), month = digits(5, 2), day = digits(8, 2), hour = digits(11, 2),
             minute = digits(14, 2), second = digits(17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' ||
      text[16] != ':')
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month(*month),
                                         std::chrono::day(*day)};
  if (*year < 1900 || *year > 2200) return std::nullopt;
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  std::int64_t ns = 0;
  std::size_t at = 19;
  if (at < text.size() && text[at] == '.') {
    std::int64_t unit = 100'000'000;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10)
      ns += (text[at] - '0') * unit;
  }
  int zone = 0;  // minutes
  const std::string_view rest = text.substr(std::min(at, text.size()));
  if (rest.size() == 6 && (rest[0] == '+' || rest[0] == '-') && rest[3] == ':') {
    const auto hours = digits(at + 1, 2), minutes = digits(at + 4, 2);
    if (!hours || !minutes) return std::nullopt;
    zone = (rest[0] == '-' ? -1 : 1) * (*hours * 60 + *minutes);
  } else if (!rest.empty() && rest != "Z") {
    return std::nullopt;
  }
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (((days * 24 + *hour) * 60 + *minute - zone) * 60 + *second) * 1'000'000'000 + ns;
}

class AzureTrace : public TrafficStream {
 public:
  explicit AzureTrace(LinesPtr lines)
      : table_(std::move(lines)),
        time_(table_.required("TIMESTAMP")),
        input_(table_.required("ContextTokens")),
        output_(table_.required("GeneratedTokens")),
        images_(table_.column("NumImages")) {}

  bool next(TrafficRequest& request) override {
    if (!table_.next()) return false;
    const std::optional<std::int64_t> moment = moment_of(table_.text(time_));
    if (!moment) table_.fail(time_, "expected a time such as 2023-11-16 18:15:46.6805900");
    if (!first_) first_ = last_ = *moment;
    if (*moment < last_) table_.fail(time_, "expected a time not before that of the row above");
    last_ = *moment;
    request = TrafficRequest{};
    request.arrival = Time{last_ - *first_};
    request.input_tokens = table_.prompt(input_);
    request.output_tokens = table_.whole(output_, kMostTokens);
    if (images_ >= 0) request.images = static_cast<std::int32_t>(table_.whole(images_, 1e6));
    return true;
  }

 private:
  Table table_;
  int time_, input_, output_, images_;
  std::optional<std::int64_t> first_;
  std::int64_t last_ = 0;
};

class BurstGptTrace : public TrafficStream {
 public:
  explicit BurstGptTrace(LinesPtr lines)
      : table_(std::move(lines)),
        time_(table_.required("Timestamp")),
        input_(table_.required("Request tokens")),
        output_(table_.required("Response tokens")),
        session_(table_.column("Session ID")) {}

  bool next(TrafficRequest& request) override {
    request = TrafficRequest{};
    do {
      if (!table_.next()) return false;
      request.output_tokens = table_.whole(output_, kMostTokens);
    } while (request.output_tokens == 0);  // it failed
    const Time moment{std::llround(table_.number(time_, kLastTraceMs / 1000) * 1e9)};
    if (!first_) first_ = last_ = moment;
    if (moment < last_) table_.fail(time_, "expected a time not before that of the row above");
    last_ = moment;
    request.arrival = moment - *first_;
    request.input_tokens = table_.prompt(input_);
    const std::string name(table_.text(session_));
    if (!name.empty())
      request.session = sessions_.emplace(name, static_cast<std::int64_t>(sessions_.size())).first->second;
    return true;
  }

 private:
  Table table_;
  int time_, input_, output_, session_;
  std::optional<Time> first_;
  Time last_;
  std::unordered_map<std::string, std::int64_t> sessions_;
};

bool names_columns(const std::string& line, std::initializer_list<std::string_view> columns) {
  const std::vector<std::string_view> cells = cells_of(line);
  for (const std::string_view column : columns)
    if (std::find(cells.begin(), cells.end(), column) == cells.end()) return false;
  return true;
}

}  // namespace

std::unique_ptr<TrafficStream> read_azure(LinesPtr lines) {
  return std::make_unique<AzureTrace>(std::move(lines));
}

std::unique_ptr<TrafficStream> read_burstgpt(LinesPtr lines) {
  return std::make_unique<BurstGptTrace>(std::move(lines));
}

bool is_azure_header(const std::string& line) {
  return names_columns(line, {"TIMESTAMP", "ContextTokens", "GeneratedTokens"});
}

bool is_burstgpt_header(const std::string& line) {
  return names_columns(line, {"Timestamp", "Request tokens", "Response tokens"});
}

}  // namespace moebius
