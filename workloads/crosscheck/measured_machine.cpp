#include "workloads/crosscheck/measured_machine.h"

#include <algorithm>
#include <utility>

#include "hw/document.h"
#include "workloads/crosscheck/cache_mixture.h"

namespace moebius {
namespace {

class WarmCosts : public CostSource {
 public:
  explicit WarmCosts(std::shared_ptr<const CostSource> source) : source_(std::move(source)) {}
  Cost cost(const CostQuery& query) const override {
    CostQuery warm = query;
    warm.hot = true;
    return source_->cost(warm);
  }
  std::string description() const override { return source_->description() + ", operands in the caches"; }

 private:
  std::shared_ptr<const CostSource> source_;
};

// Ops of ranks in turns on a GPU: the next one's kernels are given while one runs, which takes its time, too.
class GivenCosts : public CostSource {
 public:
  GivenCosts(std::shared_ptr<const CostSource> source, double launch)
      : source_(std::move(source)), launch_(launch) {}
  Cost cost(const CostQuery& query) const override {
    Cost cost = source_->cost(query);
    cost.seconds = std::max(cost.seconds, launch_);
    return cost;
  }
  std::string description() const override { return source_->description(); }

 private:
  std::shared_ptr<const CostSource> source_;
  double launch_;
};

bool knows_both_states(const Profile& profile) {
  const auto is_hot = [](const ProfileTable& table) { return table.hot; };
  return profile.accelerator == kHostAccelerator &&
         std::any_of(profile.tables.begin(), profile.tables.end(), is_hot);
}

}  // namespace

MeasuredMachine read_machine(const std::string& profile_file, const Job& job) {
  Profile profile = profile_from(load_document(profile_file));
  const bool both_states = knows_both_states(profile);
  const double share = share_in_cache(static_cast<double>(touched_bytes(job)), profile.reference.l2.value);
  if (both_states && profile.device) mix_exchange(*profile.device, share);
  return {profile, profile_file,
          [profile, both_states, share](const Accelerator& chip) -> std::shared_ptr<const CostSource> {
            if (both_states) return mixed_costs(chip, profile, share);
            std::shared_ptr<const CostSource> costs = make_cost_source(chip, std::vector<Profile>{profile});
            const bool on_host = profile.accelerator == kHostAccelerator;
            if (on_host || !profile.device) return costs;
            return std::make_shared<GivenCosts>(costs, profile.device->launch);
          }};
}

std::function<VirtualMachine(const Job&)> machine_for(const MeasuredMachine& measured,
                                                      const std::string& executor) {
  return [profile = measured.profile, file = measured.file, executor](const Job& job) {
    return virtual_machine(profile, file, executor, job.layout().ranks);
  };
}

std::shared_ptr<const CostSource> warm(std::shared_ptr<const CostSource> source) {
  return std::make_shared<WarmCosts>(std::move(source));
}

}  // namespace moebius
