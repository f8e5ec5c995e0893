#include "workloads/report/report_separation.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/report/number_text.h"

namespace moebius {
namespace {

// What is left of it; means of few iterations round.
double bubble(double part, double whole) {
  return whole > 0 ? std::max(0.0, 1 - part / whole) : 0;
}

// Who sets the pace; nobody where both wait alike, for what travels.
std::string hint(const SideTimes& mean) {
  const double attention = share(mean.attention, mean.iteration),
               experts = share(mean.experts, mean.iteration);
  constexpr double kAlike = 0.05;
  if (attention > experts + kAlike)
    return fmt::format("experts wait for attention: up to {:.2g} times as much attention would feed them",
                       mean.attention / std::max(mean.experts, 1e-12));
  if (experts > attention + kAlike)
    return fmt::format("attention waits for experts: up to {:.2g} times as many of them would follow it",
                       mean.experts / std::max(mean.attention, 1e-12));
  return std::max(attention, experts) < 0.8 ? "both wait for what travels" : "balanced";
}

FigureTree sides_tree(const SideTimes& mean) {
  return {{{"microbatches", mean.microbatches},
           {"iteration_s", mean.iteration},
           {"attention_s", mean.attention},
           {"experts_s", mean.experts},
           {"to_experts_s", mean.to_experts},
           {"back_s", mean.back},
           {"attention_bubble", bubble(mean.attention, mean.iteration)},
           {"experts_bubble", bubble(mean.experts, mean.iteration)}}};
}

std::string sides_text(const std::string& pool, const char* which, const SideTimes& mean) {
  if (mean.iteration <= 0) return "";
  return fmt::format(
      "  {}: of {} an iteration {} attention computes {} (bubble {:.1f}%), experts {} (bubble {:.1f}%); "
      "{:.1f} microbatches take {} to experts and {} back; {}\n",
      pool, seconds_text(mean.iteration), which, seconds_text(mean.attention),
      100 * bubble(mean.attention, mean.iteration), seconds_text(mean.experts),
      100 * bubble(mean.experts, mean.iteration), mean.microbatches, seconds_text(mean.to_experts),
      seconds_text(mean.back), hint(mean));
}

}  // namespace

FigureTree separation_tree(const SeparationFigures& figures) {
  return {{{"expert_devices", std::int64_t{figures.experts}},
           {"attention_weight_bytes", figures.attention_weights.value},
           {"expert_weight_bytes", figures.expert_weights.value}},
          {{"decode", sides_tree(figures.decode)}, {"prompts", sides_tree(figures.prompts)}}};
}

std::string separation_plan_text(const ServicePhase& phase, const Cluster& cluster) {
  const SeparateExperts& apart = phase.plan.apart;
  return fmt::format("attention dp {}, experts over {} of {} {}, {} microbatches", phase.plan.dp, apart.ranks,
                     grouped(cluster.pools[phase.expert_pool].devices()),
                     cluster.pools[phase.expert_pool].accelerator.id, apart.microbatches);
}

std::string separation_text(const std::string& pool, const SeparationFigures& figures) {
  return sides_text(pool, "without prompts", figures.decode) +
         sides_text(pool, "with prompts", figures.prompts) +
         fmt::format("  {}: weights {} on a device of attention, {} on one of experts\n", pool,
                     to_text(figures.attention_weights), to_text(figures.expert_weights));
}

FigureTree encoder_tree(const EncoderFigures& figures) {
  return {{{"devices", std::int64_t{figures.devices}},
           {"iterations", figures.run.iterations},
           {"images", figures.run.images},
           {"busy_s", figures.run.busy.seconds()},
           {"busy", figures.busy},
           {"image_s", figures.one_image},
           {"sent_bytes", figures.run.sent_bytes}}};
}

std::string encoder_text(const EncoderFigures& figures, double share) {
  const std::string images =
      fmt::format("{} images, {} each alone", grouped(figures.run.images), seconds_text(figures.one_image));
  if (figures.devices == 0)
    return fmt::format("  encoder            {}; iterations with prompts take {} longer together\n", images,
                       seconds_text(figures.run.busy.seconds()));
  return fmt::format(
      "  encoder            {}, on {} devices {:.1f}% busy; {:.1f}% of the requests' time; sent {}\n", images,
      figures.devices, 100 * figures.busy, share, to_text(Bytes{figures.run.sent_bytes}));
}

}  // namespace moebius
