// What a rank has to show for one submission when it has executed it.
#pragma once

#include <vector>

#include "real/byte_stream.h"
#include "workloads/schedule/executor.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

// What was really moved for one communication op of one rank.
struct Transfer {
  std::int32_t sequence = 0, op = 0, rank = 0;
  double sent_bytes = 0;  // to other ranks
};

struct FinishedSubmission {
  Completion completion;
  std::int32_t rank = 0, step = 0;
  bool has_loss = false;  // of those who count it
  double loss = 0;
  std::vector<Span> spans = {};
  std::vector<Transfer> transfers = {};
};

void write(ByteWriter& to, const FinishedSubmission& finished);
FinishedSubmission read_finished_submission(ByteReader& from);

}  // namespace moebius
