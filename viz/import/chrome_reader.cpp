#include "viz/import/chrome_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hw/error.h"
#include "hw/json_text.h"
#include "viz/import/characters.h"

namespace moebius::viz {

namespace {

constexpr std::int64_t kMostEvents = 100'000'000;
constexpr std::size_t kMostNames = 4'000'000, kMostTracks = 100'000, kLongestName = 4096;
constexpr int kDeepest = 64;
// Moments and durations: 63 years, so that sums of them in nanoseconds fit.
constexpr double kLongest = 2e15;  // microseconds

// As an iterator, which is how the parser takes them; both ends point to the same characters.
class CharacterIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit CharacterIterator(Characters* of = nullptr) : of_(of) {}
  char operator*() const { return of_->now(); }
  CharacterIterator& operator++() {
    of_->next();
    return *this;
  }
  void operator++(int) { of_->next(); }
  bool operator==(const CharacterIterator& other) const { return ended() == other.ended(); }
  bool operator!=(const CharacterIterator& other) const { return !(*this == other); }

 private:
  bool ended() const { return of_ == nullptr || of_->at_end(); }
  Characters* of_;
};

// Categories of PyTorch's profiler for what a host does or says: the work is the kernels'.
constexpr std::array<std::string_view, 8> kOfHost{"cpu_op",
                                                  "user_annotation",
                                                  "gpu_user_annotation",
                                                  "cuda_runtime",
                                                  "cuda_driver",
                                                  "python_function",
                                                  "overhead",
                                                  "Trace"};

struct Event {
  std::string name, category, process, thread, told;  // told: args.name of metadata
  char kind = 0;
  std::optional<double> start, duration;
  std::vector<std::pair<std::string, double>> values;  // numbers in args
};

// Puts events where they belong.
class Collector {
 public:
  explicit Collector(std::string path) : path_(std::move(path)) {}

  void take(const Event& event) {
    if (++events_ > kMostEvents) fail(fmt::format("expected at most {} events, found more", kMostEvents));
    if (event.kind == 'X')
      complete(event);
    else if (event.kind == 'B')
      begin(event);
    else if (event.kind == 'E')
      end(event);
    else if (event.kind == 'C')
      count(event);
    else if (event.kind == 'M')
      name(event);
    else
      ++trace_.left_out;
  }

  // What the file says of itself: exports of ours name what the timeline kept.
  void fact(const std::string& name, const std::string& value) {
    if (name == "timeline_detail") trace_.detail = value.substr(0, kLongestName);
  }

  ForeignTrace finish() {
    for (const auto& [track, open] : open_) trace_.left_out += static_cast<std::int64_t>(open.size());
    for (std::string& process : trace_.processes) {
      const auto name = process_names_.find(process);
      process = name == process_names_.end() ? "process " + process : name->second;
    }
    for (const Key& key : keys_) {
      const auto thread_name = thread_names_.find(key);
      trace_.tracks.push_back({processes_.at(key.first), thread_name == thread_names_.end()
                                                             ? fmt::format("thread {}", key.second)
                                                             : thread_name->second});
    }
    return std::move(trace_);
  }

 private:
  using Key = std::pair<std::string, std::string>;  // pid, tid: numbers or words

  [[noreturn]] void fail(const std::string& sentence) const {
    throw input_error(fmt::format("{}: event {}: {}", path_, events_, sentence));
  }
  double time_of(const std::optional<double>& given, const char* key) const {
    if (!given || !std::isfinite(*given) || std::abs(*given) > kLongest)
      fail(
          fmt::format("expected microseconds in \"{}\", found {}", key, given ? "none that can be" : "none"));
    return *given;
  }
  std::int32_t id_of(std::unordered_map<std::string, std::int32_t>& ids, std::vector<std::string>& all,
                     const std::string& text, const char* what) {
    const auto [at, added] = ids.emplace(text.substr(0, kLongestName), static_cast<std::int32_t>(all.size()));
    if (added) all.push_back(at->first);
    if (all.size() > kMostNames)
      fail(fmt::format("expected at most {} different {}, found more", kMostNames, what));
    return at->second;
  }
  std::int32_t track_of(const Event& event) {
    const auto [at, added] =
        tracks_.emplace(Key(event.process, event.thread), static_cast<std::int32_t>(keys_.size()));
    if (added) keys_.push_back(at->first), process_of(event);
    if (keys_.size() > kMostTracks) fail(fmt::format("expected at most {} threads, found more", kMostTracks));
    return at->second;
  }
  std::int32_t process_of(const Event& event) {
    const auto [at, added] =
        processes_.emplace(event.process, static_cast<std::int32_t>(trace_.processes.size()));
    if (added) trace_.processes.push_back(event.process);
    if (trace_.processes.size() > kMostTracks)
      fail(fmt::format("expected at most {} processes, found more", kMostTracks));
    return at->second;
  }
  // One name of a host's call and of a kernel are two.
  std::int32_t name_of(const Event& event) {
    const bool host = std::find(kOfHost.begin(), kOfHost.end(), event.category) != kOfHost.end();
    auto& ids = host ? host_names_ : names_;
    const std::int32_t id = id_of(ids, trace_.names, event.name, "names");
    trace_.on_host.resize(trace_.names.size(), host);
    return id;
  }

