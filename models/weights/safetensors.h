// A safetensors file for reading: eight bytes with the length of a JSON header, the header, the data. The
// file is untrusted: everything the header says is checked against the file before anything is given out.
// Source: https://github.com/huggingface/safetensors (README, "Format").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hw/file_bytes.h"
#include "models/weights/stored_type.h"

namespace moebius {

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::kF32;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0, end = 0;  // of its bytes in the data
};

std::string shape_text(const std::vector<std::int64_t>& shape);  // "[7168, 2048]"

class SafetensorsFile {
 public:
  // input_error "FILE: tensor "x": expected ..., found ..." for a header that is too long, is not JSON of the
  // form, or does not go with the file: types, sizes, tensors that overlap or leave holes, data that is cut
  // short. Data is mapped, not read.
  explicit SafetensorsFile(const std::string& path);
  SafetensorsFile(std::span<const std::byte> bytes, std::string name);  // copies them

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // by name
  const StoredTensor* find(std::string_view name) const;                 // null when absent
  std::span<const std::byte> bytes(const StoredTensor& tensor) const;
  void forget(const StoredTensor& tensor) const;  // its bytes need not stay in memory
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  void read_header();

  std::string path_;
  FileBytes file_;
  std::size_t data_start_ = 0;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace moebius
