// Step 60: a GPU stores into the memory of another one, and says of each piece when it has arrived.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "exchange.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/ranks.h"
#include "gemm/problem/step.h"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_60 {

/// Everything that lies in memory is counted in vectors of 16 bytes.
inline constexpr int kChunk = kCopyChunkBytes / 16;
inline constexpr int kRow = kCopyRowBytes / 16;

// ANCHOR: flags
/// Waits for a word that only grows. Nobody lowers it, so no launch can mistake the flag of an earlier one
/// for its own, and no reset can overtake a signal.
__device__ __forceinline__ void wait_until(const std::uint32_t* word, std::uint32_t least) {
  // ANCHOR: wait
  while (static_cast<std::int32_t>(ptx::ld_acquire_sys(word) - least) < 0) {
  }
  // ANCHOR_END: wait
}

// Lesson: the release makes visible what this thread has written, and what it knows others to have written.
// Its scope says to whom. With .gpu the L2 of this GPU is the end of the way: the flag may then reach the
// peer's memory before the data does. .sys includes the threads of every GPU.
__device__ __forceinline__ void signal(const Link& link, std::int64_t piece) {
  ptx::st_release_sys(&link.arrived[piece], link.epoch);
}
// ANCHOR_END: flags

struct Threads {
  static constexpr int kCount = 1024;
  static constexpr int kLoads = 4;  // each of 16 bytes; per thread, in flight
  static constexpr std::int64_t kVectors = std::int64_t{kCount} * kLoads;
};

// ANCHOR: by_threads
/// Every thread loads 16 bytes of its own GPU's memory and stores them into the peer's.
__global__ void __launch_bounds__(Threads::kCount, 1) send_by_threads(Link link) {
  if (threadIdx.x == 0) wait_until(link.taken, link.taken_before);
  __syncthreads();
  for (std::int64_t piece = blockIdx.x; piece < link.pieces(); piece += gridDim.x) {
    const std::int64_t end = std::min((piece + 1) * link.piece, link.vectors);
    for (std::int64_t at = piece * link.piece + threadIdx.x; at < end; at += Threads::kVectors) {
      uint4 values[Threads::kLoads];
#pragma unroll
      for (std::int64_t i = 0; i < Threads::kLoads; ++i) {
        if (at + i * Threads::kCount < end)
          values[i] = ptx::ld_global_no_allocate(link.source + at + i * Threads::kCount);
      }
#pragma unroll
      for (std::int64_t i = 0; i < Threads::kLoads; ++i) {
        if (at + i * Threads::kCount < end) ptx::st_global(link.inbox + at + i * Threads::kCount, values[i]);
      }
    }
    __syncthreads();  // thread 0 now knows of the stores of all threads, so its release covers them
    if (threadIdx.x == 0) signal(link, piece);
  }
}
// ANCHOR_END: by_threads

/// Where one of the roles of a copying thread is: a chunk of one of this CTA's pieces.
struct Chunk {
  const Link& link;
  std::int64_t piece = blockIdx.x;
  std::int64_t at = piece * link.piece;

  __device__ __forceinline__ bool exists() const { return at < link.vectors; }
  __device__ __forceinline__ std::int64_t end_of_piece() const {
    return std::min((piece + 1) * link.piece, link.vectors);
  }
  __device__ __forceinline__ std::uint32_t bytes() const {
    return static_cast<std::uint32_t>(std::min<std::int64_t>(kChunk, end_of_piece() - at)) * 16;
  }
  __device__ __forceinline__ bool ends_piece() const { return at + kChunk >= end_of_piece(); }
  __device__ __forceinline__ void advance() {
    if (!ends_piece()) {
      at += kChunk;
    } else {
      piece += gridDim.x;
      at = piece * link.piece;
    }
  }
};

struct Stages {
  static constexpr int kCount = 12;
  static constexpr int kLoading = 4;  // the others hold chunks that are on their way to the peer
  static constexpr int kStoring = kCount - kLoading;
};
struct Shared {
  alignas(128) uint4 stage[Stages::kCount][kChunk];
  std::uint64_t full[Stages::kCount];
};

