// A checkpoint for reading, Hugging Face's or ours: any block of any weight, whichever files hold it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "models/weights/safetensors.h"
#include "workloads/checkpoint/checkpoint_index.h"

namespace moebius {

// For those who will read it later, or only say that a run would begin there: input_error where nothing
// stands at the path, or a directory without any weights.
void require_checkpoint(const std::string& path);

class Checkpoint {
 public:
  // A .safetensors file, a directory of Hugging Face (model.safetensors or model.safetensors.index.json) or
  // one of ours. Files are mapped; input_error when one is missing, damaged or not what the index says.
  explicit Checkpoint(const std::string& path);

  const std::string& path() const { return path_; }
  const CheckpointIndex& index() const { return index_; }
  WeightNaming naming() const { return naming_; }
  std::string config_path() const;  // config.json beside the weights; empty when there is none

  // The block's elements, row-major, as they are stored. CHECKs that it lies inside the weight.
  std::vector<std::byte> read(const std::string& name, const Region& region) const;
  // As numbers; 8-bit weights times the factors of their blocks. input_error for types that are no floating
  // numbers.
  std::vector<float> read_floats(const std::string& name, const Region& region) const;

 private:
  void open_ours();
  void open_file(const std::string& file);
  void open_mapped();
  void check_shards() const;
  const StoredTensor& shard_tensor(const std::string& name, const StoredWeight& weight,
                                   const Shard& shard) const;
  std::string beside(const std::string& file) const;

  std::string path_, directory_;
  CheckpointIndex index_;
  WeightNaming naming_ = WeightNaming::kShared;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
};

}  // namespace moebius
