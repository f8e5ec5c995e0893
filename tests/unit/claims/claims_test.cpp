// Claims are judged on reports that the tests write themselves: the file of a scenario says what its report
// is.
#include <atomic>
#include <deque>
#include <functional>
#include <string>

#include "hw/error.h"
#include "hw/reader.h"
#include "tests/process.h"
#include "workloads/validation/claims/claim_tables.h"
#include "workloads/validation/claims/judged_claim.h"

#include "tests/catch.h"

namespace {

using namespace moebius;
using Verdict = JudgedClaim::Verdict;

// A scenario {"rate": r, "bias": b} runs at r + b tokens a second; without a rate it does not fit.
std::string report_of(const Document& scenario) {
  const Value* rate = scenario.root.find("rate");
  if (rate == nullptr) throw run_error("too large\nby far");
  const Value* bias = scenario.root.find("bias");
  const double sum = rate->number + (bias != nullptr ? bias->number : 0);
  return R"({"tokens_per_s": )" + std::to_string(sum) + R"(, "deep": {"mfu": 0.25}})";
}

class ClaimFiles {
 public:
  ClaimFiles() {
    for (const int rate : {80, 90, 100, 120, 150})
      scratch_.write(std::to_string(rate) + ".json", R"({"rate": )" + std::to_string(rate) + "}");
    scratch_.write("large.json", "{}");
  }

  // {"name", "scenario": first, "baseline": second} for each pair; `keys` begin with a comma.
  Claim claim(const std::string& configurations, const std::string& keys) const {
    return read_claim(
        scratch_.write("c.claim", R"({"claim": "c", "says": "faster", "mechanism": "m", "source": "s",
      "figure": "tokens_per_s / baseline.tokens_per_s", "configurations": [)" +
                                      configurations + "]" + keys + "}"));
  }

  std::string refusal(const std::string& text) const {
    try {
      read_claim(scratch_.write("r.claim", text));
    } catch (const Error& error) {
      CHECK(error.kind() == Error::Kind::kInput);
      const std::string sentence = error.what();
      return sentence.substr(sentence.find(": ") + 2);
    }
    return "";
  }

 private:
  test::Scratch scratch_;
};

std::string pair(const std::string& ours, const std::string& baseline) {
  return R"({"name": ")" + ours + R"(", "scenario": ")" + ours + R"(.json", "baseline": )" + baseline + "}";
}

const std::string k100 = R"("100.json")";
constexpr const char* kThirty = R"(, "published": {"at_least": 1.3}, "neutral": 1)";

// What comes back refers to the claim, which is kept until the tests end.
JudgedClaim judged(const Claim& claim) {
  static std::deque<std::vector<Claim>> kept;
  kept.push_back({claim});
  return judge_claims(kept.back(), report_of).front();
}

}  // namespace

TEST_CASE("a claim passes when all configurations gain and the best gains as much as published") {
  const ClaimFiles files;
  const Claim claim = files.claim(pair("120", k100) + "," + pair("150", k100), kThirty);
  const JudgedClaim result = judged(claim);
  CHECK(result.runs[0].ours == Approx(1.2));
  CHECK(result.runs[1].ours == Approx(1.5));
  CHECK(*result.deciding == 1);
  CHECK(result.verdict == Verdict::kPass);
}

TEST_CASE("a claim misses when one configuration loses, however much the best one gains") {
  const ClaimFiles files;
  const Claim claim = files.claim(pair("90", k100) + "," + pair("150", k100), kThirty);
  CHECK(judged(claim).verdict == Verdict::kMiss);
}

TEST_CASE("a claim about each configuration is decided by the worst") {
  const ClaimFiles files;
  const std::string both = pair("120", k100) + "," + pair("150", k100);
  const Claim missed = files.claim(both, std::string(kThirty) + R"(, "each": true)");
  CHECK(*judged(missed).deciding == 0);
  CHECK(judged(missed).verdict == Verdict::kMiss);
  const Claim met = files.claim(both, R"(, "published": {"at_least": 1.1}, "each": true)");
  CHECK(judged(met).verdict == Verdict::kPass);
}

