#include "workloads/serving/traffic/generator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <queue>
#include <utility>

#include "hw/clock_end.h"

namespace moebius {
namespace {

using namespace literals;

// Streams of numbers for different uses, and for sessions each.
enum class Use : std::uint64_t { kArrivals = 1, kSession, kText, kSharedText };

std::uint64_t key_of(std::uint64_t seed, Use use, std::uint64_t number) {
  const std::uint64_t stream =
      RandomStream::finalise(seed + static_cast<std::uint64_t>(use) * RandomStream::kGolden);
  return RandomStream::finalise(stream ^ (number + 1) * RandomStream::kGolden);
}

std::int64_t draw_tokens(RandomStream& random, const TokenLaw& law) {
  const double drawn =
      law.sigma > 0 ? std::exp(std::log(law.mean) - law.sigma * law.sigma / 2 + law.sigma * random.normal())
                    : law.mean;
  return std::max<std::int64_t>(1, std::llround(std::min(drawn, 0x1p40)));
}

// At least 1, with a mean of at least 1.
std::int64_t draw_turns(RandomStream& random, double mean) {
  if (mean <= 1) return 1;
  return 1 + static_cast<std::int64_t>(std::log(random.unit()) / std::log1p(-1 / mean));
}

// Of one that has drawn so many.
std::int64_t turns_taken(RandomStream& random, const SessionShape& shape, std::int64_t turns) {
  double tokens = shape.shared_tokens;
  if (shape.images > 0)
    tokens += static_cast<double>(draw_turns(random, 1 + shape.images) - 1) * shape.image_tokens;
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    const std::int64_t text = draw_tokens(random, turn > 0 ? shape.further : shape.first);
    tokens += static_cast<double>(text + std::min(draw_tokens(random, shape.output), shape.most_tokens / 2));
    if (turn > 0 && tokens > static_cast<double>(shape.most_tokens)) return turn;
  }
  return turns;
}

struct Session {
  Time next;                                            // its next turn
  std::int64_t number = 0, turns_left = 0, tokens = 0;  // tokens: said so far
  std::int64_t last = -1;                               // turn, by its number in the stream
  bool begun = false;
  Time pause;  // before the next turn
  std::uint64_t text = 0, shared_text = 0;
  RandomStream random{0};
  std::vector<std::uint64_t> blocks;  // whole ones
};

// Earlier turns first, then older sessions.
struct LaterTurn {
  bool operator()(const Session& a, const Session& b) const {
    return std::pair(b.next, b.number) < std::pair(a.next, a.number);
  }
};

class Generated : public TrafficStream {
 public:
  explicit Generated(const Generator& generator)
      : spec_(generator),
        clock_(generator.arrivals, key_of(generator.seed, Use::kArrivals, 0)),
        next_start_(clock_.next()) {}

  bool next(TrafficRequest& request) override {
    if (given_ == spec_.requests) return false;
    Session session;
    do {
      while (open_.empty() || next_start_ <= open_.front().next) begin_session();
      std::pop_heap(open_.begin(), open_.end(), LaterTurn{});
      session = std::move(open_.back());
      open_.pop_back();
    } while (!take_turn(session, request));
    request.follows = std::exchange(session.last, given_++);
    request.awaited = session.turns_left > 0;
    if (session.turns_left == 0) return true;
    open_.push_back(std::move(session));
    std::push_heap(open_.begin(), open_.end(), LaterTurn{});
    return true;
  }

 private:
  void begin_session() {
    Session session;
    session.number = sessions_++;
    session.next = next_start_;
    next_start_ = clock_.next();
    const auto number = static_cast<std::uint64_t>(session.number);
    session.random = RandomStream(key_of(spec_.seed, Use::kSession, number));
    session.text = key_of(spec_.seed, Use::kText, number);
    session.turns_left = draw_turns(session.random, spec_.session.turns);
    const std::uint32_t prompt =
        session.random.below(static_cast<std::uint32_t>(spec_.session.shared_prompts));
    session.shared_text = key_of(spec_.seed, Use::kSharedText, prompt);
    session.tokens = static_cast<std::int64_t>(spec_.session.shared_tokens);
    open_.push_back(std::move(session));
    std::push_heap(open_.begin(), open_.end(), LaterTurn{});
  }

