// How bytes get from one process of a run to another: MPI, or threads in tests.
#pragma once

#include <functional>
#include <string>

#include "real/processes/byte_stream.h"

namespace moebius {

class Transport {
 public:
  using Deliver = std::function<void(int from, ByteString message)>;

  // Returns when all that was sent has left and no message is being delivered. Every process comes to this,
  // after the others have sent their last message.
  virtual ~Transport() = default;
  virtual int self() const = 0;   // 0 .. count() - 1
  virtual int count() const = 0;  // of processes
  virtual std::string name() const = 0;
  // Returns at once; messages between two processes arrive in the order in which they were sent.
  virtual void send(int to, ByteString message) = 0;
  // From now on messages are delivered, those too that came before; in one thread, one at a time.
  virtual void start(Deliver deliver) = 0;
};

}  // namespace moebius
