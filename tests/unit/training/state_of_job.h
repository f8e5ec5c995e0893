// What the fragments of a job are, and the memory of its first rank.
#pragma once

#include <set>
#include <vector>

#include "small_job.h"
#include "workloads/training/state/memory.h"

namespace moebius {

inline ClassMemory memory_of(const TrainingJob& job) {
  return Training(job).memory({1e9}).classes[0];
}

inline std::vector<FragmentPtr> fragments_of(const TrainingJob& job) {
  Training training(job);
  std::vector<FragmentPtr> fragments;
  std::set<std::uint64_t> seen;
  for (const Submission& submission : all_submissions(training)) {
    if (seen.insert(submission.fragment->hash).second) fragments.push_back(submission.fragment);
  }
  return fragments;
}

}  // namespace moebius
