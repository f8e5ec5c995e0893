// Writes a safetensors file tensor by tensor, so that no more than one is in memory.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hw/new_file.h"
#include "models/weights/safetensors.h"

namespace moebius {

class SafetensorsWriter {
 public:
  // Announces what will come: names, types and shapes (offsets are set here); names differ. Writes the
  // header, padded so that the data starts at a multiple of eight. Errors are NewFile's; what is not
  // committed goes away.
  SafetensorsWriter(const std::string& path, std::vector<StoredTensor> tensors,
                    const std::map<std::string, std::string>& metadata);

  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in the order of writing: by name
  void append(std::span<const std::byte> bytes);                         // the next tensor, whole
  void commit();  // after the last one: from here the file is there under its name

 private:
  std::string path_;
  NewFile file_;
  std::vector<StoredTensor> tensors_;
  std::size_t next_ = 0;
};

// A whole file at once, for what is in memory anyway; `bytes` by name.
void write_safetensors(const std::string& path, std::vector<StoredTensor> tensors,
                       const std::map<std::string, std::vector<std::byte>>& bytes,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace moebius
