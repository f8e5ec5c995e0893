// What a rank has to show for one submission when it has executed it.
#pragma once

#include <vector>

#include "real/processes/byte_stream.h"
#include "workloads/schedule/executor.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

// What was really moved for one communication op of one rank.
struct Transfer {
  std::int32_t sequence = 0, op = 0, rank = 0;
  double sent_bytes = 0;  // to other ranks
};

// CPU time of the thread of its rank from the moment when an op has its operands until its results are
// stored. Of communication: packing what is sent, copying and adding up what comes, not the waiting.
struct OpTime {
  std::int32_t sequence = 0, op = 0;
  Time cpu;
};

struct FinishedSubmission {
  Completion completion;
  std::int32_t rank = 0, step = 0;
  bool has_loss = false;  // of those who count it
  double loss = 0;
  std::vector<Span> spans = {};
  std::vector<Transfer> transfers = {};
  std::vector<OpTime> times = {};  // when ranks run one at a time
};

void write(ByteWriter& to, const FinishedSubmission& finished);
FinishedSubmission read_finished_submission(ByteReader& from);

}  // namespace moebius