  // False where the session has become too long for it; a first turn is cut instead.
  bool take_turn(Session& session, TrafficRequest& request) {
    const SessionShape& shape = spec_.session;
    request.images = session.begun ? 0 : draw_images(session.random);
    const auto of_images = static_cast<std::int64_t>(request.images * shape.image_tokens);
    const std::int64_t text = draw_tokens(session.random, session.begun ? shape.further : shape.first);
    request.output_tokens = std::min(draw_tokens(session.random, shape.output), shape.most_tokens / 2);
    std::int64_t input = session.tokens + of_images + text;
    if (input + request.output_tokens > shape.most_tokens) {
      if (session.begun) return false;
      input = shape.most_tokens - request.output_tokens;
    }
    request.input_tokens = input;
    request.arrival = session.next;
    request.session = session.number;
    request.pause = session.pause;
    request.block_tokens = spec_.block_tokens;
    set_blocks(session, request);
    prepare_next(session, request);
    return true;
  }

  std::int32_t draw_images(RandomStream& random) const {
    if (spec_.session.images <= 0) return 0;
    return static_cast<std::int32_t>(draw_turns(random, 1 + spec_.session.images) - 1);
  }

  // Each id follows from the one before and the tokens of the block; a block that is not full yet is another
  // than the one that it becomes.
  void set_blocks(Session& session, TrafficRequest& request) const {
    const std::int64_t size = spec_.block_tokens;
    const auto id = [&](std::int64_t block, std::int64_t end) {
      const bool shared = static_cast<double>(end) <= spec_.session.shared_tokens;
      const std::uint64_t before = session.blocks.empty() ? 0 : session.blocks.back();
      const std::uint64_t text =
          (shared ? session.shared_text : session.text) + static_cast<std::uint64_t>(block);
      return RandomStream::finalise(before +
                                    RandomStream::finalise(text ^ static_cast<std::uint64_t>(end) << 32));
    };
    for (auto block = static_cast<std::int64_t>(session.blocks.size());
         (block + 1) * size <= request.input_tokens; ++block)
      session.blocks.push_back(id(block, (block + 1) * size));
    request.blocks = session.blocks;
    if (request.input_tokens % size != 0)
      request.blocks.push_back(id(static_cast<std::int64_t>(session.blocks.size()), request.input_tokens));
  }

  void prepare_next(Session& session, const TrafficRequest& request) const {
    session.tokens = request.input_tokens + request.output_tokens;
    session.begun = true;
    --session.turns_left;
    session.pause = spec_.session.pause.ns == 0
                        ? Time{}
                        : after_seconds({}, draw_exponential(session.random, spec_.session.pause.seconds()));
    session.next = later(session.next, session.pause);
  }

  Generator spec_;
  ArrivalClock clock_;
  Time next_start_;
  std::vector<Session> open_;  // a heap
  std::int64_t sessions_ = 0, given_ = 0;
};

constexpr std::array kKinds{
    TrafficKind{
        "independent",
        "requests that share nothing: lengths as in Azure's conversations of 2023",
        5.53,
        {.turns = 1, .first = {1155, 1.0}, .further = {1155, 1.0}, .output = {211, 0.8}, .pause = {}}},
    TrafficKind{"conversation",
                "turns of people: rate, lengths and hits near Mooncake's conversation trace",
                3.4,
                {.turns = 1.6,
                 .first = {9000, 1.22},
                 .further = {5200, 1.4},
                 .output = {343, 0.5},
                 .shared_tokens = 512,
                 .pause = 240_s}},
    TrafficKind{"agent",
                "loops of an agent: a long prompt of the system, then a tool's answer a turn",
                6.7,
                {.turns = 3,
                 .first = {3000, 1.1},
                 .further = {1200, 1.2},
                 .output = {182, 0.8},
                 .shared_tokens = 2560,
                 .shared_prompts = 16,
                 .pause = 8_s}},
    TrafficKind{"multimodal",
                "questions about images, the first one with the images",
                2.0,
                {.turns = 1.5,
                 .first = {400, 0.9},
                 .further = {120, 0.8},
                 .output = {150, 0.8},
                 .shared_tokens = 256,
                 .pause = 45_s,
                 .images = 1.5,
                 .image_tokens = 1200}},
};

}  // namespace

double mean_turns(const SessionShape& shape) {
  constexpr double kTurns = 1 << 16;
  const auto sessions = static_cast<std::uint64_t>(std::max(64.0, kTurns / shape.turns));
  double drawn = 0, taken = 0;
  for (std::uint64_t number = 0; number < sessions; ++number) {
    RandomStream random(key_of(1, Use::kSession, number));
    const std::int64_t turns = draw_turns(random, shape.turns);
    drawn += static_cast<double>(turns);
    taken += static_cast<double>(turns_taken(random, shape, turns));
  }
  return shape.turns * taken / drawn;
}

std::unique_ptr<TrafficStream> generate(const Generator& generator) {
  return std::make_unique<Generated>(generator);
}

std::span<const TrafficKind> traffic_kinds() {
  return kKinds;
}

}  // namespace moebius
