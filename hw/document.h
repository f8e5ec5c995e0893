// A parsed JSON text that still knows where each value stood. Input is untrusted: size, depth and duplicate
// keys are checked here, once. `//` comments are allowed; NaN, infinities and trailing commas are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace moebius {

struct Value {
  enum class Kind : std::uint8_t { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;       // kInteger
  double number = 0;              // kInteger and kNumber
  int line = 0;                   // 1-based; 0 when set from the command line
  std::string text;               // kString; kNumber: an integer of more than 64 bits as it was written
  std::vector<std::string> keys;  // kObject: same length as items
  std::vector<Value> items;       // kArray, kObject
  std::shared_ptr<const std::string> origin;  // the file it stood in; null: that of the document

  const Value* find(std::string_view key) const;  // kObject only; null when absent
  std::string_view kind_name() const;             // "an object", "a string", ...
  std::string excerpt() const;                    // what error sentences show: at most 40 characters
};

struct Document {
  std::string file;  // as the user wrote it; "<name>" for embedded texts
  Value root;
};

struct DocumentLimits {
  std::size_t bytes = std::size_t{64} << 20;
  int depth = 64;
  std::size_t values = std::size_t{1} << 20;
};

// Throws input_error "FILE:LINE: expected ..., found ..." for anything that is not strict JSON within the
// limits.
Document parse_document(std::string_view text, std::string file, DocumentLimits limits = {});

// Reads and parses a file; a missing, unreadable or oversized file is an input_error "PATH: expected ...,
// found ...". Never reads more than limits.bytes.
Document load_document(const std::string& path, DocumentLimits limits = {});

// Replaces or adds the value at a JSON pointer ("/plan/ep/degree"; RFC 6901: ~1 is a slash, ~0 a tilde).
// `json_text` is parsed as JSON and, when that fails and it opens no bracket, taken as a string, so that both
// 64 and 400 Gb/s can be given on a command line. Objects that are missing on the way are made. Array
// elements by index, "-" appends. A pointer through something that is not a container is an input_error
// "FILE: --set POINTER: expected ..., found ...".
void set_at_pointer(Document& document, std::string_view pointer, std::string_view json_text);

// {"base": ..., changes}: `changes` laid over `base`, objects merged key by key, everything else replaced.
Value merged(const Value& base, const Value& changes);

// Strict JSON text of a value, two-space indented; numbers round-trip.
std::string to_json(const Value& value);

}  // namespace moebius
