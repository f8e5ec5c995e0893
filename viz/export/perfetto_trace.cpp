#include "viz/export/perfetto_trace.h"

#include <map>
#include <utility>
#include <vector>

#include "viz/data/op_names.h"
#include "viz/data/overlap_parts.h"
#include "viz/data/transfers.h"
#include "viz/export/output_file.h"
#include "viz/export/protobuf_message.h"
#include "workloads/progress_bar.h"

namespace moebius::viz {
namespace {

// Field numbers, message by message.
namespace trace {
constexpr int kPacket = 1;
}
namespace packet {
constexpr int kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInterned = 12, kFlags = 13, kTrack = 60;
constexpr int kFlagCleared = 1, kFlagNeedsInterned = 2;
}  // namespace packet
namespace track {
constexpr int kUuid = 1, kName = 2, kProcess = 3, kParent = 5, kCounter = 8;
constexpr int kProcessPid = 1, kProcessName = 6;
}  // namespace track
namespace event {
constexpr int kAnnotation = 4, kType = 9, kNameIid = 10, kTrackUuid = 11, kDoubleValue = 44, kFlowIds = 47;
constexpr int kBegin = 1, kEnd = 2, kCounter = 4;
}  // namespace event
namespace annotation {
constexpr int kNameIid = 1, kInt = 4;
constexpr int kStep = 1, kMicrobatch = 2, kSubmission = 3, kWaiting = 4;  // our ids of the names
}  // namespace annotation
namespace interned {
constexpr int kEventNames = 2, kAnnotationNames = 3, kIid = 1, kName = 2;
}

class PerfettoWriter {
 public:
  PerfettoWriter(const SpanColumns& run, const std::string& path)
      : run_(run), tables_(run.tables()), parts_(run), names_(class_names(tables_)), file_(path) {}

  void write() {
    find_flows();
    intern_names();
    for (std::size_t c = 0; c < tables_.class_ranks.size(); ++c) describe_class(static_cast<std::int32_t>(c));
    for (std::size_t i = 0; i < run_.size(); ++i) {
      span(i);
      if (i % kShowEvery == 0) bar_.show(static_cast<double>(i) / static_cast<double>(run_.size()));
      if (i % kForgetEvery == 0 && i > 0) run_.forget(i - kForgetEvery, kForgetEvery);
    }
    for (const CounterSample& sample : tables_.samples) counter(sample);
    file_.finish();
  }

 private:
  void find_flows() {
    std::uint64_t id = 1;
    for (const Transfer& transfer : transfers_of(run_)) {
      flows_[transfer.send] = flows_[transfer.recv] = id++;
    }
  }

  // Interned once for all packets; those that use them say so.
  void intern_names() {
    ProtobufMessage names, name;
    const auto add = [&](int field, std::uint64_t iid, std::string_view text) {
      name.clear();
      name.varint(interned::kIid, iid);
      name.text(interned::kName, text);
      names.message(field, name);
    };
    add(interned::kAnnotationNames, annotation::kStep, "step");
    add(interned::kAnnotationNames, annotation::kMicrobatch, "microbatch");
    add(interned::kAnnotationNames, annotation::kSubmission, "submission");
    add(interned::kAnnotationNames, annotation::kWaiting, "waiting_ns");
    std::uint64_t row = 0;
    for (const std::string& text : span_names(tables_)) add(interned::kEventNames, ++row, text);
    packet_.clear();
    packet_.varint(packet::kSequence, 1);
    packet_.varint(packet::kFlags, packet::kFlagCleared);
    packet_.message(packet::kInterned, names);
    write_packet();
  }

  // A uuid is any number, never 0: classes first, then their lanes, row by row, then counters.
  std::uint64_t class_track(std::int32_t rank_class) const {
    return 1 + static_cast<std::uint64_t>(rank_class);
  }
  std::uint64_t lane_track(std::int32_t rank_class, Lane lane, std::int32_t part) const {
    const auto classes = tables_.class_ranks.size();
    const auto of_row = static_cast<std::uint64_t>(part) * classes + static_cast<std::uint64_t>(rank_class);
    return 1 + classes + of_row * kNumLanes + static_cast<std::uint64_t>(lane);
  }

  void write_track(const ProtobufMessage& descriptor) {
    packet_.clear();
    packet_.message(packet::kTrack, descriptor);
    write_packet();
  }

  void describe_class(std::int32_t rank_class) {
    ProtobufMessage process, descriptor;
    process.varint(track::kProcessPid, 1 + static_cast<std::uint64_t>(tables_.class_ranks[rank_class]));
    process.text(track::kProcessName, names_[rank_class]);
    descriptor.varint(track::kUuid, class_track(rank_class));
    descriptor.message(track::kProcess, process);
    write_track(descriptor);
  }