  void complete(const Event& event) {
    const double duration = event.duration ? time_of(event.duration, "dur") : 0;
    if (duration < 0) fail("expected a duration of at least 0, found less");
    double waiting = 0;
    for (const auto& [key, value] : event.values)
      if (key == "waiting_us" && value > 0) waiting = std::min(value, duration);
    trace_.slices.push_back({time_of(event.start, "ts"), duration, waiting, name_of(event), track_of(event)});
  }
  void begin(const Event& event) {
    const std::int32_t track = track_of(event);
    open_[track].push_back({time_of(event.start, "ts"), 0, 0, name_of(event), track});
  }
  void end(const Event& event) {
    std::vector<ForeignSlice>& open = open_[track_of(event)];
    if (open.empty()) {
      ++trace_.left_out;  // it began before the recording did
      return;
    }
    ForeignSlice slice = open.back();
    open.pop_back();
    slice.duration = time_of(event.start, "ts") - slice.start;
    if (slice.duration < 0) fail("expected an end after its begin, found one before");
    trace_.slices.push_back(slice);
  }
  void count(const Event& event) {
    for (const auto& [key, value] : event.values) {
      const std::string name = event.values.size() == 1 ? event.name : event.name + " " + key;
      trace_.samples.push_back({time_of(event.start, "ts"), value,
                                id_of(counters_, trace_.counters, name, "counters"), process_of(event)});
    }
  }
  void name(const Event& event) {
    if (event.told.empty()) return;
    if (event.name == "process_name") {
      process_of(event);  // in the order in which the file names them
      process_names_[event.process] = event.told.substr(0, kLongestName);
    }
    if (event.name == "thread_name")
      thread_names_[{event.process, event.thread}] = event.told.substr(0, kLongestName);
  }

  std::string path_;
  std::int64_t events_ = 0;
  ForeignTrace trace_;
  std::unordered_map<std::string, std::int32_t> names_, host_names_, counters_, processes_;
  std::map<Key, std::int32_t> tracks_;
  std::vector<Key> keys_;
  std::map<std::string, std::string> process_names_;
  std::map<Key, std::string> thread_names_;
  std::map<std::int32_t, std::vector<ForeignSlice>> open_;
};

// What the parser tells, as events. Depths: 1 the file's object (or none: a bare array), then the array of
// events, then an event, then its args.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Taken = std::function<std::size_t()>;  // bytes that the parser was given

