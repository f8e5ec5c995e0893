#include "real/cuda/cuda_communication.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "real/communication_kind.h"
#include "real/cuda/near_copy.h"
#include "real/op_context.h"

namespace moebius::cuda {
namespace {

// One communication op under way: its group, its meetings, what it has sent.
class Communication {
 public:
  Communication(DeviceOp& op, DeviceExchange& exchange)
      : c_(op),
        exchange_(exchange),
        me_(op.index_in(op.op().group)),
        size_(op.size_of(op.op().group)),
        element_(element_bytes(op.op().dtype)) {
    key_.ranks = op.group(op.op().group).ranks;
    if (key_.ranks.empty()) key_.ranks = {op.rank().rank};
    key_.group = static_cast<int>(op.op().group);
    key_.step = op.submission().step;
    key_.microbatch = op.submission().microbatch;
    key_.match = op.op().match;
  }

  void run() { communicate_as(c_.op().kind, *this); }

 private:
  template <class Member>
  friend void moebius::communicate_as(OpKind kind, Member& member);
  using All = DeviceExchange::All;

  std::string describe_op() const {
    return fmt::format("{} of {} (step {}, microbatch {}, layer {}, {} group)", to_string(c_.op().kind),
                       c_.submission().fragment->name, c_.submission().step, c_.submission().microbatch,
                       c_.op().layer, to_string(c_.op().group));
  }
  Caller caller() const {
    return {c_.rank().rank, me_, fmt::format("rank {} in {}", c_.rank().rank, describe_op())};
  }

  void expect(std::int64_t found, std::int64_t expected) const {
    if (found == expected) return;
    throw run_error(fmt::format("{}: another member brings {} elements where {} are expected", describe_op(),
                                found, expected));
  }

  void count_sent(std::int64_t elements, double bytes_each) {
    c_.issued().sent_bytes += static_cast<double>(elements) * bytes_each;
  }

  int here() const { return c_.rank().device; }
  bool is_near(int member) const { return c_.rank().device_of(key_.ranks[member]) == here(); }

  // Elements of what a member brought, where this device reads them.
  struct Flat {
    Operand of;
    std::int64_t first;
  };
  Flat flat(const Brought& from, std::int64_t first, std::int64_t count) {
    if (from.device == here()) return {from.operands[0], first};
    return {brought_flat(c_, from.operands[0], from.device, first, count), 0};
  }
  Operand near(const Operand& x, int device) { return device == here() ? x : brought(c_, x, device); }

  // Meets the others: `take` reads what they brought, after which the own operands may change again.
  template <class Take>
  void meet(std::vector<Operand> operands, const DeviceRoute* route, const Take& take) {
    meet_with({std::move(operands), route, {}, here()}, take);
  }

  template <class Take>
  void meet_with(Brought mine, const Take& take) {
    mine.ready = c_.mark();
    const auto events = exchange_.meet(key_, caller(), mine, [&](const All& all) {
      for (int member = 0; member < size_; ++member) {
        if (member != me_) wait(c_.stream(), all[member]->ready.get());
      }
      if (key_.round == 0) c_.issued().met = c_.mark();
      take(all);
      return c_.mark();
    });
    for (int member = 0; member < size_; ++member) {
      if (member != me_ && events[member]) wait(c_.stream(), events[member].get());
    }
    ++key_.round;
  }

  FlatShard shard(std::int64_t elements, int index) const { return flat_shard(elements, size_, index); }

  // Gradients and weights are reduced and gathered where they stand.
  bool in_place() const { return c_.op().num_outputs > 0 && c_.input_id(0) == c_.output_id(0); }

  // Calls change(x) for each, with the bytes of its own format.
  template <class Change>
  void each_in_place(const Change& change) {
    for (int i = 0; i < c_.op().num_inputs; ++i) {
      element_ = element_bytes(c_.output_tensor(i).dtype);
      change(c_.edit(i));
    }
  }

  // y[y_first...] = the sum over members of the own flat shard of x.
  void reduce(const Operand& x, const Operand& y, std::int64_t y_first) {
    if (size_ > kMostMembers)
      throw run_error(
          fmt::format("{}: {} members; cuda sums over {} at most", describe_op(), size_, kMostMembers));
    const FlatShard own = shard(x.elements(), me_);
    count_sent(x.elements() - own.count(), element_);
    meet({x}, nullptr, [&](const All& all) {
      Pieces pieces;
      pieces.count = size_;
      for (int from = 0; from < size_; ++from) {
        expect(all[from]->operands[0].elements(), x.elements());
        const Flat piece = flat(*all[from], own.first, own.count());
        pieces.of[from] = piece.of;
        pieces.first[from] = piece.first;
      }
      sum_flat(c_.stream(), pieces, y, y_first, own.count());
    });
  }

