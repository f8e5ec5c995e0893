#include "workloads/crosscheck/measured_machine.h"

#include <utility>

#include "hw/document.h"

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

}  // namespace

MeasuredMachine read_machine(const std::string& profile_file) {
  const Profile profile = profile_from(load_document(profile_file));
  return {profile, profile_file, [profile](const Accelerator& chip) {
            return std::shared_ptr<const CostSource>(make_cost_source(chip, std::vector<Profile>{profile}));
          }};
}

std::function<VirtualMachine(const Job&)> machine_for(const MeasuredMachine& measured,
                                                      const std::string& executor) {
  return [profile = measured.profile, file = measured.file, executor](const Job& job) {
    return virtual_machine(profile, file, executor, job.scenario.ranks());
  };
}

std::shared_ptr<const CostSource> warm(std::shared_ptr<const CostSource> source) {
  return std::make_shared<WarmCosts>(std::move(source));
}

}  // namespace moebius
