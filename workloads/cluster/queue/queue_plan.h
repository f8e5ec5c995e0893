// Many jobs on one cluster: its queues, the shapes of their jobs, how a load of them is drawn, and by which
// rules cards are given. Plain data that the scenario reader checks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units.h"

namespace moebius {

enum class JobClass : std::uint8_t {
  kTraining,
  kFineTuning,     // supervised
  kReinforcement,  // rollout, scoring and training in turns
  kInference,      // a service: its demand for replicas follows the hour
};
inline constexpr int kNumJobClasses = 4;
std::string_view to_string(JobClass kind);  // "training"

// Jobs of one kind, drawn alike. Sizes are cards; an inference job's size is that of a replica.
struct JobShape {
  std::string name;
  JobClass kind = JobClass::kTraining;
  int queue = 0;
  std::string scenario;         // whose step, or whose tokens a second, are simulated; a path
  std::vector<int> sizes;       // cards on which it runs, rising
  std::vector<double> weights;  // how often each is asked for; inference: one size
  std::vector<int> pools;       // on which it may run, the first is that by which its length is drawn
  double jobs = 1;              // share of all jobs, in number; 0: there are none
  double card_time = 1;         // share of all card time that is asked for
  double sigma = 1;             // of the logarithm of its length
  Bytes state = {};             // of a checkpoint; inference: the weights that a replica loads
  bool preemptible = true;      // may be stopped when cards are taken back
  bool elastic = false;         // may run on fewer cards than it asked for, or on more
  double least = 0.25;          // elastic: of the cards that it asked for
  int replicas = 8;             // inference: at the peak, on average
  double night = 0.4;           // inference: of its peak that is left at night
  std::string model = {};       // whose state it is, and how many parameters that has
  double parameters = 0;
};

// How jobs are drawn: so many, whose card time is so much of what the cluster has over its duration.
struct MixedLoad {
  int jobs = 500;
  double demand = 1.1;      // card time that is asked for, over all that there is
  double backlog = 0.15;    // share of the jobs that wait when time begins
  double day_depth = 0.5;   // arrivals: at night so much fewer than on average, at the peak so much more
  double weekend = 0.6;     // arrivals on two days of seven, against the other five
  double peak_hour = 15;    // of the day, of arrivals and of services
  double noise = 0.05;      // of a service's demand from hour to hour: sigma of its logarithm
  double overestimate = 2;  // lengths that users state: uniform from 1 to so many times the true one
};

struct JobQueue {
  std::string name;
  double quota = 0;  // share of every pool that it gets whenever it asks
  int priority = 0;  // higher: served first, taken from last
  int network = 0;   // priority queue of its traffic on shared links; higher goes first
};

enum class PartitionRule : std::uint8_t {
  kStatic,  // a queue has its quota and nothing else
  kBorrow,  // idle quota is lent, and taken back from those who borrowed
};
enum class BackfillRule : std::uint8_t { kNone, kEasy, kConservative };
enum class PlacementRule : std::uint8_t { kFirst, kSpread, kPacked };
enum class ChipRule : std::uint8_t { kFirst, kFastest, kCheapest };

struct SchedulerPlan {
  PartitionRule partition = PartitionRule::kBorrow;
  BackfillRule backfill = BackfillRule::kEasy;
  PlacementRule placement = PlacementRule::kPacked;
  ChipRule chips = ChipRule::kCheapest;
  bool elastic = true;      // sizes of elastic jobs change while they run
  bool lend_spares = true;  // to jobs that can be stopped, until a fault asks for them; kBorrow alone
  bool yields = true;       // elastic jobs shrink for replicas that find no cards; kBorrow alone
  Time patience = {};       // who has waited so long goes before everybody else
  Time settle = {};         // a job that was just started or resized keeps its size for so long
};

// A pool of equal nodes as the scheduler sees it.
struct CardPool {
  std::string name;
  int nodes = 0, cards = 8;  // of a node
  int nodes_per_leaf = 1;
  int spares = 0;               // nodes kept for jobs that lose one
  double oversubscription = 1;  // of a leaf's uplinks
  Watts node_power = {}, overhead_power = {};
  UsdPerHour card_price = {};

  std::int64_t all_cards() const { return std::int64_t{nodes} * cards; }
  std::int64_t own_cards() const { return std::int64_t{nodes - spares} * cards; }  // but for the spares
  std::int64_t quota(const JobQueue& queue) const {
    return static_cast<std::int64_t>(queue.quota * static_cast<double>(own_cards()) + 1e-6);
  }
  // An equal part of a node, or whole nodes.
  bool stands_whole(int size) const { return size < cards ? cards % size == 0 : size % cards == 0; }
};

// From .. until, at the meter of the whole building.
struct PowerCap {
  Time from, until;
  Watts watts;
};

struct QueuePlan {
  std::vector<CardPool> pools;
  std::vector<JobQueue> queues;
  std::vector<JobShape> shapes;
  MixedLoad load;
  SchedulerPlan scheduler;
  std::vector<PowerCap> caps;
};

}  // namespace moebius
