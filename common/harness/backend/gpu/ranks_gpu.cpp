// harness/backend/ranks.h on the CUDA runtime: one process, one host thread, as many GPUs as there are ranks.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/backend/cuda_check.h"
#include "harness/backend/ranks.h"
#include "harness/backend/watchdog.h"
#include "harness/base/problem.h"

namespace harness {
namespace {

std::string name_of(int rank) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, rank) == cudaSuccess)
    return fmt::format("rank {} ({}, device {})", rank, properties.name, rank);
  cudaGetLastError();
  return fmt::format("rank {}", rank);
}

/// Lets the current device, which is `rank`, access the memory of `peer`.
void reach(int rank, int peer) {
  int possible = 0;
  check_cuda(cudaDeviceCanAccessPeer(&possible, rank, peer), "asking for peer access");
  if (possible == 0)
    throw Error(
        fmt::format("device {} cannot access the memory of device {}: this step needs GPUs that can, as "
                    "nvidia-smi topo -p2p r shows",
                    rank, peer));
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  check_cuda(status, fmt::format("giving device {} access to the memory of device {}", rank, peer));
}

}  // namespace

struct Ranks::Impl {
  struct Rank {
    std::array<gemm::ptx::Stream, 2> streams{};
    std::vector<void*> memory;
  };
  std::vector<Rank> ranks;

  ~Impl() {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      cudaSetDevice(static_cast<int>(rank));
      // After a failed kernel these fail as well, with an error that has been reported already.
      for (void* memory : ranks[rank].memory) cudaFree(memory);
      for (gemm::ptx::Stream stream : ranks[rank].streams) {
        if (stream != nullptr) cudaStreamDestroy(stream);
      }
    }
    cudaSetDevice(0);
    cudaGetLastError();
  }
};

int device_count() {
  device_info();  // throws where there is none
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "counting the GPUs");
  return count;
}

Ranks::Ranks(int count) : impl_(std::make_unique<Impl>()) {
  if (const int devices = device_count(); devices < count)
    throw Error(fmt::format(
        "{} ranks need {} GPUs, and this machine has {}: --check --backend emulator runs the step "
        "without any",
        count, count, devices));
  for (int rank = 0; rank < count; ++rank) {
    enter(rank);
    for (int peer = 0; peer < count; ++peer) {
      if (peer != rank) reach(rank, peer);
    }
    Impl::Rank& made = impl_->ranks.emplace_back();
    for (gemm::ptx::Stream& stream : made.streams)
      check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  }
  enter(0);
}

Ranks::~Ranks() = default;

int Ranks::count() const {
  return static_cast<int>(impl_->ranks.size());
}

void Ranks::enter(int rank) const {
  check_cuda(cudaSetDevice(rank), fmt::format("using device {}", rank));
}

gemm::ptx::Stream Ranks::stream(int rank, RankStream which) const {
  return impl_->ranks[static_cast<std::size_t>(rank)].streams[static_cast<std::size_t>(which)];
}

void* Ranks::allocate(int rank, std::size_t bytes, std::string_view name) {
  enter(rank);
  void* memory = device_allocate(bytes, name);
  impl_->ranks[static_cast<std::size_t>(rank)].memory.push_back(memory);
  return memory;
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
  check_cuda(cudaDeviceSynchronize(), "filling device memory");
}

void Ranks::synchronize() const {
  const Watchdog watchdog(fmt::format("what {} ranks do together", count()));
  for (int rank = 0; rank < count(); ++rank) {
    enter(rank);
    const cudaError_t status = cudaDeviceSynchronize();
    if (status != cudaSuccess) check_cuda(status, name_of(rank) + ": running a kernel");
  }
}

std::string Ranks::topology() const {
  int slowest = 0;
  bool has_atomics = true;
  for (int rank = 0; rank < count(); ++rank) {
    for (int peer = 0; peer < count(); ++peer) {
      if (peer == rank) continue;
      int value = 0;
      check_cuda(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, rank, peer),
                 "asking how fast a link is");
      slowest = std::max(slowest, value);
      check_cuda(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, rank, peer),
                 "asking whether a link has atomics");
      has_atomics = has_atomics && value != 0;
    }
  }
  return fmt::format("{} devices with peer access, {}, performance rank {}", count(),
                     has_atomics ? "atomics over the link (NVLink)" : "no atomics over the link (PCIe)",
                     slowest);
}

}  // namespace harness
