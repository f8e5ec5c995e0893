#include "real/cuda/cuda_communication.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "real/communication_kind.h"
#include "real/cuda/expert_copies.h"
#include "real/cuda/flat_communication.h"
#include "real/cuda/near_copy.h"
#include "real/host/op_context.h"
#include "workloads/schedule/peer.h"

namespace moebius::cuda {
namespace {

// One communication op under way, by copies of its own or by NCCL.
class Communication : FlatCommunication {
 public:
  using FlatCommunication::FlatCommunication;

  void run() { communicate_as(c_.op().kind, *this); }

 private:
  template <class Member>
  friend void moebius::communicate_as(OpKind kind, Member& member);

  void broadcast() {
    const Operand x = c_.plain_in(0), y = c_.out(0, x);
    if (me_ == 0) count_sent(x.elements() * (size_ - 1), element_);
    if (by_nccl() && x.storage == y.storage)
      return collect(NcclKind::kBroadcast, byte_at(x, 0), y, 0, x.elements());
    meet({x}, nullptr, [&](const All& all) {
      expect(all[0]->operands[0].elements(), x.elements());
      convert(c_.stream(), near(all[0]->operands[0], all[0]->device), y);
    });
  }

  // A matrix of experts and where those that come to this member stand.
  struct MovedMatrix {
    Operand held, come;
    std::int64_t rows = 0;  // of one expert
    const ExpertTransfer::Layer* layer = nullptr;
    ExpertPlace sent(const ExpertTransfer::Arrival& a) const { return {held, rows, a.slot}; }
    ExpertPlace arrived(std::int64_t number) const { return {come, rows, number}; }
  };

  void move_experts(const ExpertTransfer& transfer) {
    std::vector<MovedMatrix> matrices;
    std::vector<Operand> held;
    for (int i = 0; i < c_.op().num_inputs; ++i) {
      const Tensor& weight = c_.input_tensor(i);
      MovedMatrix matrix{c_.in(i), {}, weight.rows, &transfer.of(weight.layer)};
      Operand like = matrix.held;
      like.rows = c_.output_tensor(i).held_rows();
      matrix.come = c_.out_like(i, like);
      for (const ExpertTransfer::Arrival& a : matrix.layer->arrivals)
        if (a.from == me_ && a.to != me_)
          count_sent(weight.rows * weight.columns, element_bytes(weight.dtype));
      held.push_back(matrix.held);
      matrices.push_back(matrix);
    }
    if (by_nccl()) return swap_experts(matrices);
    meet(held, nullptr, [&](const All& all) {
      for (std::size_t i = 0; i < matrices.size(); ++i) take_experts(matrices[i], i, all);
    });
  }

  // Of one matrix, from where they stand with their senders.
  void take_experts(const MovedMatrix& matrix, std::size_t operand, const All& all) {
    std::int64_t number = 0;
    for (const ExpertTransfer::Arrival& a : matrix.layer->arrivals_at(me_)) {
      const ExpertPlace source{all[a.from]->operands[operand], matrix.rows, a.slot};
      copy_expert(c_, source, all[a.from]->device, matrix.arrived(number++));
    }
  }

  void swap_experts(const std::vector<MovedMatrix>& matrices) {
    PiecesByMember give = no_pieces(), take = no_pieces();
    for (const MovedMatrix& matrix : matrices) {
      for (const ExpertTransfer::Arrival& a : matrix.layer->arrivals)
        if (a.from == me_ && a.to != me_) append(give[a.to], pieces_of_expert(matrix.sent(a)));
      std::int64_t number = 0;
      for (const ExpertTransfer::Arrival& a : matrix.layer->arrivals_at(me_)) {
        const ExpertPlace place = matrix.arrived(number++);
        if (a.from == me_) {
          copy_expert(c_, matrix.sent(a), here(), place);
        } else {
          append(take[a.from], pieces_of_expert(place));
        }
      }
    }
    swap_pieces(std::move(give), std::move(take));
  }

