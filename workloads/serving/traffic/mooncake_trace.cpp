// Mooncake's JSONL and what others added to it.
#include <cmath>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "workloads/serving/traffic/row_json.h"
#include "workloads/serving/traffic/trace_readers.h"

namespace moebius {
namespace {

constexpr std::int64_t kMostHeldBlocks = std::int64_t{1} << 26;  // of all sessions that grow by deltas

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys{
      "timestamp", "input_length", "output_length", "hash_ids",   "session_id", "request_id",  "wait_for",
      "branches",  "prefix_reset", "delay",         "block_size", "text_input", "tool_wait_ms"};
  return keys;
}

Time from_ms(double ms) {
  return Time{std::llround(ms * 1e6)};
}

class MooncakeTrace : public TrafficStream {
 public:
  MooncakeTrace(LinesPtr lines, const TraceFile& file)
      : lines_(std::move(lines)), file_(file), row_(*lines_, "hash_ids") {}

  bool next(TrafficRequest& request) override {
    do {
      if (!lines_->next(line_)) return false;
    } while (line_.empty());
    row_.parse(line_);
    row_.refuse_misspelt(known_keys());
    request.images = 0;
    request.session = session();
    set_times(request);
    set_turn(request);
    request.input_tokens = required("input_length", 1);
    request.output_tokens = required("output_length", 0);
    request.block_tokens = row_.whole("block_size", 1, kMostTraceBlockTokens).value_or(file_.block_tokens);
    request.blocks = row_.ids();
    if (file_.format == TraceFormat::kMooncakeDelta)
      add_history(request);
    else if (row_.has_ids())
      check_blocks(request);
    return true;
  }

 private:
  struct History {
    std::vector<std::uint64_t> blocks;
    std::int64_t tokens = 0;
  };

  std::int64_t required(std::string_view key, double least) const {
    const auto found = row_.whole(key, least, kMostTokens);
    if (!found) lines_->fail(fmt::format("expected the key \"{}\", found none", key));
    return *found;
  }

  std::int64_t session() {
    const std::string name = row_.name("session_id");
    if (name.empty()) return -1;
    return sessions_.emplace(name, static_cast<std::int64_t>(sessions_.size())).first->second;
  }

  // Without a stamp: as soon as the row above, and so long after the session's turn before.
  void set_times(TrafficRequest& request) {
    const auto stamp = row_.number("timestamp", 0, kLastTraceMs);
    const auto delay = row_.number("delay", 0, kLastTraceMs),
               tool = row_.number("tool_wait_ms", 0, kLastTraceMs);
    if (!stamp && !delay && !tool) lines_->fail("expected the key \"timestamp\" or \"delay\", found neither");
    if (stamp && from_ms(*stamp) < last_)
      row_.fail("timestamp", fmt::format("expected at least {} as in the row above, found {}",
                                         static_cast<double>(last_.ns) * 1e-6, *stamp));
    if (stamp) last_ = from_ms(*stamp);
    if (stamp && !first_) first_ = last_;
    request.arrival = last_ - first_.value_or(Time{});
    request.pause = from_ms(delay.value_or(0) + tool.value_or(0));
  }

  // A turn without a stamp of its own, or behind a pause, goes on from the answer of its session's turn
  // before.
  void set_turn(TrafficRequest& request) {
    const std::int64_t number = rows_++;
    request.follows = -1;
    request.awaited = request.session >= 0;
    if (request.session < 0) {
      if (request.pause.ns > 0)
        lines_->fail("expected the key \"session_id\", from whose turn before the pause counts, found none");
      return;
    }
    const auto [last, is_first] = turns_.try_emplace(request.session, number);
    if (is_first) return;
    if (request.pause.ns > 0 || !row_.number("timestamp", 0, kLastTraceMs)) request.follows = last->second;
    last->second = number;
  }

  // Whole blocks, with or without the partial one at the end.
  void check_blocks(const TrafficRequest& request) const {
    const auto found = static_cast<std::int64_t>(request.blocks.size());
    const std::int64_t whole = request.input_tokens / request.block_tokens;
    const std::int64_t all = (request.input_tokens + request.block_tokens - 1) / request.block_tokens;
    if (found < whole || found > all)
      row_.fail("hash_ids", fmt::format("expected {} ids for {} tokens in blocks of {}, found {}", all,
                                        request.input_tokens, request.block_tokens, found));
  }

  // What the session said and was answered before comes before what is new.
  void add_history(TrafficRequest& request) {
    if (request.session < 0) lines_->fail("expected the key \"session_id\" in a delta, found none");
    History& history = histories_[request.session];
    if (row_.flag("prefix_reset")) {
      held_ -= static_cast<std::int64_t>(history.blocks.size());
      history = {};
    }
    held_ += static_cast<std::int64_t>(request.blocks.size());
    if (held_ > kMostHeldBlocks)
      lines_->fail(fmt::format("expected sessions of at most {} blocks together", kMostHeldBlocks));
    history.blocks.insert(history.blocks.end(), request.blocks.begin(), request.blocks.end());
    history.tokens += request.input_tokens;
    if (history.tokens > static_cast<std::int64_t>(kMostTokens))
      row_.fail("input_length",
                fmt::format("expected at most {} tokens with all that the session had before, found {}",
                            kMostTokens, history.tokens));
    request.input_tokens = history.tokens;
    history.tokens += request.output_tokens;
    request.blocks = history.blocks;
    const std::int64_t most = (request.input_tokens + request.block_tokens - 1) / request.block_tokens;
    if (static_cast<std::int64_t>(request.blocks.size()) > most)
      row_.fail("hash_ids",
                fmt::format("expected at most {} ids for the {} tokens of the session so far, found {}", most,
                            request.input_tokens, request.blocks.size()));
  }

  LinesPtr lines_;
  TraceFile file_;
  JsonRow row_;
  std::string line_;
  std::optional<Time> first_;
  Time last_;  // as the file counts
  std::unordered_map<std::string, std::int64_t> sessions_;
  std::unordered_map<std::int64_t, History> histories_;
  std::unordered_map<std::int64_t, std::int64_t> turns_;  // the last row of a session
  std::int64_t rows_ = 0;
  std::int64_t held_ = 0;
};

}  // namespace

std::unique_ptr<TrafficStream> read_mooncake(LinesPtr lines, const TraceFile& file) {
  return std::make_unique<MooncakeTrace>(std::move(lines), file);
}

}  // namespace moebius
