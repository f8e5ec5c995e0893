// Constants of collectives on the links of one chip, as hw/catalog/collectives.json holds them: facts of the
// libraries with their source, and constants that `moebius calibrate --fit links` fits to all-reduce between
// 2 and 8 devices, never to another operation, another number of devices or a system.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/accelerator.h"
#include "hw/document.h"

namespace moebius {

// SI units: seconds, bytes per second.
struct LinkConstants {
  std::string accelerator;  // catalog id
  std::string library;      // "nccl"
  // The chip whose step_ll and all-reduce in the switch are taken: measured between 2 devices only; else
  // empty.
  std::string steps_like;
  std::string source;
  bool estimated = false;
  // Facts.
  double achieved = 0;         // what the catalog says that the chip's link achieves: the rates belong to it
  double nominal = 0;          // rate of the link in NCCL's tuner; 0: what was measured (PCIe)
  double ll_most = 0;          // tuner's limit of LL
  bool has_ll128 = false;      // the tuner may take LL128
  bool one_protocol = false;   // the library has but one law: LL's, at rate_ll
  double in_switch_share = 0;  // of nominal that the tuner takes all-reduce in the switch for; 0: has none
  bool own_ports = false;      // a device's link is its own; else host bridges are shared, n sets the rate
  int channels = 0;            // of a large call, a core each; 0: takes none of the device's
  double copy_rate = 0;        // at which its channels copy a member's own share from buffer to buffer
  double latency = 0;          // of a message between two devices where the constants were measured
  // Fitted.
  double launch = 0;          // start and end of the kernel, with a few bytes
  double launch_growth = 0;   // added when all channels run
  double step_ll = 0;         // of LL
  double step_ll_growth = 0;  // added to it when a step is more than a few lines
  double rate_ll = 0;         // between 2 devices
  double step_ll128 = 0;
  double step_simple = 0;     // a chunk's flag forth and back
  double rate_two = 0;        // Simple between 2 devices, without its spread
  double rate_eight = 0;      // between 8; with own ports the same
  double spread = 0;          // s per square root of byte: channels drift apart, the last one ends the call
  double step_in_switch = 0;  // of all-reduce in the switch
  double rate_in_switch = 0;  // bytes of the buffer a second
  double error = 0;           // median relative error on the rows it was fitted to
  // Not of a row but of the devices at hand: what a message takes longer than `latency`. s.
  double neighbour_more = 0;  // from one to the next, mean around the ring
  double message_more = 0;    // between any two, at most
  double channel_copy = 0;    // copy_rate of one channel, however many the links have; 0: takes no channels
  bool one_order = true;      // all rings take the devices in one; over direct links each has its own
};

// A serving framework's own all-reduce on one chip.
struct FrameworkConstants {
  std::string accelerator, framework;  // "h100-sxm", "sglang"
  std::string source;
  bool estimated = false;
  double achieved = 0;     // as in LinkConstants
  double launch = 0;       // kernel and first flag
  double doubling = 0;     // added for each doubling of the devices
  double growth = 0;       // added when all blocks run
  double second_step = 0;  // two-shot: the flag between its halves
  double rate = 0;         // at which a member reads from all others together
  double error = 0;
};

struct CollectiveConstants {
  std::vector<LinkConstants> links;
  std::vector<FrameworkConstants> frameworks;
  // Chips without tables: whose constants theirs are derived from.
  std::vector<std::pair<std::string, std::string>> alike;
};

// Of a file of the form of hw/catalog/collectives.json; errors as Reader's.
CollectiveConstants read_collective_constants(const Document& document);
const CollectiveConstants& shipped_collectives();  // the embedded ones
// The text of such a file; reads back as the same constants.
std::string collective_constants_text(const CollectiveConstants& constants);

// What large transfers over the chip's scale-up link (over PCIe: its host link) achieve.
double achieved_rate(const Accelerator& chip);

// The chip's own row, else the one of the chip that it is said to be alike; with rates in proportion to
// what the chip's link achieves. Empty for chips that the catalog has no likeness for.
std::optional<LinkConstants> link_constants(const Accelerator& chip);
std::optional<FrameworkConstants> framework_constants(const Accelerator& chip, std::string_view framework);

}  // namespace moebius
