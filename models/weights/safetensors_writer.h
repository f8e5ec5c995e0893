// Writes a safetensors file tensor by tensor, so that no more than one is in memory.
#pragma once

#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/weights/safetensors.h"

namespace moebius {

class SafetensorsWriter {
 public:
  // Announces what will come: names, types and shapes (offsets are set here); names differ. Writes the header
  // to a temporary name beside `path`, padded so that the data starts at a multiple of eight. Errors are
  // run_error.
  SafetensorsWriter(const std::string& path, std::vector<StoredTensor> tensors,
                    const std::map<std::string, std::string>& metadata);
  ~SafetensorsWriter();  // what was not committed goes away
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in the order of writing: by name
  void append(std::span<const std::byte> bytes);                         // the next tensor, whole
  void commit();  // after the last one: from here the file is there under its name

 private:
  void write(const void* data, std::size_t size);
  [[noreturn]] void fail() const;

  std::string path_, temporary_;
  std::vector<StoredTensor> tensors_;
  std::size_t next_ = 0;
  std::FILE* file_ = nullptr;
};

// A whole file at once, for what is in memory anyway; `bytes` by name.
void write_safetensors(const std::string& path, std::vector<StoredTensor> tensors,
                       const std::map<std::string, std::vector<std::byte>>& bytes,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace moebius
