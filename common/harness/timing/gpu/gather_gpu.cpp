// harness/timing/ranks.h: what step 61 is raced against.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/timing/gpu/baselines.h"
#include "harness/timing/gpu/rank_opponents.h"
#include "harness/timing/ranks.h"
#include "ptx/peer_copy.h"

namespace harness {
namespace {

constexpr int kPartsOfOpponent = 2;  // of each rank's rows, where cuBLASLt multiplies beside the copies

gemm::Gemm rows_of(const gemm::GatherGemm& all, int rank, std::size_t parity, int first, int rows) {
  const gemm::GatherMemory& memory = all.memory(rank);
  return {{rows, all.shape.n, all.shape.k},
          memory.a[parity] + gemm::offset(first, 0, all.shape.k),
          memory.b,
          memory.d + gemm::offset(first, 0, all.shape.n)};
}

/// What the opponents have in common. Their work is given for all ranks at once, when the last rank's turn
/// comes: a wait for an event must come after its recording, and NCCL wants all ranks together.
class Opponents {
 public:
  explicit Opponents(RankGather& gather)
      : gather_(gather),
        all_(gather.problem(gather.form().shape.m / gather.form().ranks, 1)),
        nccl_(all_.count()),
        whole_(fastest(all_.shape.m)),
        rank_(fastest(all_.rows_of_rank())),
        part_(fastest(rows_of_part())) {
    for (int rank = 0; rank < all_.count(); ++rank) {
      gather.ranks().enter(rank);
      sides_.push_back(std::make_unique<gemm::ptx::SideStream>());
      for (int i = 0; i < all_.count() * parts(); ++i) sent_.push_back(std::make_unique<SentEvent>());
    }
  }

  bool has_nccl() const { return nccl_.is_usable(); }

  /// Copies everything, and lets all ranks wait for it.
  void gather_by_copies(std::size_t parity) {
    send(parity, [&](int rank) { return main(rank); });
    for (int rank = 0; rank < all_.count(); ++rank) {
      gather_.ranks().enter(rank);
      for (int turn = 1; turn < all_.count(); ++turn) {
        for (int part = 0; part < parts(); ++part) wait((rank + turn) % all_.count(), rank, part);
      }
    }
  }
  void gather_by_nccl(std::size_t parity) {
    std::vector<std::pair<void*, gemm::ptx::Stream>> ranks;
    for (int rank = 0; rank < all_.count(); ++rank)
      ranks.emplace_back(all_.memory(rank).a[parity], main(rank));
    nccl_.all_gather(ranks, static_cast<std::size_t>(gemm::offset(all_.rows_of_rank(), 0, all_.shape.k)) * 2);
  }
  void multiply(std::size_t parity) {
    for (int rank = 0; rank < all_.count(); ++rank) product(whole_, rank, parity, 0, all_.shape.m);
  }
  /// Own rows first, and then each part when it is here.
  void multiply_beside_copies(std::size_t parity) {
    const int rows = all_.rows_of_rank();
    send(parity, [&](int rank) { return sides_[static_cast<std::size_t>(rank)]->begin_after(main(rank)); });
    for (int rank = 0; rank < all_.count(); ++rank) {
      product(rank_, rank, parity, rank * rows, rows);
      for (int turn = 1; turn < all_.count(); ++turn) {
        const int owner = (rank + turn) % all_.count();
        for (int part = 0; part < parts(); ++part) {
          wait(owner, rank, part);
          const int first = part * rows_of_part();
          const int count = std::min(rows_of_part(), rows - first);
          product(part_, rank, parity, owner * rows + first, count);
        }
      }
      gather_.ranks().enter(rank);
      sides_[static_cast<std::size_t>(rank)]->end_before(main(rank));
    }
  }
  int last_rank() const { return all_.count() - 1; }
  void enter(int rank) const { gather_.ranks().enter(rank); }

