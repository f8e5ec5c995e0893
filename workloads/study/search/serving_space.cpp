#include "workloads/study/search/serving_space.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "workloads/crew.h"
#include "workloads/study/search/document_changes.h"

namespace moebius {
namespace {

constexpr const char* kRouter = "/plan/router";
constexpr std::size_t kMostGroups = 5'000'000;

// The scenario's own value first.
std::vector<std::string> with_own(std::string own, const std::vector<std::string>& others) {
  std::vector<std::string> values{std::move(own)};
  for (const std::string& other : others)
    if (other != values.front()) values.push_back(other);
  return values;
}

std::string key_of(const std::string& pointer) {
  return pointer.substr(pointer.rfind('/') + 1);
}

// Keys that neither what fits nor what an iteration takes depends on.
bool is_light(const std::string& pointer) {
  static const std::vector<std::string> keys{"max_batch", "token_budget", "batching",
                                             "chunked",   "router",       "dp_balance"};
  return std::find(keys.begin(), keys.end(), key_of(pointer)) != keys.end();
}

// "max_batch 256", "mixed", "least-tokens"; of what is no name or number, all of it.
std::string words_of(const std::string& pointer, const std::string& value) {
  const std::string key = key_of(pointer);
  if (value.starts_with('"')) return value.substr(1, value.size() - 2);
  return fmt::format("{} {}", key, value);
}

bool varies(const std::vector<StudyAxis>& axes, const std::string& pointer) {
  return std::any_of(axes.begin(), axes.end(), [&](const StudyAxis& axis) {
    return axis.pointer == pointer && axis.values.size() > 1;
  });
}

Scenario own_scenario(const Document& base, const Library& library) {
  return read_scenario(base, library.hardware, library.models);
}

}  // namespace

// Requests that are there at once are timed like any others.
ServingSpace::ServingSpace(Document base, const Library& library, const SpaceFile& given, bool fewer)
    : base_(changed(std::move(base), {{"/plan/steps", "\"surface\""}})),
      library_(library),
      scenario_(own_scenario(base_, library)) {
  take_axes(given);
  make_variants(given, fewer);
  keep_legal();
  if (variants_.empty() && !given.axes.empty()) refuse(given);
  make_groups();
}

void ServingSpace::take_axes(const SpaceFile& given) {
  for (const StudyAxis& axis : given.axes) {
    if (is_of_layout(axis.pointer) || is_degree_of_seat(axis.pointer)) continue;
    if (!axis.pointer.starts_with("/plan/"))
      throw input_error(
          fmt::format("{}: {}: expected a key of /plan, or /cluster/pools/0/nodes: a search keeps model, "
                      "machines and traffic",
                      given.file, axis.pointer));
    (is_light(axis.pointer) ? light_ : heavy_).push_back(axis);
  }
  const auto add = [&](const char* pointer, std::vector<std::string> values) {
    if (!given.touches(pointer)) heavy_.push_back({pointer, std::move(values)});
  };
  if (!scenario_.traffic.source) return;
  const bool shared = scenario_.service.prefix_cache;
  add("/plan/cache/prefix", with_own(shared ? "true" : "false", {"true"}));
  const std::string own = text_at(base_, "/plan/cache/dram");
  const Bytes half = scenario_.cluster->pools.front().node.host_memory * 0.5;
  if (own.empty() && half.value > 0)
    add("/plan/cache/dram", {"{}", fmt::format(R"({{"capacity": "{:.0f} GB"}})", half.value / 1e9)});
}

std::vector<std::vector<Assignment>> ServingSpace::heavy_settings() const {
  std::vector<std::vector<Assignment>> all{{}};
  for (const StudyAxis& axis : heavy_) {
    std::vector<std::vector<Assignment>> longer;
    for (const std::vector<Assignment>& settings : all) {
      for (const std::string& value : axis.values) {
        longer.push_back(settings);
        longer.back().push_back({axis.pointer, value});
      }
    }
    all = std::move(longer);
  }
  return all;
}

// Rows of `pools` keep what they say, unless a space file varies it.
std::vector<StudyAxis> ServingSpace::axes_of(const ServingLayout& layout) const {
  const auto given = [&](const std::string& pointer) {
    return std::any_of(light_.begin(), light_.end(),
                       [&](const StudyAxis& axis) { return axis.pointer == pointer; });
  };
  bool prompts = false, both = false;
  for (const PoolSeat& seat : layout.seats) {
    prompts = prompts || seat.role != PoolRole::kDecode;
    both = both || seat.role == PoolRole::kBoth;
  }
  std::vector<StudyAxis> axes;
  for (const StudyAxis& axis : light_)
    if (axis.pointer != kRouter && (both || axis.pointer != kBatching)) axes.push_back(axis);
  const auto add = [&](const std::string& pointer, std::vector<std::string> values) {
    if (!given(pointer)) axes.push_back({pointer, std::move(values)});
  };
  if (scenario_.service.pools.empty()) {
    add("/plan/decode/max_batch", with_own(std::to_string(scenario_.serving.max_batch),
                                           {"16", "32", "64", "128", "256", "512", "1024"}));
    if (prompts)
      add("/plan/prefill/token_budget",
          with_own(std::to_string(scenario_.serving.token_budget), {"2048", "4096", "8192", "16384"}));
    const bool mixed = scenario_.service.batching == BatchPolicy::kMixed;
    if (both)
      add(kBatching, with_own(mixed ? "\"mixed\"" : "\"prefill-first\"", {"\"mixed\"", "\"prefill-first\""}));
  }
  std::string own = text_at(base_, kRouter);
  if (own.empty()) own = "\"round-robin\"";
  std::vector<std::string> routers =
      with_own(own, {"\"round-robin\"", "\"least-requests\"", "\"least-tokens\""});
  if (scenario_.traffic.source && own != "\"kv-aware\"") routers.emplace_back("\"kv-aware\"");
  for (const StudyAxis& axis : light_)
    if (axis.pointer == kRouter) routers = axis.values;
  axes.push_back({kRouter, std::move(routers)});
  return axes;
}

void ServingSpace::make_variants(const SpaceFile& given, bool fewer) {
  std::map<std::string, std::int32_t> ids;
  for (const std::vector<Assignment>& settings : heavy_settings()) {
    std::string values, words;
    for (const Assignment& value : settings) {
      values += value.pointer + "=" + value.value + " ";
      if (value.value != "{}" && varies(heavy_, value.pointer))
        words += ", " + words_of(value.pointer, value.value);
    }
    for (ServingLayout& layout : serving_layouts(base_, scenario_, given, fewer)) {
      if (layout.seats.size() > kMostSeats)
        throw input_error(fmt::format("{}: /plan/pools: a search has at most {} pools, found {}", base_.file,
                                      kMostSeats, layout.seats.size()));
      ServingVariant variant{layout, settings, layout.name + words, axes_of(layout), {}, {}};
      for (const PoolSeat& seat : layout.seats) {
        const std::string text =
            fmt::format("{}{} {} {} {} {}", values, seat.pointer, static_cast<int>(seat.role), seat.devices,
                        seat.expert_devices, layout.settings.empty());
        const auto [at, is_new] = ids.emplace(text, static_cast<std::int32_t>(ids.size()));
        if (is_new) options_.push_back(seat_options(seat, scenario_.model, given));
        variant.seat_ids.push_back(at->second);
      }
      variants_.push_back(std::move(variant));
    }
  }
  if (variants_.empty())
    throw input_error(fmt::format("{}: no way to split the machines is left to look at", given.file));
}

std::optional<Scenario> ServingSpace::read(const std::vector<Assignment>& settings) const {
  try {
    return own_scenario(changed(base_, settings), library_);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kInput) throw;
    return std::nullopt;
  }
}

