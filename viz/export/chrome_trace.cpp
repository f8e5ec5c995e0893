#include "viz/export/chrome_trace.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "hw/json_text.h"
#include "viz/data/op_names.h"
#include "viz/data/overlap_parts.h"
#include "viz/data/transfers.h"
#include "viz/export/output_file.h"
#include "viz/import/foreign_trace.h"
#include "workloads/progress_bar.h"

namespace moebius::viz {
namespace {

std::optional<std::size_t> row_in(std::string_view text, std::size_t rows) {
  std::size_t row = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), row);
  return error == std::errc() && end == text.data() + text.size() && row < rows ? std::optional(row)
                                                                              : std::nullopt;
}

// Of a profile of others the first row of each row's thread: a slice counts without those inside it, so that
// these go back to the same thread.
std::vector<std::size_t> first_rows(const Timeline& tables) {
  constexpr std::string_view kBelow = "below ";
  std::vector<std::size_t> rows(tables.class_ranks.size());
  std::iota(rows.begin(), rows.end(), 0);
  for (const auto& [name, value] : tables.facts) {
    if (!name.starts_with(kBelow)) continue;
    const auto row = row_in(std::string_view(name).substr(kBelow.size()), rows.size());
    const auto first = row_in(value, rows.size());
    if (row && first) rows[*row] = *first;
  }
  return rows;
}

// A name that would count as an op's and does not: a call of a host.
bool is_of_host(const OpRow& op, const std::string& name) {
  const GuessedOp guess = guess_op(name);
  return op.kind == OpKind::kAdd && guess.known && guess.kind != OpKind::kAdd;
}

class ChromeWriter {
 public:
  ChromeWriter(const SpanColumns& run, const std::string& path)
      : run_(run),
        parts_(run),
        foreign_(is_imported(run.tables()) && run.fact("timeline_detail").empty()),
        names_(class_names(run.tables())),
        file_(path) {
    if (foreign_) first_rows_ = first_rows(run.tables());
  }

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
      const std::string& name = names[texts_.size()];
      const std::string_view category = foreign_ && is_of_host(op, name) ? "cpu_op" : to_string(op.phase);
      texts_.push_back(
          fmt::format("{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"args\":{{\"fragment\":{},\"op\":{}",
                      json_string(name), category, json_string(tables.fragments[op.fragment]), op.index));
    }
  }

  void name(std::string_view what, std::int64_t pid, std::int64_t tid, const std::string& text) {
    begin_event();
    file_.add(fmt::format("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}",
                          what, pid, tid, json_string(text)));
  }

  std::int64_t process_of(std::int32_t rank_class) const {
    return run_.tables().class_ranks[foreign_ ? first_rows_[rank_class] : rank_class];
  }

  // "GPU 0, stream 7": as the profile has its process and its thread.
  void name_thread(std::size_t row) {
    const std::int64_t process = process_of(static_cast<std::int32_t>(row));
    const std::size_t comma = names_[row].find(", ");
    name("process_name", process, 0, names_[row].substr(0, comma));
    if (comma != std::string::npos) name("thread_name", process, 0, names_[row].substr(comma + 2));
  }

  void name_rows() {
    const Timeline& tables = run_.tables();
    const std::size_t rows = static_cast<std::size_t>(parts_.most()) * kNumLanes;
    std::vector<bool> seen(tables.class_ranks.size() * rows);
    for (std::size_t i = 0; i < run_.size(); ++i) {
      static_cast<void>(run_.checked_row(i));
      seen[static_cast<std::size_t>(run_.rank_class(i)) * rows + static_cast<std::size_t>(thread_of(i))] =
          true;
    }
    for (std::size_t c = 0; c < tables.class_ranks.size(); ++c) {
      if (foreign_) {
        if (first_rows_[c] == c) name_thread(c);
        continue;
      }
      name("process_name", tables.class_ranks[c], 0, names_[c]);
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
    file_.add(process_of(run_.rank_class(i)));
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
        process_of(sample.rank_class)));
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
  const bool foreign_;                    // a profile of others, as it was imported
  const std::vector<std::string> names_;  // of classes
  std::vector<std::size_t> first_rows_;   // of a profile of others: first_rows()
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
