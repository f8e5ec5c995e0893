#include "hw/error.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <random>

#include "tests/catch.h"

#include "small_timeline.h"

using namespace moebius;
using Catch::Matchers::Contains;
using Catch::Matchers::Message;

namespace {

void require_same(const Span& a, const Span& b) {
  REQUIRE(a.sequence == b.sequence);
  REQUIRE(a.op == b.op);
  REQUIRE(a.rank_class == b.rank_class);
  REQUIRE(a.lane == b.lane);
  REQUIRE(a.origin == b.origin);
  REQUIRE(a.slowest == b.slowest);
  REQUIRE(a.error == b.error);
  REQUIRE(a.start == b.start);
  REQUIRE(a.end == b.end);
  REQUIRE(a.first_end == b.first_end);
  REQUIRE(a.mean_end == b.mean_end);
  REQUIRE(a.work_start == b.work_start);
}

// The sentence with which a file is refused.
std::string refusal(const std::string& bytes) {
  try {
    opened(bytes);
  } catch (const Error& error) {
    REQUIRE(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "";
}

std::string refusal(const Timeline& timeline) {
  return refusal(saved(timeline));
}

template <class T>
std::string with(std::string bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  return bytes;
}

// Byte offset of the section table's entry of that name: name[24], row_bytes, rows, offset.
std::size_t entry_of(const std::string& bytes, const std::string& name) {
  for (std::size_t at = 24; at + 48 <= bytes.size(); at += 48) {
    if (bytes.compare(at, name.size() + 1, name.c_str(), name.size() + 1) == 0) return at;
  }
  FAIL("no section " << name);
  return 0;
}

}  // namespace

TEST_CASE("a timeline comes back from its file, spans in the order of sequence and op") {
  const Timeline t = small_timeline();
  const TestFolder folder;
  save_timeline(t, folder.file("t.mtl"));
  const MappedTimeline m(folder.file("t.mtl"));
  REQUIRE(m.num_spans() == 5);
  for (const auto& [row, original] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 3}, {2, 0}, {3, 2}, {4, 4}}) {
    require_same(m.span(row), t.spans[original]);
  }
  REQUIRE(m.op_of(m.span(4)).kind == OpKind::kGemmDgrad);
  REQUIRE(m.op_of(m.span(3)).payload == 64);
  REQUIRE(m.op_of(m.span(0)).shape == Shape{.m = 8, .n = 16, .k = 32});
  REQUIRE(m.submission_of(m.span(4)).fragment == 1);
  REQUIRE(m.fact("scenario") == "small");
  REQUIRE(m.fact("no such") == "");
  REQUIRE(m.tables().facts == t.facts);
  REQUIRE(m.tables().fragments == t.fragments);
  REQUIRE(m.tables().counters == t.counters);
  REQUIRE(m.tables().class_ranks == t.class_ranks);
  REQUIRE(m.tables().class_sizes == t.class_sizes);
  REQUIRE(m.tables().samples.at(0).value == 1.5);
  REQUIRE(m.tables().spans.empty());
}

TEST_CASE("what ops and submissions depend on comes back, and stands before them") {
  Timeline t = small_timeline();
  t.dependencies = {0};
  t.ops[1].num_dependencies = 1;
  t.afters = {0, 1};
  t.submissions[2].num_after = 2;
  t.follows = {{1, 0, 0, 1}, {2, 1, 1, 0}};
  const MappedTimeline m = mapped(t);
  REQUIRE(m.tables().follows == t.follows);
  REQUIRE(m.tables().dependencies == t.dependencies);
  REQUIRE(m.tables().afters == t.afters);
  REQUIRE(m.tables().ops[1].num_dependencies == 1);
  REQUIRE(m.tables().submissions[2].num_after == 2);
  SECTION("an op on itself") {
    t.dependencies = {1};
    REQUIRE_THROWS_WITH(mapped(t), Contains("op row 1 depends on what is not there"));
  }
  SECTION("more than there are") {
    t.ops[1].num_dependencies = 2;
    REQUIRE_THROWS_WITH(mapped(t), Contains("op row 1 depends on what is not there"));
  }
  SECTION("a single op on one of a later submission") {
    t.follows[1].before_sequence = 2;
    REQUIRE_THROWS_WITH(mapped(t), Contains("wait 1 of a single op is inconsistent"));
  }
  SECTION("a submission after a later one") {
    t.afters = {0, 2};
    REQUIRE_THROWS_WITH(mapped(t), Contains("submission 2 is inconsistent"));
  }
}

