// What fails while a run goes on, and how the platform reacts: keys `faults` and `failover`.
#include <array>

#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {
namespace {

constexpr double kThreeYears = 1e8;         // sums of a few of them stay far from the end of clocks
constexpr int kMostRanksWithFaults = 4096;  // every rank and port is looked at by itself

constexpr std::array kFaultKinds{
    Named<FaultKind>{"link-down", FaultKind::kLinkDown, "the link of a leaf or spine"},
    Named<FaultKind>{"link-degraded", FaultKind::kLinkDegraded,
                     "the link of a leaf or spine, or of a NIC, keeps `share` of its capacity"},
    Named<FaultKind>{"link-flap", FaultKind::kLinkFlap,
                     "down `for` so long, `every` so often, so many `times`; of a leaf, spine or NIC"},
    Named<FaultKind>{"nic-down", FaultKind::kNicDown, "a NIC"},
    Named<FaultKind>{"switch-down", FaultKind::kSwitchDown,
                     "a leaf, with all NICs on it, or a spine, with all its links"},
    Named<FaultKind>{"slow-node", FaultKind::kSlowNode, "chips of a node keep `share` of their speed"},
};

struct Where {
  int leaf = kAbsent, spine = kAbsent, nic = kAbsent, node = kAbsent, uplink = kAbsent;
};

// Whether to read a key that has no default: where it is given, and to describe it. An absent one is made
// known to suggestions.
bool wanted(Section& section, bool describing, std::string_view key) {
  if (describing || section.given(key)) return true;
  section.value(key, false, nullptr);
  return false;
}

Where read_where(Section section, bool describing) {
  Where where;
  where.leaf = read_index(section, describing, "leaf", "a leaf");
  where.spine = read_index(section, describing, "spine", kSpineNumbers);
  where.uplink =
      read_index(section, describing, "uplink", "the link of the leaf, or of the spine of three tiers");
  where.nic = read_index(section, describing, "nic", "the NIC that serves this device");
  where.node = read_index(section, describing, "node", "a node");
  section.finish();
  return where;
}

// What each kind wants to know of the place.
std::string problem_of(FaultKind kind, const Where& where) {
  const bool leaf = where.leaf != kAbsent, spine = where.spine != kAbsent, nic = where.nic != kAbsent,
             node = where.node != kAbsent, uplink = where.uplink != kAbsent;
  const bool one_switch = leaf != spine && !nic && !node, link = one_switch && uplink;
  const bool one_nic = nic && !leaf && !spine && !node && !uplink;
  switch (kind) {
    case FaultKind::kLinkDown:
      return link ? "" : "expected \"leaf\" or \"spine\", with \"uplink\"";
    case FaultKind::kLinkDegraded:
    case FaultKind::kLinkFlap:
      return link || one_nic ? "" : "expected \"leaf\" or \"spine\", with \"uplink\", or \"nic\"";
    case FaultKind::kNicDown:
      return one_nic ? "" : "expected \"nic\" alone";
    case FaultKind::kSwitchDown:
      return one_switch && !uplink ? "" : "expected \"leaf\" or \"spine\" alone";
    case FaultKind::kSlowNode:
      return node && !leaf && !spine && !nic && !uplink ? "" : "expected \"node\" alone";
  }
  return "";
}

PartHealth part_of(const Where& where, double capacity) {
  PartHealth part;
  part.capacity = capacity;
  part.uplink = where.uplink == kAbsent ? 0 : where.uplink;
  if (where.leaf != kAbsent) {
    part.part = where.uplink == kAbsent ? FabricPart::kLeaf : FabricPart::kLeafUplink;
    part.index = where.leaf;
  } else if (where.spine != kAbsent) {
    part.part = where.uplink == kAbsent ? FabricPart::kSpine : FabricPart::kSpineUplink;
    part.index = where.spine;
  } else {
    part.part = FabricPart::kNic;
    part.index = where.nic;
  }
  return part;
}

Time bounded(Section& section, std::string_view key, std::optional<Time> otherwise, std::string_view help) {
  const Time time = section.time(key, otherwise, help);
  if (section.given(key) && time.seconds() > kThreeYears)
    section.place_of(key).fail(
        fmt::format("expected at most {}, found {}", to_text(time_from_seconds(kThreeYears)), to_text(time)));
  return time;
}

// Keys that some kinds have and others do not.
void check_keys(const Section& section, FaultKind kind) {
  const auto belongs = [&](std::string_view key, bool belongs, bool required) {
    if (section.given(key) && !belongs)
      section.place_of(key).fail(fmt::format("a {} has none", to_string(kind)));
    if (!section.given(key) && required)
      section.place_of(key).fail(fmt::format("a {} needs it", to_string(kind)));
  };
  const bool flap = kind == FaultKind::kLinkFlap;
  const bool partial = kind == FaultKind::kLinkDegraded || kind == FaultKind::kSlowNode;
  belongs("share", partial, partial);
  belongs("every", flap, flap);
  belongs("times", flap, flap);
  belongs("for", true, flap);
}

Fault read_fault(Section& section, bool describing, Where& where) {
  Fault fault;
  fault.at = bounded(section, "at", std::nullopt, "from the start of the run");
  fault.kind = section.choice<FaultKind>("kind", kFaultKinds, std::nullopt, "what fails, and how");
  where = read_where(section.object("where", true, "what it happens to"), describing);
  if (!describing) check_keys(section, fault.kind);
  if (wanted(section, describing, "for"))
    fault.lasts = bounded(section, "for", kForever, "how long; absent: it stays so");
  double share = 0;
  if (wanted(section, describing, "share"))
    share =
        section.number("share", {.low = kAboveZero, .high = 1}, 1, "of the capacity or speed that is left");
  if (wanted(section, describing, "every"))
    fault.every = bounded(section, "every", Time{}, "flap: from one time to the next");
  if (wanted(section, describing, "times"))
    fault.times = static_cast<int>(section.integer("times", {1, 10000}, 1, "flap: how often"));
  section.finish();
  if (fault.kind == FaultKind::kSlowNode) {
    fault.node = where.node;
    fault.speed = share;
  } else {
    fault.part = part_of(where, share);
  }
  return fault;
}

void check_fault(const Section& section, const Fault& fault, const Where& where, const Cluster& cluster) {
  const Place place = section.place_of("where");
  if (const std::string problem = problem_of(fault.kind, where); !problem.empty())
    place.fail(fmt::format("{}: {}", to_string(fault.kind), problem));
  if (fault.lasts.ns == 0) section.place_of("for").fail("expected more than 0 s");
  if (fault.times > 1 && fault.every <= fault.lasts)
    section.place_of("every").fail(fmt::format("expected more than the {} of /for, found {}",
                                               to_text(fault.lasts), to_text(fault.every)));
  if (fault.kind == FaultKind::kSlowNode) {
    const int nodes = cluster.fabric.node_of(cluster.fabric.num_devices() - 1) + 1;
    if (fault.node >= nodes) place.fail(fmt::format("node {}: expected 0 to {}", fault.node, nodes - 1));
    return;
  }
  if (cluster.fabric.spec().tiers == 0) place.fail("the cluster has no network between nodes");
  if (const std::string problem = moebius::problem_of(fault.part, cluster.fabric); !problem.empty())
    place.fail(problem);
  for (const PartHealth& damaged : cluster.damaged) {
    if (same_part(damaged, fault.part, cluster.fabric))
      place.fail(place_of(fault) + " is broken from the start (/cluster/failed)");
  }
}

Time end_of(const Fault& fault) {
  return fault.lasts == kForever ? kForever : fault.at + fault.every * (fault.times - 1) + fault.lasts;
}

bool same_place(const Fault& a, const Fault& b, const Fabric& fabric) {
  const bool of_node = a.kind == FaultKind::kSlowNode;
  if (of_node != (b.kind == FaultKind::kSlowNode)) return false;
  return of_node ? a.node == b.node : same_part(a.part, b.part, fabric);
}

// One thing fails once at a time.
void check_overlap(const Section& section, const FaultPlan& plan, const Fault& fault, const Fabric& fabric) {
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    const Fault& other = plan.faults[i];
    const bool same = same_place(other, fault, fabric);
    if (same && fault.at < end_of(other) && other.at < end_of(fault))
      section.place_of("at").fail(fmt::format("{} is not whole then: see /faults/{}", place_of(fault), i));
  }
}