// What the reader says of the first axis that has no legal value beside what the scenario says.
void ServingSpace::refuse(const SpaceFile& given) const {
  for (const StudyAxis& axis : given.axes) {
    std::string why;
    for (const std::string& value : axis.values) try {
        own_scenario(changed(base_, {{axis.pointer, value}}), library_);
        why.clear();
        break;
      } catch (const Error& error) {
        if (error.kind() != Error::Kind::kInput) throw;
        if (why.empty()) why = error.what();
      }
    if (!why.empty())
      throw input_error(fmt::format("{}: /vary: no value of {} is legal: {}", given.file, axis.pointer, why));
  }
  throw input_error(fmt::format("{}: /vary: no plan with these values is legal", given.file));
}

// The other seats plain.
std::vector<Assignment> ServingSpace::probed(const ServingVariant& variant, std::size_t seat,
                                             std::int32_t option) const {
  std::vector<Assignment> settings = variant.layout.settings;
  for (std::size_t i = 0; i < variant.seat_ids.size(); ++i) {
    const SeatOption& of = options_[variant.seat_ids[i]][i == seat ? option : variant.plain[i]];
    const std::vector<Assignment> of_seat = seat_settings(variant.layout.seats[i], of, base_);
    settings.insert(settings.end(), of_seat.begin(), of_seat.end());
  }
  settings.insert(settings.end(), variant.settings.begin(), variant.settings.end());
  return settings;
}

