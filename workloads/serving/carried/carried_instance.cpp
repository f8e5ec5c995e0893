#include "workloads/serving/carried/carried_instance.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/serving/cut_prompts.h"
#include "workloads/serving/latent_parts.h"

namespace moebius {
namespace {

int end_class_of(const CarriedLayout& layout, int number) {
  const auto next = static_cast<std::size_t>(number) + 1;
  return next < layout.instances.size() ? layout.instances[next].first_class
                                        : static_cast<int>(layout.layout.classes.size());
}

}  // namespace

CarriedInstance::CarriedInstance(const CarriedService& service, const CarriedLayout& layout, int number,
                                 const CarriedBooks& books)
    : job_(job_of_pool(service, service.pools[layout.instances[number].pool])),
      shape_(job_),
      layout_(layout.layout),
      place_(layout.instances[number]),
      end_class_(end_class_of(layout, number)),
      routes_(job_) {
  const CarriedPool& pool = service.pools[place_.pool];
  const ReplicaRules& rules = pool.rules.instance.replica;
  const int padding = job_.plan.padding_rows();
  pages_ = static_cast<std::int32_t>(rules.pages) + padding;
  host_pages_ = static_cast<std::int32_t>(rules.host_pages);
  shape_.cache_rows = std::int64_t{pages_} * job_.plan.block_tokens;
  shape_.states = std::int64_t{rules.max_running} + padding;
  routes_.use_prompts(books.prompts);
  routes_.use_popularities(books.popularities);
  if (service.experts.policy != BalancePolicy::kNone && pool.experts.slots > 0) {
    experts_.emplace(service, pool, number, *books.course);
    routes_.use_places([this](int layer) { return experts_->places(layer); });
  }
  routes_.place_padding();
  if (job_.plan.experts_apart()) separated_.emplace(job_, shape_, PromptCut::kWhole);
  tables_.assign(job_.plan.dp, kv::PageTables({.pages = pages_ - padding,
                                               .page_tokens = rules.page_tokens,
                                               .block_pages = rules.shared_tokens / rules.page_tokens,
                                               .host_pages = host_pages_,
                                               .states = job_.model.delta.given() ? rules.max_running : 0}));
}

void CarriedInstance::place_pages(Instance& decides) {
  for (int i = 0; i < decides.size(); ++i) decides.replica(i).place_pages(tables_[i]);
}

// Up to a row, or to as many as the ranks that share the batch divide.
void CarriedInstance::pad(Batch& batch) const {
  const int rows = job_.plan.padding_rows();
  const auto own = static_cast<int>(batch.rows() % rows);
  const int missing = batch.sequences.empty() ? rows : (rows - own) % rows;
  for (int i = 0; i < missing; ++i) add_padding(batch, i);
}

std::vector<BatchPtr> CarriedInstance::batches(const Instance& decided, const Known& known) const {
  std::vector<std::shared_ptr<Batch>> batches;
  for (int i = 0; i < decided.size(); ++i) {
    auto batch = std::make_shared<Batch>();
    batch->page_tokens = job_.plan.block_tokens;
    for (const PlannedPart& part : decided.replica(i).parts()) {
      const CarriedSequence of = known(part.id);
      BatchSequence sequence{
          of.request, of.prompt, part.past, part.count, tables_[i].of(part.id), tables_[i].state_of(part.id)};
      const auto needed = static_cast<std::size_t>(pages_for(sequence.length(), batch->page_tokens));
      CHECK(sequence.pages.size() >= needed,
            fmt::format("{} tokens on {} pages", sequence.length(), sequence.pages.size()));
      sequence.pages.resize(needed);
      batch->sequences.push_back(std::move(sequence));
    }
    put_blown_up_first(job_.model, *batch, {job_.plan.absorbed_below, job_.plan.drafts});
    pad(*batch);
    batches.push_back(std::move(batch));
  }
  pad_to_longest(batches);
  return {batches.begin(), batches.end()};
}

// Ranks gather equally many rows of each: those that others lack are all the same token, on pages of padding.
void CarriedInstance::pad_to_longest(const std::vector<std::shared_ptr<Batch>>& batches) const {
  if (!job_.plan.shares_by(ExpertSharing::kGather)) return;
  const std::size_t sharing = job_.plan.ranks_of_route() / job_.plan.tp;
  for (std::size_t first = 0; first < batches.size(); first += sharing) {
    std::int64_t longest = 0;
    for (std::size_t i = first; i < first + sharing; ++i) longest = std::max(longest, batches[i]->rows());
    for (std::size_t i = first; i < first + sharing; ++i)
      for (std::int64_t rows = batches[i]->rows(); rows < longest; ++rows) add_padding(*batches[i], 0);
  }
}

// The page and the state are the i-th from the last.
void CarriedInstance::add_padding(Batch& batch, int i) const {
  batch.sequences.push_back({.request = -1,
                             .prompt = 1,
                             .past = 0,
                             .count = 1,
                             .pages = {pages_ - 1 - i},
                             .state = static_cast<std::int32_t>(shape_.states) - 1 - i});
}

// Where experts stand apart, their ranks are of no replica: any will do.
int CarriedInstance::replica_of(const RankClass& rank_class) const {
  return std::min((rank_class.representative() - place_.first_rank) / job_.plan.tp, job_.plan.dp - 1);
}

// With its ranks counted from the first of the instance.
RankClass CarriedInstance::within(const RankClass& rank_class) const {
  RankClass of = rank_class;
  for (std::int32_t& rank : of.ranks) rank -= place_.first_rank;
  return of;
}

std::vector<RankWork> CarriedInstance::iteration(const std::vector<BatchPtr>& batches, Time now) {
  if (!experts_) return work_of(batches, nullptr);
  experts_->begin(now);
  std::vector<RankWork> work = work_of(batches, experts_->transfer());
  count_copies(batches);
  return work;
}

std::vector<RankWork> CarriedInstance::largest_iteration(const std::vector<BatchPtr>& batches) {
  const CutAttention by = job_.plan.attend_by;
  return work_of(cut_prompts(batches, job_.plan.cp, by), experts_ ? experts_->largest_transfer() : nullptr,
                 by == CutAttention::kHeads ? batches : std::vector<BatchPtr>());
}

void CarriedInstance::iteration_ended(Time now) {
  if (experts_) experts_->end(now);
}

// Of the iteration that was written last.
void CarriedInstance::count_copies(const std::vector<BatchPtr>& batches) {
  std::int64_t tokens = 0;
  for (const BatchPtr& batch : batches) tokens += batch->rows();
  std::vector<double> copies(static_cast<std::size_t>(experts_->layers()) * experts_->experts(), 0.0);
  const int groups = job_.plan.ranks() / job_.plan.ranks_of_route();
  for (int i = 0; i < experts_->layers(); ++i) {
    for (int group = 0; group < groups; ++group) {
      const std::vector<std::int32_t> chosen = routes_.get(group, experts_->layer(i))->copies_of_experts();
      for (std::size_t e = 0; e < chosen.size(); ++e)
        copies[static_cast<std::size_t>(i) * experts_->experts() + e] += chosen[e];
    }
  }
  experts_->count(tokens, copies);
}

std::vector<RankWork> CarriedInstance::work_of(const std::vector<BatchPtr>& batches,
                                               const ExpertTransferPtr& transfer,
                                               const std::vector<BatchPtr>& wholes) {
  LayerWriter::SlotsOfMember first_slots;
  if (experts_) first_slots = [this](int layer, int member) { return experts_->first_slots(layer, member); };
  separated_ ? separated_->begin(batches) : routes_.begin(batches);
  const bool gathers = job_.plan.shares_by(ExpertSharing::kGather);
  std::vector<RankWork> work;
  for (int c = place_.first_class; c < end_class_; ++c) {
    const RankClass& of = layout_.classes[c];
    if (separated_) {
      work.push_back({c, separated_->fragment(within(of))});
      continue;
    }
    const int group = (of.representative() - place_.first_rank) / job_.plan.ranks_of_route();
    const int rank = replica_of(of);
    work.push_back(
        {c, lower_iteration(shape_, {.batch = batches[rank],
                                     .shard = shard_of(of),
                                     .route = [&](int layer) { return routes_.get(group, layer); },
                                     .transfer = transfer,
                                     .first_slots = first_slots,
                                     .whole = wholes.empty() ? nullptr : wholes[rank / job_.plan.cp],
                                     .longest = gathers ? routes_.longest(group) : 0})});
  }
  return work;
}

std::vector<RankWork> CarriedInstance::swaps() {
  std::vector<RankWork> work;
  for (int c = place_.first_class; c < end_class_; ++c) {
    const kv::PageTables& tables = tables_[replica_of(layout_.classes[c])];
    if (!tables.swapped().empty()) work.push_back({c, lower_swaps(shape_, host_pages_, tables.swapped())});
  }
  for (kv::PageTables& tables : tables_) tables.forget_swapped();
  return work;
}

std::vector<RankWork> CarriedInstance::move(bool send, int replica, std::int32_t id,
                                            const CarriedSequence& of, int peer) {
  std::vector<RankWork> work;
  for (int i = 0; i < job_.plan.tp; ++i) {
    const CacheMove cache{
        shape_, of.request, of.prompt, tables_[replica].of(id), tables_[replica].state_of(id), peer + i};
    work.push_back({layout_.class_of_rank[first_rank(replica) + i],
                    send ? lower_cache_send(cache) : lower_cache_receive(cache)});
  }
  return work;
}

std::vector<BatchPtr> CarriedInstance::full_batches(bool decode) const {
  const ServingPlan& plan = job_.plan;
  const int prompt = job_.workload.input.high, output = job_.workload.output.high;
  const int replicas = plan.replicas(), of_replica = (job_.workload.requests + replicas - 1) / replicas;
  std::int64_t sequences = std::min(plan.max_batch, of_replica);
  if (!decode) sequences = std::clamp<std::int64_t>(plan.token_budget / prompt, 1, sequences);
  auto batch = std::make_shared<Batch>();
  batch->page_tokens = plan.block_tokens;
  std::int32_t page = 0;
  for (std::int32_t i = 0; i < sequences; ++i) {
    BatchSequence sequence{i * replicas,        prompt, decode ? prompt + std::max(0, output - 2) : 0,
                           decode ? 1 : prompt, {},     i};
    for (int p = pages_for(sequence.length(), plan.block_tokens); p > 0; --p)
      sequence.pages.push_back(page++);
    batch->sequences.push_back(std::move(sequence));
  }
  pad(*batch);
  return std::vector<BatchPtr>(replicas, std::move(batch));
}

std::int32_t CarriedInstance::peak_pages() const {
  std::int32_t peak = 0;
  for (const kv::PageTables& tables : tables_) peak = std::max(peak, tables.peak());
  return peak + job_.plan.padding_rows();
}

}  // namespace moebius