TEST_CASE("an empty timeline is a timeline") {
  const MappedTimeline m = mapped({});
  REQUIRE(m.num_spans() == 0);
  REQUIRE(m.tables().ops.empty());
}

TEST_CASE("equal timelines give equal bytes, whatever the order of their spans") {
  Timeline t = small_timeline();
  const std::string bytes = saved(t);
  REQUIRE(saved(t) == bytes);
  std::reverse(t.spans.begin(), t.spans.end());
  REQUIRE(saved(t) == bytes);
  t.spans[0].end = {51};
  REQUIRE(saved(t) != bytes);
}

TEST_CASE("more rows than one block are written whole") {
  Timeline t = small_timeline();
  t.submissions.clear();
  t.spans.clear();
  for (std::int32_t i = 0; i < 20000; ++i) {
    t.submissions.push_back({i, 0, 0, 0, i});
    t.spans.push_back({.sequence = i, .op = 1, .start = {10 * i + 5}, .end = {10 * i + 9}});
    t.spans.push_back({.sequence = i, .op = 0, .start = {10 * i}, .end = {10 * i + 4}});
  }
  const MappedTimeline m = mapped(t);
  REQUIRE(m.num_spans() == 40000);
  for (std::int32_t i = 0; i < 20000; ++i) {
    REQUIRE(m.span(2 * i).start == Time{10 * i});
    REQUIRE(m.span(2 * i + 1).start == Time{10 * i + 5});
    REQUIRE(m.submission_of(m.span(2 * i)).microbatch == i);
  }
}

TEST_CASE("what cannot be written is a failure of the run, and leaves nothing behind") {
  const TestFolder folder;
  REQUIRE_THROWS_WITH(save_timeline({}, folder.file("no/such/t.mtl")),
                      folder.file("no/such/t.mtl") + ": cannot be written: No such file or directory");
  SECTION("a folder stands in the way") {
    std::filesystem::create_directories(folder.file("t.mtl"));
    REQUIRE_THROWS_WITH(save_timeline({}, folder.file("t.mtl")), Contains("cannot be written"));
    REQUIRE(folder.entries() == 1);
  }
  SECTION("the disk is full") {
    // Files may not grow beyond 4 KiB: the columns of many spans do not fit; the older file stays.
    save_timeline({}, folder.file("t.mtl"));
    const std::string before = bytes_of(folder.file("t.mtl"));
    Timeline t = small_timeline();
    t.facts.emplace_back("long", std::string(10000, 'x'));
    rlimit old;
    getrlimit(RLIMIT_FSIZE, &old);
    const rlimit small{4096, old.rlim_max};
    std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    std::string sentence;
    try {
      save_timeline(t, folder.file("t.mtl"));
    } catch (const Error& error) {
      sentence = error.kind() == Error::Kind::kRun ? error.what() : "input";
    }
    setrlimit(RLIMIT_FSIZE, &old);
    REQUIRE(sentence == folder.file("t.mtl") + ": cannot be written: File too large");
    REQUIRE(folder.entries() == 1);
    REQUIRE(bytes_of(folder.file("t.mtl")) == before);
  }
}

TEST_CASE("what is not a timeline is refused with a sentence") {
  const TestFolder folder;
  REQUIRE_THROWS_WITH(MappedTimeline(folder.file("none.mtl")),
                      folder.file("none.mtl") + ": cannot be read: No such file or directory");
  REQUIRE_THROWS_WITH(MappedTimeline(folder.file(".")),
                      folder.file(".") + ": expected a file, found something else");
  const std::string bytes = saved(small_timeline());
  REQUIRE(refusal(std::string()) == "t.mtl: too short for a timeline: 0 bytes");
  REQUIRE(refusal(std::string(100, 'x')) == "t.mtl: not a timeline of moebius");
  REQUIRE(refusal(with(bytes, 8, std::uint32_t{1})) == "t.mtl: timeline of version 1, expected 6");
  const auto size = bytes.size();
  REQUIRE(refusal(bytes.substr(0, size - 1)) ==
          fmt::format("t.mtl: {} bytes, expected {}: truncated?", size - 1, size));
  REQUIRE_THAT(refusal(with(bytes, 12, std::uint32_t{1u << 31})),
               Contains("2147483648 sections do not fit in"));
  REQUIRE(refusal(with(bytes, 12, std::uint32_t{3})) == "t.mtl: section classes.rank is missing");
}