TEST_CASE("several baselines are the parts of a whole and are added up") {
  const ClaimFiles files;
  const Claim claim =
      files.claim(pair("150", R"(["80.json", "120.json"])"), R"(, "published": {"at_least": 0.7})");
  CHECK(judged(claim).runs[0].ours == Approx(150.0 / 200));
}

TEST_CASE("a claim may bound a figure from above or give its value") {
  const ClaimFiles files;
  const std::string run = pair("120", k100);
  CHECK(judged(files.claim(run, R"(, "published": {"at_most": 1.25})")).verdict == Verdict::kPass);
  CHECK(judged(files.claim(run, R"(, "published": {"at_most": 1.15})")).verdict == Verdict::kMiss);
  CHECK(judged(files.claim(run, R"(, "published": {"value": 1.25, "tolerance": 0.05})")).verdict ==
        Verdict::kPass);
  CHECK(judged(files.claim(run, R"(, "published": {"value": 1.25, "tolerance": 0.03})")).verdict ==
        Verdict::kMiss);
}

TEST_CASE("a known miss stays visible and fails only when it gets worse by half a percentage point") {
  const ClaimFiles files;
  const auto known = [&](const std::string& figure) {
    return files.claim(pair("120", k100),
                       std::string(kThirty) + R"(, "known_miss": "told", "known_figure": )" + figure);
  };
  CHECK(judged(known("1.2")).verdict == Verdict::kKnownMiss);
  CHECK(judged(known("1.205")).verdict == Verdict::kKnownMiss);  // 0.005 of 1.3 is 0.0065
  CHECK(judged(known("1.21")).verdict == Verdict::kWorse);
  CHECK(judged(known("1.1")).verdict == Verdict::kKnownMiss);
  const Claim claim = known("1.2");
  CHECK(to_text({judged(claim)}).find("known miss: told") != std::string::npos);
}

TEST_CASE("a known miss gets worse when one of its configurations runs no more") {
  const ClaimFiles files;
  const std::string known = R"(, "published": {"at_least": 1.3}, "known_miss": "told", "known_figure": 1.2)";
  CHECK(judged(files.claim(pair("120", k100) + "," + pair("90", k100), known)).verdict ==
        Verdict::kKnownMiss);
  CHECK(judged(files.claim(pair("120", k100) + "," + pair("large", k100), known)).verdict == Verdict::kWorse);
}

TEST_CASE("a run that fails is told with its first sentence and misses") {
  const ClaimFiles files;
  const Claim claim = files.claim(pair("large", k100) + "," + pair("150", k100), kThirty);
  const JudgedClaim result = judged(claim);
  CHECK_FALSE(result.runs[0].ours);
  CHECK(result.runs[0].failure == "too large");
  CHECK(result.verdict == Verdict::kMiss);
}

TEST_CASE("each scenario runs once whoever asks for it") {
  const ClaimFiles files;
  const Claim claim = files.claim(pair("120", k100) + "," + pair("150", k100), kThirty);
  std::atomic<int> runs = 0;
  judge_claims({claim, claim}, [&](const Document& scenario) {
    ++runs;
    return report_of(scenario);
  });
  CHECK(runs == 3);
}

TEST_CASE("of a miss it is found what the assumption would have to be") {
  // 120 + b over 100 is 1.3 from b = 10 on; the way is 40 long, so that a hundredth of it is 0.4.
  const ClaimFiles files;
  const auto with = [&](const std::string& more) {
    const Claim claim = files.claim(pair("120", k100), std::string(kThirty) +
                                                           R"(, "needs": [{"assumption": "bias",
      "pointer": "/bias", "value": "#", "from": 0, "to": 40)" +
                                                           more + "}]");
    return judged(claim).needs.at(0).number.value();
  };
  CHECK(with("") >= 10);
  CHECK(with("") <= 10.4);
  CHECK(with(R"(, "step": 4)") == 12);
}

