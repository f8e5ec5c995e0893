#include "real/processes/byte_stream.h"

#include "hw/error.h"

namespace moebius {

void throw_cut_short() {
  throw run_error("a message between processes is cut short");
}

}  // namespace moebius
