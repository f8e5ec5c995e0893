// Several collectives on one fabric at once, each on devices of its own: what do they cost each other? First
// each tenant runs once alone, one after the other, then all run together, each its operation `repeat` times
// without a pause. A tenant's slowdown is the mean time of its operations together over its time alone.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/scenario.h"
#include "workloads/schedule/executor.h"

namespace moebius {

struct TenantFigures {
  std::string name;
  double alone_s = 0;     // one operation with the fabric to itself
  double together_s = 0;  // one operation beside the others, mean
  double slowdown() const { return together_s / alone_s; }
};

class TenantsRun : public Workload {
 public:
  explicit TenantsRun(const CollectiveWorkload& work);

  const Layout& layout() const override { return layout_; }
  std::optional<Submission> next(Time now) override;
  void completed(const Completion& completion) override;
  bool done() const override { return completed_ == total_; }
  double progress() const override { return static_cast<double>(completed_) / static_cast<double>(total_); }

  std::vector<TenantFigures> figures() const;

 private:
  struct State {
    FragmentPtr fragment;
    std::int32_t first_class = 0, num_classes = 0;
    std::int32_t issued = 0;       // submissions of the operation under way
    std::int32_t outstanding = 0;  // of them, not yet completed
    std::int32_t operations = 0;   // begun so far, the one alone included
    Time begin;                    // of the operation under way
    Time alone, together;
  };

  void add_classes(const Tenant& tenant, State& state, bool fold);
  bool may_begin(std::size_t tenant) const;
  std::optional<Submission> issue(std::size_t tenant, Time now);

  std::vector<Tenant> tenants_;
  std::vector<State> states_;
  std::vector<std::int32_t> tenant_of_sequence_;
  Layout layout_;
  std::int64_t completed_ = 0, total_ = 0;
};

}  // namespace moebius
