// The requests of a service that is carried out, held whole: they bound what its ranks keep.
#pragma once

#include <memory>

#include "workloads/serving/carried/carried_service.h"
#include "workloads/serving/system/request_feed.h"

namespace moebius {

// In the order of the service's requests, which outlive it.
std::unique_ptr<RequestFeed> carried_feed(const CarriedService& service);

}  // namespace moebius
