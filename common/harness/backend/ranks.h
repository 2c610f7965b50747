// Several devices of one process. A rank is a number, 0 to count - 1, and the device of that number; each may
// access the memory of all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ptx/launch_shape.h"

namespace harness {

/// How many devices there are. The emulator has as many as are asked for.
int device_count();

/// The order of a rank's work: what sends, and what reads beside it.
enum class RankStream : std::uint8_t { kSend, kRead };

class Ranks {
 public:
  /// Opens the devices 0 to count - 1 and lets each access the memory of the others. Throws Error with one
  /// sentence where there are too few of them, or where two cannot reach each other.
  explicit Ranks(int count);
  ~Ranks();  // frees the memory, too
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int count() const;
  /// Makes the rank's device the current one: for launches into its streams.
  void enter(int rank) const;
  gemm::ptx::Stream stream(int rank, RankStream which) const;

  /// Device memory of a rank, which lives as long as this object. `name` appears in reports.
  void* allocate(int rank, std::size_t bytes, std::string_view name);
  void copy_to(int rank, void* device, const void* host, std::size_t bytes) const;
  void copy_from(int rank, void* host, const void* device, std::size_t bytes) const;
  void fill(int rank, void* device, std::uint8_t value, std::size_t bytes) const;

  /// Waits for the work of all ranks; throws Error that names the rank that failed.
  void synchronize() const;

  /// How the ranks reach each other, for records: "peer access, 18 NVLink links each".
  std::string topology() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace harness
