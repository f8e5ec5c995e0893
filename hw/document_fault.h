// Says in one sentence why a JSON text could not be read on: what was expected there, and what stood there
// instead.
#pragma once

#include <string>
#include <string_view>

namespace moebius {

// Where the parser was when it stopped.
struct FaultContext {
  enum class After { kNothing, kKey, kObjectStart, kArrayStart, kValue };
  enum class Inside { kFile, kObject, kArray };

  After after = After::kNothing;  // the last thing that was read without a fault
  Inside inside = Inside::kFile;  // the innermost open container
  std::size_t from = 0;           // the offset behind that last thing
  std::size_t last = 0;           // the offset of the last character that the lexer took; the size at the end
  std::string_view lexer_message;  // what the lexer says; tells why a string or a number is broken
};

struct TextFault {
  std::size_t offset = 0;  // of the token that was not expected
  std::string sentence;    // "expected ..., found ..."
};

TextFault find_fault(std::string_view text, const FaultContext& context);

}  // namespace moebius
