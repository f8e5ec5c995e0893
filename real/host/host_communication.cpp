#include "real/host/host_communication.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/communication_kind.h"
#include "real/host/head_blocks.h"
#include "real/host/moved_experts.h"
#include "real/rounding.h"
#include "workloads/schedule/context_part.h"
#include "workloads/schedule/peer.h"

namespace moebius {
namespace {

// "all_reduce of optimizer stage 1 (step 0, microbatch 2, layer 5, expert group)", for sentences.
template <class Real>
std::string describe_op(const OpContext<Real>& c) {
  return fmt::format("{} of {} (step {}, microbatch {}, layer {}, {} group)", to_string(c.op().kind),
                     c.submission().fragment->name, c.submission().step, c.submission().microbatch_of(c.op()),
                     c.op().layer, to_string(c.op().group));
}

// One communication op under way: its group, its meetings, what it has sent.
template <class Real>
class Communication {
 public:
  using Pieces = typename Exchange<Real>::Pieces;

  Communication(OpContext<Real>& context, Exchange<Real>& exchange)
      : c_(context),
        exchange_(exchange),
        me_(context.index_in(context.op().group)),
        size_(context.size_of(context.op().group)),
        element_(element_bytes(context.op().dtype)) {
    key_.ranks = context.group(context.op().group).ranks;
    if (key_.ranks.empty()) key_.ranks = {context.rank()};
    key_.group = static_cast<int>(context.op().group);
    key_.step = context.submission().step;
    key_.microbatch = context.submission().meeting_microbatch(context.op());
    key_.match = context.op().match;
  }

  const Moved& moved() const { return moved_; }

  void run() { communicate_as(c_.op().kind, *this); }

 private:
  template <class Member>
  friend void moebius::communicate_as(OpKind kind, Member& member);

  void all_reduce() {
    each_operand([&](std::vector<Real>& x) { reduce(x), gather(x); });
  }

  void copy_host() {
    copy_between_memories(c_);
    moved_.met = std::chrono::steady_clock::now();
  }

  // Whether the op is about tensors of which each member holds a shard.
  bool sharded() const {
    const Op& op = c_.op();
    return op.num_inputs > 0 && (c_.input_tensor(0).shards > 0 || c_.output_tensor(0).shards > 0);
  }

  // Values on their way in 8 bits, scaled by runs of 128; what they are added up in keeps its format.
  bool travels_in_8_bits() const {
    return c_.op().dtype == DType::kFp8 && c_.output_tensor(0).dtype != DType::kFp8 && !c_.options().exact;
  }
  void round_run(std::vector<Real>& values) const {
    if (travels_in_8_bits())
      round_matrix<Real>(values, 1, static_cast<std::int64_t>(values.size()), DType::kFp8);
  }

  // Gradients and weights are reduced and gathered where they stand.
  bool in_place() const { return c_.op().num_outputs > 0 && c_.input_id(0) == c_.output_id(0); }

  // Each tensor travels in its own format, or all in 8 bits.
  double wire_bytes(const Tensor& tensor) const {
    return element_bytes(travels_in_8_bits() ? DType::kFp8 : tensor.dtype);
  }

  template <class Change>
  void each_operand(const Change& change) {
    for (int i = 0; i < c_.op().num_inputs; ++i) {
      if (in_place()) element_ = wire_bytes(c_.output_tensor(i));
      Matrix<Real> value = c_.in(i);
      change(value.values);
      c_.out(i, std::move(value));
    }
  }

  void swap_pieces(const Pieces& give, const std::function<void(const Pieces&)>& take) {
    for (int to = 0; to < size_; ++to) {
      if (to != me_) moved_.sent_bytes += static_cast<double>(give[to].size()) * element_;
    }
    const auto met = exchange_.swap_pieces(key_, caller(), give, take);
    if (key_.round++ == 0) moved_.met = met;
  }

  FlatShard shard(std::size_t elements, int index) const {
    return flat_shard(static_cast<std::int64_t>(elements), size_, index);
  }

  Caller caller() const { return {c_.rank(), me_, fmt::format("rank {} in {}", c_.rank(), describe_op(c_))}; }

