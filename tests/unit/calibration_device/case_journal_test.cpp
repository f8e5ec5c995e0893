#include "workloads/calibration/device/case_journal.h"

#include <fstream>
#include <iterator>

#include "tests/process.h"
#include "tests/unit/calibration_device/fake_bench.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

using test::Scratch;

const JournalKey kKey{"a device", "1.0", 255};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string refusal(const std::string& path, const JournalKey& key) {
  try {
    CaseJournal journal(path, key);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "no error";
}

std::string journal_with(const Scratch& scratch, const std::string& lines) {
  return scratch.write(
      "j",
      "{\"journal\": \"moebius-calibration-1\", \"device\": \"a device\", \"version\": \"1.0\", "
      "\"plan\": \"00000000000000ff\"}\n" +
          lines);
}

TEST_CASE("a journal gives back what was put in") {
  const Scratch scratch;
  const std::string path = scratch.path("j");
  {
    CaseJournal journal(path, kKey);
    journal.add("one \"op\"", {{0.5, 0.25, 7}, 2, ""});
    journal.add("another", {{}, 1, "no such kernel"});
    journal.add(made_up_figures(), 4);
  }
  const CaseJournal journal(path, kKey);
  CHECK(journal.resumed() == 2);
  CHECK(journal.seconds_spent() == 7);
  REQUIRE(journal.find("one \"op\"") != nullptr);
  CHECK(journal.find("one \"op\"")->measured.seconds == 0.5);
  CHECK(journal.find("one \"op\"")->measured.repetitions == 7);
  REQUIRE(journal.find("another") != nullptr);
  CHECK(journal.find("another")->refused == "no such kernel");
  CHECK(journal.find("a third") == nullptr);
  REQUIRE(journal.figures());
  CHECK(journal.figures()->transfers[0].seconds == std::vector<double>{2e-6, 8e-6});
}

TEST_CASE("a last line that was cut off is dropped, and the journal goes on behind the line before") {
  const Scratch scratch;
  const std::string whole =
      "{\"case\": \"x\", \"seconds\": 1, \"spread\": 0, \"repetitions\": 3, \"took\": 2}\n";
  const std::string path = journal_with(scratch, whole + "{\"case\": \"y\", \"sec");
  {
    CaseJournal journal(path, kKey);
    CHECK(journal.find("x") != nullptr);
    CHECK(journal.find("y") == nullptr);
    journal.add("z", {{1, 0, 1}, 1, ""});
  }
  CHECK_THAT(text_of(path), Catch::EndsWith(whole + "{\"case\": \"z\", \"seconds\": 1, \"spread\": 0, "
                                                    "\"repetitions\": 1, \"took\": 1.000000}\n"));
  CHECK(CaseJournal(path, kKey).resumed() == 2);
}

TEST_CASE("the journal of another device, version or plan is refused with a sentence") {
  const Scratch scratch;
  const std::string path = journal_with(scratch, "");
  const std::string other = ": the journal of another calibration: expected ";
  CHECK(refusal(path, {"the other", "1.0", 255}) ==
        path + ":1: /lines/0/device" + other +
            "\"the other\", found \"a device\"; remove the file to start anew");
  CHECK(refusal(path, {"a device", "2.0", 255}) ==
        path + ":1: /lines/0/version" + other + "\"2.0\", found \"1.0\"; remove the file to start anew");
  CHECK(refusal(path, {"a device", "1.0", 1}) ==
        path + ":1: /lines/0/plan" + other +
            "\"0000000000000001\", found \"00000000000000ff\"; remove the file to start anew");
}

TEST_CASE("a corrupt line is an error that says where and what") {
  const Scratch scratch;
  const std::string good =
      "{\"case\": \"x\", \"seconds\": 1, \"spread\": 0, \"repetitions\": 3, \"took\": 2}\n";
  const auto said = [&](const std::string& line) {
    const std::string path = journal_with(scratch, good + line + "\n");
    return refusal(path, kKey).substr(path.size());
  };
  CHECK(said("{\"case\": \"y\", \"seconds\": -1, \"spread\": 0, \"repetitions\": 3, \"took\": 2}") ==
        ":3: /lines/2/seconds: expected a number of more than 0 and at most 1000000, found -1");
  CHECK(said("{\"case\": \"y\", \"took\": 2}") == ":3: /lines/2: expected key \"seconds\", found none");
  CHECK(said("{\"case\": \"y\", \"refused\": \"no\", \"took\": 2, \"tok\": 1}") ==
        ":3: /lines/2/tok: unknown key \"tok\" (did you mean \"took\"?)");
  CHECK(said("garbage") == ":3: expected a value behind the comma, found garbage");
  const std::string path = scratch.write("k", "{\"journal\": \"x\"}\n");
  CHECK(refusal(path, kKey) ==
        path + ":1: /lines/0/journal: expected \"moebius-calibration-1\", found \"x\"");
}

TEST_CASE("a journal that cannot be written fails the run") {
  const Scratch scratch;
  CHECK_THROWS_WITH(CaseJournal(scratch.path("none/j"), kKey),
                    scratch.path("none/j") + ": cannot be written");
}

}  // namespace
}  // namespace moebius
