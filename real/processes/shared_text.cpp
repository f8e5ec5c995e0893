#include "real/processes/shared_text.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <span>

namespace moebius {

int launched_self() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (const char* self = std::getenv(name)) return std::max(0, std::atoi(self));
  }
  return 0;
}

std::string shared_text(std::unique_ptr<Transport> transport, const std::string& text) {
  if (transport->self() == 0) {
    const auto bytes = std::as_bytes(std::span(text));
    for (int other = 1; other < transport->count(); ++other)
      transport->send(other, {bytes.begin(), bytes.end()});
    return text;
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::string heard;
  bool there = false;
  transport->start([&](int, const ByteString& message) {
    const std::scoped_lock lock(mutex);
    heard.assign(reinterpret_cast<const char*>(message.data()), message.size());
    there = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return there; });
  lock.unlock();
  transport.reset();  // from here nothing is delivered any more
  return heard;
}

}  // namespace moebius