  void expect_size(std::size_t found, std::int64_t expected) const {
    if (static_cast<std::int64_t>(found) == expected) return;
    throw run_error(fmt::format("{}: another member brings {} elements where {} are expected",
                                describe_op(c_), found, expected));
  }

  // Afterwards the own flat shard of x holds the sum over members, in their order.
  void reduce(std::vector<Real>& x) {
    Pieces give;
    std::vector<std::vector<Real>> rounded(size_);
    for (int to = 0; to < size_; ++to) {
      const FlatShard s = shard(x.size(), to);
      rounded[to].assign(x.begin() + s.first, x.begin() + s.last);
      round_run(rounded[to]);
      give.push_back(rounded[to]);
    }
    const FlatShard own = shard(x.size(), me_);
    std::vector<Real> sum(own.count(), Real(0));
    swap_pieces(give, [&](const Pieces& pieces) {
      for (const std::span<const Real> piece : pieces) {
        expect_size(piece.size(), own.count());
        for (std::int64_t i = 0; i < own.count(); ++i) sum[i] += piece[i];
      }
    });
    std::copy(sum.begin(), sum.end(), x.begin() + own.first);
  }

  // Fills the other members' flat shards of x.
  void gather(std::vector<Real>& x) {
    const FlatShard own = shard(x.size(), me_);
    std::vector<Real> mine(x.begin() + own.first, x.begin() + own.last);
    round_run(mine);
    swap_pieces(Pieces(size_, std::span<const Real>(mine)), [&](const Pieces& pieces) {
      for (int from = 0; from < size_; ++from) {
        const FlatShard s = shard(x.size(), from);
        expect_size(pieces[from].size(), s.count());
        std::copy(pieces[from].begin(), pieces[from].end(), x.begin() + s.first);
      }
    });
  }

  void reduce_scatter() {
    if (sharded()) return add_to_shards();
    if (in_place()) return each_operand([&](std::vector<Real>& x) { reduce(x); });
    const Matrix<Real>& x = c_.in(0);
    CHECK(x.rows % size_ == 0, fmt::format("{} rows over {} members", x.rows, size_));
    std::vector<Real> values = x.values;
    reduce(values);
    Matrix<Real> own(x.rows / size_, x.columns);
    std::copy_n(values.begin() + shard(values.size(), me_).first, own.values.size(), own.values.begin());
    c_.out(0, std::move(own));
  }

  void all_gather() {
    if (sharded()) return gather_shards();
    if (in_place()) return each_operand([&](std::vector<Real>& x) { gather(x); });
    const Matrix<Real>& x = c_.in(0);
    Matrix<Real> whole(x.rows * size_, x.columns);
    std::copy(x.values.begin(), x.values.end(), whole.values.begin() + shard(whole.values.size(), me_).first);
    gather(whole.values);
    c_.out(0, std::move(whole));
  }

  // Input i is whole, output i the member's shard, to which the sum is added.
  void add_to_shards() {
    for (int i = 0; i < c_.op().num_inputs; ++i) {
      element_ = wire_bytes(c_.output_tensor(i));
      std::vector<Real> x = c_.in(i).values;
      reduce(x);
      const FlatShard own = shard(x.size(), me_);
      c_.accumulate(i, [&](Matrix<Real>& held) {
        for (std::int64_t j = 0; j < own.count(); ++j) held.values[j] += x[own.first + j];
      });
    }
  }

  // Input i is the member's shard, output i whole.
  void gather_shards() {
    for (int i = 0; i < c_.op().num_inputs; ++i) {
      element_ = element_bytes(c_.output_tensor(i).dtype);
      const Tensor& whole = c_.output_tensor(i);
      Matrix<Real> y(whole.held_rows(), whole.columns);
      const FlatShard own = shard(y.values.size(), me_);
      std::copy_n(c_.in(i).values.begin(), own.count(), y.values.begin() + own.first);
      gather(y.values);
      c_.out(i, std::move(y));
    }
  }

  void broadcast() {
    Matrix<Real> x = c_.in(0);
    const std::vector<Real> mine = me_ == 0 ? x.values : std::vector<Real>();
    swap_pieces(Pieces(size_, std::span<const Real>(mine)), [&](const Pieces& pieces) {
      expect_size(pieces[0].size(), static_cast<std::int64_t>(x.values.size()));
      std::copy(pieces[0].begin(), pieces[0].end(), x.values.begin());
    });
    c_.out(0, std::move(x));
  }

