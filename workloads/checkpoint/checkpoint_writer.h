// Writes a checkpoint as its index plans it, one shard in memory at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "workloads/checkpoint/checkpoint_index.h"

namespace moebius {

// The elements of a block of a weight, row-major, in the type of the index.
using ReadRegion = std::function<std::vector<std::byte>(const std::string& name, const Region& region)>;

// Files, index and, when given, a copy of `config` (a config.json) appear in `directory` all at once;
// input_error when something is there already, run_error when it cannot be written or is interrupted. Shows a
// progress bar.
void write_checkpoint(const std::string& directory, const CheckpointIndex& index, const ReadRegion& read,
                      const std::string& config);

}  // namespace moebius
