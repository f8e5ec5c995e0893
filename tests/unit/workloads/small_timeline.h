// A timeline of two classes and three submissions, with something in every table; and files of it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "workloads/schedule/timeline.h"

namespace moebius {

inline Timeline small_timeline() {
  Timeline t;
  t.facts = {{"scenario", "small"}, {"schedule_hash", "00ff"}, {"timeline_detail", "ops"}};
  t.fragments = {"forward", "backward"};
  t.counters = {"memory"};
  t.class_ranks = {0, 4};
  t.class_sizes = {4, 4};
  t.ops = {
      {.kind = OpKind::kGemm,
       .role = Role::kQkv,
       .layer = 1,
       .fragment = 0,
       .index = 0,
       .shape = {.m = 8, .n = 16, .k = 32},
       .flops = 8192,
       .bytes = 100},
      {.kind = OpKind::kDispatch,
       .lane = Lane::kExpertComm,
       .group = GroupRole::kExpert,
       .fragment = 0,
       .index = 1,
       .shape = {.m = 8, .n = 16},
       .payload = 64},
      {.kind = OpKind::kGemmDgrad,
       .phase = Phase::kBackward,
       .fragment = 1,
       .index = 0,
       .shape = {.m = 8, .n = 32, .k = 16}},
  };
  t.submissions = {{0, 0, 0, 0, 0}, {1, 0, 1, 0, 0}, {2, 1, 0, 0, 0}};
  t.spans = {
      {.sequence = 1, .op = 0, .rank_class = 1, .start = {0}, .end = {12}},
      {.sequence = 0,
       .op = 0,
       .rank_class = 0,
       .origin = Origin::kMeasured,
       .slowest = 3,
       .error = 0.25f,
       .start = {0},
       .end = {10},
       .first_end = {8},
       .mean_end = {9}},
      {.sequence = 1, .op = 1, .rank_class = 1, .lane = Lane::kExpertComm, .start = {12}, .end = {20}},
      {.sequence = 0,
       .op = 1,
       .rank_class = 0,
       .lane = Lane::kExpertComm,
       .start = {10},
       .end = {20},
       .work_start = {12}},
      {.sequence = 2, .op = 0, .rank_class = 0, .start = {20}, .end = {50}},
  };
  t.samples = {{0, 1, {5}, 1.5}};
  return t;
}

// A folder of this test's own, gone with it.
class TestFolder {
 public:
  TestFolder() : path_(std::filesystem::temp_directory_path() / fmt::format("moebius-test-{}", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The saved form of a timeline.
inline std::string saved(const Timeline& timeline) {
  const TestFolder folder;
  save_timeline(timeline, folder.file("t.mtl"));
  return bytes_of(folder.file("t.mtl"));
}

inline MappedTimeline opened(const std::string& bytes, const std::string& name = "t.mtl") {
  return MappedTimeline(std::as_bytes(std::span(bytes)), name);
}

inline MappedTimeline mapped(const Timeline& timeline) {
  return opened(saved(timeline));
}

}  // namespace moebius
