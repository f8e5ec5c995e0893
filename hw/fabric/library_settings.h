// What a communication library (NCCL) is told on a network: the environment that the maker of a transport
// asks for. Keys of a fabric's entry; a fabric that says nothing leaves the library's defaults.
#pragma once

#include <vector>

#include "hw/fabric/fabric.h"
#include "hw/facts.h"

namespace moebius {

struct LibrarySettings {
  // Simple: what a channel passes on at once, at most: NCCL_BUFFSIZE (4 MiB) in NCCL_STEPS (8) parts. Trees
  // cut it for short buffers, down to least_chunk.
  double chunk = 512 * 1024, least_chunk = 32 * 1024;
  bool simple_only = false;  // NCCL_PROTO=Simple
  bool in_switch = true;     // false: NCCL_NVLS_ENABLE=0
};

// The keys of these in a fabric's entry; all optional. They stay among the fabric's facts.
const std::vector<FactRow>& library_rows();
LibrarySettings library_settings(const FabricSpec& fabric);

}  // namespace moebius
