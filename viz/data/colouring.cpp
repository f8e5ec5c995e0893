#include "viz/data/colouring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <sstream>

#include "hw/error.h"
#include "workloads/schedule/critical_path.h"

namespace moebius::viz {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// What a search asks of ops, of submissions and of ranks, answered once for each.
class Filter {
 public:
  Filter(const RunData& run, const std::string& text)
      : ops_(run.tables().ops.size(), true),
        submissions_(run.tables().submissions.size(), true),
        classes_(run.tables().class_ranks.size(), true) {
    std::istringstream words(lower(text));
    for (std::string word; words >> word;) apply(run, word);
  }

  bool passes(std::uint32_t op, std::int32_t submission, std::int32_t rank_class) const {
    return ops_[op] && submissions_[submission] && classes_[rank_class];
  }

 private:
  void apply(const RunData& run, const std::string& word) {
    const std::size_t colon = word.find(':');
    const std::string key = word.substr(0, colon == std::string::npos ? 0 : colon);
    const std::string value = colon == std::string::npos ? word : word.substr(colon + 1);
    std::int32_t number = -2;  // no number: no layer, microbatch, step or rank
    std::from_chars(value.data(), value.data() + value.size(), number);
    const Timeline& tables = run.tables();
    if (key == "layer") {
      for (std::size_t i = 0; i < ops_.size(); ++i) ops_[i] = ops_[i] && tables.ops[i].layer == number;
    } else if (key == "microbatch" || key == "mb" || key == "step") {
      for (std::size_t i = 0; i < submissions_.size(); ++i) {
        const SubmissionRow& s = tables.submissions[i];
        submissions_[i] = submissions_[i] && (key == "step" ? s.step : s.microbatch) == number;
      }
    } else if (key == "rank") {
      for (std::size_t i = 0; i < classes_.size(); ++i)
        classes_[i] = classes_[i] && tables.class_ranks[i] == number;
    } else {
      keep_named(run, key == "op" ? value : word);
    }
  }

  void keep_named(const RunData& run, const std::string& word) {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (!ops_[i]) continue;
      const std::string& fragment = run.tables().fragments[run.tables().ops[i].fragment];
      ops_[i] = lower(run.name_of_op(static_cast<std::uint32_t>(i))).find(word) != std::string::npos ||
                lower(fragment).find(word) != std::string::npos;
    }
  }

  std::vector<bool> ops_, submissions_, classes_;
};

// Communication of which compute of the same class covers at least half is hidden.
void mark_exposure(const LaneSpans& lanes, const std::vector<OpRow>& ops, Categories& categories) {
  std::map<std::int32_t, const LaneRow*> compute;  // by class
  for (const LaneRow& row : lanes.rows())
    if (row.lane == Lane::kCompute && row.part == 0) compute[row.rank_class] = &row;
  for (const LaneRow& row : lanes.rows()) {
    const auto beside = compute.find(row.rank_class);
    if (row.lane == Lane::kCompute || beside == compute.end()) continue;
    std::size_t cover = beside->second->first;
    for (std::size_t slot = row.first; slot < row.last(); ++slot) {
      if (!is_communication(ops[lanes.op_row(slot)].kind)) continue;
      while (cover < beside->second->last() && lanes.end(cover) <= lanes.start(slot)) ++cover;
      std::int64_t covered = 0;
      for (std::size_t c = cover; c < beside->second->last() && lanes.start(c) < lanes.end(slot); ++c)
        covered += std::min(lanes.end(c), lanes.end(slot)) - std::max(lanes.start(c), lanes.start(slot));
      const bool hidden = 2 * covered >= lanes.length(slot);
      categories[slot] = static_cast<std::uint8_t>(hidden ? Shown::kHidden : Shown::kExposed);
    }
  }
}

std::uint8_t wrapped(std::int64_t number) {
  return static_cast<std::uint8_t>(number < 0 ? kMaxCategories - 1 : number % (kMaxCategories - 1));
}

}  // namespace

