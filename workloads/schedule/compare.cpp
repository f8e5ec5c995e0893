#include "workloads/schedule/compare.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

namespace {

constexpr std::size_t kSentences = 10;

using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // sequence, op, rank

Key key_of(const MappedTimeline& run, const Span& span) {
  return {span.sequence, span.op, run.tables().class_ranks[span.rank_class]};
}

std::string work_text(const OpRow& op) {
  const Shape& s = op.shape;
  std::string text = fmt::format("{} {} {} m={} n={} k={}", to_string(op.kind), to_string(op.role),
                                 to_string(op.dtype), s.m, s.n, s.k);
  if (is_communication(op.kind)) text += fmt::format(" payload={} on {}", op.payload, to_string(op.group));
  return text;
}

double seconds_of(const OpRow& op, const Span& span) {
  return (span.end - (is_communication(op.kind) ? span.transfer_start() : span.start)).seconds();
}

class Joiner {
 public:
  Joiner(const MappedTimeline& a, const MappedTimeline& b, ErrorBase base) : a_(a), b_(b) {
    result_.base = base;
  }

  Comparison run() {
    compare_facts();
    compare_classes();
    compare_submissions();
    join();
    check_orders();
    sum_up();
    return std::move(result_);
  }

 private:
  // Where the spans of one lane of one rank began in both runs.
  struct Starts {
    Time a, b;
    Key key;
  };

  void note(std::string sentence) {
    if (result_.first_differences.size() < kSentences)
      result_.first_differences.push_back(std::move(sentence));
  }

  void require_ops(const MappedTimeline& run, std::string_view name) const {
    const std::string detail = run.fact("timeline_detail");
    if (!detail.empty() && detail != "ops") {
      throw input_error(fmt::format("run {} kept {} in its timeline, expected ops", name, detail));
    }
  }

  void compare_facts() {
    require_ops(a_, "a");
    require_ops(b_, "b");
    const std::string hash_a = a_.fact("schedule_hash"), hash_b = b_.fact("schedule_hash");
    result_.same_schedule = hash_a == hash_b;
    result_.steps_a = whole_steps(a_.tables());
    result_.steps_b = whole_steps(b_.tables());
    const auto shown = [](const std::string& hash) { return hash.empty() ? "none" : hash; };
    if (!result_.same_schedule)
      note(fmt::format("schedules differ: {} against {}", shown(hash_a), shown(hash_b)));
    for (const auto* run : {&a_, &b_}) {
      const std::string dropped = run->fact("dropped_spans");
      if (!dropped.empty()) note(fmt::format("run {} dropped {} spans", run == &a_ ? "a" : "b", dropped));
    }
  }

  void compare_classes() {
    const auto &a = a_.tables(), &b = b_.tables();
    if (a.class_ranks.size() != b.class_ranks.size()) {
      note(fmt::format("{} rank classes against {}", a.class_ranks.size(), b.class_ranks.size()));
    } else if (a.class_ranks != b.class_ranks || a.class_sizes != b.class_sizes) {
      note("the rank classes have other members");
    }
  }

  void compare_submissions() {
    const auto &a = a_.tables(), &b = b_.tables();
    if (a.submissions.size() != b.submissions.size()) {
      note(fmt::format("{} submissions against {}", a.submissions.size(), b.submissions.size()));
    }
    const std::size_t both = std::min(a.submissions.size(), b.submissions.size());
    for (std::size_t i = 0; i < both; ++i) {
      const SubmissionRow &x = a.submissions[i], &y = b.submissions[i];
      const std::string name_x = describe(a, x), name_y = describe(b, y);
      if (name_x == name_y) continue;
      note(fmt::format("submission {}: {} against {}", i, name_x, name_y));
      return;
    }
  }

  static std::string describe(const Timeline& tables, const SubmissionRow& s) {
    return fmt::format("{} on rank {}, step {}, microbatch {}", tables.fragments[s.fragment],
                       tables.class_ranks[s.rank_class], s.step, s.microbatch);
  }

  std::string place(const MappedTimeline& run, const Span& span) const {
    const SubmissionRow& s = run.submission_of(span);
    return fmt::format("submission {} ({}), op {}", s.sequence, describe(run.tables(), s), span.op);
  }

  // Both columns ascend by (sequence, op), and a submission has one class: one pass.
  void join() {
    std::size_t i = 0, j = 0;
    while (i < a_.num_spans() || j < b_.num_spans()) {
      const bool has_a = i < a_.num_spans(), has_b = j < b_.num_spans();
      const Span x = has_a ? a_.span(i) : Span{}, y = has_b ? b_.span(j) : Span{};
      result_.makespan_a = std::max(result_.makespan_a, x.end);
      result_.makespan_b = std::max(result_.makespan_b, y.end);
      if (has_a && has_b && key_of(a_, x) == key_of(b_, y)) {
        joined(x, y);
        ++i, ++j;
      } else if (!has_b || (has_a && key_of(a_, x) < key_of(b_, y))) {
        if (result_.only_a++ == 0)
          note(fmt::format("only in a: {} {}", place(a_, x), work_text(a_.op_of(x))));
        ++i;
      } else {
        if (result_.only_b++ == 0)
          note(fmt::format("only in b: {} {}", place(b_, y), work_text(b_.op_of(y))));
        ++j;
      }
    }
  }

