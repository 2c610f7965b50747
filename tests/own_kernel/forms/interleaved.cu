// Images are converted from an interleaved layout (NC/8HWC8, NC/16HWC16) to adjacent channels (NHWC): the
// copy engine loads slices of channels through one tensor map and stores them through another, and no thread
// accesses the data.
//
// Broken on purpose, one at a time: -D of CHANNEL_AS_SLICE (the slice's coordinate is given in channels),
// HALF_BYTES (only half of the box is expected), NO_WAIT (the store starts before the tile has arrived),
// NO_READ_WAIT (the CTA ends while its store is still reading), NO_INTERLEAVE (the map describes the slices
// as channels of one pixel).
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cuda/ptx>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptx = cuda::ptx;

constexpr int kTileW = 8;
constexpr int kTileH = 4;
// Images of no multiple of the tile, so that boxes hang over the edges.
constexpr int kWidth = 21;
constexpr int kHeight = 10;
constexpr int kImages = 2;
constexpr int kSlices = 3;

template <int kChannels>  // of a slice
__global__ void __launch_bounds__(32)
    to_nhwc(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out) {
  __shared__ alignas(1024) __nv_bfloat16 tile[kTileH][kTileW][kChannels];
  __shared__ std::uint64_t full;
  if (threadIdx.x != 0) return;
  ptx::mbarrier_init(&full, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);

  const int w = static_cast<int>(blockIdx.x) * kTileW;
  const int h = static_cast<int>(blockIdx.y) * kTileH;
  const int slice = static_cast<int>(blockIdx.z) % kSlices;
  const int image = static_cast<int>(blockIdx.z) / kSlices;
#ifdef CHANNEL_AS_SLICE
  const std::int32_t from[] = {w, h, slice * kChannels, image};
#else
  const std::int32_t from[] = {w, h, slice, image};  // pixels, rows, slices, images
#endif
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &in, from, &full);
#ifdef HALF_BYTES
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile / 2);
#else
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
#endif
#ifndef NO_WAIT
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
#endif
  const std::int32_t to[] = {slice * kChannels, w, h, image};
  ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, to, tile);
  ptx::cp_async_bulk_commit_group();
#ifndef NO_READ_WAIT
  ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
#endif
}

CUtensorMap make_map(const __nv_bfloat16* memory, const cuuint64_t (&extent)[4],
                     const cuuint64_t (&stride)[3], const cuuint32_t (&box)[4],
                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &result);
  const cuuint32_t steps[] = {1, 1, 1, 1};
  CUtensorMap map;
  reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<__nv_bfloat16*>(memory), extent, stride, box,
      steps, interleave, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

template <int kChannels>
void check_slices(emulate::Run& run, const char* from_name, const char* to_name) {
  constexpr cuuint64_t kSliceBytes = kChannels * sizeof(__nv_bfloat16);
  constexpr int kAll = kSlices * kChannels;
  const std::vector<__nv_bfloat16> values =
      run.small_integers<__nv_bfloat16>(kImages * kSlices * kHeight * kWidth * kChannels);
  const __nv_bfloat16* in = run.buffer(from_name, values);
  __nv_bfloat16* out = run.buffer<__nv_bfloat16>(to_name, values.size());
  // The copy engine has a swizzle of 32 bytes for slices of 32 bytes. Both maps have it, so that they cancel
  // each other.
  const CUtensorMapSwizzle swizzle =
      kSliceBytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B : CU_TENSOR_MAP_SWIZZLE_NONE;
#ifdef NO_INTERLEAVE
  const CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
#else
  const CUtensorMapInterleave interleave =
      kSliceBytes == 32 ? CU_TENSOR_MAP_INTERLEAVE_32B : CU_TENSOR_MAP_INTERLEAVE_16B;
#endif
  const CUtensorMap slices = make_map(
      in, {kWidth, kHeight, kSlices, kImages},
      {kWidth * kSliceBytes, kHeight * kWidth * kSliceBytes, kSlices * kHeight * kWidth * kSliceBytes},
      {kTileW, kTileH, kChannels, 1}, interleave, swizzle);
  const CUtensorMap pixels = make_map(
      out, {kAll, kWidth, kHeight, kImages},
      {kSlices * kSliceBytes, kWidth * kSlices * kSliceBytes, kHeight * kWidth * kSlices * kSliceBytes},
      {kChannels, kTileW, kTileH, 1}, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle);
  const dim3 grid((kWidth + kTileW - 1) / kTileW, (kHeight + kTileH - 1) / kTileH, kSlices * kImages);
  to_nhwc<kChannels><<<grid, 32>>>(slices, pixels);

  std::vector<__nv_bfloat16> expected(values.size());
  std::size_t at = 0;
  for (int image = 0; image < kImages; ++image)
    for (int slice = 0; slice < kSlices; ++slice)
      for (int pixel = 0; pixel < kHeight * kWidth; ++pixel)
        for (int channel = 0; channel < kChannels; ++channel, ++at)
          expected[static_cast<std::size_t>((image * kHeight * kWidth + pixel) * kAll + slice * kChannels +
                                            channel)] = values[at];
  run.expect_equal(to_name, run.host(out), expected);
}

void check_kernel(emulate::Run& run) {
  check_slices<8>(run, "nc8hwc8", "nhwc");
  check_slices<16>(run, "nc16hwc16", "nhwc of 16");
}
