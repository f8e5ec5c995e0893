// What one attention replica computes next: the scheduler of a serving engine. Sequences wait, are prefilled
// whole or in chunks, decode, and leave; pages of the cache are counted here, not placed. plan() decides an
// iteration, complete() is told that it has ended: the same code under a simulated and under a wall clock.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/kv/block_index.h"
#include "workloads/serving/kv/page_parts.h"
#include "workloads/serving/kv/page_tables.h"
#include "workloads/serving/system/step.h"
#include "workloads/serving/system/tiers/tiers_below.h"
#include "workloads/serving/system/touched_set.h"

namespace moebius {

enum class BatchPolicy : std::uint8_t {
  kPrefillFirst,  // prompts have iterations of their own, before decoding goes on
  kMixed,         // every running sequence decodes, and what the budget leaves goes to prompts
};

struct Speculation {
  int drafts = 0;                     // tokens that are guessed for a sequence in each iteration; 0: none
  double acceptance = 0;              // that a guess holds, given that those before it did
  std::vector<double> by_place = {};  // the same for each guess in turn; empty: `acceptance` for all

  double holds(int guess) const { return by_place.empty() ? acceptance : by_place[guess]; }
};

struct ReplicaRules {
  BatchPolicy policy = BatchPolicy::kPrefillFirst;
  bool hands_over = false;           // prefilled sequences are held until release(): others decode them
  std::int32_t max_running = 256;    // sequences that hold pages
  std::int64_t token_budget = 8192;  // of an iteration: prompt tokens when prefill goes first, all when mixed
  bool chunked = true;               // a prompt may be cut at the budget; otherwise a longer one goes alone
  std::int32_t page_tokens = 64;
  std::int64_t pages = 0;  // of the cache
  PageParts parts = {};    // of the layers, each of which has pages of its own
  std::int32_t shared_tokens =
      0;                      // of a block that requests may share; pages make up whole blocks. 0: none are
  double output_reserve = 0;  // share of the pages still to be asked for that admission leaves free
  // That share begins at `first_reserve` where this is more, and at it again when nobody is left on the
  // instance; it falls by equal steps in so many iterations that decode and drive nobody out. One that does
  // makes it what the others have generated and 20 tokens more each, of all they may generate: SGLang,
  // NewTokenRatioTracker. 0: constant.
  double first_reserve = 0;
  std::int32_t reserve_decay = 0;
  // Of the tokens that a sequence still gets at most so many count for the reserve; until its prompt is
  // computed they count whole. 0: all count, by the share from its admission on.
  std::int32_t newcomer_reserve = 0;
  kv::EvictionKind eviction = kv::EvictionKind::kLru;  // of shared blocks that nobody uses
  double depth_cost = 0;                               // see kv::EvictionOptions
  Speculation speculation;
  std::int32_t slot_tokens = 0;  // for which each sequence holds pages from its admission on; 0: as it grows
  bool padded = false;  // prompts of an iteration are rows of one length, the longest's; needs prefill first
  // Preempted sequences keep their keys in so many pages of the host's memory, and go on from there; where
  // they have no room, and with 0, all they had is computed again.
  std::int64_t host_pages = 0;
  // A request is seen by the loop when it looks for some: after so many iterations without prompts, or after
  // one with prompts, or with nothing to do.
  std::int32_t receive_every = 1;
  // An iteration is decided when the one before it begins: what came meanwhile is in the one after.
  bool decided_ahead = false;
  // Prompts wait while others decode, until an iteration with them would fill this share of the budget, but
  // no more than so many iterations.
  double gather_share = 0;
  std::int32_t gather_iterations = 0;
  // Of latent attention: prompts behind cached tokens, but fewer than so many, are absorbed (LatentRule).
  std::int64_t absorbed_below = 0;
  std::uint64_t seed = 1;
};

struct Sequence {
  std::int32_t id = 0;
  std::int32_t prompt = 0;    // tokens
  std::int32_t output = 0;    // tokens still to be generated, at least one
  kv::Chain chain = {};       // whole blocks of the prompt that others may share; outlives the sequence here
  std::int32_t priority = 0;  // those of a higher one are admitted first
  std::int32_t images = 0;    // of the prompt, which are encoded here before it
  // Of one that had tokens and was driven out: when its last one was there.
  std::optional<Time> since = {};
  std::int32_t generated = 0;  // and how many these are, which are part of the prompt then
  // Of the request in the traffic, by which guesses hold or not; ids are given again.
  std::uint32_t number = 0;
};

struct TokenGap {  // between one token and the next of so many sequences
  Time gap;
  std::int64_t count = 0;
};

// What an iteration brought about; ids of sequences, in the order in which they were admitted.
struct StepOutcome {
  std::vector<std::int32_t> prefilled;  // their first (or next, when computed again) token is there
  std::vector<std::int32_t> finished;
  std::vector<TokenGap> gaps;
  std::int64_t tokens = 0;  // generated
  void clear();
};

struct ReplicaLoad {
  std::int64_t waiting = 0, running = 0;           // sequences without and with pages
  std::int64_t prompt_tokens = 0;                  // not computed yet
  std::int64_t context_tokens = 0;                 // of decoding sequences
  std::int64_t expected = 0, expected_tokens = 0;  // on their way here: Replica::expect()
  std::int64_t pages = 0;                          // held
  std::int64_t images = 0;                         // of those that wait, to be encoded here
  void add(const ReplicaLoad& other, int times);
};

struct PrefixTotals {
  std::int64_t prompt_tokens = 0, reused_tokens = 0;  // of sequences when they were first admitted
  std::int64_t asked_blocks = 0, hit_blocks = 0;
  void add(const PrefixTotals& other);
};

struct SwapTotals {
  std::int64_t sequences = 0;  // that went to the host's memory
  std::int64_t out_tokens = 0, in_tokens = 0;
  void add(const SwapTotals& other);
};

struct DraftTotals {
  std::int64_t guessed = 0, held = 0;  // tokens
  void add(const DraftTotals& other);
};

// What an iteration does for a sequence: rows for its tokens past .. past + count - 1.
struct PlannedPart {
  std::int32_t id = 0, past = 0, count = 0;
};

class Replica {
 public:
  explicit Replica(const ReplicaRules& rules);

