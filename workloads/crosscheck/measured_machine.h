// What a machine of virtual ranks is simulated with: figures of the device, and what ops cost there.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hw/profile.h"
#include "workloads/cost/cost_source.h"
#include "workloads/crosscheck/virtual_machine.h"
#include "workloads/job.h"

namespace moebius {

struct MeasuredMachine {
  Profile profile;   // its tables are not needed where `costs` measures
  std::string file;  // that errors name
  std::function<std::shared_ptr<const CostSource>(const Accelerator&)> costs;
};

// From a profile of `calibrate --device`. Errors as load_document() and profile_from().
MeasuredMachine read_machine(const std::string& profile_file);

// CrosscheckRequest::machine for an executor ("host", "cuda"). Errors as virtual_machine().
std::function<VirtualMachine(const Job&)> machine_for(const MeasuredMachine& measured,
                                                      const std::string& executor);

// `source`, asked as of ops that find in the caches what fits there: an op of a step follows the one that
// made its operands.
std::shared_ptr<const CostSource> warm(std::shared_ptr<const CostSource> source);

}  // namespace moebius