  Handler(Collector& collector, const std::string& path, Taken taken)
      : collector_(collector), path_(path), taken_(std::move(taken)) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value), static_cast<long double>(value), value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value), static_cast<long double>(value), value);
  }
  bool number_float(number_float_t value, const string_t& text) override {
    return number(value, key_ == "ts" ? std::strtold(text.c_str(), nullptr) : 0, text);
  }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& text) override {
    if (depth_ == event_depth_ && event_depth_ > 0) {
      if (key_ == "name") event_.name = text;
      if (key_ == "cat") event_.category = text;
      if (key_ == "ph") event_.kind = text.size() == 1 ? text[0] : '?';
      if (key_ == "pid") event_.process = text;
      if (key_ == "tid") event_.thread = text;
    } else if (in_args() && key_ == "name") {
      event_.told = text;
    } else if (depth_ == 2 && in_facts_) {
      collector_.fact(key_, text);
    }
    return true;
  }
  bool key(string_t& text) override {
    if (depth_ == event_depth_) in_args_ = text == "args";
    if (depth_ == 1 && event_depth_ == 0) in_events_ = text == "traceEvents", in_facts_ = text == "otherData";
    key_.swap(text);
    return true;
  }
  bool start_object(std::size_t) override {
    deeper();
    if (event_depth_ == 0 && events_depth_ > 0 && depth_ == events_depth_ + 1) {
      event_depth_ = depth_;
      event_ = {};
      moment_.reset();
    }
    return true;
  }
  bool end_object() override {
    if (depth_ == event_depth_) {
      if (moment_ && event_.kind != 'M') event_.start = since_first(*moment_);  // names stand at no time
      collector_.take(event_);
      event_depth_ = 0;
      in_args_ = false;
    }
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    deeper();
    const bool bare = depth_ == 1, named = depth_ == 2 && in_events_;
    if (events_depth_ == 0 && (bare || named)) events_depth_ = depth_, seen_ = true;
    return true;
  }
  bool end_array() override {
    if (depth_ == events_depth_) events_depth_ = 0, in_events_ = false;
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    const bool ended = position > taken_();
    throw input_error(
        ended ? fmt::format("{}: byte {}: expected more JSON, found the end of the file", path_, taken_())
              : fmt::format("{}: byte {}: expected JSON, found {}", path_, position, json_excerpt(token)));
  }
  bool seen() const { return seen_; }

 private:
  bool in_args() const { return in_args_ && event_depth_ > 0 && depth_ == event_depth_ + 1; }
  void deeper() {
    if (++depth_ > kDeepest)
      throw input_error(fmt::format("{}: expected at most {} levels, found more", path_, kDeepest));
  }
  // Since the first event: of microseconds since 1970 a double has quarters.
  double since_first(long double exact) {
    if (!std::isfinite(exact) || std::abs(exact) > kLongest)  // told with the event
      return static_cast<double>(exact);
    if (!first_) first_ = std::floor(exact);
    return static_cast<double>(exact - *first_);
  }
  template <class Text>
  bool number(double value, long double exact, const Text& text) {
    if (depth_ == event_depth_ && event_depth_ > 0) {
      if (key_ == "ts") moment_ = exact;
      if (key_ == "dur") event_.duration = value;
      if (key_ == "pid") event_.process = fmt::format("{}", text);
      if (key_ == "tid") event_.thread = fmt::format("{}", text);
    } else if (in_args() && event_.values.size() < 64) {
      event_.values.emplace_back(key_, value);
    }
    return true;
  }

  Collector& collector_;
  const std::string& path_;
  Taken taken_;
  Event event_;
  std::string key_;
  std::optional<long double> first_;   // time of the first event, microseconds
  std::optional<long double> moment_;  // of this event, as it stands in the file
  int depth_ = 0, events_depth_ = 0, event_depth_ = 0;
  bool in_events_ = false, in_facts_ = false, in_args_ = false, seen_ = false;
};

template <class Iterator>
ForeignTrace parsed(Iterator first, Iterator last, const std::string& path, Handler::Taken taken) {
  Collector collector(path);
  Handler handler(collector, path, std::move(taken));
  nlohmann::json::sax_parse(first, last, &handler);
  if (!handler.seen())
    throw input_error(fmt::format("{}: expected \"traceEvents\" or an array of events, found neither", path));
  ForeignTrace trace = collector.finish();
  if (trace.slices.empty()) throw input_error(fmt::format("{}: expected slices, found none", path));
  return trace;
}

}  // namespace

ForeignTrace read_chrome_trace(const std::string& path) {
  Characters characters(path);
  try {
    return parsed(CharacterIterator(&characters), CharacterIterator(), path,
                  [&] { return static_cast<std::size_t>(characters.taken()); });
  } catch (const Error&) {
    if (!characters.damaged()) throw;
    throw input_error(fmt::format(
        "{}: byte {}: expected {}", path, characters.taken(),
        characters.cut() ? "more packed data, found the end of the file" : "packed data, found damage"));
  }
}

ForeignTrace parse_chrome_trace(std::string_view json, const std::string& name) {
  return parsed(json.begin(), json.end(), name, [&] { return json.size(); });
}

}  // namespace moebius::viz
