// What the kernels of step 60 get, and who starts them: every rank sends to the next one, and reads what the
// rank before it has sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gemm/problem/ranks.h"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/peer_copy.h"
#include "ptx/tensor_map.h"

namespace gemm::step_60 {

// ANCHOR: link
// Lesson: a peer's memory has ordinary addresses, and this struct mixes them with the rank's own. Nothing in
// an instruction says where a store goes. What differs is how long it takes, and who can see it when.
struct Link {
  const uint4* source;         // in this rank's memory
  uint4* inbox;                // in the next rank's memory
  std::uint32_t* arrived;      // [pieces], in the next rank's memory
  const std::uint32_t* taken;  // in this rank's memory, so that waiting for it sends nothing over the link
  std::int64_t vectors;        // in units of 16 bytes
  std::int64_t piece;          // vectors per piece
  std::uint32_t epoch;
  std::uint32_t taken_before;  // what `taken` is when the next rank has read all of the epoch before

  __device__ __forceinline__ std::int64_t pieces() const { return (vectors + piece - 1) / piece; }
};
// ANCHOR_END: link

/// The other end: where a rank reads what the rank before it has sent.
struct Inbox {
  const uint4* vectors;
  const std::uint32_t* arrived;  // [pieces]
  std::uint32_t* taken;          // in the memory of the rank that sends
  std::uint32_t* wrong;
  std::uint32_t sender;
};

inline Link link_of(const PeerCopy& copy, int rank, std::uint32_t epoch) {
  const RankMemory& mine = copy.memory(rank);
  const RankMemory& peer = copy.memory(copy.next(rank));
  return {.source = static_cast<const uint4*>(mine.source[epoch % 2]),
          .inbox = static_cast<uint4*>(peer.inbox),
          .arrived = peer.arrived,
          .taken = mine.taken,
          .vectors = copy.bytes / 16,
          .piece = copy.piece_bytes / 16,
          .epoch = epoch,
          .taken_before = (epoch - 1) * static_cast<std::uint32_t>(copy.reader_ctas)};
}

inline Inbox inbox_of(const PeerCopy& copy, int rank) {
  const RankMemory& mine = copy.memory(rank);
  const int sender = copy.previous(rank);
  return {.vectors = static_cast<const uint4*>(mine.inbox),
          .arrived = mine.arrived,
          .taken = copy.memory(sender).taken,
          .wrong = mine.wrong,
          .sender = static_cast<std::uint32_t>(sender)};
}

inline ptx::LaunchShape ctas(int count, int threads, std::size_t shared_bytes = 0) {
  return {.grid = {.x = static_cast<unsigned>(count)},
          .block = {.x = static_cast<unsigned>(threads)},
          .cluster = {},
          .shared_bytes = static_cast<int>(shared_bytes)};
}

/// The map of a peer's inbox, a matrix of rows of kCopyRowBytes; a box is a chunk. Nothing in it says that
/// the memory is another GPU's.
inline ptx::TensorMap inbox_map(const PeerCopy& copy, int rank) {
  ptx::TensorMapSpec spec;
  spec.base = copy.memory(rank).inbox;
  spec.element = ptx::TensorElement::kUint32;
  spec.rank = 2;
  spec.extent = {kCopyRowBytes / 4, static_cast<std::uint64_t>(copy.bytes / kCopyRowBytes)};
  spec.stride_bytes = {0, kCopyRowBytes};
  spec.box = {kCopyRowBytes / 4, kCopyChunkBytes / kCopyRowBytes};
  return ptx::make_tensor_map(spec);
}

/// Whoever sends, the peer reads in the same way.
template <auto kRead, int kThreads>
RankWork reader_of(const PeerCopy& copy) {
  return [copy](int rank, std::uint32_t epoch, ptx::Stream stream) {
    ptx::launch(kRead, ctas(copy.reader_ctas, kThreads), stream, inbox_of(copy, rank),
                link_of(copy, copy.previous(rank), epoch));
  };
}

/// Sent by a kernel.
template <auto kSend, int kThreads>
RankWork sender_of(const PeerCopy& copy) {
  return [copy](int rank, std::uint32_t epoch, ptx::Stream stream) {
    ptx::launch(kSend, ctas(copy.ctas, kThreads), stream, link_of(copy, rank, epoch));
  };
}

/// Sent by a kernel that has stages in shared memory and a map of the peer's inbox.
template <auto kSend, typename Shared>
RankWork copier_of(const PeerCopy& copy) {
  std::vector<ptx::TensorMap> maps;
  for (int rank = 0; rank < copy.count(); ++rank) maps.push_back(inbox_map(copy, copy.next(rank)));
  return [copy, maps](int rank, std::uint32_t epoch, ptx::Stream stream) {
    ptx::launch(kSend, ctas(copy.ctas, 32, sizeof(Shared)), stream, link_of(copy, rank, epoch),
                maps[static_cast<std::size_t>(rank)]);
  };
}

/// Sent by a copy engine.
inline RankWork engine_of(const PeerCopy& copy) {
  return [copy](int rank, std::uint32_t epoch, ptx::Stream stream) {
    const Link link = link_of(copy, rank, epoch);
    ptx::copy_to_peer(link.inbox, copy.next(rank), link.source, rank, static_cast<std::size_t>(copy.bytes),
                      stream);
  };
}

}  // namespace gemm::step_60
