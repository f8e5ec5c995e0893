#include "workloads/checkpoint/checkpoint_writer.h"

#include <filesystem>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/weights/safetensors_writer.h"
#include "workloads/checkpoint/interruption.h"
#include "workloads/checkpoint/new_directory.h"
#include "workloads/progress_bar.h"
#include "workloads/report/run_directory.h"

namespace moebius {
namespace {

struct PlannedTensor {
  StoredTensor tensor;
  Region region;
};

// What each file holds, in the order of names.
std::vector<std::vector<PlannedTensor>> plan_files(const CheckpointIndex& index) {
  std::vector<std::vector<PlannedTensor>> files(index.files.size());
  for (const auto& [name, weight] : index.weights) {
    for (const Shard& shard : weight.shards) {
      PlannedTensor planned{{.name = name, .type = weight.type, .shape = weight.shape},
                            region_of(weight, shard)};
      if (!weight.shape.empty())
        planned.tensor.shape[static_cast<std::size_t>(weight.axis)] = shard.last - shard.first;
      files[static_cast<std::size_t>(shard.file)].push_back(std::move(planned));
    }
  }
  return files;
}

// Tools of Hugging Face read files only that say where they come from.
const std::map<std::string, std::string> kMetadata{{"format", "pt"}};

class CheckpointWriter {
 public:
  // `goes_on`: with what is in the directory.
  CheckpointWriter(const CheckpointIndex& index, const ReadRegion& read, NewDirectory& directory,
                   bool goes_on)
      : read_(read), directory_(directory), goes_on_(goes_on), total_(index.bytes()) {}

  void write(const std::string& path, const std::vector<PlannedTensor>& planned) {
    if (goes_on_ && is_finished(path, planned)) return;
    std::vector<StoredTensor> tensors;
    for (const PlannedTensor& row : planned) tensors.push_back(row.tensor);
    SafetensorsWriter writer(path, std::move(tensors), kMetadata);
    for (const PlannedTensor& row : planned) {
      check_interruption();
      const std::vector<std::byte> bytes = read_(row.tensor.name, row.region);
      writer.append(bytes);
      written_ += static_cast<double>(bytes.size());
      bar_.show(total_ > 0 ? written_ / total_ : 1);
    }
    writer.commit();
  }

 private:
  // A file gets its name when all of it is written. What cannot be read is written again.
  bool is_finished(const std::string& path, const std::vector<PlannedTensor>& planned) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return false;
    try {
      const SafetensorsFile file(path);
      if (file.tensors().size() != planned.size()) return false;
      for (const PlannedTensor& row : planned) {
        const StoredTensor* found = file.find(row.tensor.name);
        if (found == nullptr || found->type != row.tensor.type || found->shape != row.tensor.shape)
          return false;
      }
      for (const StoredTensor& tensor : file.tensors())
        written_ += static_cast<double>(tensor.end - tensor.begin);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  void check_interruption() const {
    if (goes_on_ && interruption_.came()) {
      directory_.keep();
      throw run_error("interrupted: the same command goes on with the files that are not finished");
    }
    interruption_.check();
  }

  const ReadRegion& read_;
  NewDirectory& directory_;
  bool goes_on_;
  double total_ = 0, written_ = 0;
  Interruption interruption_;
  ProgressBar bar_;
};

void write_index(const NewDirectory& directory, const CheckpointIndex& index) {
  if (index.layout) {
    write_file(directory.path(kIndexName), index_text(index));
  } else if (index.files.size() > 1) {
    write_file(directory.path(kHfIndexName), hf_index_text(index));
  }
}

void write_config(const NewDirectory& directory, const CheckpointPlace& place) {
  const std::string& config = place.config;
  if (config.empty() && !place.config_text.empty())
    write_file(directory.path("config.json"), place.config_text);
  if (config.empty()) return;
  std::error_code error;
  std::filesystem::copy_file(config, directory.path("config.json"),
                             std::filesystem::copy_options::overwrite_existing, error);
  if (error) throw run_error(fmt::format("{}: cannot be copied: {}", config, error.message()));
}

}  // namespace

void write_checkpoint(const CheckpointPlace& place, CheckpointIndex index, const ReadRegion& read) {
  NewDirectory directory(place.directory, place.plan);
  const std::vector<std::vector<PlannedTensor>> files = plan_files(index);
  CheckpointWriter writer(index, read, directory, !place.plan.journal.empty());
  for (std::size_t i = 0; i < files.size(); ++i) writer.write(directory.path(index.files[i]), files[i]);
  if (place.beside) place.beside(directory, index);
  write_index(directory, index);
  write_config(directory, place);
  directory.commit();
}

}  // namespace moebius
