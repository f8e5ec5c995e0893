#include "workloads/cost/cost_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/layer_math.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/checked_rows.h"
#include "workloads/cost/clock_power.h"
#include "workloads/cost/fused_quantise.h"
#include "workloads/cost/power.h"
#include "workloads/cost/profile_kinds.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/serving_ops.h"
#include "workloads/cost/table.h"
#include "workloads/cost/windowed_attention.h"

namespace moebius {
namespace {

void check_is_compute(const CostQuery& query) {
  CHECK(!is_communication(query.kind), fmt::format("no compute cost of {}", to_string(query.kind)));
}

// A chip of an architecture that nobody has described: the bound itself, and no trust in it.
class RooflineSource : public CostSource {
 public:
  explicit RooflineSource(Accelerator accelerator) : accelerator_(std::move(accelerator)) {}

  Cost cost(const CostQuery& query) const override {
    check_is_compute(query);
    const double floor = accelerator_.kernel_floor.seconds();
    Cost cost{.seconds = std::max(floor, roofline(accelerator_, query).seconds()),
              .origin = Origin::kRoofline,
              .error = 1.0F,
              .memory_bytes = least_bytes(query)};
    const auto quantise = query.fused_quantise ? quantise_of(query) : std::nullopt;
    if (!quantise) return cost;
    const Cost pass = this->cost(*quantise);
    cost.seconds += pass.seconds;
    cost.memory_bytes += pass.memory_bytes;
    return cost;
  }
  std::string description() const override { return fmt::format("roofline of {}", accelerator_.id); }

 private:
  Accelerator accelerator_;
};

// A product of one expert is one of a matrix, which more tables know and know better.
CostQuery as_one_matrix(const CostQuery& query) {
  CostQuery one = query;
  if (query.shape.groups != 1 || query.rows.size() > 1) return one;
  if (query.kind == OpKind::kGroupedGemm) one.kind = OpKind::kGemm;
  if (query.kind == OpKind::kGroupedGemmDgrad) one.kind = OpKind::kGemmDgrad;
  if (one.kind == query.kind) return one;
  one.shape = loaded_shape(query);
  one.shape.groups = 0;
  one.rows = {};
  return one;
}

// How many times the peak of the measured chip the described one has, at least 1.
double times_peak(const Accelerator& chip, const Accelerator& measured) {
  double times = 1;
  for (std::size_t i = 0; i < chip.peak.size(); ++i)
    if (measured.peak[i].value > 0) times = std::max(times, chip.peak[i].value / measured.peak[i].value);
  return times;
}

bool may_draw_less(const Accelerator& chip) {
  return chip.power.value > 0 && chip.power.value < chip.rated_power.value;
}

// A chip that stands on another's tables, as fast against its stated peaks as that one against its own:
// kernels were timed at the highest clock, and peaks may be stated at a lower one (1.86 of 1.965 GHz on B200,
// 2.01 of 2.062 on GB200).
Accelerator against_stated_peaks(Accelerator chip, const std::vector<Profile>& profiles) {
  const auto is_own = [&](const Profile& profile) { return profile.accelerator == chip.id; };
  if (profiles.empty() || std::any_of(profiles.begin(), profiles.end(), is_own)) return chip;
  const Accelerator& measured = profiles.front().reference;
  if (chip.boost.value <= 0 || measured.boost.value <= 0 || measured.clock.value <= 0) return chip;
  const double stated = chip.peak_clock.value > 0 ? chip.peak_clock.value : chip.clock.value;
  if (stated <= 0) return chip;
  const double scale = (chip.boost.value / stated) / (measured.boost.value / measured.clock.value);
  for (FlopRate& peak : chip.peak) peak.value *= scale;
  chip.clock.value *= scale;
  chip.peak_clock.value *= scale;
  return chip;
}

// Of a board whose clock the machine lowers as the work around an op wants it, the kernel alone runs as under
// the limit of the profile's board: the described limit would count twice. More units than those draw more,
// and are held to the described limit by the machine as well. A chip that stands on another's tables runs
// them as much faster as its clock and units say, at as much of the full clock as they were timed at: under a
// limit that grows with its products' power, which goes with the clock's cube.
Accelerator timed_at_full_power(Accelerator chip, const std::vector<Profile>& profiles) {
  if (clock_power(chip, profiles).limit <= 0) {
    if (may_draw_less(chip)) chip.power = chip.rated_power;
    return chip;
  }
  const Profile& known = *profile_with_power(profiles);
  const double clock = full_clock_ratio(chip, known);
  chip.power = {known.reference.power.value * times_peak(chip, known.reference) * clock * clock};
  return chip;
}

// Of a board that may draw less than its catalog's, and of whose energies nothing is known. What leakage,
// memory and the rest take stays; what is left for products goes with the cube of the clock. 1: they have
// what they need.
double clock_under_cap(const Accelerator& chip, double drawn) {
  const double left = chip.power.value - (1 - kShareOfProducts) * chip.rated_power.value;
  if (drawn <= left) return 1;
  return std::max(kLeastClock, std::cbrt(std::max(0.0, left) / drawn));
}

// Times that an op takes as long at `clock`, a share of the full one, of which products at the peak take
// `products` seconds and its bytes `streams`: what waits for memory has time to be slower.
double longer_at_clock(double clock, double products, double streams) {
  return std::max(1.0, std::min(1.0, streams > 0 ? products / streams : 1) / clock);
}

Accelerator at_peak_clock(Accelerator chip) {
  chip.clock.value = std::max(chip.clock.value, chip.peak_clock.value);
  return chip;
}

// Whose kernels the tables hold: the chip's own, or those of one that it is based on, carried to it.
std::string name_of_tables(const Accelerator& chip, const std::vector<Profile>& profiles) {
  const auto own = [&](const Profile& profile) {
    return profile.accelerator.empty() || chip.is(profile.accelerator);
  };
  if (profiles.empty() || std::any_of(profiles.begin(), profiles.end(), own)) return chip.id;
  return fmt::format("{}, carried to {}", profiles.front().accelerator, chip.id);
}

// Measured tables over the analytic model, at the sustained clock. How far products that draw more than the
// board may lower it further is said by the work around them (clock_power.h).
class LayeredSource : public CostSource {
 public:
  LayeredSource(const Accelerator& stated, const std::vector<Profile>& profiles, std::string_view stack,
                ProductScales scales)
      : LayeredSource(against_stated_peaks(stated, profiles), profiles, stack, scales,
                      clock_power(stated, profiles)) {}

