#include "workloads/service/encoder.h"

#include <utility>

#include "workloads/service/rules.h"
#include "workloads/service/tariff.h"

namespace moebius {
namespace {

std::unique_ptr<Job> job_on(const Scenario& whole, int pool) {
  auto job = std::make_unique<Job>();
  job->scenario = whole;
  job->scenario.service = {};
  const Cluster& cluster = *whole.cluster;
  job->scenario.cluster =
      build_cluster({cluster.pools[pool]}, cluster.fabric.spec(), Place{whole.file, "/cluster/pools"});
  job->scenario.cluster->collectives = cluster.collectives;
  job->scenario.cluster->copy_engines = cluster.copy_engines;
  job->scenario.cluster->launch = cluster.launch;
  job->is_phase = true;
  return job;
}

}  // namespace

ServedEncoder::ServedEncoder(const Scenario& scenario, int pool, const StartExecutor& start)
    : plan_(scenario.service.encoder),
      hidden_(scenario.model.hidden),
      job_(job_on(scenario, pool)),
      layout_(encoder_layout(plan_.tp)),
      recorder_(layout_, {.detail = Detail::kNone}),
      engine_(start(*job_, layout_, recorder_)),
      timer_({plan_, hidden_}, {*engine_.executor, engine_.clocks}, recorder_) {}

// Every rank of a replica sends its part through its own NIC. Tokens travel in BF16.
EncoderRules ServedEncoder::rules() {
  const Cluster& cluster = *job_->scenario.cluster;
  EncoderRules rules;
  rules.replicas = plan_.dp;
  rules.max_batch = plan_.max_batch;
  rules.cost = &timer_;
  rules.bytes_per_image = static_cast<double>(plan_.tokens()) * hidden_ * element_bytes(DType::kBf16);
  rules.rate = send_rate(cluster, plan_.tp);
  rules.replicas_on_port = replicas_on_nic(cluster, plan_.tp);
  rules.latency = cluster.fabric.spec().host_latency + cluster.fabric.spec().hop_latency;
  return rules;
}

EncoderFigures ServedEncoder::figures(const ServingSystem& system,
                                      const std::optional<EncodingCost::Totals>& beside) {
  EncoderFigures figures;
  figures.one_image = timer_.seconds(1);
  if (beside) {
    figures.run.images = beside->images;
    figures.run.busy = time_from_seconds(beside->seconds);
    return figures;
  }
  figures.run = system.encoders();
  const Pool& pool = job_->scenario.cluster->pools.front();
  figures.pool = pool.name;
  figures.devices = plan_.dp * plan_.tp;
  figures.tariff = tariff_of(pool, engine_.facts.idle_watts.of(0));
  figures.drawn_joules = static_cast<double>(figures.run.images) * timer_.joules_per_image();
  const double span = system.span().seconds() * plan_.dp;
  figures.busy = span > 0 ? figures.run.busy.seconds() / span : 0;
  return figures;
}

}  // namespace moebius