  void all_to_all() {
    const ExpertTransferPtr& transfer = c_.submission().fragment->transfer;
    if (transfer && c_.op().role == Role::kExperts) return move_experts(*transfer);
    const Operand x = c_.plain_in(0), y = c_.out(0, x);
    CHECK(x.rows % size_ == 0, fmt::format("{} rows over {} members", x.rows, size_));
    const std::int64_t block = x.elements() / size_;
    count_sent(x.elements() - block, element_);
    if (nccl_takes(x, y)) return swap_blocks(x, y, block);
    meet({x}, nullptr, [&](const All& all) {
      for (int from = 0; from < size_; ++from) {
        expect(all[from]->operands[0].elements(), x.elements());
        const Flat piece = flat(all[from]->operands[0], all[from]->device, me_ * block, block);
        copy_flat(c_.stream(), piece.of, piece.first, y, from * block, block);
      }
    });
  }

  void swap_blocks(const Operand& x, const Operand& y, std::int64_t block) {
    PiecesByMember give = no_pieces(), take = no_pieces();
    const std::int64_t bytes = block * element_size(x.storage);
    for (int member = 0; member < size_; ++member) {
      if (member == me_) continue;
      give[member] = {{byte_at(x, member * block), bytes}};
      take[member] = {{byte_at(y, member * block), bytes}};
    }
    copy_flat(c_.stream(), x, me_ * block, y, me_ * block, block);
    swap_pieces(std::move(give), std::move(take));
  }

  MeetingKey message_key(int from, int to) const {
    MeetingKey key = key_;
    key.ranks = {key_.ranks[from], key_.ranks[to]};
    key.group = 0;  // one member calls it the next stage, the other the previous one
    return key;
  }

  // A message is a copy, so that the sender goes on whatever the receiver does.
  void send() {
    const Shape& shape = c_.op().shape;
    const Operand whole = c_.in(0), x = shape.k > 0 ? whole.some_rows(shape.kv, shape.m) : whole;
    const Storage storage = storage_of(c_.op().dtype);
    const TensorRef copy = c_.make(x.rows, x.columns, storage);
    is_scaled(storage) ? quantise(c_.stream(), c_.plain(x), copy->operand)
                       : convert(c_.stream(), x, copy->operand);
    count_sent(x.elements(), element_);
    c_.issued().met = c_.mark();
    exchange_.send(message_key(me_, peer_of(c_.op(), me_, size_)), {copy, c_.issued().met, here()});
  }

  void receive() {
    const Message message = exchange_.receive(message_key(peer_of(c_.op(), me_, size_), me_), caller());
    wait(c_.stream(), message.ready);
    c_.issued().met = c_.mark();
    const Operand y = c_.out(0, c_.output_tensor(0).rows, c_.output_tensor(0).columns);
    expect(message.value->operand.elements(), y.elements());
    convert(c_.stream(), near(message.value->operand, message.device), y);
    c_.touch(message.value);
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
    if (by_nccl()) return swap_to_experts(route, mine, received);
    expect_few_members();
    meet_with({mine, &route, {}, here(), pack(route, mine)}, [&](const All& all) {
      take_near(route, all, received);
      for (int from = 0; from < size_; ++from)
        if (!is_near(from)) take_packed(route, from, *all[from], received);
    });
  }

  void swap_to_experts(const DeviceRoute& route, const std::vector<Operand>& mine,
                       const std::vector<Operand>& received) {
    PiecesByMember give = no_pieces(), take = no_pieces();
    const std::vector<std::vector<Operand>> packed = pack(route, mine);
    std::vector<std::pair<Operand, Operand>> converted;  // from, to: where formats differ
    for (int member = 0; member < size_; ++member) {
      const std::int64_t rows = route.plan().received_from[member];
      for (std::size_t part = 0; part < mine.size(); ++part) {
        const Operand y = received[part].some_rows(route.first_received(member), rows);
        if (member == me_) {
          pick(mine, part, {&route, me_}, y);
          continue;
        }
        const bool same = y.storage == mine[part].storage;
        const Operand arrives = same ? y : c_.scratch(rows, y.columns, mine[part].storage);
        if (!same) converted.emplace_back(arrives, y);
        append(give[member], pieces_of_rows(packed[part][member], 0, route.num_sent(member)));
        append(take[member], pieces_of_rows(arrives, 0, rows));
      }
    }
    swap_pieces(std::move(give), std::move(take));
    for (const auto& [from, to] : converted) convert(c_.stream(), from, to);
  }

