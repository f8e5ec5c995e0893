#include "real/host/host_executor.h"

#include <functional>
#include <string>
#include <vector>

#include "hw/error.h"

#include "tests/catch.h"

#include "tests/unit/real/hand_made.h"

namespace moebius {
namespace {

using Floats = std::vector<float>;

constexpr std::uint32_t kInputKey = 1, kW = 2, kY = 3;

// y = all-reduce(x w^T): each rank holds half of the inner dimension.
FragmentPtr gemm_and_reduce() {
  FragmentBuilder b("gemm", Phase::kForward);
  const TensorId x = b.add(kept(kInputKey, 1, 2)), w = b.add(kept(kW, 2, 2)), y = b.add(kept(kY, 1, 2));
  const TensorId partial = b.add({.dtype = DType::kFp32, .rows = 1, .columns = 2});
  b.emit({.kind = OpKind::kGemm, .shape = {.m = 1, .n = 2, .k = 2}}, {x, w}, {partial});
  b.emit(meeting(OpKind::kAllReduce, GroupRole::kTensor, 1), {partial}, {y});
  return b.freeze_it();
}

FragmentPtr one_op(const Op& op, std::int64_t rows, bool output) {
  FragmentBuilder b("one op", Phase::kForward);
  const TensorId x = b.add(kept(kInputKey, rows, 1));
  if (output) {
    b.emit(op, {x}, {b.add(kept(kY, rows, 1))});
  } else {
    b.emit(op, {x}, {});
  }
  return b.freeze_it();
}

FragmentPtr receive(std::uint32_t match) {
  FragmentBuilder b("receive", Phase::kForward);
  b.emit(meeting(OpKind::kRecv, GroupRole::kNext, match), {}, {b.add(kept(kY, 2, 1))});
  return b.freeze_it();
}

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    REQUIRE(error.kind() == Error::Kind::kRun);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("two ranks multiply their halves and add them up") {
  HandMade hand_made(one_group(2, GroupRole::kTensor));
  HostExecutor<float>& executor = hand_made.executor();
  executor.set_parameter(0, kInputKey, {1, 2});
  executor.set_parameter(0, kW, {1, 0, 0, 1});
  executor.set_parameter(1, kInputKey, {3, 4});
  executor.set_parameter(1, kW, {2, 0, 1, 1});
  hand_made.run_everywhere(gemm_and_reduce());
  // {1, 2} + {6, 7}
  CHECK(executor.tensor(0, kY) == Floats{7, 9});
  CHECK(executor.tensor(1, kY) == Floats{7, 9});
}

TEST_CASE("messages arrive in their microbatch, whatever the order of sending") {
  HandMade hand_made(one_group(2, GroupRole::kNext));
  hand_made.executor().set_parameter(0, kInputKey, {5, 6});
  const FragmentPtr send = one_op(meeting(OpKind::kSend, GroupRole::kNext, 9), 2, false);
  hand_made.submit(1, receive(9), 0);
  hand_made.submit(0, send, 1);
  hand_made.submit(0, send, 0);
  hand_made.submit(1, receive(9), 1);
  hand_made.executor().finish();
  CHECK(hand_made.executor().tensor(1, kY) == Floats{5, 6});
  const auto transfers = hand_made.executor().transfers();
  REQUIRE(transfers.size() == 4);
  CHECK(transfers[0].sent_bytes == 0);  // a receive
  CHECK(transfers[1].sent_bytes == 8);
}

TEST_CASE("members that bring different sizes stop the run with one sentence") {
  HandMade hand_made(one_group(2, GroupRole::kData));
  const Op reduce = meeting(OpKind::kAllReduce, GroupRole::kData, 3);
  hand_made.submit(0, one_op(reduce, 4, true));
  hand_made.submit(1, one_op(reduce, 6, true));
  const std::string sentence = error_of([&] { hand_made.executor().finish(); });
  CHECK_THAT(sentence,
             Catch::Contains("all_reduce") && Catch::Contains("elements where") && Catch::Contains("rank"));
}

TEST_CASE("a rank that fails does not leave the others waiting") {
  // Ranks 0 and 1 disagree in a group of two; rank 2 waits for both in the group of all.
  Layout layout = one_group(3, GroupRole::kWorld);
  for (int rank = 0; rank < 2; ++rank) {
    layout.classes[rank].groups[static_cast<int>(GroupRole::kData)] = {
        .ranks = {0, 1}, .my_index = rank, .num_classes = 2};
  }
  HandMade hand_made(layout);
  const Op reduce = meeting(OpKind::kAllReduce, GroupRole::kData, 3);
  hand_made.submit(2, one_op(meeting(OpKind::kAllReduce, GroupRole::kWorld, 4), 4, true));
  hand_made.submit(0, one_op(reduce, 4, true));
  hand_made.submit(1, one_op(reduce, 6, true));
  CHECK_THAT(error_of([&] { hand_made.executor().finish(); }), Catch::Contains("elements where"));
}

TEST_CASE("a deadlock is a sentence that names who waits for what") {
  HandMade hand_made(one_group(2, GroupRole::kNext));
  hand_made.submit(0, receive(1));
  hand_made.submit(1, receive(2));
  const std::string sentence = error_of([&] { hand_made.executor().wait(kForever); });
  CHECK_THAT(sentence, Catch::StartsWith("deadlock: ") && Catch::Contains("rank 0 in recv") &&
                           Catch::Contains("rank 1 in recv"));
}

TEST_CASE("waiting for a time returns at that time, and what was not there can come later") {
  HandMade hand_made(one_group(2, GroupRole::kNext));
  hand_made.submit(1, receive(1));
  const Time until = hand_made.executor().now() + Time{20'000'000};
  CHECK(hand_made.executor().wait(until).empty());
  CHECK(hand_made.executor().now() >= until);
  hand_made.submit(0, one_op(meeting(OpKind::kSend, GroupRole::kNext, 1), 2, false));
  hand_made.executor().finish();
  CHECK(hand_made.executor().tensor(1, kY) == Floats{0, 0});
}

TEST_CASE("with nothing submitted, waiting returns at once") {
  HandMade hand_made(one_group(1, GroupRole::kData));
  CHECK(hand_made.executor().wait(kForever).empty());
  CHECK(hand_made.executor().finish() == Time{});
}

TEST_CASE("a submission starts after those it names, on other ranks too") {
  HandMade hand_made(one_group(2, GroupRole::kNext));
  // Rank 1 would send at once, but comes after rank 0's second submission.
  const FragmentPtr add = [] {
    FragmentBuilder b("add", Phase::kForward);
    const TensorId x = b.add(kept(kInputKey, 2, 1));
    b.emit({.kind = OpKind::kAdd, .shape = {.m = 2, .n = 1}}, {x, x}, {b.add(kept(kY, 2, 1))});
    return b.freeze_it();
  }();
  const auto first = hand_made.submit(0, add);
  const auto second = hand_made.submit(0, add);
  const auto last = hand_made.submit(1, add, 0, {first, second});
  hand_made.executor().finish();
  Time second_end, last_start;
  for (const Span& span : hand_made.recorder().timeline().spans) {
    if (span.sequence == second) second_end = span.end;
    if (span.sequence == last) last_start = span.start;
  }
  CHECK(last_start >= second_end);
}

TEST_CASE("spans tell when an op was ready, when its peers were there, and when it ended") {
  HandMade hand_made(one_group(2, GroupRole::kTensor));
  hand_made.run_everywhere(gemm_and_reduce());
  const std::vector<Span>& spans = hand_made.recorder().timeline().spans;
  REQUIRE(spans.size() == 4);
  Time met[2];
  for (const Span& span : spans) {
    CHECK(span.origin == Origin::kExecuted);
    CHECK(span.end >= span.start);
    if (span.op == 1) {
      CHECK(span.work_start >= span.start);
      CHECK(span.work_start <= span.end);
      met[span.rank_class] = span.work_start;
    }
  }
  CHECK(met[0] == met[1]);
}

TEST_CASE("a folded layout cannot be executed") {
  Layout layout = one_group(2, GroupRole::kData);
  layout.classes.pop_back();
  layout.classes[0].ranks = {0, 1};
  Recorder recorder(layout, RecorderOptions{});
  CHECK(error_of([&] { HostExecutor<float>(layout, recorder, {}); }) ==
        "the host executes every rank: set /plan/fold to false");
}

TEST_CASE("activations are kept for the backward pass of their microbatch, and no longer") {
  constexpr std::uint32_t kActivation = 40;
  const Tensor kept_for_later{
      .scope = Scope::kMicrobatch, .dtype = DType::kFp32, .key = kActivation, .rows = 2, .columns = 1};
  FragmentBuilder forward("forward", Phase::kForward), backward("backward", Phase::kBackward);
  const TensorId x = forward.add(kept(kInputKey, 2, 1));
  forward.emit({.kind = OpKind::kAdd, .shape = {.m = 2, .n = 1}}, {x, x}, {forward.add(kept_for_later)});
  const TensorId read = backward.add(kept_for_later);
  backward.emit({.kind = OpKind::kAdd, .shape = {.m = 2, .n = 1}}, {read, read},
                {backward.add(kept(kY, 2, 1))});
  const FragmentPtr f = forward.freeze_it(), b = backward.freeze_it();

  HandMade hand_made(one_group(1, GroupRole::kData));
  hand_made.executor().set_parameter(0, kInputKey, {1, 2});
  hand_made.submit(0, f, 0);
  hand_made.submit(0, f, 1);
  hand_made.executor().finish();
  CHECK(hand_made.executor().num_microbatch_tensors(0) == 2);
  hand_made.submit(0, b, 0);
  hand_made.executor().finish();
  CHECK(hand_made.executor().num_microbatch_tensors(0) == 1);
  CHECK(hand_made.executor().tensor(0, kY) == Floats{4, 8});
}

TEST_CASE("values are rounded to the format of the tensor they are stored in, unless exact") {
  FragmentBuilder b("store", Phase::kForward);
  const TensorId x = b.add(kept(kInputKey, 1, 1));
  Tensor half = kept(kY, 1, 1);
  half.dtype = DType::kBf16;
  b.emit({.kind = OpKind::kAdd, .shape = {.m = 1, .n = 1}}, {x, x}, {b.add(half)});
  const FragmentPtr fragment = b.freeze_it();
  for (const bool exact : {false, true}) {
    HostOptions options;
    options.exact = exact;
    HandMade hand_made(one_group(1, GroupRole::kData), options);
    hand_made.executor().set_parameter(0, kInputKey,
                                       {0.501953125f});  // twice it is 1 + 2^-8, halfway to the next BF16
    hand_made.run_everywhere(fragment);
    CHECK(hand_made.executor().tensor(0, kY) == Floats{exact ? 1.00390625f : 1.0f});
  }
}

}  // namespace moebius