  LayeredSource(const Accelerator& accelerator, const std::vector<Profile>& profiles, std::string_view stack,
                ProductScales scales, ClockPower power)
      : model_(timed_at_full_power(at_peak_clock(accelerator), profiles)),
        tables_(profiles, stack),
        power_(accelerator, profiles),
        clock_power_(power),
        scales_(scales),
        share_(accelerator.peak_share()),
        name_(name_of_tables(accelerator, profiles)) {
    if (share_ < 1 && clock_power_.limit <= 0) slower_.emplace(accelerator);
    if (clock_power_.limit <= 0 && may_draw_less(accelerator)) capped_ = accelerator;
    stacks_ = stack;
    for (const std::string& known : tables_.stacks())
      if (stack.empty()) stacks_ += (stacks_.empty() ? "" : ", ") + known;
  }

  Cost cost(const CostQuery& asked) const override {
    check_is_compute(asked);
    if (has_checked_rows(asked))
      if (const auto known = checked_rows_cost(*this, model_, asked)) return *known;
    const CostQuery query = cut_to_sequence(priced_as(as_one_matrix(asked)));
    Cost cost = timed(model_, query);
    if (query.promoted_sums) cost.seconds *= model_.engine().architecture->promoted_sums;
    if (share_ < 1 && uses_tensor_cores(query.kind)) slow_down(query, cost);
    if (capped_ && uses_tensor_cores(query.kind)) cap_power(query, cost);
    cost.watts = power_.watts(query, cost);
    return cost;
  }