bool ServingSpace::find_plain(ServingVariant& variant) const {
  std::size_t most = 0;
  for (const std::int32_t id : variant.seat_ids) {
    if (options_[id].empty()) return false;
    most = std::max(most, options_[id].size());
  }
  for (std::size_t i = 0; i < most; ++i) {
    variant.plain.clear();
    for (const std::int32_t id : variant.seat_ids)
      variant.plain.push_back(static_cast<std::int32_t>(std::min(i, options_[id].size() - 1)));
    if (read(probed(variant, 0, variant.plain[0]))) return true;
  }
  return false;
}

// Values of limits and policies are legal or not whatever the others are.
void ServingSpace::keep_legal() {
  work_side_by_side(
      variants_.size(),
      [&](std::size_t v) {
        ServingVariant& variant = variants_[v];
        if (!find_plain(variant)) return variant.axes.back().values.clear();
        const std::vector<Assignment> plain = probed(variant, 0, variant.plain[0]);
        for (StudyAxis& axis : variant.axes)
          std::erase_if(axis.values, [&](const std::string& value) {
            std::vector<Assignment> settings = plain;
            settings.push_back({axis.pointer, value});
            return !read(settings);
          });
      },
      true);
  std::erase_if(variants_, [](const ServingVariant& variant) {
    return std::any_of(variant.axes.begin(), variant.axes.end(),
                       [](const StudyAxis& axis) { return axis.values.empty(); });
  });
}

// Each option of each seat once, whatever variants have it.
void ServingSpace::probe_options() {
  std::vector<Probe> probes;
  std::vector<bool> known(options_.size());
  for (std::size_t v = 0; v < variants_.size(); ++v) {
    for (std::size_t s = 0; s < variants_[v].seat_ids.size(); ++s) {
      const std::int32_t id = variants_[v].seat_ids[s];
      if (known[id]) continue;
      known[id] = true;
      for (std::size_t o = 0; o < options_[id].size(); ++o)
        probes.push_back(
            {static_cast<std::int32_t>(v), static_cast<std::int32_t>(s), static_cast<std::int32_t>(o)});
    }
  }
  work_side_by_side(
      probes.size(),
      [&](std::size_t i) {
        Probe& probe = probes[i];
        const ServingVariant& variant = variants_[probe.variant];
        if (const std::optional<Scenario> scenario = read(probed(variant, probe.seat, probe.option)))
          probe.phase = scenario->service.phases[probe.seat];
      },
      true);
  phases_.resize(options_.size());
  for (std::size_t id = 0; id < options_.size(); ++id) phases_[id].resize(options_[id].size());
  for (Probe& probe : probes)
    phases_[variants_[probe.variant].seat_ids[probe.seat]][probe.option] = std::move(probe.phase);
}

