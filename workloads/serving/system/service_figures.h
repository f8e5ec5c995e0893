// What a report says of a service beside the figures of its requests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/serving/system/expert_figures.h"
#include "workloads/serving/system/service_cost.h"
#include "workloads/serving/system/service_record.h"
#include "workloads/serving/system/serving_system.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

struct ServiceFigures {
  std::vector<ServicePoolFigures> pools;
  TimeShares shares;
  ServiceSeries series;
  std::vector<ServiceClassFigures> classes;
  std::int64_t rejected = 0, turned_away = 0;  // of all classes; those of admission
  Time span;                                   // from the first arrival to the last token
  ForecastFigures forecasts;
  CostFigures cost;
  double transferred_bytes = 0;
  std::optional<TierFigures> tiers = {};
  Time intake;  // of workers that take requests in
  int devices() const {
    int sum = 0;
    for (const ServicePoolFigures& pool : pools) sum += pool.devices;
    return sum;
  }
};

}  // namespace moebius