TEST_CASE("sections that reach outside are refused") {
  const std::string bytes = saved(small_timeline());
  const std::size_t start = entry_of(bytes, "spans.start");
  const std::string sentence = "t.mtl: section spans.start reaches over the end of the file";
  REQUIRE(refusal(with(bytes, start + 32, std::uint64_t{1} << 31)) == sentence);
  REQUIRE(refusal(with(bytes, start + 32, ~std::uint64_t{0})) == sentence);
  REQUIRE(refusal(with(bytes, start + 40, std::uint64_t{bytes.size()} * 8)) == sentence);
  REQUIRE(refusal(with(bytes, start + 40, ~std::uint64_t{7})) == sentence);
  REQUIRE(refusal(with(bytes, start + 40, std::uint64_t{25})) == sentence);
  REQUIRE(refusal(with(bytes, start + 32, std::uint64_t{4})) == "t.mtl: spans.start: 4 rows, expected 5");
  REQUIRE(refusal(with(bytes, start + 24, std::uint64_t{4})) ==
          "t.mtl: section spans.start is not what it should be");
  REQUIRE(refusal(with(bytes, start, 'x')) == "t.mtl: section spans.start is not what it should be");
  const std::size_t facts = entry_of(bytes, "facts");
  std::uint64_t offset;
  std::memcpy(&offset, bytes.data() + facts + 40, sizeof(offset));
  REQUIRE(refusal(with(bytes, offset, ~std::uint32_t{0})) == "t.mtl: facts: a text reaches over the end");
}

TEST_CASE("rows that contradict each other are refused") {
  const auto refused = [](auto change) {
    Timeline t = small_timeline();
    change(t);
    return refusal(t);
  };
  REQUIRE(refused([](Timeline& t) { t.class_sizes.pop_back(); }) ==
          "t.mtl: classes.rank and classes.size differ in length");
  REQUIRE(refused([](Timeline& t) { t.class_sizes[1] = 0; }) == "t.mtl: class 1 is empty");
  REQUIRE(refused([](Timeline& t) { t.ops[1].kind = static_cast<OpKind>(200); }) ==
          "t.mtl: op row 1 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.ops[2].fragment = 2; }) == "t.mtl: op row 2 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.ops[2].fragment = -1; }) == "t.mtl: op row 2 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.ops[1].payload = NAN; }) == "t.mtl: op row 1 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.ops[1].index = 5; }) == "t.mtl: op row 1 is out of order");
  REQUIRE(refused([](Timeline& t) { t.submissions[2].sequence = 3; }) ==
          "t.mtl: submission 2 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.submissions[2].fragment = 2; }) ==
          "t.mtl: submission 2 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.submissions[2].rank_class = -1; }) ==
          "t.mtl: submission 2 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.samples[0].counter = 1; }) == "t.mtl: sample 0 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.spans[4].sequence = 3; }) == "t.mtl: span 4 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.spans[4].op = 1; }) == "t.mtl: span 4 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.spans[4].op = -1; }) == "t.mtl: span 4 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.spans[4].rank_class = 1; }) == "t.mtl: span 4 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.spans[4].lane = static_cast<Lane>(99); }) ==
          "t.mtl: span 4 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.spans[4].end = {19}; }) == "t.mtl: span 4 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.samples[0].value = INFINITY; }) == "t.mtl: sample 0 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.spans[4].error = NAN; }) == "t.mtl: span 4 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.spans[4].mean_end = {-1}; }) == "t.mtl: span 4 is inconsistent");
  REQUIRE(refused([](Timeline& t) { t.spans.push_back(t.spans[4]); }) ==
          "t.mtl: span 5 is inconsistent");  // twice
}

TEST_CASE("a damaged file is refused or read, never more") {
  const std::string bytes = saved(small_timeline());
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = bytes;
    for (int hits = 1 + static_cast<int>(random() % 3); hits > 0; --hits) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    if (random() % 8 == 0) damaged.resize(random() % damaged.size());
    try {
      const MappedTimeline m = opened(damaged);
      for (std::size_t s = 0; s < m.num_spans(); ++s) {
        REQUIRE(m.submission_of(m.span(s)).sequence == m.span(s).sequence);
        REQUIRE(m.op_of(m.span(s)).index == m.span(s).op);
      }
    } catch (const Error& error) {
      REQUIRE(error.kind() == Error::Kind::kInput);
      ++refused;
    }
  }
  REQUIRE(refused > 1000);
  REQUIRE(refused < 5000);  // some hits change a time or a text only
}