  void exchange_heads(bool out) {
    const HeadBlocks<Real> blocks(c_.in(0), size_, out);
    Pieces give;
    const std::vector<std::vector<Real>> packed = blocks.packed();
    for (const std::vector<Real>& block : packed) give.push_back(block);
    Matrix<Real> y = blocks.result();
    swap_pieces(give, [&](const Pieces& pieces) {
      for (int from = 0; from < size_; ++from) {
        expect_size(pieces[from].size(), blocks.elements());
        blocks.place(pieces[from], from, y);
      }
    });
    c_.out(0, std::move(y));
  }

  // To the next member, from the one before.
  void shift() {
    for (int i = 0; i < c_.op().num_inputs; ++i) {
      const Matrix<Real> x = c_.in(i);
      Pieces give(size_);
      give[(me_ + 1) % size_] = x.view();
      Matrix<Real> y(x.rows, x.columns);
      swap_pieces(give, [&](const Pieces& pieces) {
        const auto& from = pieces[(me_ + size_ - 1) % size_];
        expect_size(from.size(), static_cast<std::int64_t>(y.values.size()));
        std::copy(from.begin(), from.end(), y.values.begin());
      });
      c_.out(i, std::move(y));
    }
  }

  void all_to_all() {
    if (c_.submission().fragment->transfer && c_.op().role == Role::kExperts)
      return move_experts(c_, me_, size_, [this](double element, const Pieces& give, const auto& take) {
        element_ = element;
        swap_pieces(give, take);
      });
    const std::int64_t how = c_.shape().k;
    if (how == kRingShift) return shift();
    if (how == kHeadsOut || how == kHeadsBack) return exchange_heads(how == kHeadsOut);
    const Matrix<Real>& x = c_.in(0);
    CHECK(x.rows % size_ == 0, fmt::format("{} rows over {} members", x.rows, size_));
    const auto block = static_cast<std::int64_t>(x.values.size()) / size_;
    Pieces give;
    for (int to = 0; to < size_; ++to) give.push_back(x.view().subspan(to * block, block));
    Matrix<Real> y(x.rows, x.columns);
    swap_pieces(give, [&](const Pieces& pieces) {
      for (int from = 0; from < size_; ++from) {
        expect_size(pieces[from].size(), block);
        std::copy(pieces[from].begin(), pieces[from].end(), y.values.begin() + from * block);
      }
    });
    c_.out(0, std::move(y));
  }

  MeetingKey message_key(int from, int to) const {
    MeetingKey key = key_;
    key.ranks = {key_.ranks[from], key_.ranks[to]};
    key.group = 0;  // one member calls it the next stage, the other the previous one
    return key;
  }

  void send() {
    std::vector<Real> message = on_the_wire(c_.in(0)).values;
    moved_.sent_bytes += static_cast<double>(message.size()) * element_;
    moved_.met = std::chrono::steady_clock::now();
    exchange_.send(message_key(me_, peer_of(c_.op(), me_, size_)), std::move(message));
  }

  void receive() {
    Matrix<Real> x(c_.output_tensor(0).rows, c_.output_tensor(0).columns);
    std::vector<Real> message = exchange_.receive(message_key(peer_of(c_.op(), me_, size_), me_), caller());
    moved_.met = std::chrono::steady_clock::now();
    expect_size(message.size(), static_cast<std::int64_t>(x.values.size()));
    x.values = std::move(message);
    c_.out(0, std::move(x));
  }

  // In the format of the payload, with the scales of its tensor.
  Matrix<Real> on_the_wire(Matrix<Real> x) const {
    if (!c_.options().exact)
      round_matrix<Real>(x.values, x.rows, x.columns, c_.op().dtype, scale_format(tensor_of(0).scaling));
    return x;
  }

  // Rows, and weights that may travel with them. Experts apart: a side has no operands, the other no results.
  int num_parts() const { return std::max(c_.op().num_inputs, c_.op().num_outputs); }
  const Tensor& tensor_of(int part) const {
    return part < c_.op().num_inputs ? c_.input_tensor(part) : c_.output_tensor(part);
  }
  Matrix<Real> own(int part) const {
    if (part >= c_.op().num_inputs) return Matrix<Real>(0, tensor_of(part).columns);
    return part == 0 ? on_the_wire(c_.in(0)) : c_.in(part);
  }