  void joined(const Span& x, const Span& y) {
    const OpRow &op_x = a_.op_of(x), &op_y = b_.op_of(y);
    if (!same_work(op_x, op_y)) {
      if (result_.different_ops++ == 0) {
        note(fmt::format("{}: {} against {}", place(a_, x), work_text(op_x), work_text(op_y)));
      }
      return;
    }
    ++result_.joined;
    const double a = seconds_of(op_x, x), b = seconds_of(op_y, y);
    const auto kind = static_cast<std::size_t>(op_x.kind);
    seconds_a_[kind] += a;
    seconds_b_[kind] += b;
    errors_of_a_.push_back(static_cast<float>(std::abs(a - b) / std::max(b, 1e-9)));
    errors_[kind].push_back(static_cast<float>(std::abs(b - a) / std::max(of_base(a, b), 1e-9)));
    lanes_[{a_.tables().class_ranks[x.rank_class], x.lane}].push_back({x.start, y.start, key_of(a_, x)});
  }

  double of_base(double a, double b) const { return result_.base == ErrorBase::kA ? a : b; }

  void check_orders() {
    for (auto& [lane, starts] : lanes_) {
      std::sort(starts.begin(), starts.end(),
                [](const Starts& x, const Starts& y) { return std::tie(x.a, x.key) < std::tie(y.a, y.key); });
      for (std::size_t i = 1; i < starts.size(); ++i) {
        if (starts[i].b >= starts[i - 1].b) continue;
        if (result_.order_violations++ > 0) continue;
        note(fmt::format(
            "rank {}, lane {}: a starts submission {} op {} before submission {} op {}, b after it",
            lane.first, to_string(lane.second), std::get<0>(starts[i - 1].key),
            std::get<1>(starts[i - 1].key), std::get<0>(starts[i].key), std::get<1>(starts[i].key)));
      }
    }
  }

  void sum_up() {
    if (!errors_of_a_.empty()) {
      const auto middle = errors_of_a_.begin() + static_cast<std::ptrdiff_t>((errors_of_a_.size() - 1) / 2);
      std::nth_element(errors_of_a_.begin(), middle, errors_of_a_.end());
      result_.median_error = *middle;
    }
    for (std::size_t kind = 0; kind < errors_.size(); ++kind) {
      std::vector<float>& errors = errors_[kind];
      if (errors.empty()) continue;
      std::sort(errors.begin(), errors.end());
      // The smallest error that so large a share of the ops does not exceed.
      const auto quantile = [&](double share) {
        const double position = std::ceil(share * static_cast<double>(errors.size()));
        return static_cast<double>(errors[static_cast<std::size_t>(position) - 1]);
      };
      const double a = seconds_a_[kind], b = seconds_b_[kind], base = of_base(a, b);
      result_.kinds.push_back({.kind = static_cast<OpKind>(kind),
                               .count = static_cast<std::int64_t>(errors.size()),
                               .median = quantile(0.5),
                               .p90 = quantile(0.9),
                               .worst = static_cast<double>(errors.back()),
                               .bias = base > 0 ? (a + b - base) / base - 1 : 0,
                               .seconds_a = a,
                               .seconds_b = b});
    }
    std::stable_sort(result_.kinds.begin(), result_.kinds.end(),
                     [](const KindError& x, const KindError& y) { return x.seconds_a > y.seconds_a; });
  }

  const MappedTimeline &a_, &b_;
  Comparison result_;
  std::array<double, kNumOpKinds> seconds_a_{}, seconds_b_{};
  std::array<std::vector<float>, kNumOpKinds> errors_;
  std::vector<float> errors_of_a_;
  std::map<std::pair<std::int32_t, Lane>, std::vector<Starts>> lanes_;
};

}  // namespace

bool same_work(const OpRow& a, const OpRow& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.lane == b.lane && a.group == b.group &&
         a.shape == b.shape && a.payload == b.payload;
}

int whole_steps(const Timeline& tables) {
  int steps = 0;
  for (const auto& [name, value] : tables.facts) {
    if (name == "timeline_window_s" || name == "dropped_spans") return 0;
    if (name == "training_steps") std::from_chars(value.data(), value.data() + value.size(), steps);
  }
  return std::max(steps, 0);
}

Comparison compare(const MappedTimeline& a, const MappedTimeline& b, ErrorBase base) {
  return Joiner(a, b, base).run();
}

}  // namespace moebius
