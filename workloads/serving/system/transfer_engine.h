// What moves a cache from the replica that computed it to the one that goes on with it.
#pragma once

#include "hw/units.h"

namespace moebius {

// Layer by layer the engine is asked, hands the layer's pages to the NICs of the replica and is told when
// they are there.
struct TransferEngine {
  bool layerwise = true;  // a layer leaves when it is computed; otherwise all when the prompt is
  Time call;              // of a layer, beside its bytes
  // Users get the first token from where decoding goes on: when the cache is there and the iteration that
  // goes on there has ended. Otherwise from where the prompt was computed.
  bool brings_first_token = false;
};

}  // namespace moebius
