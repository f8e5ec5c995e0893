// Runs shared by several processes: the same numbers, completions and bytes as in one.
#include <algorithm>

#include "tests/cross/small_training.h"
#include "tests/unit/real/hand_made.h"
#include "tests/unit/real/thread_transport.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

// What a process knows of a run when it has ended.
struct Known {
  std::vector<double> losses;
  std::vector<double> sent;                 // bytes by communication op and rank
  std::vector<std::vector<float>> weights;  // of the ranks that live there, one after the other
  bool same_but_for_weights(const Known& other) const { return losses == other.losses && sent == other.sent; }
};

Known train(const TrainingJob& job, Processes* processes) {
  HostOptions options;
  options.adam.learning_rate = 1e-2;
  options.processes = processes;
  SmallRun<float> run(job, options);
  HostExecutor<float>& executor = run.run();
  Known known;
  for (int step = 0; step < executor.num_steps(); ++step) known.losses.push_back(executor.loss(step));
  std::vector<Transfer> transfers = executor.transfers();
  std::sort(transfers.begin(), transfers.end(), [](const Transfer& a, const Transfer& b) {
    return std::tuple(a.sequence, a.op, a.rank) < std::tuple(b.sequence, b.op, b.rank);
  });
  for (const Transfer& transfer : transfers) known.sent.push_back(transfer.sent_bytes);
  for (int rank = executor.ranks_here().first; rank < executor.ranks_here().last; ++rank) {
    for (const auto& held : executor.held(rank, MemoryKind::kWeights))
      known.weights.emplace_back(held.values.begin(), held.values.end());
  }
  return known;
}

void check_as_alone(const TrainingJob& job, int count) {
  INFO(count << " processes");
  const Known alone = train(job, nullptr);
  std::vector<Known> known(count);
  const auto failures = in_processes(count, [&](Processes& all) { known[all.self()] = train(job, &all); });
  std::vector<std::vector<float>> weights;
  for (int process = 0; process < count; ++process) {
    if (failures[process]) FAIL(failures[process]->what());
    CHECK(known[process].same_but_for_weights(alone));
    weights.insert(weights.end(), known[process].weights.begin(), known[process].weights.end());
  }
  REQUIRE(!alone.losses.empty());
  CHECK(weights == alone.weights);
}

TrainingJob job_of(int steps) {
  TrainingJob job = small_job(small_model(AttentionKind::kMla));
  job.workload.steps = steps;
  return job;
}

FragmentPtr reduction(OpKind kind, std::uint32_t match, std::int64_t rows = 2) {
  FragmentBuilder builder("reduction", Phase::kForward);
  const TensorId in = builder.add(kept(1, rows, 2)), out = builder.add(kept(2, rows, 2));
  builder.emit(meeting(kind, GroupRole::kData, match), {in}, {out});
  return builder.freeze_it();
}

}  // namespace

TEST_CASE(
    "a mixture of experts trains in two and three processes to the same losses and weights and sends as many "
    "bytes") {
  TrainingJob job = job_of(2);
  job.plan.dp = 4;
  job.plan.ep = 4;
  check_as_alone(job, 2);
  check_as_alone(job, 3);  // blocks of one and two ranks
}

TEST_CASE("pipeline stages and sharded optimizer states in several processes") {
  TrainingJob job = job_of(2);
  job.plan.pp = 2;
  job.plan.dp = 2;
  job.plan.ep = 2;
  job.plan.zero = 1;
  check_as_alone(job, 2);
  check_as_alone(job, 4);
}

TEST_CASE("tensor and context parallelism in several processes") {
  TrainingJob job = small_job(small_model(AttentionKind::kGqa));
  job.plan.tp = 2;
  job.plan.cp = 2;
  check_as_alone(job, 3);
}

TEST_CASE("all processes see the same spans with times of one clock") {
  TrainingJob job = job_of(1);
  job.plan.dp = 2;
  job.plan.ep = 2;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> spans(2);
  in_processes(2, [&](Processes& all) {
    Training training(job);
    Recorder recorder(training.layout(), {.detail = Detail::kOps});
    HostOptions options;
    options.processes = &all;
    HostExecutor<float> executor(training.layout(), recorder, options);
    recorder.finish(execute(training, executor, recorder));
    for (const Span& span : recorder.timeline().spans)
      spans[all.self()].emplace_back(span.start.ns, span.end.ns);
  });
  CHECK(!spans[0].empty());
  CHECK(spans[0] == spans[1]);
}

