#include "workloads/perform/schedule_dump.h"

namespace moebius {

void ScheduleDump::write(const Submission& submission) {
  if (written_.insert(submission.fragment->hash).second) file_.write(dump(*submission.fragment));
  file_.write(dump(submission));
}

}  // namespace moebius
