#include "workloads/serving/traffic/traffic_source.h"

#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

class OneBlockSize : public TrafficStream {
 public:
  OneBlockSize(const TrafficSource& source, bool as_told)
      : traffic_(open_traffic(source)),
        file_(source.file ? source.file->path + ": " : ""),
        as_told_(as_told),
        tokens_(as_told ? source.block_tokens() : 0) {}

  bool next(TrafficRequest& request) override {
    if (!traffic_->next(request)) return false;
    ++number_;
    if (request.blocks.empty()) return true;
    if (tokens_ == 0) tokens_ = request.block_tokens;
    if (request.block_tokens == tokens_) return true;
    throw input_error(fmt::format(
        "{}request {} of the trace has blocks of {} tokens, {} {}", file_, number_, request.block_tokens,
        as_told_ ? "/workload/trace/block_tokens is" : "the first one of", tokens_));
  }

 private:
  std::unique_ptr<TrafficStream> traffic_;
  std::string file_;
  bool as_told_;
  std::int64_t tokens_, number_ = 0;
};

}  // namespace

std::unique_ptr<TrafficStream> open_traffic(const TrafficSource& source) {
  std::unique_ptr<TrafficStream> traffic =
      source.file ? open_trace(*source.file) : generate(source.generator);
  return source.spread_arrivals ? spread_arrivals(std::move(traffic)) : std::move(traffic);
}

std::unique_ptr<TrafficStream> open_traffic_of_one_block_size(const TrafficSource& source, bool as_told) {
  return std::make_unique<OneBlockSize>(source, as_told);
}

std::string describe(const TrafficSource& source) {
  const std::string from = source.file ? "a trace file"
                                       : fmt::format("generator {}, {} requests", source.generator_name,
                                                     source.generator.requests);
  return from + (source.spread_arrivals ? ", arrivals of one stamp spread to the next" : "");
}

}  // namespace moebius