  static void append(std::vector<NcclPiece>& all, const std::vector<NcclPiece>& more) {
    all.insert(all.end(), more.begin(), more.end());
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
                    .choices = sent.route->places(),
                    .experts_per_rank = sent.route->plan().experts_per_rank,
                    .member = sent.to},
                   y);
  }

  // The rows that sources on this device have for this member, where they are neighbours in one launch.
  void take_near(const DeviceRoute& route, const All& all, const std::vector<Operand>& received) {
    for (int from = 0; from < size_;) {
      if (!is_near(from)) {
        ++from;
        continue;
      }
      int beyond = from + 1;
      while (beyond < size_ && is_near(beyond)) ++beyond;
      take_rows(route, from, beyond, all, received);
      from = beyond;
    }
  }

  void take_rows(const DeviceRoute& route, int first, int beyond, const All& all,
                 const std::vector<Operand>& received) {
    const std::int64_t first_row = route.first_received(first);
    const std::int64_t rows =
        route.first_received(beyond - 1) + route.plan().received_from[beyond - 1] - first_row;
    for (std::size_t part = 0; part < received.size(); ++part) {
      GatheredPieces pieces;
      PieceWeights weights{.experts_per_rank = route.plan().experts_per_rank, .member = me_};
      for (int from = first; from < beyond; ++from) {
        expect(all[from]->route->num_sent(me_), route.plan().received_from[from]);
        weights.choices[pieces.count] = all[from]->route->places();
        pieces.of[pieces.count] = all[from]->operands[part];
        pieces.rows[pieces.count] = all[from]->route->sent(me_);
        pieces.first[pieces.count++] = route.first_received(from) - first_row;
      }
      const Operand y = received[part].some_rows(first_row, rows);
      part == 0 ? gather_pieces(c_.stream(), pieces, y)
                : gather_piece_weights(c_.stream(), pieces, weights, y);
    }
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
    expect_few_members();
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
    if (by_nccl()) return sum_swapped(route, mine, sums);
    meet(mine, &route, [&](const All& all) {
      for (std::size_t part = 0; part < sums.size(); ++part) {
        sum_by_token(c_.stream(), returned(route, all, part), route.position(), sums[part]);
      }
    });
  }

  // Rows come back by NCCL; the sums are the own ones, members in order.
  void sum_swapped(const DeviceRoute& route, const std::vector<Operand>& mine,
                   const std::vector<Operand>& sums) {
    PiecesByMember give = no_pieces(), take = no_pieces();
    std::vector<Pieces> back(mine.size());
    for (std::size_t part = 0; part < mine.size(); ++part) {
      const Operand& x = mine[part];
      back[part].count = size_;
      for (int member = 0; member < size_; ++member) {
        back[part].of[member] = member == me_ ? x : c_.scratch(route.num_sent(member), x.columns, x.storage);
        back[part].first[member] = member == me_ ? route.first_received(me_) : 0;
        if (member == me_) continue;
        append(give[member],
               pieces_of_rows(x, route.first_received(member), route.plan().received_from[member]));
        append(take[member], pieces_of_rows(back[part].of[member], 0, route.num_sent(member)));
      }
    }
    swap_pieces(std::move(give), std::move(take));
    for (std::size_t part = 0; part < sums.size(); ++part)
      sum_by_token(c_.stream(), back[part], route.position(), sums[part]);
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
};

}  // namespace

void communicate(DeviceOp& c, DeviceExchange& exchange, Nccl* nccl) {
  Communication(c, exchange, nccl).run();
}

}  // namespace moebius::cuda
