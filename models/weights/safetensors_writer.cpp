#include "models/weights/safetensors_writer.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "hw/json_text.h"

namespace moebius {
namespace {

std::size_t bytes_of(const StoredTensor& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t size : tensor.shape) elements *= size;
  return static_cast<std::size_t>(elements) * static_cast<std::size_t>(stored_bytes(tensor.type));
}

std::string header_text(const std::vector<StoredTensor>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> entries;
  std::vector<std::string> notes;
  notes.reserve(metadata.size());
  for (const auto& [key, text] : metadata)
    notes.push_back(fmt::format("{}:{}", json_string(key), json_string(text)));
  if (!notes.empty()) entries.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(notes, ",")));
  for (const StoredTensor& tensor : tensors) {
    entries.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                                  json_string(tensor.name), to_string(tensor.type),
                                  fmt::join(tensor.shape, ","), tensor.begin, tensor.end));
  }
  std::string text = fmt::format("{{{}}}", fmt::join(entries, ","));
  while (text.size() % 8 != 0) text += ' ';
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<StoredTensor> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(path), file_(path), tensors_(std::move(tensors)) {
  std::sort(tensors_.begin(), tensors_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  std::size_t end = 0;
  for (StoredTensor& tensor : tensors_) {
    tensor.begin = end;
    end = tensor.end = tensor.begin + bytes_of(tensor);
  }
  const std::string header = header_text(tensors_, metadata);
  const std::uint64_t length = header.size();
  file_.write({reinterpret_cast<const char*>(&length), sizeof length});
  file_.write(header);
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  CHECK(next_ < tensors_.size(), fmt::format("{}: {} tensors announced", path_, tensors_.size()));
  const StoredTensor& tensor = tensors_[next_++];
  CHECK(bytes.size() == tensor.end - tensor.begin,
        fmt::format("{}: {} bytes for {}", path_, bytes.size(), tensor.name));
  file_.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void SafetensorsWriter::commit() {
  CHECK(next_ == tensors_.size(), fmt::format("{}: {} of {} tensors", path_, next_, tensors_.size()));
  file_.finish();
}

void write_safetensors(const std::string& path, std::vector<StoredTensor> tensors,
                       const std::map<std::string, std::vector<std::byte>>& bytes,
                       const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter writer(path, std::move(tensors), metadata);
  for (const StoredTensor& tensor : writer.tensors()) writer.append(bytes.at(tensor.name));
  writer.commit();
}

}  // namespace moebius