  // Fills the other members' flat shards of y; with `brought`, a shard alone, also the own one.
  void gather(const Operand& y, const Operand* brought) {
    const FlatShard own = shard(y.elements(), me_);
    count_sent(own.count() * (size_ - 1), element_);
    meet({brought == nullptr ? y : *brought}, nullptr, [&](const All& all) {
      for (int from = 0; from < size_; ++from) {
        if (from == me_ && brought == nullptr) continue;
        const FlatShard s = shard(y.elements(), from);
        const Operand& x = all[from]->operands[0];
        expect(x.elements(), brought == nullptr ? y.elements() : s.count());
        const Flat piece = flat(*all[from], brought == nullptr ? s.first : 0, s.count());
        copy_flat(c_.stream(), piece.of, piece.first, y, s.first, s.count());
      }
    });
  }

  void all_reduce() {
    const auto sum = [this](const Operand& x, const Operand& y) {
      reduce(x, y, shard(x.elements(), me_).first);
      gather(y, nullptr);
    };
    if (in_place()) return each_in_place([&](const Operand& x) { sum(x, x); });
    for (int i = 0; i < c_.op().num_inputs; ++i) {
      const Operand x = c_.plain_in(i);
      sum(x, c_.out(i, x));
    }
  }

  void reduce_scatter() {
    if (in_place()) {
      return each_in_place([this](const Operand& x) { reduce(x, x, shard(x.elements(), me_).first); });
    }
    const Operand x = c_.plain_in(0);
    CHECK(x.rows % size_ == 0, fmt::format("{} rows over {} members", x.rows, size_));
    reduce(x, c_.out(0, x.rows / size_, x.columns), 0);
  }

  void all_gather() {
    if (in_place()) return each_in_place([this](const Operand& x) { gather(x, nullptr); });
    const Operand x = c_.plain_in(0);
    gather(c_.out(0, x.rows * size_, x.columns), &x);
  }

  void broadcast() {
    const Operand x = c_.plain_in(0), y = c_.out(0, x);
    if (me_ == 0) count_sent(x.elements() * (size_ - 1), element_);
    meet({x}, nullptr, [&](const All& all) {
      expect(all[0]->operands[0].elements(), x.elements());
      convert(c_.stream(), near(all[0]->operands[0], all[0]->device), y);
    });
  }

  void all_to_all() {
    const Operand x = c_.plain_in(0), y = c_.out(0, x);
    CHECK(x.rows % size_ == 0, fmt::format("{} rows over {} members", x.rows, size_));
    const std::int64_t block = x.elements() / size_;
    count_sent(x.elements() - block, element_);
    meet({x}, nullptr, [&](const All& all) {
      for (int from = 0; from < size_; ++from) {
        expect(all[from]->operands[0].elements(), x.elements());
        const Flat piece = flat(*all[from], me_ * block, block);
        copy_flat(c_.stream(), piece.of, piece.first, y, from * block, block);
      }
    });
  }

  // x in the format of the payload; itself when it is.
  Operand on_the_wire(const Operand& x) {
    const Storage storage = storage_of(c_.op().dtype);
    if (x.storage == storage) return x;
    const Operand wire = c_.scratch(x.rows, x.columns, storage);
    is_scaled(storage) ? quantise(c_.stream(), c_.plain(x), wire) : convert(c_.stream(), x, wire);
    return wire;
  }

  MeetingKey message_key(int from, int to) const {
    MeetingKey key = key_;
    key.ranks = {key_.ranks[from], key_.ranks[to]};
    key.group = 0;  // one member calls it the next stage, the other the previous one
    return key;
  }

  // A message is a copy, so that the sender goes on whatever the receiver does.
  void send() {
    CHECK(size_ == 2, fmt::format("send in a group of {}", size_));
    const Operand x = c_.in(0);
    const Storage storage = storage_of(c_.op().dtype);
    const TensorRef copy = c_.make(x.rows, x.columns, storage);
    is_scaled(storage) ? quantise(c_.stream(), c_.plain(x), copy->operand)
                       : convert(c_.stream(), x, copy->operand);
    count_sent(x.elements(), element_);
    c_.issued().met = c_.mark();
    exchange_.send(message_key(me_, 1 - me_), {copy, c_.issued().met, here()});
  }

  void receive() {
    CHECK(size_ == 2, fmt::format("recv in a group of {}", size_));
    const Message message = exchange_.receive(message_key(1 - me_, me_), caller());
    wait(c_.stream(), message.ready.get());
    c_.issued().met = c_.mark();
    const Operand y = c_.out(0, c_.output_tensor(0).rows, c_.output_tensor(0).columns);
    expect(message.value->operand.elements(), y.elements());
    convert(c_.stream(), near(message.value->operand, message.device), y);
    c_.touch(message.value);
  }

  // What a routed exchange carries: the rows, and the weights that may travel with them in a format of their
  // own.
  std::vector<Operand> parts() {
    std::vector<Operand> all{on_the_wire(c_.in(0))};
    for (int part = 1; part < c_.op().num_inputs; ++part) all.push_back(c_.plain_in(part));
    return all;
  }
  double bytes_of_part(int part) const {
    return part == 0 ? element_ : element_bytes(c_.output_tensor(part).dtype);
  }

