// What a library that works on several rehearsed devices at once needs of them.
#pragma once

#include <functional>
#include <set>

#include "real/cuda/device.h"

namespace moebius::cuda {

// Appends work that touches no memory but within touch(), and may wait for other streams.
void give(Stream stream, std::function<void()> work);
// Calls work() while the memory of these devices alone can be touched.
void touch(const std::set<int>& devices, const std::function<void()>& work);
int device_of(Stream stream);

}  // namespace moebius::cuda
