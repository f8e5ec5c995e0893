#pragma once

#include "hw/catalog.h"

namespace moebius {

inline const Catalog& catalog() {
  static const Catalog instance;
  return instance;
}

}  // namespace moebius
