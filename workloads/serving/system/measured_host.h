// What the host's stages take where nothing else is known: this engine's own decisions, measured, and text in
// and out of tokens, as published.
#pragma once

#include "workloads/serving/system/host_pipeline.h"

namespace moebius {

// Sets per_iteration, per_sequence, per_prompt_token and per_token, and per_submission to none.
// - Decisions: Replica::plan() and complete() at 1 to 1,024 running sequences, tests/perf/host_cost.cpp
//   (2026-11-22, one core of an Intel Xeon: 20 ns, and 20 ns a sequence): what a scheduler in C++ takes that
//   only counts pages. Tables and operands that are written for the device are not in it.
// - Text: tiktoken with the vocabulary of 100,256 tokens encodes 5.1 and decodes 47 million tokens a second
//   on one core (benchmark of mojo-tokenizer's authors, Apple silicon, 2026).
// Requests, images and tokens that the host chooses take nothing here: nothing measured is at hand.
void set_measured_costs(HostCosts& costs);

}  // namespace moebius
