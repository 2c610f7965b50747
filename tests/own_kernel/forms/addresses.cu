// Shared memory through 32-bit addresses, as in published kernels: barriers, a bulk copy, ldmatrix,
// stmatrix.
//
// Broken on purpose: -D NO_WAIT (ldmatrix reads the matrix before it has arrived), -D WRONG_ADDRESS (a
// barrier operation at an address without a barrier).
#include <cstdint>
#include <vector>

#include "ptx/fence.cuh"
#include "ptx/shared_addresses.cuh"

namespace wrappers = gemm::ptx;

__global__ void rows_of_eight(const std::uint16_t* matrices, std::uint32_t* fragments) {
  extern __shared__ __align__(128) unsigned char memory[];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
  const std::uint32_t matrix = base;
  const std::uint32_t full = base + 512;
  if (threadIdx.x == 0) {
    wrappers::mbarrier_init(full, 1);
    wrappers::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
#ifdef WRONG_ADDRESS
    wrappers::mbarrier_arrive_expect_tx(full + 8, 512);
#else
    wrappers::mbarrier_arrive_expect_tx(full, 512);
#endif
    wrappers::cp_async_bulk(matrix, matrices, 512, full);
  }
#ifndef NO_WAIT
  while (!wrappers::mbarrier_try_wait_parity(full, 0)) {
  }
#endif
  __syncwarp();
  std::uint32_t r[4];
  wrappers::ldmatrix_x4(r, matrix + threadIdx.x * 16);
  // Stored and loaded again with rows as columns, the fragments are what they were.
  __syncwarp();
  wrappers::stmatrix_x4_trans(matrix + threadIdx.x * 16, r);
  __syncwarp();
  std::uint32_t again[4];
  wrappers::ldmatrix_x4_trans(again, matrix + threadIdx.x * 16);
  for (int i = 0; i < 4; ++i) fragments[i * 32 + threadIdx.x] = again[i];
}

void check_kernel(emulate::Run& run) {
  std::vector<std::uint16_t> values(256);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
  const std::uint16_t* matrices = run.buffer("matrices", values);
  std::uint32_t* fragments = run.buffer<std::uint32_t>("fragments", 128);
  rows_of_eight<<<1, 32, 528>>>(matrices, fragments);
  std::vector<std::uint32_t> expected(128);
  for (std::uint32_t i = 0; i < 128; ++i) expected[i] = 2 * i | (2 * i + 1) << 16;
  run.expect_equal("fragments", run.host(fragments), expected);
}