TEST_CASE("an assumption that does not help far enough says how far it helps") {
  const ClaimFiles files;
  const Claim claim = files.claim(pair("120", k100), std::string(kThirty) +
                                                         R"(, "needs": [{"assumption": "bias",
      "pointer": "/bias", "value": "#", "from": 0, "to": 4}])");
  const JudgedClaim result = judged(claim);
  CHECK_FALSE(result.needs[0].number);
  CHECK(result.needs[0].at_the_end == Approx(1.24));
  CHECK(to_text({result}).find("would need bias: even 4 gives 1.24, published at least 1.3 (/bias)") !=
        std::string::npos);
}

TEST_CASE("an assumption of the baseline is moved there") {
  const ClaimFiles files;  // 120 / (100 + b) is 1.3 at b = -7.69
  const Claim claim = files.claim(pair("120", k100), std::string(kThirty) +
                                                         R"(, "needs": [{"assumption": "bias",
      "of": "baseline", "pointer": "/bias", "value": "#", "from": 0, "to": -20}])");
  const double number = judged(claim).needs.at(0).number.value();
  CHECK(number <= -7.69);
  CHECK(number >= -7.9);
}

TEST_CASE("an assumption of both is moved on either side") {
  const ClaimFiles files;  // (120 + b) / (100 + b) is 1.15 at b = 33.3
  const Claim claim = files.claim(pair("120", k100), R"(, "published": {"at_most": 1.15},
      "needs": [{"assumption": "bias", "of": "both", "pointer": "/bias", "value": "#", "from": 0, "to": 50}])");
  const double number = judged(claim).needs.at(0).number.value();
  CHECK(number >= 33.3);
  CHECK(number <= 33.9);
}

TEST_CASE("a formula of a claim multiplies and divides from left to right") {
  const Place place{"f", "/figure", 1};
  const auto lookup = [](const std::string& path) {
    return path == "a.b" ? std::optional(6.0) : std::nullopt;
  };
  CHECK(ClaimFormula("12 / a.b * 4", place).value(lookup, lookup) == Approx(8));
  CHECK_FALSE(ClaimFormula("12 / none", place).value(lookup, lookup));
  CHECK_FALSE(ClaimFormula("a.b / 0", place).value(lookup, lookup));
  CHECK(ClaimFormula("a.b / baseline.a.b", place).asks_baseline());
  CHECK_FALSE(ClaimFormula("a.b", place).asks_baseline());
}

TEST_CASE("claims that are not in the form are refused with one sentence") {
  const ClaimFiles files;
  const auto with = [](const std::string& figure, const std::string& rest) {
    return R"({"claim": "c", "says": "x", "mechanism": "m", "source": "s", "figure": ")" + figure + "\"" +
           rest + "}";
  };
  const std::string runs = R"(, "configurations": [{"name": "n", "scenario": "100.json"}])";
  const std::string bound = R"(, "published": {"at_least": 1})";
  CHECK(files.refusal(with("a +", bound + runs)) ==
        "/figure: expected figures of a report and numbers with *, / or - between them, found \"a +\"");
  CHECK(files.refusal(with("a / baseline.a", bound + runs)) ==
        "/configurations/0: expected key \"baseline\", which the figure asks for, found none");
  CHECK(files.refusal(with("a", R"(, "published": {})" + runs)) ==
        "/published: expected one of at_least, at_most and value, found none");
  CHECK(files.refusal(with("a", R"(, "published": {"at_least": 1, "at_most": 2})" + runs)) ==
        "/published/at_most: expected one of at_least, at_most and value, found two");
  CHECK(files.refusal(with("a", bound + R"(, "configurations": [])")) ==
        "/configurations: expected at least one, found none");
  CHECK(files.refusal(with("a", bound + runs + R"(, "known_figure": 1)")) ==
        "/known_figure: expected a reason in `known_miss`, found none");
  CHECK(
      files.refusal(with("a", bound + runs + R"(, "needs": [{"assumption": "x", "pointer": "/a", "value": "1",
    "from": 0, "to": 1}])")) == "/needs/0/value: expected a value with # where the number goes, found none");
  CHECK(files.refusal(with("a", bound + runs + R"(, "mechanisms": 1)")) ==
        "/mechanisms: unknown key \"mechanisms\" (did you mean \"mechanism\"?)");
}
