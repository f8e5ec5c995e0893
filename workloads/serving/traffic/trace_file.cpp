#include "workloads/serving/traffic/trace_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "hw/error.h"
#include "workloads/serving/traffic/client_mix.h"
#include "workloads/serving/traffic/row_json.h"
#include "workloads/serving/traffic/trace_readers.h"

namespace moebius {
namespace {

// Of which every row of a JSONL trace has one, and a mix of clients none.
constexpr std::array kKeysOfRows{"input_length", "timestamp", "delay",
                                 "tool_wait_ms", "schema",    "event_type"};

// By the first line that is not empty.
TraceFormat format_of(LineReader& lines, const std::string& path) {
  std::string line;
  do {
    if (!lines.next(line)) throw input_error(path + ": the trace holds no requests");
  } while (line.empty());
  if (is_azure_header(line)) return TraceFormat::kAzure;
  if (is_burstgpt_header(line)) return TraceFormat::kBurstGpt;
  if (line.find_first_not_of(" \t") != line.find('{'))
    lines.fail("expected a JSON object, or the columns of an Azure or BurstGPT trace");
  JsonRow row(lines, "hash_ids");
  row.parse(line);
  return row.text("schema") == "dynamo.request.trace.v1" || row.has("event_type") ? TraceFormat::kDynamo
                                                                                  : TraceFormat::kMooncake;
}

// A .json file is a mix of clients, unless its first line is the whole of a request: rows are known by what
// they hold, whatever their file is called.
bool is_client_mix(const TraceFile& file) {
  const bool named = file.path.ends_with(".json") || file.path.ends_with(".json.gz");
  if (file.format != TraceFormat::kAuto || !named) return false;
  LineReader lines(file.path);
  JsonRow row(lines, "hash_ids");
  try {
    std::string line;
    while (lines.next(line) && line.empty()) continue;
    row.parse(line);
  } catch (const Error&) {
    return true;  // more lines than one, or none that is right: its reader says what is wrong
  }
  return std::ranges::none_of(kKeysOfRows, [&](const char* key) { return row.has(key); });
}

class SpreadArrivals : public TrafficStream {
 public:
  explicit SpreadArrivals(std::unique_ptr<TrafficStream> traffic) : traffic_(std::move(traffic)) {}

  bool next(TrafficRequest& request) override {
    if (given_ == same_.size() && !gather()) return false;
    request = std::move(same_[given_++]);
    if (request.follows < 0) {
      const auto share = static_cast<double>(spread_++) / static_cast<double>(to_spread_);
      request.arrival += Time{static_cast<std::int64_t>(share * static_cast<double>(distance_.ns))};
    }
    last_ = request.arrival = std::max(last_, request.arrival);
    return true;
  }

 private:
  // All of the next stamp, and the first of the one after it.
  bool gather() {
    same_.clear();
    given_ = spread_ = to_spread_ = 0;
    if (!ahead_ && !read_ahead()) return false;
    const Time stamp = ahead_->arrival;
    do {
      to_spread_ += ahead_->follows < 0 ? 1 : 0;
      same_.push_back(*std::exchange(ahead_, std::nullopt));
    } while (read_ahead() && ahead_->arrival == stamp);
    if (ahead_) distance_ = ahead_->arrival - stamp;
    return true;
  }
  bool read_ahead() {
    TrafficRequest request;
    if (!traffic_->next(request)) return false;
    ahead_ = std::move(request);
    return true;
  }

  std::unique_ptr<TrafficStream> traffic_;
  std::optional<TrafficRequest> ahead_;
  std::vector<TrafficRequest> same_;
  std::size_t given_ = 0, spread_ = 0, to_spread_ = 0;
  Time distance_, last_;
};

// A table of columns alone, or rows of which none is a request, are as empty as an empty file.
class WithRequests : public TrafficStream {
 public:
  WithRequests(std::unique_ptr<TrafficStream> rows, std::string path, std::string expected)
      : rows_(std::move(rows)), path_(std::move(path)), expected_(std::move(expected)) {}

  bool next(TrafficRequest& request) override {
    const bool found = rows_->next(request);
    if (!found && !any_) throw input_error(path_ + ": the trace holds no requests" + expected_);
    any_ = true;
    return found;
  }

 private:
  std::unique_ptr<TrafficStream> rows_;
  std::string path_, expected_;
  bool any_ = false;
};

std::unique_ptr<TrafficStream> with_requests(std::unique_ptr<TrafficStream> rows, const std::string& path,
                                             std::string expected = "") {
  return std::make_unique<WithRequests>(std::move(rows), path, std::move(expected));
}

}  // namespace

std::unique_ptr<TrafficStream> open_trace(const TraceFile& file) {
  if (is_client_mix(file)) return read_client_mix(file.path, file.seed);
  auto lines = std::make_unique<LineReader>(file.path);
  TraceFile known = file;
  if (file.format == TraceFormat::kAuto) {
    known.format = format_of(*lines, file.path);
    lines->begin_again();
  }
  switch (known.format) {
    case TraceFormat::kAuto:
    case TraceFormat::kMooncake:
    case TraceFormat::kMooncakeDelta:
      return with_requests(read_mooncake(std::move(lines), known), file.path);
    case TraceFormat::kDynamo:
      return with_requests(read_dynamo(std::move(lines)), file.path,
                           ": expected rows of dynamo.request.trace.v1, \"event_type\" \"request_end\"");
    case TraceFormat::kAzure:
      return with_requests(read_azure(std::move(lines)), file.path);
    case TraceFormat::kBurstGpt:
      return with_requests(read_burstgpt(std::move(lines)), file.path,
                           ": expected rows whose \"Response tokens\" are more than 0");
  }
  return nullptr;
}

std::unique_ptr<TrafficStream> spread_arrivals(std::unique_ptr<TrafficStream> traffic) {
  return std::make_unique<SpreadArrivals>(std::move(traffic));
}

}  // namespace moebius
