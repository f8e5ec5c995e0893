#include "real/processes/finished_submission.h"

namespace moebius {

void write(ByteWriter& to, const FinishedSubmission& finished) {
  to.put(finished.completion);
  to.put(finished.rank);
  to.put(finished.step);
  to.put(finished.has_loss);
  to.put(finished.loss);
  to.put_list(std::span<const Span>(finished.spans));
  to.put_list(std::span<const Transfer>(finished.transfers));
  to.put_list(std::span<const OpTime>(finished.times));
}

FinishedSubmission read_finished_submission(ByteReader& from) {
  FinishedSubmission finished;
  finished.completion = from.get<Completion>();
  finished.rank = from.get<std::int32_t>();
  finished.step = from.get<std::int32_t>();
  finished.has_loss = from.get<bool>();
  finished.loss = from.get<double>();
  finished.spans = from.get_list<Span>();
  finished.transfers = from.get_list<Transfer>();
  finished.times = from.get_list<OpTime>();
  return finished;
}

}  // namespace moebius
