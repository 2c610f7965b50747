#include "harness/timing/gpu/rank_opponents.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <type_traits>

#include "harness/backend/backend.h"
#include "harness/timing/cuda_event.h"
#include "harness/timing/gpu/baselines.h"
#include "harness/timing/statistics/statistics.h"

namespace harness {

Nccl::Nccl(int ranks) {
  void* const library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return;
  const auto find = [library](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    return function != nullptr;
  };
  int (*init)(void** communicators, int count, const int* devices) = nullptr;
  if (!find(init, "ncclCommInitAll") || !find(group_start_, "ncclGroupStart") ||
      !find(group_end_, "ncclGroupEnd") || !find(all_gather_, "ncclAllGather") ||
      !find(reduce_scatter_, "ncclReduceScatter"))
    return;
  std::vector<void*> made(static_cast<std::size_t>(ranks));
  if (init(made.data(), ranks, nullptr) == 0) communicators_ = made;
}

void Nccl::all_gather(const std::vector<std::pair<void*, gemm::ptx::Stream>>& ranks, std::size_t part) const {
  constexpr int kBytes = 1;  // ncclUint8
  check(group_start_());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto [memory, stream] = ranks[rank];
    check(all_gather_(static_cast<std::byte*>(memory) + rank * part, memory, part, kBytes,
                      communicators_[rank], stream));
  }
  check(group_end_());
}

void Nccl::reduce_scatter(const std::vector<Scattered>& ranks, std::size_t part) const {
  constexpr int kBf16 = 9;  // ncclBfloat16
  constexpr int kSum = 0;   // ncclSum
  check(group_start_());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    check(reduce_scatter_(ranks[rank].from, ranks[rank].to, part, kBf16, kSum, communicators_[rank],
                          ranks[rank].stream));
  check(group_end_());
}

void Nccl::check(int status) {
  if (status != 0) throw Error(fmt::format("NCCL failed: status {}", status));
}

Contestant fastest_of_cublaslt(const Ranks& ranks, const gemm::Gemm& product) {
  constexpr int kRounds = 7;
  constexpr auto kIdle = std::chrono::milliseconds(3);
  ranks.enter(0);
  std::vector<Contestant> candidates = cublaslt_candidates(product.shape);
  if (candidates.empty())
    throw Error("cuBLASLt has no algorithm for the product that the step is compared with");
  const gemm::ptx::Stream stream = ranks.stream(0, RankStream::kSend);
  CudaEvent start;
  CudaEvent stop;
  std::vector<std::vector<double>> times(candidates.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const gemm::Launcher launcher = candidates[i].prepare(product);
      ranks.synchronize();
      std::this_thread::sleep_for(kIdle);
      start.record(stream);
      launcher(stream);
      stop.record(stream);
      ranks.synchronize();
      if (round > 0) times[i].push_back(stop.microseconds_since(start));  // the first round loads kernels
    }
  }
  std::vector<double> medians;
  for (const std::vector<double>& one : times) medians.push_back(quantile(one, 0.5));
  const auto best = std::min_element(medians.begin(), medians.end()) - medians.begin();
  return candidates[static_cast<std::size_t>(best)];
}

}  // namespace harness