void read_failover(Section section, Failover& failover) {
  failover.in_collective = bounded(
      section, "in_collective", failover.in_collective,
      "from the first packet that two NICs miss until the library moves their messages to other ways; "
      "published as ms-level (BCCL, Baidu Baige 4.0; Kunlun super-node: 50 us)");
  failover.detect = bounded(section, "detect", failover.detect,
                            "from a failure until ping mesh sees it; published as second-level (Baige 4.0)");
  failover.mitigate =
      bounded(section, "mitigate", failover.mitigate,
              "from a failure until the control plane has taken the part out; published as minute-level "
              "(Baige 4.0)");
  if (failover.mitigate < failover.detect)
    section.place_of("mitigate")
        .fail(fmt::format("expected at least the {} of /failover/detect, found {}", to_text(failover.detect),
                          to_text(failover.mitigate)));
  section.finish();
}

}  // namespace

int read_index(Section& section, bool describing, std::string_view key, std::string_view help) {
  return wanted(section, describing, key) ? section.whole(key, {0, 1 << 24}, 0, help) : kAbsent;
}

void read_faults(Section& top, Scenario& scenario, bool describing) {
  for (Section& section : top.objects("faults", false, "what fails while the run goes on")) {
    Where where;
    const Fault fault = read_fault(section, describing, where);
    if (describing) continue;
    check_fault(section, fault, where, *scenario.cluster);
    if (fault.kind == FaultKind::kSlowNode && scenario.kind == ScenarioKind::kCollective)
      section.place_of("kind").fail("a collective computes nothing that a slow node would slow down");
    check_overlap(section, scenario.faults, fault, scenario.cluster->fabric);
    scenario.faults.faults.push_back(fault);
  }
  read_failover(top.object("failover", false, "how the platform reacts to faults"), scenario.faults.failover);
  top.allow_only("failover", top.given("faults"), "\"faults\"");
  if (describing || scenario.faults.empty()) return;
  if (scenario.ranks() > kMostRanksWithFaults)
    top.place_of("faults").fail(
        fmt::format("{} ranks: with faults every rank is simulated by itself, at most {}", scenario.ranks(),
                    kMostRanksWithFaults));
  scenario.cluster->ports_may_fail = scenario.faults.in_network();
}

}  // namespace moebius
