// What the layers of a model put out in the first microbatch of the run's first step, which of a run that
// goes on is not step 0, put together from the ranks that computed it, under the paths of the Hugging Face
// modules: model.embed_tokens, model.layers.3.self_attn, model.layers.3.mlp, model.layers.3 (with the
// residual stream), model.norm, lm_head. Beside them input_ids, so that a reference can be made of the same
// tokens. Of several data-parallel replicas, the first one's. Of attention and MLP side by side on
// tensor-parallel ranks no self_attn and mlp: their parts are added up before any sum over the ranks.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "models/model.h"
#include "real/host/op_context.h"
#include "workloads/schedule/layout.h"
#include "workloads/training/plan.h"

namespace moebius {

class ActivationDump {
 public:
  // All of them outlive the dump.
  ActivationDump(const Model& model, const TrainingPlan& plan, const TrainingWorkload& workload,
                 const Layout& layout);

  // HostOptions::observer; ranks may call it at once.
  void observe(const ComputedOp& computed);
  // A safetensors file: activations [sequences, length, columns] in BF16 or FP32 as the plan keeps them,
  // input_ids in I64, and as metadata the model and the precision of matrix products. run_error when it
  // cannot be written.
  void write(const std::string& path) const;

 private:
  struct Entry {
    std::int64_t columns = 0;
    DType dtype = DType::kBf16;
    std::vector<float> values;
  };
  // The rows and columns that a rank has of an entry.
  struct Share {
    std::int64_t first_row = 0, first_column = 0, whole_columns = 0;
  };

  void observe_residual(const ComputedOp& computed);
  void observe_parallel(const ComputedOp& computed, const std::string& layer);
  void keep(const ComputedOp& computed, std::int32_t tensor, const std::string& name,
            bool cut_columns = false);
  void place(const std::string& name, const Tensor& tensor, const Share& share,
             const std::vector<float>& values, std::int64_t context);
  const Group& group(std::int32_t rank, GroupRole role) const;
  bool of_first_replica(std::int32_t rank) const;
  std::int64_t rows_of_sequence() const { return workload_.sequence_length / plan_.cp; }

  const Model& model_;
  const TrainingPlan& plan_;
  const TrainingWorkload& workload_;
  const Layout& layout_;
  std::mutex mutex_;  // guards entries_
  std::map<std::string, Entry> entries_;
};

inline constexpr const char* kTokenIds = "input_ids";
inline constexpr const char* kPrecisionKey = "precision";  // metadata: "bf16", "fp8", "fp32"

}  // namespace moebius