  // Tiers below device memory, which outlive it.
  void use_tiers(TiersBelow& below);
  // From here pages are placed, too: the tables outlive it, are empty, and have as many.
  void place_pages(kv::PageTables& tables);
  // Whether the cache could ever hold it.
  bool fits(std::int32_t prompt, std::int32_t output) const;
  void enqueue(const Sequence& sequence);
  // A request was sent here and is on its way: it counts as load until it is enqueued, or reserved and
  // adopted. Without that, all that are sent at one moment go to who had the least before.
  void expect(std::int32_t prompt);

  // Decoding what another replica prefilled: pages first, then, when they are filled, the sequence itself.
  // `since` is when its last token was there. None while sequences that were driven out wait to come back.
  // `output`: tokens that it still gets.
  bool reserve(std::int32_t id, std::int32_t prompt, std::int32_t output);
  void adopt(const Sequence& sequence, Time since);
  // A sequence that was handed over is not needed any more.
  void release(std::int32_t id);
  // The last part of a prompt that was computed, of a sequence that is handed over: when its iteration was
  // decided, and its tokens.
  struct LastChunk {
    Time begun;
    std::int32_t tokens = 0;
  };
  LastChunk last_chunk(std::int32_t id) const;

  // Decides the next iteration; empty when there is nothing to do. `admitted` and `preempted` are of this
  // decision: a preempted sequence waits again, all it had to be computed once more.
  // Without `prompts`, none are computed in it.
  const StepShape& plan(Time now = {}, bool prompts = true);
  // That decision was empty, as those of all beside it: who should have decoded first had to make room, or
  // prompts waited for others. Now they are computed.
  const StepShape& plan_prompts();
  // Of the next decision: whether there are prompts to compute and slots for them, and whether others decode.
  bool wants_prompts() const {
    const std::size_t known = rules_.decided_ahead ? known_ : waiting_.size();
    return !prefilling_.empty() || (known > 0 && occupied_ < rules_.max_running);
  }
  bool decodes() const { return !decoding_.empty(); }
  // When blocks of that iteration that come from below are there, and the room that it takes is free.
  Time loaded() const { return loaded_; }
  const std::vector<std::int32_t>& admitted() const { return admitted_; }
  const std::vector<std::int32_t>& preempted() const { return preempted_; }
  // Of this decision: sequences that come back from the host's memory.
  const std::vector<std::int32_t>& swapped_in() const { return swapped_in_; }
  // Of the planned iteration: tokens that it will bring, and prompts that it ends.
  std::int64_t tokens_to_come() const;
  std::int64_t prompts_ending() const;
  // And what it does for whom: prompts first, as they were admitted, then decoding sequences.
  std::vector<PlannedPart> parts() const;
  // The planned iteration ended; adds to `outcome`.
  void complete(Time end, StepOutcome& outcome);

