// Writes a checkpoint as its index plans it, one shard in memory at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "workloads/checkpoint/checkpoint_index.h"
#include "workloads/checkpoint/new_directory.h"

namespace moebius {

// The elements of a block of a weight, row-major, in the type of the index.
using ReadRegion = std::function<std::vector<std::byte>(const std::string& name, const Region& region)>;

// Writes what else belongs to a checkpoint and names it in the index.
using WriteBeside = std::function<void(const NewDirectory& directory, CheckpointIndex& index)>;

// Where a checkpoint goes.
struct CheckpointPlace {
  std::string directory;
  std::string config = {};       // a config.json to go with it; empty: none
  std::string config_text = {};  // without one: what stands in it; empty: nothing
  DirectoryPlan plan = {};       // whether it replaces another, or goes on where it was interrupted
  WriteBeside beside = {};       // empty: nothing
};

// Files, index and a copy of the config appear in the directory all at once; input_error when something is
// there already, run_error when it cannot be written or is interrupted. Shows a progress bar.
// With a journal, files that an interrupted writing finished are kept: those whose header is the one that
// would be written, and whose data is as long.
void write_checkpoint(const CheckpointPlace& place, CheckpointIndex index, const ReadRegion& read);

}  // namespace moebius