std::int32_t ServingSpace::bundles_of(const ServingVariant& variant, bool one_instance) const {
  std::int32_t count = 1;
  for (const StudyAxis& axis : variant.axes)
    if (!one_instance || axis.pointer != kRouter) count *= static_cast<std::int32_t>(axis.values.size());
  return count;
}

void ServingSpace::make_groups() {
  probe_options();
  std::vector<std::vector<std::int32_t>> legal(options_.size());  // by seat id
  for (std::size_t id = 0; id < options_.size(); ++id)
    for (std::size_t o = 0; o < options_[id].size(); ++o)
      if (phases_[id][o]) legal[id].push_back(static_cast<std::int32_t>(o));
  for (std::size_t v = 0; v < variants_.size(); ++v) {
    const std::vector<std::int32_t>& ids = variants_[v].seat_ids;
    std::size_t count = 1;
    for (const std::int32_t id : ids) count *= legal[id].size();
    if (groups_.size() + count > kMostGroups)
      throw input_error(fmt::format("{}: a search has at most {} combinations of degrees, found more",
                                    base_.file, kMostGroups));
    for (std::size_t i = 0; i < count; ++i) {
      ServingGroup group{static_cast<std::int32_t>(v), {}, 0};
      bool one_instance = true;
      std::size_t rest = i;
      for (std::size_t s = 0; s < ids.size(); ++s) {
        group.options[s] = legal[ids[s]][rest % legal[ids[s]].size()];
        rest /= legal[ids[s]].size();
        one_instance = one_instance && phase(group, s).instances == 1;
      }
      group.bundles = bundles_of(variants_[v], one_instance);
      groups_.push_back(group);
    }
  }
}

const SeatOption& ServingSpace::option(const ServingGroup& group, std::size_t seat) const {
  return options_[variants_[group.variant].seat_ids[seat]][group.options[seat]];
}

const ServicePhase& ServingSpace::phase(const ServingGroup& group, std::size_t seat) const {
  return *phases_[variants_[group.variant].seat_ids[seat]][group.options[seat]];
}

const std::string& ServingSpace::value_of(const ServingVariant& variant, std::size_t axis,
                                          std::int32_t bundle) const {
  for (std::size_t i = 0; i < axis; ++i) bundle /= static_cast<std::int32_t>(variant.axes[i].values.size());
  const std::vector<std::string>& values = variant.axes[axis].values;
  return values[bundle % static_cast<std::int32_t>(values.size())];
}

std::vector<Assignment> ServingSpace::settings(std::int32_t number, std::int32_t bundle) const {
  const ServingGroup& group = groups_[number];
  const ServingVariant& variant = variants_[group.variant];
  std::vector<Assignment> settings{{"/plan/steps", "\"surface\""}};
  const auto add = [&](const std::vector<Assignment>& more) {
    settings.insert(settings.end(), more.begin(), more.end());
  };
  add(variant.layout.settings);
  for (std::size_t s = 0; s < variant.seat_ids.size(); ++s)
    add(seat_settings(variant.layout.seats[s], option(group, s), base_));
  add(variant.settings);
  for (std::size_t a = 0; a < variant.axes.size(); ++a)
    settings.push_back({variant.axes[a].pointer, value_of(variant, a, bundle)});
  return settings;
}

std::string ServingSpace::name(std::int32_t number, std::int32_t bundle) const {
  const ServingGroup& group = groups_[number];
  const ServingVariant& variant = variants_[group.variant];
  std::string text = variant.name;
  for (std::size_t s = 0; s < variant.seat_ids.size(); ++s)
    text += fmt::format("{}{}", text.empty() ? "" : " · ",
                        option_text(variant.layout.seats[s], option(group, s)));
  text += " ·";
  for (std::size_t a = 0; a < variant.axes.size(); ++a)
    if (variant.axes[a].values.size() > 1)
      text += " " + words_of(variant.axes[a].pointer, value_of(variant, a, bundle));
  return text;
}

Scenario ServingSpace::scenario_of(std::int32_t variant) const {
  return *read(probed(variants_[variant], 0, variants_[variant].plain[0]));
}

}  // namespace moebius