/// One thread copies chunks into shared memory and from there to the peer, by bulk copies or through a tensor
/// map of the peer's inbox.
template <bool kByMap>
__global__ void __launch_bounds__(32, 1)
    send_by_copies(Link link, const __grid_constant__ ptx::TensorMap inbox) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (!ptx::elect_sync()) return;
  for (std::uint64_t& barrier : shared.full) ptx::mbarrier_init(&barrier, 1);
  ptx::fence_mbarrier_init_release_cluster();
  wait_until(link.taken, link.taken_before);

  PipelineState<Stages::kCount> fill{};
  const auto load = [&](const Chunk& chunk) {
    ptx::mbarrier_arrive_expect_tx(&shared.full[fill.stage], chunk.bytes());
    ptx::cp_async_bulk(shared.stage[fill.stage], link.source + chunk.at, chunk.bytes(),
                       &shared.full[fill.stage]);
    fill.advance();
  };
  Chunk loaded{link};
  for (int i = 0; i < Stages::kLoading && loaded.exists(); ++i, loaded.advance()) load(loaded);

  // ANCHOR: by_copies
  Chunk landed{link};
  const auto land = [&] {
    if (landed.ends_piece()) signal(link, landed.piece);
    landed.advance();
  };
  PipelineState<Stages::kCount> read{};
  int stored = 0;
  for (Chunk chunk{link}; chunk.exists(); chunk.advance(), ++stored) {
    ptx::mbarrier_wait_parity(&shared.full[read.stage], read.phase, {"copier", "full", read.stage, stored});
    if constexpr (kByMap) {
      ptx::cp_async_bulk_tensor_2d_store(&inbox, 0, static_cast<int>(chunk.at / kRow),
                                         shared.stage[read.stage]);
    } else {
      ptx::cp_async_bulk_store(link.inbox + chunk.at, shared.stage[read.stage], chunk.bytes());
    }
    ptx::cp_async_bulk_commit_group();
    read.advance();
    // Lesson: without .read. A copy that has been read from shared memory has left this SM, and no more. Only
    // when it has written the peer's memory may the flag follow it. All but the latest kStoring chunks have.
    ptx::cp_async_bulk_wait_group<Stages::kStoring>();
    if (stored >= Stages::kStoring) land();
    if (loaded.exists()) {
      load(loaded);  // into the stage of the chunk that has just landed, or into one that was never used
      loaded.advance();
    }
  }
  ptx::cp_async_bulk_wait_group<0>();
  while (landed.exists()) land();
  // ANCHOR_END: by_copies
}

inline constexpr int kReaders = 256;  // threads

// ANCHOR: reader
/// What the peer does: it takes each piece when its flag says so, and here compares it with what was sent.
__global__ void __launch_bounds__(kReaders) read_inbox(Inbox inbox, Link link) {
  std::uint32_t wrong = 0;
  for (std::int64_t piece = blockIdx.x; piece < link.pieces(); piece += gridDim.x) {
    if (threadIdx.x == 0) wait_until(&inbox.arrived[piece], link.epoch);
    __syncthreads();
    const std::int64_t end = std::min((piece + 1) * link.piece, link.vectors);
    for (std::int64_t at = piece * link.piece + threadIdx.x; at < end; at += blockDim.x) {
      const uint4 value = ptx::ld_global(inbox.vectors + at);
      const auto word = static_cast<std::uint32_t>(4 * at);
      const std::uint32_t words[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i)
        wrong += words[i] != sent_word(inbox.sender, link.epoch, word + i) ? 1 : 0;
    }
  }
  if (wrong != 0) ptx::red_add_relaxed_gpu(inbox.wrong, wrong);
  // Lesson: the next epoch overwrites what was read here, perhaps through the async proxy. So the reads, too,
  // are ordered before a signal, which goes the other way over the link.
  ptx::fence_proxy_async_global();
  __syncthreads();
  if (threadIdx.x == 0) ptx::red_add_release_sys(inbox.taken, 1);
}
// ANCHOR_END: reader

/// Beside a copy engine, which knows no flags: a thread that waits before it, and one that signals after it.
__global__ void __launch_bounds__(32) await_inbox(Link link) {
  if (threadIdx.x == 0) wait_until(link.taken, link.taken_before);
}
__global__ void __launch_bounds__(32) signal_all(Link link) {
  for (std::int64_t piece = threadIdx.x; piece < link.pieces(); piece += 32) signal(link, piece);
}

template <auto kKernel, RankWork (*kSender)(const PeerCopy&), int kThreads, std::size_t kSharedBytes = 0,
          bool kByEngine = false>
Variant variant(const char* name, const char* summary) {
  return {.name = name,
          .summary = summary,
          .kernel = ptx::kernel_handle(kKernel),
          .launch_shape = [](const Shape&) { return ctas(1, kThreads, kSharedBytes); },
          .prepare_ranks = [](const PeerCopy& copy) -> RankLauncher {
            return {.before = kByEngine ? sender_of<await_inbox, 32>(copy) : RankWork(),
                    .run = kSender(copy),
                    .after = kByEngine ? sender_of<signal_all, 32>(copy) : RankWork(),
                    .reader = reader_of<read_inbox, kReaders>(copy)};
          },
          .by_copy_engine = kByEngine};
}

inline const Step kStep{
    .name = "60_peer_copy",
    .title = "stores into the memory of another GPU, and flags that say when a piece has arrived",
    .builds_on = "11_mbarrier_ring",
    .unit = MathUnit::kFma,
    .architecture = Architecture::kSm90a,
    .variants = {variant<send_by_copies<false>, copier_of<send_by_copies<false>, Shared>, 32, sizeof(Shared)>(
                     "bulk", "bulk copies from shared memory"),
                 variant<send_by_copies<true>, copier_of<send_by_copies<true>, Shared>, 32, sizeof(Shared)>(
                     "tma", "TMA stores through a map of the peer's memory"),
                 variant<send_by_threads, sender_of<send_by_threads, Threads::kCount>, Threads::kCount>(
                     "threads", "every thread stores 16 bytes at a time"),
                 variant<signal_all, engine_of, 32, 0, true>("copy_engine", "the copy engine, and no SM")}};

}  // namespace gemm::step_60