  bool idle() const {
    return waiting_.empty() && prefilling_.empty() && decoding_.empty() && swapped_.empty();
  }
  // Nobody is left here, nor on any replica of its instance: the share kept free begins again, unless others
  // have sequences in its cache.
  void begin_reserve();
  // After a decision: nothing is left for it to do or to end, and as long as nobody touches it further
  // decisions would leave it as it is. Where others have blocks of its cache, or it of tiers below, time and
  // they may change it.
  bool rests() const {
    return idle() && context_ == 0 && shape_.swapped_out == 0 && beside_.empty() && below_ == nullptr &&
           tables_ == nullptr;
  }
  // Whatever may change its load() or what it decides sets these marks.
  void watch(const std::array<TouchMark, 3>& marks) { marks_ = marks; }
  ReplicaLoad load() const;
  // Prompt tokens that will be computed before those of a request of this priority that came now.
  std::int64_t prompt_tokens_before(std::int32_t priority) const;
  std::int64_t free_pages() const;  // or those of blocks that nobody uses
  // Tokens of a prompt that it would not have to compute: leading blocks that it or its node's memory has.
  std::int64_t hit_tokens(kv::Chain chain) const;
  std::int32_t max_running() const { return rules_.max_running; }
  std::int64_t peak_pages() const { return peak_pages_; }
  const PrefixTotals& prefixes() const { return prefixes_; }
  const SwapTotals& swaps() const { return swaps_; }
  const DraftTotals& drafts() const { return drafts_; }
  std::int64_t cached_blocks(kv::Chain chain) const { return index_.match(chain); }  // leading ones
  const StepShape& shape() const { return shape_; }

  // Others, which outlive it, have their pages in the same cache: `pages` of the rules are those of all. They
  // evict for each other what nobody uses.
  void share_cache(std::vector<Replica*> beside) {
    touch();
    beside_ = std::move(beside);
  }

 private:
  struct Prefilling {
    Sequence sequence;
    kv::Lease lease = {};              // of blocks that were there already
    std::int32_t done = 0, chunk = 0;  // tokens computed, and of this iteration
    Time begun = {};                   // the iteration of its last chunk
  };
  struct Decoding {
    std::int32_t id = 0, context = 0, left = 0;  // context: tokens in the cache
    std::int32_t shared = 0;                     // pages of it in shared blocks
    Time since;                                  // its last token
    std::int32_t priority = 0;
    std::uint32_t number = 0;  // see Sequence
    std::int32_t generated = 0;
  };
  struct HandedOver {
    Decoding sequence;
    LastChunk chunk;
  };
  // What a sequence has of shared blocks, from the end of its prompt until it leaves.
  struct Shared {
    kv::Chain chain;
    kv::Lease lease = {};
  };

