// Where requests come from, one after the other: a trace, a generator, or users who wait for an answer before
// they ask again.
#pragma once

#include <cstdint>
#include <optional>

#include "hw/units.h"

namespace moebius {

struct Arrival {
  Time at;
  std::int32_t input = 1, output = 1;  // tokens, at least one
  std::int32_t service_class = 0;      // which of the service goals it is held to
  std::int64_t tag = 0;                // the source's own name of it
};

class Arrivals {
 public:
  virtual ~Arrivals() = default;
  // When the next request comes, as far as it is known; nothing while all that is to come waits for an answer,
  // and at the end.
  virtual std::optional<Time> due() = 0;
  // That request; due() has said that there is one.
  virtual Arrival take() = 0;
  // Request `tag` has its last token, or was rejected: others may become due, never before `now`.
  virtual void answered(std::int64_t tag, Time now) = 0;
};

}  // namespace moebius