 private:
  int parts() const { return std::min(kPartsOfOpponent, all_.rows_of_rank() / gemm::kGatherRows); }
  int rows_of_part() const {
    return gemm::ceil_div(all_.rows_of_rank() / gemm::kGatherRows, parts()) * gemm::kGatherRows;
  }
  gemm::ptx::Stream main(int rank) const { return gather_.ranks().stream(rank, RankStream::kSend); }
  const SentEvent& sent(int from, int to, int part) const {
    return *sent_[static_cast<std::size_t>((from * all_.count() + to) * parts() + part)];
  }
  void wait(int from, int to, int part) const { sent(from, to, part).hold(main(to)); }
  /// Each rank sends its rows in parts, to the rank before it first.
  void send(std::size_t parity, const std::function<gemm::ptx::Stream(int)>& stream_of) {
    const int rows = all_.rows_of_rank();
    for (int rank = 0; rank < all_.count(); ++rank) {
      gather_.ranks().enter(rank);
      const gemm::ptx::Stream stream = stream_of(rank);
      for (int turn = 1; turn < all_.count(); ++turn) {
        const int to = (rank + all_.count() - turn) % all_.count();
        for (int part = 0; part < parts(); ++part) {
          const int first = part * rows_of_part();
          const std::int64_t at = gemm::offset(rank * rows + first, 0, all_.shape.k);
          const auto bytes = static_cast<std::size_t>(
                                 gemm::offset(std::min(rows_of_part(), rows - first), 0, all_.shape.k)) *
                             2;
          gemm::ptx::copy_to_peer(all_.memory(to).a[parity] + at, to, all_.memory(rank).a[parity] + at, rank,
                                  bytes, stream);
          sent(rank, to, part).record(stream);
        }
      }
    }
  }
  Contestant fastest(int rows) const {
    return fastest_of_cublaslt(gather_.ranks(), rows_of(all_, 0, 0, 0, rows));
  }
  void product(const Contestant& algorithm, int rank, std::size_t parity, int first, int rows) {
    gather_.ranks().enter(rank);
    algorithm.prepare(rows_of(all_, rank, parity, first, rows))(main(rank));
  }

  RankGather& gather_;
  gemm::GatherGemm all_;
  Nccl nccl_;
  Contestant whole_, rank_, part_;
  std::vector<std::unique_ptr<gemm::ptx::SideStream>> sides_;
  std::vector<std::unique_ptr<SentEvent>> sent_;
};

}  // namespace

std::vector<RankContestant> gather_opponents(RankGather& gather) {
  if (const std::string problem = baselines_problem(); !problem.empty())
    throw Error("nothing to compare with: " + problem);
  const auto opponents = std::make_shared<Opponents>(gather);
  using Part = void (Opponents::*)(std::size_t parity);
  const auto work = [&](const std::vector<Part>& parts) -> gemm::RankWork {
    if (parts.empty()) return {};
    return [opponents, parts](int rank, std::uint32_t epoch, gemm::ptx::Stream) {
      if (rank != opponents->last_rank()) return;
      for (const Part part : parts) ((*opponents).*part)(epoch % 2);
      opponents->enter(rank);
    };
  };
  std::vector<RankContestant> contestants;
  const auto add = [&](const char* name, const std::vector<Part>& before, const std::vector<Part>& run,
                       bool has_result = true) {
    contestants.push_back(
        {.variant = name,
         .is_reference = contestants.empty(),
         .is_opponent = true,
         .has_result = has_result,
         .launcher = {.before = work(before), .run = work(run), .after = {}, .reader = {}}});
  };
  const Part copies = &Opponents::gather_by_copies;
  const Part nccl = &Opponents::gather_by_nccl;
  const Part product = &Opponents::multiply;
  if (opponents->has_nccl()) add("nccl_then_cublaslt", {}, {nccl, product});
  add("copies_then_cublaslt", {}, {copies, product});
  add("cublaslt_beside_copies", {}, {&Opponents::multiply_beside_copies});
  add(kProductOfOpponent, {copies}, {product});
  add(kCopiesOfOpponent, {}, {copies}, false);
  if (opponents->has_nccl()) add("nccl_alone", {}, {nccl}, false);
  return contestants;
}

}  // namespace harness
