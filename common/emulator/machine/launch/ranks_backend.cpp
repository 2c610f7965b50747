// harness/backend/ranks.h on the emulator: as many devices as are asked for.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <vector>

#include "emulator/machine/ranks.h"
#include "harness/backend/backend.h"
#include "harness/backend/ranks.h"

namespace harness {

struct Ranks::Impl {
  std::vector<std::array<gemm::ptx::Stream, 2>> streams;
  std::vector<void*> memory;

  ~Impl() {
    for (const auto& both : streams) {
      for (gemm::ptx::Stream stream : both) emulator::ranks::destroy_stream(stream);
    }
    for (void* one : memory) device_free(one);
    emulator::set_device_count(1);
  }
};

int device_count() {
  return std::numeric_limits<int>::max();
}

Ranks::Ranks(int count) : impl_(std::make_unique<Impl>()) {
  emulator::set_device_count(count);
  for (int rank = 0; rank < count; ++rank) {
    for (int peer = 0; peer < count; ++peer) {
      if (peer != rank) emulator::set_peer_access(rank, peer, true);
    }
    enter(rank);
    auto& streams = impl_->streams.emplace_back();
    for (gemm::ptx::Stream& stream : streams) stream = emulator::ranks::make_stream(false);
  }
  enter(0);
}

Ranks::~Ranks() = default;

int Ranks::count() const {
  return static_cast<int>(impl_->streams.size());
}

void Ranks::enter(int rank) const {
  emulator::set_current_device(rank);
}

gemm::ptx::Stream Ranks::stream(int rank, RankStream which) const {
  return impl_->streams[static_cast<std::size_t>(rank)][static_cast<std::size_t>(which)];
}

void* Ranks::allocate(int rank, std::size_t bytes, std::string_view name) {
  enter(rank);
  return impl_->memory.emplace_back(device_allocate(bytes, name));
}

void Ranks::copy_to(int rank, void* device, const void* host, std::size_t bytes) const {
  enter(rank);
  copy_to_device(device, host, bytes);
}

void Ranks::copy_from(int rank, void* host, const void* device, std::size_t bytes) const {
  enter(rank);
  copy_to_host(host, device, bytes);
}

void Ranks::fill(int rank, void* device, std::uint8_t value, std::size_t bytes) const {
  enter(rank);
  fill_device(device, value, bytes);
}

void Ranks::synchronize() const {
  for (int rank = 0; rank < count(); ++rank) {
    enter(rank);
    harness::synchronize();
  }
}

std::string Ranks::topology() const {
  return fmt::format("{} emulated devices", count());
}

}  // namespace harness
