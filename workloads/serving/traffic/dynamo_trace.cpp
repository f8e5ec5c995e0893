// Rows "request_end" of a dynamo.request.trace.v1 file. They stand in the order in which requests ended; a
// window of them puts them into that in which they came.
#include <algorithm>
#include <cmath>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "workloads/serving/traffic/row_json.h"
#include "workloads/serving/traffic/trace_readers.h"

namespace moebius {
namespace {

constexpr std::size_t kWindow = 4096;   // rows
constexpr double kLastMoment = 9.2e12;  // ms since 1970: what 64 bits of nanoseconds reach

struct EndedRequest {
  TrafficRequest request;
  std::int64_t row = 0;  // among those of requests: of one stamp the first row comes first
};

struct ArrivesLater {
  bool operator()(const EndedRequest& a, const EndedRequest& b) const {
    return std::pair(b.request.arrival, b.row) < std::pair(a.request.arrival, a.row);
  }
};

class DynamoTrace : public TrafficStream {
 public:
  explicit DynamoTrace(LinesPtr lines)
      : lines_(std::move(lines)), row_(*lines_, "request.replay.input_sequence_hashes") {}

  bool next(TrafficRequest& request) override {
    while (window_.size() < kWindow && read_row()) {
    }
    if (window_.empty()) return false;
    request = window_.top().request;
    window_.pop();
    if (!first_) first_ = request.arrival;
    request.arrival = request.arrival - *first_;
    last_ = request.arrival + *first_;
    return true;
  }

 private:
  bool read_row() {
    do {
      if (!lines_->next(line_)) return false;
      if (!line_.empty()) row_.parse(line_);
    } while (line_.empty() || row_.text("event_type") != "request_end");
    TrafficRequest request;
    const double ms = required("request.request_received_ms", 0, kLastMoment);
    request.arrival = Time{static_cast<std::int64_t>(ms * 1e3) * 1000};
    if (last_ && request.arrival < *last_)
      row_.fail("request.request_received_ms",
                fmt::format("the request came more than {} rows before those above", kWindow));
    request.input_tokens = whole("request.replay.input_length", 1, kMostTokens);
    request.output_tokens = whole("request.output_tokens", 0, kMostTokens);
    request.block_tokens = whole("request.replay.trace_block_size", 1, kMostTraceBlockTokens);
    request.blocks = row_.ids();
    const std::int64_t most = (request.input_tokens + request.block_tokens - 1) / request.block_tokens;
    if (static_cast<std::int64_t>(request.blocks.size()) > most)
      row_.fail("request.replay.input_sequence_hashes",
                fmt::format("expected at most {} for {} tokens in blocks of {}, found {}", most,
                            request.input_tokens, request.block_tokens, request.blocks.size()));
    const std::string session = row_.name("agent_context.session_id");
    if (!session.empty())
      request.session = sessions_.emplace(session, static_cast<std::int64_t>(sessions_.size())).first->second;
    window_.push({std::move(request), rows_++});
    return true;
  }

  double required(std::string_view path, double low, double high) const {
    const std::optional<double> found = row_.number(path, low, high);
    if (!found) row_.fail(path, "expected it in a request_end row, found none");
    return *found;
  }
  std::int64_t whole(std::string_view path, double low, double high) const {
    required(path, low, high);
    return *row_.whole(path, low, high);
  }

  LinesPtr lines_;
  JsonRow row_;
  std::string line_;
  std::optional<Time> first_, last_;
  std::priority_queue<EndedRequest, std::vector<EndedRequest>, ArrivesLater> window_;
  std::int64_t rows_ = 0;
  std::unordered_map<std::string, std::int64_t> sessions_;
};

}  // namespace

std::unique_ptr<TrafficStream> read_dynamo(LinesPtr lines) {
  return std::make_unique<DynamoTrace>(std::move(lines));
}

}  // namespace moebius
