// harness/timing/ranks.h: what step 62 is raced against.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gemm/problem/ranks.h"
#include "harness/backend/backend.h"
#include "harness/timing/gpu/baselines.h"
#include "harness/timing/gpu/elementwise.h"
#include "harness/timing/gpu/rank_opponents.h"
#include "harness/timing/ranks.h"
#include "ptx/peer_copy.h"

namespace harness {
namespace {

constexpr int kPartsOfScatter = 2;  // of each rank's rows, where cuBLASLt multiplies beside the copies

/// Their work is given for all ranks at once, when the last rank's turn comes, as in gather_gpu.cpp. The
/// buffers of partials that the kernels use have room for a whole product, in bf16, and for what others send.
class ScatterOpponents {
 public:
  explicit ScatterOpponents(RankScatter& scatter)
      : scatter_(scatter),
        all_(scatter.problem()),
        nccl_(all_.count()),
        whole_(fastest(all_.shape.m)),
        rank_(fastest(all_.rows_of_rank())),
        part_(fastest(rows_of_part())) {
    for (int rank = 0; rank < all_.count(); ++rank) {
      scatter.ranks().enter(rank);
      sides_.push_back(std::make_unique<gemm::ptx::SideStream>());
      for (int i = 0; i < all_.count() * parts(); ++i) {
        made_.push_back(std::make_unique<SentEvent>());
        sent_.push_back(std::make_unique<SentEvent>());
      }
    }
  }

  bool has_nccl() const { return nccl_.is_usable(); }
  int last_rank() const { return all_.count() - 1; }
  void enter(int rank) const { scatter_.ranks().enter(rank); }

  void multiply(std::size_t phase) {
    for (int rank = 0; rank < all_.count(); ++rank) product(whole_, rank, phase, 0, all_.shape.m);
  }
  /// Copies the parts of all products to their owners, which then add them.
  void scatter_by_copies(std::size_t) {
    for (int rank = 0; rank < all_.count(); ++rank) {
      for_each_part_of_others(rank, [&](int owner, int part) { send(rank, owner, part, main(rank)); });
    }
    add();
  }
  void scatter_by_nccl(std::size_t) {
    std::vector<Nccl::Scattered> ranks;
    for (int rank = 0; rank < all_.count(); ++rank)
      ranks.push_back({product_of(rank), all_.memory(rank).d, main(rank)});
    nccl_.reduce_scatter(ranks, elements_of_rank());
  }
  /// The rows of others first, and while the next ones are multiplied, the copies.
  void multiply_beside_copies(std::size_t phase) {
    for (int rank = 0; rank < all_.count(); ++rank) {
      enter(rank);
      const gemm::ptx::Stream side = sides_[static_cast<std::size_t>(rank)]->begin_after(main(rank));
      for_each_part_of_others(rank, [&](int owner, int part) {
        const int first = part * rows_of_part();
        product(part_, rank, phase, owner * all_.rows_of_rank() + first, rows_in(part));
        const SentEvent& made = *made_[index(rank, owner, part)];
        made.record(main(rank));
        made.hold(side);
        send(rank, owner, part, side);
      });
      product(rank_, rank, phase, rank * all_.rows_of_rank(), all_.rows_of_rank());
    }
    add();
    for (int rank = 0; rank < all_.count(); ++rank) {
      enter(rank);
      sides_[static_cast<std::size_t>(rank)]->end_before(main(rank));
    }
  }