  void describe_track(std::uint64_t uuid, std::int32_t rank_class, std::string_view name, bool counts) {
    ProtobufMessage descriptor;
    descriptor.varint(track::kUuid, uuid);
    descriptor.text(track::kName, name);
    descriptor.varint(track::kParent, class_track(rank_class));
    if (counts) descriptor.message(track::kCounter, ProtobufMessage());
    write_track(descriptor);
  }

  // The track of a lane's row, described before its first use. Slices of one track end in the order opposite
  // to that of their begins: what overlaps needs another.
  std::uint64_t used_lane(std::int32_t rank_class, Lane lane, std::int32_t part) {
    const std::uint64_t uuid = lane_track(rank_class, lane, part);
    if (uuid >= described_.size()) described_.resize(uuid + 1);
    if (!described_[uuid]) {
      described_[uuid] = true;
      describe_track(uuid, rank_class, lane_name(lane, part), false);
    }
    return uuid;
  }

  void write_event(std::int64_t time) {
    packet_.clear();
    packet_.varint(packet::kTimestamp, static_cast<std::uint64_t>(time));
    packet_.varint(packet::kSequence, 1);
    packet_.varint(packet::kFlags, packet::kFlagNeedsInterned);
    packet_.message(packet::kTrackEvent, event_);
    write_packet();
  }

  void annotate(int name, std::int64_t value) {
    annotation_.clear();
    annotation_.varint(annotation::kNameIid, static_cast<std::uint64_t>(name));
    annotation_.varint(annotation::kInt, static_cast<std::uint64_t>(value));
    event_.message(event::kAnnotation, annotation_);
  }

  void span(std::size_t i) {
    const std::uint32_t row = run_.checked_row(i);
    const SubmissionRow& submission = tables_.submissions[run_.sequence(i)];
    const std::uint64_t uuid = used_lane(run_.rank_class(i), run_.lane(i), parts_.of(i));
    event_.clear();
    annotate(annotation::kStep, submission.step);
    annotate(annotation::kMicrobatch, microbatch_of(submission, tables_.ops[row]));
    annotate(annotation::kSubmission, submission.sequence);
    if (const std::int64_t waiting = waiting_of(run_, i); waiting > 0)
      annotate(annotation::kWaiting, waiting);
    event_.varint(event::kType, event::kBegin);
    event_.varint(event::kNameIid, row + 1);
    event_.varint(event::kTrackUuid, uuid);
    const OpKind kind = tables_.ops[row].kind;
    if (kind == OpKind::kSend || kind == OpKind::kRecv) {
      const auto flow = flows_.find(static_cast<std::uint32_t>(i));
      if (flow != flows_.end()) event_.fixed64(event::kFlowIds, flow->second);
    }
    write_event(run_.start(i));
    event_.clear();
    event_.varint(event::kType, event::kEnd);
    event_.varint(event::kTrackUuid, uuid);
    write_event(run_.end(i));
  }

  void counter(const CounterSample& sample) {
    std::uint64_t& uuid = counters_[{sample.counter, sample.rank_class}];
    if (uuid == 0) {
      uuid = lane_track(0, Lane{}, parts_.most()) + counters_.size();
      describe_track(uuid, sample.rank_class, tables_.counters[sample.counter], true);
    }
    event_.clear();
    event_.varint(event::kType, event::kCounter);
    event_.varint(event::kTrackUuid, uuid);
    event_.number(event::kDoubleValue, sample.value);
    write_event(sample.time.ns);
  }

  void write_packet() {
    const std::size_t size = packet_.bytes().size();
    std::size_t left = size;
    std::string head(1, static_cast<char>(trace::kPacket << 3 | 2));
    for (; left >= 0x80; left >>= 7) head += static_cast<char>(left | 0x80);
    head += static_cast<char>(left);
    file_.add(head);
    file_.add(packet_.bytes());
  }

  const SpanColumns& run_;
  const Timeline& tables_;
  const OverlapParts parts_;
  const std::vector<std::string> names_;  // of classes
  OutputFile file_;
  ProgressBar bar_;
  ProtobufMessage packet_, event_, annotation_;  // kept for their memory
  std::vector<bool> described_;
  std::map<std::uint32_t, std::uint64_t> flows_;                             // span to id
  std::map<std::pair<std::int32_t, std::int32_t>, std::uint64_t> counters_;  // (counter, class) to track
};

}  // namespace

void export_perfetto(const SpanColumns& run, const std::string& path) {
  PerfettoWriter(run, path).write();
}

}  // namespace moebius::viz
