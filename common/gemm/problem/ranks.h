// The problems of Part VII: several GPUs of one process, called ranks. In the first one each of them sends
// bytes to the next one; in the second one they multiply an A whose rows are spread over them; in the third
// one each multiplies a part of K, and the sums are spread over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "gemm/problem/gemm.h"
#include "ptx/launch_shape.h"

namespace gemm {

/// A copy between ranks is whole rows, and a piece of it is whole chunks.
inline constexpr int kCopyRowBytes = 1024;
inline constexpr int kCopyChunkBytes = 16 * 1024;

/// The memory of one rank that the others know. All of it may be accessed by every rank.
struct RankMemory {
  const void* source[2] = {};        // what it sends in even and in odd epochs
  void* inbox = nullptr;             // what the rank before it has sent
  std::uint32_t* arrived = nullptr;  // [pieces]: the last epoch in which the piece came
  std::uint32_t* taken = nullptr;    // [1]: how often a reader of the next rank has finished an epoch
  std::uint32_t* wrong = nullptr;    // [1]: how many words of the inbox were not what they should be
};

/// Rank r sends `bytes` bytes to rank r + 1, and the last rank to the first one.
struct PeerCopy {
  std::vector<RankMemory> ranks;
  std::int64_t bytes = 0;        // a multiple of kCopyRowBytes
  std::int64_t piece_bytes = 0;  // a multiple of kCopyChunkBytes; each piece has a flag
  int ctas = 1;                  // that send; one per SM
  int reader_ctas = 1;           // that read what has arrived

  int count() const { return static_cast<int>(ranks.size()); }
  const RankMemory& memory(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
  int next(int rank) const { return (rank + 1) % count(); }
  int previous(int rank) const { return (rank + count() - 1) % count(); }
  std::int64_t pieces() const { return (bytes + piece_bytes - 1) / piece_bytes; }
};

/// Word `index` of what a rank sends. It differs from that of every other rank, from that of every other
/// word, and from what the same rank sent an epoch ago, so nothing old and nothing misplaced is taken for it.
constexpr std::uint32_t sent_word(std::uint32_t rank, std::uint32_t epoch, std::uint32_t index) {
  const std::uint32_t sender = 2 * rank + (epoch & 1) + 1;
  return index * 0x9e3779b1u ^ sender * 0x85ebca77u;  // odd factors: no two words are equal
}

/// Something that a rank does in an epoch, given to one of its streams while it is the current device.
using RankWork = std::function<void(int rank, std::uint32_t epoch, ptx::Stream stream)>;

/// The rows of A that a rank has, and the rows of a piece of them, are whole blocks of so many.
inline constexpr int kGatherRows = 128;

/// The memory of one rank in an all-gather followed by a product.
struct GatherMemory {
  bf16* a[2] = {};          // [m][k], in even and in odd epochs: its own rows, and room for the others
  const bf16* b = nullptr;  // [n][k]
  bf16* d = nullptr;        // [m][n]
  std::uint32_t* arrived =
      nullptr;  // [ranks][pieces()]: the last epoch in which the piece came from that rank
};

/// Rank r has the rows r * M / R to (r + 1) * M / R - 1 of A, and a B of its own. It needs all rows of A, in
/// which it computes its own columns of D = A * B^T.
///
/// Odd and even epochs use different buffers for A. A rank that sends in epoch e + 2 has finished epoch
/// e + 1, in which it saw a flag of every other rank. Each of those had finished epoch e before it raised
/// that flag, so nobody still reads what is overwritten.
struct GatherGemm {
  std::vector<GatherMemory> ranks;
  Shape shape;         // of each rank's product: all rows of A, and the columns that are its own
  int piece_rows = 0;  // a multiple of kGatherRows; each piece has a flag
  int ctas = 1;        // CTAs that copy, in a variant where SMs do

  int count() const { return static_cast<int>(ranks.size()); }
  const GatherMemory& memory(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
  int rows_of_rank() const { return shape.m / count(); }
  int pieces() const { return ceil_div(rows_of_rank(), piece_rows); }
};

/// Operands of this many epochs in succession differ, so what was left two epochs ago is never right.
inline constexpr std::size_t kScatterPhases = 3;
/// Tiles of D are at most so large: for whole ones of this size there is memory.
inline constexpr int kScatterRows = 128;
inline constexpr int kScatterColumns = 256;
/// Flags that such a tile has.
inline constexpr int kScatterFlags = 2;

/// The memory of one rank in a product followed by a reduce-scatter.
struct ScatterMemory {
  const bf16* a[kScatterPhases] = {};  // [m][k]: its own part of K; epoch e multiplies a[e % kScatterPhases]
  const bf16* b = nullptr;             // [n][k]: its own part of K
  bf16* d = nullptr;                   // [rows_of_rank()][n]: its own rows
  void* partials[2] = {};  // [ranks][partial_bytes()], in even and in odd epochs: what each rank adds to them
  std::uint32_t* arrived = nullptr;  // [ranks][flags_of_rank()]: the last epoch in which the partials came
};

/// Every rank has a part of K, and with it computes a part of the sum for every element of D. Rank r gets the
/// rows r * M / R to (r + 1) * M / R - 1 of the whole sum.
///
/// Odd and even epochs use different buffers for partials. A rank that sends in epoch e + 2 has finished
/// epoch e + 1, in which it saw a flag of every other rank. Each of those had finished epoch e before it
/// raised that flag, so nobody still reads what is overwritten.
struct ScatterGemm {
  std::vector<ScatterMemory> ranks;
  Shape shape;  // of each rank's product: all rows and columns, and the part of K that is its own

  int count() const { return static_cast<int>(ranks.size()); }
  const ScatterMemory& memory(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
  int rows_of_rank() const { return shape.m / count(); }
  std::int64_t tiles_of_rank() const {
    return std::int64_t{rows_of_rank() / kScatterRows} * ceil_div(shape.n, kScatterColumns);
  }
  std::int64_t partial_bytes() const {  // in binary32
    return tiles_of_rank() * kScatterRows * kScatterColumns * std::int64_t{sizeof(float)};
  }
  std::int64_t flags_of_rank() const { return tiles_of_rank() * kScatterFlags; }
};

/// A prepared exchange. `before`, `run` and `after` follow each other on one stream, and `reader` has a
/// stream of its own. Only `run` is timed. Each may be empty. Epochs are 1, 2, 3 and so on, and every rank
/// takes part in each of them.
struct RankLauncher {
  RankWork before;
  RankWork run;
  RankWork after;
  RankWork reader;
};

}  // namespace gemm
