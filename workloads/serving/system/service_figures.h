// What a report says of a service beside the figures of its requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/serving/system/expert_figures.h"
#include "workloads/serving/system/service_cost.h"
#include "workloads/serving/system/service_record.h"
#include "workloads/serving/system/serving_system.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

struct EncoderFigures {
  EncoderPool::Totals run;
  std::string pool;        // whose devices they have for themselves
  int devices = 0;         // of their own; 0: those of the language model
  double busy = 0;         // share of the run
  double one_image = 0;    // seconds alone
  PoolTariff tariff = {};  // of devices of their own
  double drawn_joules = 0;
};

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
  std::optional<EncoderFigures> encoder;
  int devices() const {
    int sum = encoder ? encoder->devices : 0;
    for (const ServicePoolFigures& pool : pools) sum += pool.devices;
    return sum;
  }
};

}  // namespace moebius