  void dispatch() {
    const DeviceRoute& route = c_.route();
    const std::vector<Operand> mine = parts();
    std::vector<Operand> received;
    for (int part = 0; part < c_.op().num_inputs; ++part) {
      for (int to = 0; to < size_; ++to) {
        if (to != me_) count_sent(route.num_sent(to) * mine[part].columns, bytes_of_part(part));
      }
      const bool same = storage_of(c_.output_tensor(part).dtype) == mine[part].storage;
      const std::int64_t rows = route.plan().received, columns = mine[part].columns;
      received.push_back(same ? c_.out_stored(part, rows, columns, mine[part].storage)
                              : c_.out(part, rows, columns));
    }
    meet_with({mine, &route, {}, here(), pack(route, mine)}, [&](const All& all) {
      for (int from = 0; from < size_; ++from) {
        if (is_near(from)) {
          take_rows(route, from, *all[from], received);
        } else {
          take_packed(route, from, *all[from], received);
        }
      }
    });
  }

  // The rows for members on other devices, which cannot pick them here.
  std::vector<std::vector<Operand>> pack(const DeviceRoute& route, const std::vector<Operand>& mine) {
    std::vector<std::vector<Operand>> packed(mine.size(), std::vector<Operand>(size_));
    for (std::size_t part = 0; part < mine.size(); ++part) {
      for (int to = 0; to < size_; ++to) {
        if (is_near(to)) continue;
        packed[part][to] = c_.scratch(route.num_sent(to), mine[part].columns, mine[part].storage);
        pick(mine, part, {&route, to}, packed[part][to]);
      }
    }
    return packed;
  }

  // y = what goes to a member of one part of what the route's source has.
  struct Sent {
    const DeviceRoute* route;
    int to;
  };
  void pick(const std::vector<Operand>& parts, std::size_t part, const Sent& sent, const Operand& y) {
    if (part == 0) return gather_rows(c_.stream(), parts[0], sent.route->sent(sent.to), y);
    gather_weights(c_.stream(),
                   {.weights = parts[part],
                    .rows = sent.route->sent(sent.to),
                    .choices = sent.route->choices(),
                    .experts_per_rank = sent.route->plan().experts_per_rank,
                    .member = sent.to},
                   y);
  }

  // The rows that one source has for this member.
  void take_rows(const DeviceRoute& route, int from, const Brought& source,
                 const std::vector<Operand>& received) {
    const std::int64_t rows = route.plan().received_from[from];
    expect(source.route->num_sent(me_), rows);
    for (std::size_t part = 0; part < received.size(); ++part)
      pick(source.operands, part, {source.route, me_},
           received[part].some_rows(route.first_received(from), rows));
  }

  void take_packed(const DeviceRoute& route, int from, const Brought& source,
                   const std::vector<Operand>& received) {
    const std::int64_t rows = route.plan().received_from[from];
    for (std::size_t part = 0; part < received.size(); ++part) {
      const Operand& x = source.packed[part][me_];
      const Operand y = received[part].some_rows(route.first_received(from), rows);
      expect(x.rows, rows);
      if (x.storage == y.storage) {
        bring(c_, x, source.device, y);
      } else {
        convert(c_.stream(), brought(c_, x, source.device), y);
      }
    }
  }

  void combine() {
    if (size_ > kMostMembers)
      throw run_error(
          fmt::format("{}: {} members; cuda sums over {} at most", describe_op(), size_, kMostMembers));
    const DeviceRoute& route = c_.route();
    const std::vector<Operand> mine = parts();
    std::vector<Operand> sums;
    for (int part = 0; part < c_.op().num_inputs; ++part) {
      CHECK(mine[part].rows == route.plan().received,
            fmt::format("{} rows, the route brought {}", mine[part].rows, route.plan().received));
      for (int to = 0; to < size_; ++to) {
        if (to != me_) count_sent(route.plan().received_from[to] * mine[part].columns, bytes_of_part(part));
      }
      sums.push_back(c_.out(part, route.tokens(), mine[part].columns));
    }
    meet(mine, &route, [&](const All& all) {
      for (std::size_t part = 0; part < sums.size(); ++part) {
        sum_by_token(c_.stream(), returned(route, all, part), route.position(), sums[part]);
      }
    });
  }

  // Where the rows stand with each member that come back to this one.
  Pieces returned(const DeviceRoute& route, const All& all, std::size_t part) {
    Pieces pieces;
    pieces.count = size_;
    for (int from = 0; from < size_; ++from) {
      expect(all[from]->route->plan().received_from[me_], route.num_sent(from));
      const Operand& x = all[from]->operands[part];
      const std::int64_t first = all[from]->route->first_received(me_);
      pieces.of[from] =
          is_near(from) ? x : brought(c_, x.some_rows(first, route.num_sent(from)), all[from]->device);
      pieces.first[from] = is_near(from) ? first : 0;
    }
    return pieces;
  }

  DeviceOp& c_;
  DeviceExchange& exchange_;
  MeetingKey key_;
  int me_, size_;
  double element_;  // bytes on the wire
};

}  // namespace

void communicate(DeviceOp& c, DeviceExchange& exchange) {
  Communication(c, exchange).run();
}

}  // namespace moebius::cuda