TEST_CASE("two and four processes stop behind the same step, whichever of them is asked to") {
  constexpr int kSteps = 200;
  TrainingJob job = job_of(kSteps);
  job.plan.dp = 4;
  job.plan.ep = 4;
  for (const int count : {2, 4}) {
    for (int asked = 0; asked < count; ++asked) {
      INFO(count << " processes, number " << asked << " is asked");
      std::vector<int> begun(count), done(count);
      const auto failures = in_processes(count, [&](Processes& all) {
        Training training(job);
        training.stay_within(2);
        Recorder recorder(training.layout(), {.detail = Detail::kNone});
        HostOptions options;
        options.processes = &all;
        HostExecutor<float> executor(training.layout(), recorder, options);
        execute(training, executor, recorder, [&](double) {
          const bool told = all.self() == asked && training.steps_begun() > 3;
          if (executor.stops(told)) training.stop_before(0);
        });
        begun[all.self()] = training.steps_begun();
        done[all.self()] = executor.num_steps();
      });
      for (int process = 0; process < count; ++process) {
        if (failures[process]) FAIL(failures[process]->what());
        CHECK(begun[process] == begun[0]);
        CHECK(done[process] == begun[0]);
      }
      CHECK(begun[0] > 3);
      CHECK(begun[0] < kSteps);
    }
  }
}

TEST_CASE("more processes than ranks are refused") {
  const auto failures = in_processes(3, [](Processes& all) {
    HostOptions options;
    options.processes = &all;
    HandMade run(one_group(2, GroupRole::kData), options);
  });
  REQUIRE(failures[0]);
  CHECK(std::string(failures[0]->what()) == "3 processes for 2 ranks: each needs at least one");
}

TEST_CASE("a rank that fails in one process ends the run in all of them with its sentence") {
  const auto failures = in_processes(2, [](Processes& all) {
    HostOptions options;
    options.processes = &all;
    HandMade run(one_group(2, GroupRole::kData), options);
    run.submit(0, reduction(OpKind::kAllReduce, 7, 2));
    run.submit(1, reduction(OpKind::kAllReduce, 7, 3));
    run.executor().finish();
  });
  for (const auto& failure : failures) {
    REQUIRE(failure);
    CHECK(std::string(failure->what()).find("rank ") == 0);
    CHECK(std::string(failure->what()).find("another member brings") != std::string::npos);
  }
}

TEST_CASE("a process that fails before its ranks start ends the others and is named by the first") {
  const auto failures = in_processes(3, [](Processes& all) {
    if (all.self() == 2) throw input_error("scenario.json: no such file");
    HostOptions options;
    options.processes = &all;
    HandMade run(one_group(3, GroupRole::kData), options);
    run.run_everywhere(reduction(OpKind::kAllReduce, 7));
  });
  REQUIRE(failures[0]);
  CHECK(failures[0]->kind() == Error::Kind::kInput);
  CHECK(std::string(failures[0]->what()).find("scenario.json: no such file") != std::string::npos);
}

TEST_CASE("ranks of two processes that wait for each other are a sentence in both") {
  const auto failures = in_processes(2, [](Processes& all) {
    HostOptions options;
    options.processes = &all;
    HandMade run(one_group(2, GroupRole::kData), options);
    run.submit(0, reduction(OpKind::kAllReduce, 7));
    run.submit(1, reduction(OpKind::kAllReduce, 8));
    run.executor().finish();
  });
  for (const auto& failure : failures) {
    REQUIRE(failure);
    const std::string sentence = failure->what();
    CHECK(sentence.find("deadlock: ") == 0);
    CHECK(sentence.find("rank 0 in all_reduce of reduction") != std::string::npos);
    CHECK(sentence.find("rank 1 in all_reduce of reduction") != std::string::npos);
  }
}

TEST_CASE("a submission waits for one of another process that it comes after") {
  std::vector<std::vector<float>> found(2);
  in_processes(2, [&](Processes& all) {
    HostOptions options;
    options.processes = &all;
    HandMade run(one_group(2, GroupRole::kData), options);
    const FragmentPtr fragment = reduction(OpKind::kAllReduce, 7);
    run.executor().set_parameter(all.self(), 1, {1, 2, 3, 4});
    const std::int32_t first = run.submit(0, fragment), second = run.submit(1, fragment);
    run.submit(0, fragment, 1, {second});
    run.submit(1, fragment, 1, {first});
    run.executor().finish();
    found[all.self()] = run.executor().tensor(all.self(), 2);
  });
  CHECK(found[0] == std::vector<float>{2, 4, 6, 8});
  CHECK(found[1] == std::vector<float>{2, 4, 6, 8});
}

}  // namespace moebius
