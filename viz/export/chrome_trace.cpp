#include "viz/export/chrome_trace.h"

#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "hw/json_text.h"
#include "viz/data/op_names.h"
#include "viz/data/overlap_parts.h"
#include "viz/data/transfers.h"
#include "viz/export/output_file.h"
#include "workloads/progress_bar.h"

namespace moebius::viz {
namespace {

class ChromeWriter {
 public:
  ChromeWriter(const SpanColumns& run, const std::string& path) : run_(run), parts_(run), file_(path) {}

  void write() {
    file_.add("{\"displayTimeUnit\":\"ns\",\"otherData\":{");
    facts();
    file_.add("},\"traceEvents\":[");
    describe_ops();
    name_rows();
    for (std::size_t i = 0; i < run_.size(); ++i) {
      span(i);
      if (i % kShowEvery == 0) bar_.show(static_cast<double>(i) / static_cast<double>(run_.size()));
      if (i % kForgetEvery == 0 && i > 0) run_.forget(i - kForgetEvery, kForgetEvery);
    }
    for (const CounterSample& sample : run_.tables().samples) counter(sample);
    std::int64_t id = 0;
    for (const Transfer& transfer : transfers_of(run_)) flow(transfer, id++);
    file_.add("\n]}\n");
    file_.finish();
  }

 private:
  void facts() {
    const char* between = "";
    std::set<std::string> told;  // a fact may stand several times; a key of an object must not
    for (const auto& [name, value] : run_.tables().facts) {
      if (!told.insert(name).second) continue;
      file_.add(fmt::format("{}{}:{}", between, json_string(name), json_string(value)));
      between = ",";
    }
  }

  void begin_event() {
    file_.add(first_ ? "\n" : ",\n");
    first_ = false;
  }

  void time(std::int64_t ns) {
    char digits[4] = {'.', static_cast<char>('0' + ns / 100 % 10), static_cast<char>('0' + ns / 10 % 10),
                      static_cast<char>('0' + ns % 10)};
    file_.add(ns / 1000);
    file_.add(std::string_view(digits, 4));
  }

  // What all spans of an op share, written once.
  void describe_ops() {
    const Timeline& tables = run_.tables();
    const std::vector<std::string> names = span_names(tables);
    for (const OpRow& op : tables.ops) {
      texts_.push_back(
          fmt::format("{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"args\":{{\"fragment\":{},\"op\":{}",
                      json_string(names[texts_.size()]), to_string(op.phase),
                      json_string(tables.fragments[op.fragment]), op.index));
    }
  }

  void name(std::string_view what, std::int64_t pid, std::int64_t tid, const std::string& text) {
    begin_event();
    file_.add(fmt::format("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}",
                          what, pid, tid, json_string(text)));
  }

  void name_rows() {
    const Timeline& tables = run_.tables();
    const std::vector<std::string> names = class_names(tables);
    const std::size_t rows = static_cast<std::size_t>(parts_.most()) * kNumLanes;
    std::vector<bool> seen(tables.class_ranks.size() * rows);
    for (std::size_t i = 0; i < run_.size(); ++i) {
      static_cast<void>(run_.checked_row(i));
      seen[static_cast<std::size_t>(run_.rank_class(i)) * rows + static_cast<std::size_t>(thread_of(i))] =
          true;
    }
    for (std::size_t c = 0; c < tables.class_ranks.size(); ++c) {
      name("process_name", tables.class_ranks[c], 0, names[c]);
      for (std::size_t row = 0; row < rows; ++row)
        if (seen[c * rows + row])
          name("thread_name", tables.class_ranks[c], static_cast<std::int64_t>(row),
               lane_name(static_cast<Lane>(row % kNumLanes), static_cast<std::int32_t>(row / kNumLanes)));
    }
  }

  // Spans of a lane that overlap have threads of their own.
  std::int64_t thread_of(std::size_t i) const {
    return std::int64_t{parts_.of(i)} * kNumLanes + static_cast<std::int64_t>(run_.lane(i));
  }

  void place(std::size_t i) {
    file_.add(",\"pid\":");
    file_.add(std::int64_t{run_.tables().class_ranks[run_.rank_class(i)]});
    file_.add(",\"tid\":");
    file_.add(thread_of(i));
    file_.add(",\"ts\":");
  }

  void span(std::size_t i) {
    const SubmissionRow& s = run_.tables().submissions[run_.sequence(i)];
    begin_event();
    file_.add(texts_[run_.checked_row(i)]);
    file_.add(",\"submission\":");
    file_.add(std::int64_t{s.sequence});
    file_.add(",\"step\":");
    file_.add(std::int64_t{s.step});
    file_.add(",\"microbatch\":");
    file_.add(std::int64_t{microbatch_of(s, run_.tables().ops[run_.checked_row(i)])});
    if (const std::int64_t waiting = waiting_of(run_, i); waiting > 0) {
      file_.add(",\"waiting_us\":");
      time(waiting);
    }
    file_.add("}");
    place(i);
    time(run_.start(i));
    file_.add(",\"dur\":");
    time(run_.end(i) - run_.start(i));
    file_.add("}");
  }

  void counter(const CounterSample& sample) {
    begin_event();
    const Timeline& tables = run_.tables();
    file_.add(fmt::format(
        "{{\"ph\":\"C\",\"name\":{},\"pid\":{},\"ts\":", json_string(tables.counters[sample.counter]),
        tables.class_ranks[sample.rank_class]));
    time(sample.time.ns);
    file_.add(fmt::format(",\"args\":{{\"value\":{}}}}}", sample.value));
  }

  void flow_end(const char* phase, std::size_t span, std::int64_t id, std::int64_t at) {
    begin_event();
    file_.add(phase);
    file_.add(",\"name\":\"transfer\",\"cat\":\"flow\",\"id\":");
    file_.add(id);
    place(span);
    time(at);
    file_.add("}");
  }

  void flow(const Transfer& transfer, std::int64_t id) {
    flow_end("{\"ph\":\"s\"", transfer.send, id, run_.start(transfer.send));
    flow_end("{\"ph\":\"f\",\"bp\":\"e\"", transfer.recv, id, run_.end(transfer.recv));
  }

  const SpanColumns& run_;
  const OverlapParts parts_;
  OutputFile file_;
  ProgressBar bar_;
  std::vector<std::string> texts_;  // by row of ops
  bool first_ = true;
};

}  // namespace

void export_chrome(const SpanColumns& run, const std::string& path) {
  ChromeWriter(run, path).write();
}

}  // namespace moebius::viz