 private:
  int parts() const { return std::min(kPartsOfScatter, all_.rows_of_rank() / gemm::kScatterRows); }
  int rows_of_part() const {
    return gemm::ceil_div(all_.rows_of_rank() / gemm::kScatterRows, parts()) * gemm::kScatterRows;
  }
  int rows_in(int part) const {
    return std::min(rows_of_part(), all_.rows_of_rank() - part * rows_of_part());
  }
  std::size_t elements_of_rank() const {
    return static_cast<std::size_t>(gemm::offset(all_.rows_of_rank(), 0, all_.shape.n));
  }
  std::size_t index(int from, int to, int part) const {
    return static_cast<std::size_t>((from * all_.count() + to) * parts() + part);
  }
  gemm::ptx::Stream main(int rank) const { return scatter_.ranks().stream(rank, RankStream::kSend); }
  gemm::bf16* product_of(int rank) const {  // [m][n]
    return static_cast<gemm::bf16*>(all_.memory(rank).partials[0]);
  }
  gemm::bf16* inbox(int owner, int sender) const {  // [rows_of_rank()][n]
    return static_cast<gemm::bf16*>(all_.memory(owner).partials[1]) +
           static_cast<std::size_t>(sender) * elements_of_rank();
  }
  template <typename Body>
  void for_each_part_of_others(int rank, const Body& body) {
    enter(rank);
    for (int turn = 1; turn < all_.count(); ++turn) {
      for (int part = 0; part < parts(); ++part) body((rank + turn) % all_.count(), part);
    }
  }
  void send(int rank, int owner, int part, gemm::ptx::Stream stream) {
    const std::int64_t in_part = gemm::offset(part * rows_of_part(), 0, all_.shape.n);
    const std::int64_t in_product = gemm::offset(owner * all_.rows_of_rank(), 0, all_.shape.n) + in_part;
    const auto bytes =
        static_cast<std::size_t>(gemm::offset(rows_in(part), 0, all_.shape.n)) * sizeof(gemm::bf16);
    gemm::ptx::copy_to_peer(inbox(owner, rank) + in_part, owner, product_of(rank) + in_product, rank, bytes,
                            stream);
    sent_[index(rank, owner, part)]->record(stream);
  }
  /// When everything is here.
  void add() {
    for (int rank = 0; rank < all_.count(); ++rank) {
      enter(rank);
      SumParts summands;
      for (int sender = 0; sender < all_.count(); ++sender) {
        summands.part[summands.parts++] =
            sender == rank ? product_of(rank) + gemm::offset(rank * all_.rows_of_rank(), 0, all_.shape.n)
                           : inbox(rank, sender);
        for (int part = 0; part < parts() && sender != rank; ++part)
          sent_[index(sender, rank, part)]->hold(main(rank));
      }
      launch_sum(summands, all_.memory(rank).d, static_cast<std::int64_t>(elements_of_rank()), main(rank));
    }
  }
  gemm::Gemm rows_of(int rank, std::size_t phase, int first, int rows) const {
    const gemm::ScatterMemory& memory = all_.memory(rank);
    return {{rows, all_.shape.n, all_.shape.k},
            memory.a[phase] + gemm::offset(first, 0, all_.shape.k),
            memory.b,
            product_of(rank) + gemm::offset(first, 0, all_.shape.n)};
  }
  Contestant fastest(int rows) const { return fastest_of_cublaslt(scatter_.ranks(), rows_of(0, 0, 0, rows)); }
  void product(const Contestant& algorithm, int rank, std::size_t phase, int first, int rows) {
    enter(rank);
    algorithm.prepare(rows_of(rank, phase, first, rows))(main(rank));
  }

  RankScatter& scatter_;
  gemm::ScatterGemm all_;
  Nccl nccl_;
  Contestant whole_, rank_, part_;
  std::vector<std::unique_ptr<gemm::ptx::SideStream>> sides_;
  std::vector<std::unique_ptr<SentEvent>> made_;  // a part of a product; from, to, part
  std::vector<std::unique_ptr<SentEvent>> sent_;
};

}  // namespace

std::vector<RankContestant> scatter_opponents(RankScatter& scatter) {
  if (const std::string problem = baselines_problem(); !problem.empty())
    throw Error("nothing to compare with: " + problem);
  const auto opponents = std::make_shared<ScatterOpponents>(scatter);
  using Part = void (ScatterOpponents::*)(std::size_t phase);
  std::vector<RankContestant> contestants;
  const auto add = [&](const char* name, const std::vector<Part>& parts, bool has_result = true) {
    contestants.push_back(
        {.variant = name,
         .is_reference = contestants.empty(),
         .is_opponent = true,
         .has_result = has_result,
         .launcher = {.before = {},
                      .run =
                          [opponents, parts](int rank, std::uint32_t epoch, gemm::ptx::Stream) {
                            if (rank != opponents->last_rank()) return;
                            for (const Part part : parts) ((*opponents).*part)(epoch % gemm::kScatterPhases);
                            opponents->enter(rank);
                          },
                      .after = {},
                      .reader = {}}});
  };
  const Part product = &ScatterOpponents::multiply;
  const Part copies = &ScatterOpponents::scatter_by_copies;
  const Part nccl = &ScatterOpponents::scatter_by_nccl;
  if (opponents->has_nccl()) add("cublaslt_then_nccl", {product, nccl});
  add("cublaslt_then_copies", {product, copies});
  add("cublaslt_beside_copies", {&ScatterOpponents::multiply_beside_copies});
  add(kProductOfOpponent, {product}, false);
  add(kCopiesOfOpponent, {copies}, false);
  if (opponents->has_nccl()) add("nccl_alone", {nccl}, false);
  return contestants;
}

}  // namespace harness
