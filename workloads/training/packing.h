// Sequences of unlike length packed into the rows of a microbatch: attention stays inside a sequence,
// positions restart with each, and no loss is taken on prompts, on what follows a sequence's end and on
// padding.
#pragma once

#include <cstdint>

#include "workloads/schedule/batch.h"
#include "workloads/training/plan.h"

namespace moebius {

// Which rows are packed.
struct PackedRows {
  int step = 0;
  int index =
      0;  // of the microbatch among those of the step over all replicas: microbatch * replicas + replica
};

// Lengths are drawn one by one (the same key gives the same draw) and laid into a row of sequence_length
// tokens until one does not fit, which begins the next row; what is left of a row is padding, a sequence of
// request -1. The batch holds no cache (page_tokens 0) and has micro_batch x sequence_length rows; sequences
// are numbered from 0 in it. The workload has lengths.
BatchPtr pack(const TrainingWorkload& workload, const PackedRows& rows);

// Whole sequences as layers see them that attend in chunks, the last chunk of each the shorter one. Null
// where chunks divide them, or are no shorter: then sequences of equal lengths say it.
BatchPtr cut_in_chunks(const TrainingWorkload& workload, int chunk);

// Whether the row of the batch whose position in its sequence this is counts in the loss of the token
// `ahead` positions on (>= 1): that token is part of the sequence and not of its prompt.
bool is_counted(const BatchSequence& sequence, std::int32_t position, int ahead);

// What a stretch of steps reads. Pairs: of query and key, causal, over whole sequences.
struct PackedTokens {
  double rows = 0;       // tokens that are computed, padding included
  double real = 0;       // of sequences
  double counted = 0;    // that the loss of the next token is taken on
  double sequences = 0;  // without padding
  double squares = 0;    // sum of the squared lengths

  void add(const Batch& batch);
  // Of sequences all alike that would have as many tokens and as many pairs.
  double effective_length() const { return squares / real; }
  double padding_share() const { return 1 - real / rows; }
};

// The replica whose attention has the most pairs in a step: as all meet at its end, it is timed where one
// stands for all. The first of equal ones.
int heaviest_replica(const TrainingWorkload& workload, const TrainingPlan& plan, int step);

// One step over all replicas; all steps of the run.
PackedTokens packed_tokens(const TrainingWorkload& workload, const TrainingPlan& plan, int step);
PackedTokens packed_tokens(const TrainingWorkload& workload, const TrainingPlan& plan);

}  // namespace moebius
