// What moves a cache from the replica that computed it to the one that goes on with it.
#pragma once

#include "hw/units.h"

namespace moebius {

// Layer by layer the engine is asked, hands the layer's pages to the NICs of the replica and is told when
// they are there.
struct TransferEngine {
  bool layerwise = true;  // a layer leaves when it is computed; otherwise all when the prompt is
  Time call;              // of a layer, beside its bytes
};

}  // namespace moebius
