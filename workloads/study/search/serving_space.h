// The plans of a service that a search looks at: how machines are split among pools, the degrees of each
// pool, and everything else that is chosen beside them. What is legal the scenario's reader says.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/document.h"
#include "workloads/job.h"
#include "workloads/study/search/seat_options.h"
#include "workloads/study/search/serving_layout.h"
#include "workloads/study/search/space_file.h"

namespace moebius {

inline constexpr int kMostSeats = 4;

// A layout under values that decide what fits and what iterations take.
struct ServingVariant {
  ServingLayout layout;
  std::vector<Assignment> settings;    // beside those of the layout
  std::string name;                    // of the layout, and what of the settings is not the scenario's own
  std::vector<StudyAxis> axes;         // limits and policies, which change neither; routers last
  std::vector<std::int32_t> seat_ids;  // equal ones: equal pools, options and settings
  std::vector<std::int32_t> plain;     // an option of each seat that go together
};

// A variant with an option for each of its seats.
struct ServingGroup {
  std::int32_t variant = 0;
  std::array<std::int32_t, kMostSeats> options{};
  std::int32_t bundles = 0;  // plans: values of the variant's axes
};

// Of a seat: what bounds depend on beside its option. Of several plans, the least that binds.
struct SeatLimits {
  std::int64_t max_batch = 1, token_budget = 1;
  bool mixed = false;  // prompts and decoding share iterations
  auto operator<=>(const SeatLimits&) const = default;
};

class ServingSpace {
 public:
  // `base` is a serving scenario. Beside layouts and degrees: sequences that decode at once on a replica, 16
  // to 1,024; prompt tokens of an iteration, 2,048 to 16,384; batching, where one pool does both; routers;
  // where requests come by and by, caches that share what prompts begin with, and half of the host's memory
  // behind them. The scenario's own values count beside these, and a space file's in their place, for any key
  // of /plan. Of one instance alone routers are one.
  ServingSpace(Document base, const Library& library, const SpaceFile& given, bool fewer);

  const Scenario& scenario() const { return scenario_; }
  const Document& base() const { return base_; }
  const std::vector<ServingVariant>& variants() const { return variants_; }
  const std::vector<ServingGroup>& groups() const { return groups_; }
  const SeatOption& option(const ServingGroup& group, std::size_t seat) const;
  // As the reader has it, but for limits.
  const ServicePhase& phase(const ServingGroup& group, std::size_t seat) const;
  const std::string& pool_name(const ServingGroup& group, std::size_t seat) const {
    return variants_[group.variant].layout.seats[seat].pool;
  }
  // Of a plan of the variant: what all of them have in common.
  Scenario scenario_of(std::int32_t variant) const;

  // What a plan changes of the scenario, and what it is called.
  std::vector<Assignment> settings(std::int32_t group, std::int32_t bundle) const;
  std::string name(std::int32_t group, std::int32_t bundle) const;

  static constexpr std::int32_t kAllBundles = -1;
  SeatLimits limits(const ServingGroup& group, std::size_t seat, std::int32_t bundle) const;
  // Sequences that decode at once, of the bundle with the fewest.
  std::int64_t least_batch(const ServingGroup& group, std::size_t seat) const;

 private:
  static constexpr const char* kBatching = "/plan/scheduler/batching";  // counts where one pool does both
  struct SeatPointers {
    std::string batch, budget, batching;
  };
  struct Probe {  // an option of a seat, beside plain ones
    std::int32_t variant = 0, seat = 0, option = 0;
    std::optional<ServicePhase> phase = {};  // nothing: it is not legal
  };
  void take_axes(const SpaceFile& given);
  std::vector<std::vector<Assignment>> heavy_settings() const;
  std::vector<StudyAxis> axes_of(const ServingLayout& layout) const;
  void make_variants(const SpaceFile& given, bool fewer);
  bool find_plain(ServingVariant& variant) const;
  std::optional<Scenario> read(const std::vector<Assignment>& settings) const;
  std::vector<Assignment> probed(const ServingVariant& variant, std::size_t seat, std::int32_t option) const;
  void keep_legal();
  [[noreturn]] void refuse(const SpaceFile& given) const;
  void probe_options();
  void make_groups();
  SeatPointers pointers(const ServingGroup& group, std::size_t seat) const;
  std::int32_t bundles_of(const ServingVariant& variant, bool one_instance) const;
  const std::string& value_of(const ServingVariant& variant, std::size_t axis, std::int32_t bundle) const;

  Document base_;
  const Library& library_;
  Scenario scenario_;
  std::vector<StudyAxis> heavy_, light_;  // as given, or by default
  std::vector<ServingVariant> variants_;
  std::vector<std::vector<SeatOption>> options_;                  // by seat id
  std::vector<std::vector<std::optional<ServicePhase>>> phases_;  // by seat id and option
  std::vector<ServingGroup> groups_;
};

}  // namespace moebius
