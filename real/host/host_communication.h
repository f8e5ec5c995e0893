// Communication ops between ranks on threads.
#pragma once

#include <chrono>

#include "real/exchange.h"
#include "real/host/op_context.h"

namespace moebius {

struct Moved {
  double sent_bytes = 0;                      // that this rank really gave to others
  std::chrono::steady_clock::time_point met;  // when the last member was there, or the message
};

// Executes a communication op, waiting for the other members. Bytes are elements in the format of Op::dtype,
// or of each tensor when several are exchanged in place (weights that travel with tokens in their own).
// Deterministic: sums run in the order of members. Members that bring different sizes are run_error.
template <class Real>
Moved communicate(OpContext<Real>& context, Exchange<Real>& exchange);

}  // namespace moebius