const char* to_string(ColourBy colouring) {
  switch (colouring) {
    case ColourBy::kKind:
      return "kind of op";
    case ColourBy::kPhase:
      return "phase";
    case ColourBy::kLayer:
      return "layer";
    case ColourBy::kMicrobatch:
      return "microbatch";
    case ColourBy::kExposure:
      return "exposed or hidden";
    case ColourBy::kOrigin:
      return "where its time comes from";
    case ColourBy::kFragment:
      return "part of the schedule";
  }
  return "";
}

std::string category_name(const RunData& run, ColourBy colouring, std::uint8_t category) {
  const bool none = category == kMaxCategories - 1;
  switch (colouring) {
    case ColourBy::kKind:
      return std::string(moebius::to_string(static_cast<OpKind>(category)));
    case ColourBy::kPhase:
      return std::string(moebius::to_string(static_cast<Phase>(category)));
    case ColourBy::kLayer:
      return none ? "no layer" : fmt::format("layer {}", category);
    case ColourBy::kMicrobatch:
      return none ? "no microbatch" : fmt::format("microbatch {}", category);
    case ColourBy::kExposure:
      return category == 0 ? "compute" : category == 1 ? "exposed communication" : "hidden communication";
    case ColourBy::kOrigin:
      return std::string(moebius::to_string(static_cast<Origin>(category)));
    case ColourBy::kFragment:
      return run.tables().fragments.size() < kMaxCategories ? run.tables().fragments[category]
                                                            : fmt::format("fragment {}", category);
  }
  return "";
}

static_assert(kNumOpKinds <= kMaxCategories && kNumPhases <= kMaxCategories && kNumOrigins <= kMaxCategories);

Categories categories_of(const RunData& run, ColourBy colouring, const Search& search,
                         const std::vector<bool>& critical, std::size_t& found) {
  const LaneSpans& lanes = run.lanes;
  const std::vector<OpRow>& ops = run.tables().ops;
  Categories categories(lanes.size(), 0);
  if (colouring == ColourBy::kExposure) mark_exposure(lanes, ops, categories);
  const auto category_of = [&](std::size_t slot) -> std::uint8_t {
    const OpRow& op = ops[lanes.op_row(slot)];
    switch (colouring) {
      case ColourBy::kKind:
        return static_cast<std::uint8_t>(op.kind);
      case ColourBy::kPhase:
        return static_cast<std::uint8_t>(op.phase);
      case ColourBy::kLayer:
        return wrapped(op.layer);
      case ColourBy::kMicrobatch:
        return wrapped(run.tables().submissions[run.columns.sequence(lanes.span(slot))].microbatch);
      case ColourBy::kExposure:
        return categories[slot];
      case ColourBy::kOrigin:
        return static_cast<std::uint8_t>(run.columns.span(lanes.span(slot)).origin);
      case ColourBy::kFragment:
        return wrapped(op.fragment);
    }
    return 0;
  };
  for (std::size_t slot = 0; slot < lanes.size(); ++slot) categories[slot] = category_of(slot);
  found = lanes.size();
  if (search.text.empty() && !search.critical_only) return categories;
  const Filter filter(run, search.text);
  found = 0;
  for (const LaneRow& row : lanes.rows()) {
    for (std::size_t slot = row.first; slot < row.last(); ++slot) {
      const std::uint32_t span = lanes.span(slot);
      const bool on_path = !search.critical_only || critical[span];
      if (on_path && filter.passes(lanes.op_row(slot), run.columns.sequence(span), row.rank_class))
        ++found;
      else
        categories[slot] |= kFilteredOut;
    }
  }
  return categories;
}

std::vector<bool> spans_on_critical_path(const RunData& run) {
  if (run.lanes.size() > kMostForCriticalPath)
    throw run_error(fmt::format("the critical path of {} spans is not sought: at most {}", run.lanes.size(),
                                kMostForCriticalPath));
  std::vector<bool> on_path(run.lanes.size());
  const MappedTimeline mapped(run.columns.name());
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, int> pieces;
  for (const PathPiece& piece : critical_path(mapped).pieces)
    pieces[{piece.span.sequence, piece.span.op, piece.span.rank_class}] = 1;
  for (std::size_t i = 0; i < on_path.size(); ++i) {
    const Span span = mapped.span(i);
    on_path[i] = pieces.count({span.sequence, span.op, span.rank_class}) > 0;
  }
  return on_path;
}

}  // namespace moebius::viz
