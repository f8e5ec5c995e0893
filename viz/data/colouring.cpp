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

  bool passes(const Timeline& tables, std::uint32_t op, std::int32_t submission,
              std::int32_t rank_class) const {
    const auto is_of = [&](std::int32_t microbatch) {
      return microbatch_of(tables.submissions[submission], tables.ops[op]) == microbatch;
    };
    return ops_[op] && submissions_[submission] && classes_[rank_class] &&
           std::all_of(microbatches_.begin(), microbatches_.end(), is_of);
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
    } else if (key == "microbatch" || key == "mb") {
      microbatches_.push_back(number);
    } else if (key == "step") {
      for (std::size_t i = 0; i < submissions_.size(); ++i)
        submissions_[i] = submissions_[i] && tables.submissions[i].step == number;
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
  std::vector<std::int32_t> microbatches_;  // of submissions of two their ops decide
};

struct Stretch {
  std::int64_t begin = 0, end = 0;
};

// When any op computes, one stretch after the other.
std::vector<Stretch> merged(std::vector<Stretch> stretches) {
  const auto earlier = [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; };
  if (!std::is_sorted(stretches.begin(), stretches.end(), earlier))
    std::sort(stretches.begin(), stretches.end(), earlier);
  std::vector<Stretch> apart;
  for (const Stretch& stretch : stretches) {
    if (apart.empty() || stretch.begin > apart.back().end) {
      apart.push_back(stretch);
    } else {
      apart.back().end = std::max(apart.back().end, stretch.end);
    }
  }
  return apart;
}

// Rows of one device: those of its class, of an import those whose names begin with its process.
std::string device_of(const Timeline& tables, std::int32_t rank_class) {
  if (!is_imported(tables)) return std::to_string(rank_class);
  const std::string name = class_name(tables, rank_class);
  return name.substr(0, name.find(", "));
}

// Communication of which compute of the same device covers at least half is hidden.
void mark_exposure(const RunData& run, Categories& categories) {
  const LaneSpans& lanes = run.lanes;
  const std::vector<OpRow>& ops = run.tables().ops;
  std::vector<std::string> devices;
  for (std::size_t c = 0; c < run.tables().class_ranks.size(); ++c)
    devices.push_back(device_of(run.tables(), static_cast<std::int32_t>(c)));
  std::map<std::string, std::vector<Stretch>> compute;
  for (const LaneRow& row : lanes.rows()) {
    if (row.lane != Lane::kCompute) continue;
    std::vector<Stretch>& of = compute[devices[row.rank_class]];
    for (std::size_t slot = row.first; slot < row.last(); ++slot)
      if (!is_communication(ops[lanes.op_row(slot)].kind)) of.push_back({lanes.start(slot), lanes.end(slot)});
  }
  for (auto& [device, stretches] : compute) stretches = merged(std::move(stretches));
  for (const LaneRow& row : lanes.rows()) {
    const std::vector<Stretch>& beside = compute[devices[row.rank_class]];
    std::size_t cover = 0;
    for (std::size_t slot = row.first; slot < row.last(); ++slot) {
      if (!is_communication(ops[lanes.op_row(slot)].kind)) continue;
      while (cover < beside.size() && beside[cover].end <= lanes.start(slot)) ++cover;
      std::int64_t covered = 0;
      for (std::size_t c = cover; c < beside.size() && beside[c].begin < lanes.end(slot); ++c)
        covered += std::min(beside[c].end, lanes.end(slot)) - std::max(beside[c].begin, lanes.start(slot));
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
  if (colouring == ColourBy::kExposure) mark_exposure(run, categories);
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
        return wrapped(microbatch_of(run.tables().submissions[run.columns.sequence(lanes.span(slot))], op));
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
      if (on_path &&
          filter.passes(run.tables(), lanes.op_row(slot), run.columns.sequence(span), row.rank_class))
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
