// Independent pieces of work side by side.
#pragma once

#include <cstddef>
#include <functional>

namespace moebius {

// Calls work(0) .. work(count - 1), each once, in any order, on as many threads as this machine has cores,
// with one progress bar for all, or none. The first exception of any of them ends the rest and is thrown.
void work_side_by_side(std::size_t count, const std::function<void(std::size_t)>& work, bool quiet = false);

}  // namespace moebius
