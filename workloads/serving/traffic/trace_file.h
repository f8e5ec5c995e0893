// Traffic out of a file. The forms that are read:
//   mooncake        JSONL (kvcache-ai/Mooncake): timestamp (ms), input_length, output_length, hash_ids; also
//                   session_id, delay and tool_wait_ms (ms) in place of or beside a timestamp, block_size;
//                   other keys of peers (request_id, wait_for, branches, text_input, ...) are passed over;
//                   input_length is 1 or more, output_length of 0 counts as 1: a prompt ends in a token
//   mooncake-delta  the same, with rows that hold only what is new: input, output and blocks of a session's
//                   rows before come first, until prefix_reset
//   dynamo          JSONL "dynamo.request.trace.v1": its request_end rows, by the time they were received
//   azure           CSV (Azure/AzurePublicDataset): TIMESTAMP, ContextTokens, GeneratedTokens, NumImages
//   burstgpt        CSV (HPMLL/BurstGPT): Timestamp (s), Request tokens, Response tokens, Session ID; rows
//                   without a response failed and are left out. And a .json file whose first line is no row:
//                   see client_mix.h
// A row that is not right is an input_error with its line; so is a file without a request.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "workloads/serving/traffic/traffic_request.h"

namespace moebius {

enum class TraceFormat : std::uint8_t { kAuto, kMooncake, kMooncakeDelta, kDynamo, kAzure, kBurstGpt };

struct TraceFile {
  std::string path;                         // packed by gzip, or not
  TraceFormat format = TraceFormat::kAuto;  // kAuto: by its first line; mooncake-delta must be told
  std::int64_t block_tokens = 512;          // of an id, where rows do not say
  std::uint64_t seed = 1;                   // of a mix of clients that names none
};

std::unique_ptr<TrafficStream> open_trace(const TraceFile& file);

// Stamps that many requests share (a clock of whole seconds, or coarser) spread evenly to the next stamp;
// those of the last one over the distance before it. Turns that go on from an answer are due by that, and
// stay where they are.
std::unique_ptr<TrafficStream> spread_arrivals(std::unique_ptr<TrafficStream> traffic);

}  // namespace moebius
