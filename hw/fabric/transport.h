// How the end points of a network send: what a packet is, how much goes out unasked, what credit paces the
// rest, and what a full switch queue does. All sizes are bytes on the wire; the defaults are those of EQDS
// (Olteanu et al., NSDI'22) as the csg-htsim simulator runs it: receivers pull, packets are sprayed over many
// paths, a switch trims what it cannot hold to its header, and the receiver asks for it again.
#pragma once

namespace moebius {

struct Transport {
  double packet = 4150;  // a full data packet
  double header = 64;    // of it; also a trimmed packet, an acknowledgement, a pull
  int window = 50;       // packets that a flow may send at line rate before the first credit reaches it
  double credit = 4096;  // bytes on the wire that one pull grants
  double pull_spacing = 4156.0;  // bytes' time at line rate between two pulls of a receiver: 0.99 (4160 + 38)
  int queue = 35;                // packets that a switch port holds
  int entropies = 64;            // header values that a sprayed flow cycles through; each hashes to one path
  int packets_per_ack = 4;       // 16,384 B

  double payload() const { return packet - header; }
  // Share of the line rate that one undisturbed flow's payload reaches under credit: 0.9703.
  double efficiency() const { return payload() / packet * credit / pull_spacing; }
};

}  // namespace moebius