  // Counts a part of `columns` that another member gets; swap_pieces() has counted its elements as Op::dtype.
  void recount(int part, std::int64_t elements) {
    if (part == 0) return;
    moved_.sent_bytes += static_cast<double>(elements) * (element_bytes(tensor_of(part).dtype) - element_);
  }

  void dispatch() {
    const RoutePlan& route = c_.route();
    for (int part = 0; part < num_parts(); ++part) {
      const Matrix<Real> x = own(part);
      std::vector<Matrix<Real>> packed;
      packed.reserve(size_);
      Pieces give;
      for (int to = 0; to < size_; ++to) packed.push_back(pack(x, route, to, part > 0));
      for (const Matrix<Real>& rows : packed) give.push_back(rows.view());
      for (int to = 0; to < size_; ++to) {
        if (to != me_) recount(part, static_cast<std::int64_t>(give[to].size()));
      }
      Matrix<Real> received(route.received, x.columns);
      swap_pieces(give, [&](const Pieces& pieces) { unpack(pieces, route, received); });
      if (part < c_.op().num_outputs) c_.out(part, std::move(received));
    }
  }

  // The rows that go to a member; of weights only those of its experts, the others are zero there.
  Matrix<Real> pack(const Matrix<Real>& x, const RoutePlan& route, int to, bool weights) const {
    Matrix<Real> rows(static_cast<std::int64_t>(route.sent[to].size()), x.columns);
    for (std::int64_t i = 0; i < rows.rows; ++i) {
      const std::int32_t token = route.sent[to][i];
      std::copy_n(x.row(token), x.columns, rows.row(i));
      for (int slot = 0; weights && slot < route.active; ++slot) {
        if (!route.goes_to(token, slot, to)) rows.row(i)[slot] = 0;
      }
    }
    return rows;
  }

  void unpack(const Pieces& pieces, const RoutePlan& route, Matrix<Real>& received) const {
    auto next = received.values.begin();
    for (int from = 0; from < size_; ++from) {
      expect_size(pieces[from].size(), route.received_from[from] * received.columns);
      next = std::copy(pieces[from].begin(), pieces[from].end(), next);
    }
  }

  void combine() {
    const RoutePlan& route = c_.route();
    for (int part = 0; part < num_parts(); ++part) {
      const Matrix<Real> x = own(part);
      CHECK(x.rows == route.received, fmt::format("{} rows, the route brought {}", x.rows, route.received));
      Pieces give;
      std::int64_t first = 0;
      for (int to = 0; to < size_; ++to) {
        const std::int64_t elements = route.received_from[to] * x.columns;
        give.push_back(x.view().subspan(first, elements));
        first += elements;
        if (to != me_) recount(part, elements);
      }
      Matrix<Real> sums(static_cast<std::int64_t>(route.choices.size()) / route.active, x.columns);
      swap_pieces(give, [&](const Pieces& pieces) { add_by_token(pieces, route, sums); });
      if (part < c_.op().num_outputs) c_.out(part, std::move(sums));
    }
  }

  void add_by_token(const Pieces& pieces, const RoutePlan& route, Matrix<Real>& sums) const {
    for (int from = 0; from < size_; ++from) {
      const std::vector<std::int32_t>& tokens = route.sent[from];
      expect_size(pieces[from].size(), static_cast<std::int64_t>(tokens.size()) * sums.columns);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        for (std::int64_t c = 0; c < sums.columns; ++c)
          sums.row(tokens[i])[c] += pieces[from][i * sums.columns + c];
      }
    }
  }

  OpContext<Real>& c_;
  Exchange<Real>& exchange_;
  MeetingKey key_;
  int me_, size_;
  double element_;  // bytes on the wire
  Moved moved_;
};

}  // namespace

template <class Real>
Moved communicate(OpContext<Real>& context, Exchange<Real>& exchange) {
  Communication<Real> communication(context, exchange);
  communication.run();
  return communication.moved();
}

template Moved communicate(OpContext<float>&, Exchange<float>&);
template Moved communicate(OpContext<double>&, Exchange<double>&);

}  // namespace moebius