  std::string description() const override {
    const std::string analytic = fmt::format("analytic ({})", model_.engine().architecture->name);
    return stacks_.empty() ? analytic : fmt::format("profile {} ({}) over {}", name_, stacks_, analytic);
  }

 private:
  Cost timed(const AnalyticModel& model, const CostQuery& query) const {
    if (const auto measured = tables_.cost(model, query, Clocks::kSustained)) return *measured;
    CostQuery priced = query;
    if (scales_ != ProductScales::kBlock) priced.scales = scales_;
    const Estimate estimate = model.estimate(priced, Clocks::kSustained);
    const Estimate pass =
        query.fused_quantise ? tables_.quantise(model, query, Clocks::kSustained) : Estimate{};
    return {.seconds = estimate.seconds + pass.seconds,
            .origin = Origin::kAnalytic,
            .error = model.error(query),
            .memory_bytes = estimate.memory_bytes + pass.memory_bytes};
  }

  // At a lower clock than that of the peak: as the board slows down what draws too much, where that is known.
  // Else as the model says, which at the limit takes all of an op to follow the clock: never faster.
  void slow_down(const CostQuery& query, Cost& cost) const {
    if (slower_) {
      cost.seconds = std::max(cost.seconds, timed(*slower_, query).seconds);
      return;
    }
    const double flops = op_flops(query.kind, loaded_shape(query)).value;
    const DType type = product_dtype(model_.engine().chip, query);
    const double products = flops / clock_power_.peak[static_cast<std::size_t>(type)];
    const double longer = longer_at_clock(share_, products, cost.memory_bytes / clock_power_.memory_rate);
    cost.seconds = std::max(cost.seconds * longer, products / share_);
  }

  // Products at the peak draw what the catalog's board may, slower ones as much less; GEMMs what the model
  // says, where that is more.
  void cap_power(const CostQuery& query, Cost& cost) const {
    const double peak = capped_->peak_of(executed_dtype(*capped_, product_dtype(*capped_, query))).value;
    if (peak <= 0 || cost.seconds <= 0) return;
    const double flops = op_flops(query.kind, loaded_shape(query)).value, products = flops / peak;
    const double most = kShareOfProducts * capped_->rated_power.value;
    double drawn = most * std::min(1.0, products / cost.seconds);
    if (!is_attention(query.kind))
      drawn = std::max(drawn, std::min(most, drawn_watts(model_.engine(), query, flops, cost.seconds)));
    const double clock = clock_under_cap(*capped_, drawn);
    const double longer = longer_at_clock(clock, products, cost.memory_bytes / capped_->memory_rate.value);
    cost.seconds = std::max(cost.seconds * longer, products / clock);
  }

  std::optional<Accelerator> capped_ = {};  // may draw less than its kernels did
  AnalyticModel model_;                     // at the clock of the peak, or a higher one
  std::optional<AnalyticModel> slower_;     // at a lower one, of a chip whose board's energies are not known
  MeasuredTables tables_;
  BoardPower power_;
  ClockPower clock_power_;
  ProductScales scales_ = ProductScales::kBlock;  // of FP8 products that no table knows
  double share_ = 1;  // of the peak, at the chip's clock
  std::string name_, stacks_;
};

}  // namespace

std::unique_ptr<CostSource> make_cost_source(const Accelerator& accelerator, const std::string& data_dir,
                                             std::string_view stack) {
  const std::vector<Profile> profiles = find_profiles(accelerator, data_dir);
  require_known_kinds(profiles, data_dir);
  return make_cost_source(accelerator, profiles, stack);
}

std::unique_ptr<CostSource> make_cost_source(const Accelerator& accelerator,
                                             const std::vector<Profile>& profiles, std::string_view stack,
                                             ProductScales scales) {
  if (!stack.empty() && profiles.empty())
    throw input_error(fmt::format("no profile of {}: the stack \"{}\" is unknown", accelerator.id, stack));
  if (find_architecture(accelerator.architecture) == nullptr)
    return std::make_unique<RooflineSource>(accelerator);
  return std::make_unique<LayeredSource>(accelerator, profiles, stack, scales);
}

}  // namespace moebius