  void touch() const {
    for (const TouchMark& mark : marks_) mark.set();
  }
  void decode(const Decoding& sequence);
  std::size_t handed_over(std::int32_t id) const;
  void receive();
  void see_next();
  bool gathers();
  void plan_prefill(std::int64_t budget);
  void plan_decode();
  const StepShape& decided();
  bool admit_next();
  bool make_room(std::int64_t pages);
  void evict(std::int64_t pages);
  std::size_t next_waiting() const;
  std::int64_t load(const Sequence& next, std::int64_t there);
  void count_prefix(const Prefilling& prefilling);
  std::int64_t block_pages() const { return block_pages_; }
  std::int64_t used() const { return held_ + index_.resident() * block_pages(); }
  std::int64_t in_use() const { return held_ + index_.in_use() * block_pages(); }
  std::int64_t used_by_all() const;
  std::int32_t share(Prefilling& prefilling);
  void unshare(std::int32_t id);
  void leave(const Decoding& sequence);
  std::int32_t take_chunk(Prefilling& prefilling, std::int64_t budget);
  std::int64_t left_of(std::size_t index) const;
  bool fits_beside(std::size_t index, std::int64_t budget) const;
  void pad();
  void make_room_for_growth();
  void preempt_youngest();
  bool swap_out(const Decoding& sequence);
  void swap_in();
  std::int64_t growth() const;
  std::int64_t growth_of(const Decoding& sequence) const;
  std::int64_t kept_tokens(std::int64_t tokens) const;
  void hold(std::int64_t pages);  // of one sequence alone
  std::int64_t pages_of(std::int64_t tokens) const;
  std::int64_t held_by(std::int64_t tokens) const;         // pages of a sequence alone that has so many
  std::int64_t held_by_prompt(std::int64_t tokens) const;  // until it is computed
  // Pages with all tokens that the reserve counts, and of these those beyond `tokens`.
  std::int64_t furthest(std::int64_t tokens, std::int64_t left) const;
  std::int64_t to_come(std::int64_t tokens, std::int64_t left) const;
  // Where such a sequence is admitted. `newcomer`: its prompt is to be computed.
  std::int64_t kept_free(std::int64_t tokens, std::int64_t left, bool newcomer) const;
  double kept_for_others() const;  // of that, for those with pages
  double kept_for_own() const;
  void follow_reserve(bool drove_out);
  std::int32_t tokens_of(const Decoding& sequence) const;
  void complete_prefill(Time end, StepOutcome& outcome);
  void complete_decode(Time end, StepOutcome& outcome);

  ReplicaRules rules_;
  std::int64_t block_pages_ = 0;  // of a block that requests may share; 0: none are
  int page_shift_ = -1;           // tokens of a page are this power of two; -1: they are none
  std::deque<Sequence> waiting_;
  std::size_t seen_ = 0, known_ = 0;  // of them: those that this decision, and the one ahead, may take
  std::size_t driven_out_ = 0;        // the first of them, among which are those that were driven out
  std::map<std::int32_t, std::int64_t> waiting_prompts_;  // tokens of the others, by priority
  std::int32_t gathered_for_ = 0;                         // iterations that prompts have waited for others
  std::int32_t unseen_for_ = 0;                           // iterations since the loop looked for requests
  bool prompts_before_ = false;                           // in the iteration before
  std::vector<Prefilling> prefilling_;
  std::vector<Decoding> decoding_;
  std::vector<HandedOver> handed_over_;
  std::deque<Decoding> swapped_;  // in the host's memory, the first to come back in front
  std::int64_t swapped_pages_ = 0;
  StepShape shape_;
  std::vector<std::int32_t> admitted_, preempted_, swapped_in_;
  kv::BlockIndex index_;  // blocks that sequences share, and those that wait for one
  std::unordered_map<std::int32_t, Shared> shared_;  // by sequence
  PrefixTotals prefixes_;
  SwapTotals swaps_;
  DraftTotals drafts_;
  std::int64_t held_ = 0, peak_pages_ = 0;  // pages outside the index; all
  std::vector<Replica*> beside_;
  std::array<TouchMark, 3> marks_;
  // The next one did not fit, and nothing that it needs has changed since.
  struct Blocked {
    std::int32_t id = -1;       // which one that was; -1: none
    std::int64_t free = 0;      // free_pages() then
    double kept = 0;            // kept_for_others()
    std::int64_t resident = 0;  // blocks that it may share
  };
  bool is_blocked(std::int32_t id) const;
  Blocked blocked_;
  TiersBelow* below_ = nullptr;
  kv::PageTables* tables_ = nullptr;
  Time now_, loaded_;
  std::int64_t occupied_ = 0;        // sequences that hold pages
  std::int64_t waiting_tokens_ = 0;  // of prompts, not computed
  std::int64_t waiting_images_ = 0;  // of those that wait
  std::int64_t expected_ = 0, expected_tokens_ = 0;
  // Of sequences with pages: those that they will ask for; tokens in the cache of those that decode.
  std::int64_t to_come_ = 0, context_ = 0;
  std::int64_t newcomers_to_come_ = 0;  // of to_come_, of those whose prompts are computed
  double reserve_ = 0;                  // ReplicaRules::output_reserve as it is now
  std::int32_t changes_ = 0;            // since the last decision; see StepShape
  std::int32_t longest_ = 0,
               longest_past_ = 0;  // of the prompts of this iteration: tokens; those before them
};

}  // namespace moebius
