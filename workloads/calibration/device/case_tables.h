// From what was measured of a plan to a profile's reference and tables.
#pragma once

#include <string>
#include <vector>

#include "hw/profile.h"
#include "workloads/calibration/device/case_journal.h"
#include "workloads/calibration/device/case_plan.h"

namespace moebius {

// A device whose peaks nobody publishes, by the best that was seen of it: of each type the largest rate of a
// product, so that no measurement is above the peak; memory the largest rate of anything, of which an `add`
// of the most bytes reaches memory_efficiency; the shortest kernel. run_error when no product was measured.
Accelerator measured_reference(const Accelerator& known, const CasePlan& plan, const CaseJournal& journal);

struct CalibratedTables {
  std::vector<ProfileTable> tables;
  int measured = 0, refused = 0, left_out = 0;  // cases
  std::vector<std::string> missing;             // families without any time: "gemm fp8: why"
};

// One table a family, each value a measured case; the cases that only test tell the held-out error. `like`
// says what all tables have in common: stack, source, cores, clocks.
CalibratedTables tables_of(const CasePlan& plan, const CaseJournal& journal, const Accelerator& reference,
                           const ProfileTable& like);

}  // namespace moebius
