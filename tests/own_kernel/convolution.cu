// A convolution as a GEMM whose rows the copy engine gathers, through tensor maps in im2col mode, for images
// in one to three dimensions. Each CTA computes some output pixels, with one copy per filter tap. Images are
// stored as [image][depth][height][width][channel].
//
// Broken on purpose: -D NO_WAIT (the taps are used before they have arrived), -D HALF_BYTES (only half of the
// bytes are expected), -D OUTSIDE (a column starts outside the bounding box), -D TILED (the instruction's
// mode differs from the map's), -D WRONG_OFFSET (the taps of a row are read in the wrong order).
#include <cuda.h>
#include <cuda_runtime.h>

#include <cuda/ptx>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ptx/tma.cuh"

namespace ptx = cuda::ptx;

constexpr int kChannels = 16;  // of a pixel; a CTA takes 8 of them
constexpr int kPixels = 24;    // of a CTA: more than a row of the output, and no multiple of it

/// Images of up to three dimensions, W first.
struct Shape {
  int rank;  // of the tensor: 3, 4 or 5
  int images;
  int size[3];
  int filter[3];
  int pad[3];
  int stride[3];
  int dilation[3];

  __host__ __device__ int output(int d) const {
    return (size[d] + 2 * pad[d] - dilation[d] * (filter[d] - 1) - 1) / stride[d] + 1;
  }
  __host__ __device__ int pixels() const { return images * output(0) * output(1) * output(2); }
  __host__ __device__ int taps() const { return filter[0] * filter[1] * filter[2]; }
};

/// out[pixel][channel] = sum over the taps of weight[tap] * image[place of the tap][channel].
__global__ void convolution(const __grid_constant__ CUtensorMap map, const float* weights, float* out,
                            Shape shape) {
  constexpr int kPart = kChannels / 2;
  __shared__ alignas(128) float column[kPixels][kPart];
  __shared__ std::uint64_t full;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  const int first = static_cast<int>(blockIdx.x) * kPixels;
  const int channel = static_cast<int>(blockIdx.y) * kPart;
  // The first pixel, in the coordinates of the input.
  int rest = first, place[3];
  for (int d = 0; d < 3; ++d) {
    place[d] = rest % shape.output(d) * shape.stride[d] - shape.pad[d];
    rest /= shape.output(d);
  }
  const int image = rest;
#ifdef OUTSIDE
  place[0] -= 1;
#endif
  float sum = 0;
  for (int tap = 0; tap < shape.taps(); ++tap) {
    if (threadIdx.x == 0) {
#ifdef HALF_BYTES
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full,
                                     sizeof column / 2);
#else
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full,
                                     sizeof column);
#endif
      std::uint16_t offset[3];
      int at = tap;
      for (int d = 0; d < 3; ++d) {
        offset[d] = static_cast<std::uint16_t>(at % shape.filter[d] * shape.dilation[d]);
        at /= shape.filter[d];
      }
#ifdef WRONG_OFFSET
      offset[0] = static_cast<std::uint16_t>((shape.filter[0] - 1) * shape.dilation[0] - offset[0]);
#endif
#ifdef TILED
      gemm::ptx::cp_async_bulk_tensor_3d(column, &map, channel, place[0], image, &full);
#else
      if (shape.rank == 3) {
        gemm::ptx::cp_async_bulk_tensor_3d_im2col(column, &map, channel, place[0], image, &full, offset[0]);
      } else if (shape.rank == 4) {
        gemm::ptx::cp_async_bulk_tensor_4d_im2col(column, &map, channel, place[0], place[1], image, &full,
                                                  offset[0], offset[1]);
      } else {
        gemm::ptx::cp_async_bulk_tensor_5d_im2col(column, &map, channel, place[0], place[1], place[2], image,
                                                  &full, offset[0], offset[1], offset[2]);
      }
#endif
    }
#ifndef NO_WAIT
    while (!ptx::mbarrier_try_wait_parity(&full, static_cast<std::uint32_t>(tap & 1))) {
    }
#endif
    sum += weights[tap] * column[threadIdx.x / kPart][threadIdx.x % kPart];
    ptx::fence_proxy_async(ptx::space_shared);  // this tap was read
    __syncthreads();                            // before the next one comes
  }
  const int pixel = first + static_cast<int>(threadIdx.x) / kPart;
  if (pixel < shape.pixels()) out[pixel * kChannels + channel + static_cast<int>(threadIdx.x) % kPart] = sum;
}

CUtensorMap make_map(const float* images, const Shape& shape) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &entry, 12000, cudaEnableDefault, &result);
  cuuint64_t extent[5] = {kChannels}, stride[4] = {kChannels * sizeof(float)};
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  int lower[3], upper[3];
  const int pixel_dimensions = shape.rank - 2;
  for (int d = 0; d < pixel_dimensions; ++d) {
    extent[d + 1] = static_cast<cuuint64_t>(shape.size[d]);
    stride[d + 1] = stride[d] * extent[d + 1];
    steps[d + 1] = static_cast<cuuint32_t>(shape.stride[d]);
    lower[d] = -shape.pad[d];
    upper[d] = shape.pad[d] - shape.dilation[d] * (shape.filter[d] - 1);
  }
  extent[shape.rank - 1] = static_cast<cuuint64_t>(shape.images);
  CUtensorMap map;
  reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(entry)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, static_cast<cuuint32_t>(shape.rank), const_cast<float*>(images),
      extent, stride, lower, upper, kChannels / 2, kPixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

std::vector<float> reference(const Shape& shape, const std::vector<float>& images,
                             const std::vector<float>& weights) {
  std::vector<float> out(static_cast<std::size_t>(shape.pixels()) * kChannels);
  for (int pixel = 0; pixel < shape.pixels(); ++pixel) {
    for (int tap = 0; tap < shape.taps(); ++tap) {
      int rest = pixel, of_tap = tap, index = 0, scale = 1;
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const int at = rest % shape.output(d) * shape.stride[d] - shape.pad[d] +
                       of_tap % shape.filter[d] * shape.dilation[d];
        inside = inside && at >= 0 && at < shape.size[d];
        index += at * scale;
        scale *= shape.size[d];
        rest /= shape.output(d);
        of_tap /= shape.filter[d];
      }
      if (!inside) continue;
      index += rest * scale;
      for (int c = 0; c < kChannels; ++c)
        out[static_cast<std::size_t>(pixel * kChannels + c)] +=
            weights[static_cast<std::size_t>(tap)] * images[static_cast<std::size_t>(index * kChannels + c)];
    }
  }
  return out;
}

void check_kernel(emulate::Run& run) {
  const Shape shapes[] = {
      {3, 3, {19, 1, 1}, {3, 1, 1}, {1, 0, 0}, {1, 1, 1}, {1, 1, 1}},
      {3, 2, {31, 1, 1}, {4, 1, 1}, {2, 0, 0}, {3, 1, 1}, {2, 1, 1}},
      {4, 2, {9, 7, 1}, {3, 3, 1}, {1, 1, 0}, {1, 1, 1}, {1, 1, 1}},
      {4, 3, {10, 9, 1}, {3, 2, 1}, {1, 0, 0}, {2, 3, 1}, {2, 1, 1}},
      {5, 2, {5, 4, 6}, {2, 3, 2}, {0, 1, 1}, {1, 1, 2}, {1, 1, 2}},
  };
  for (const Shape& shape : shapes) {
    const std::vector<float> images = run.small_integers<float>(
        static_cast<std::size_t>(shape.images * shape.size[0] * shape.size[1] * shape.size[2]) * kChannels);
    const std::vector<float> weights = run.small_integers<float>(static_cast<std::size_t>(shape.taps()));
    const float* x = run.buffer("images", images);
    const float* w = run.buffer("weights", weights);
    float* out = run.buffer<float>("out", static_cast<std::size_t>(shape.pixels()) * kChannels);
    const CUtensorMap map = make_map(x, shape);
    const int ctas = (shape.pixels() + kPixels - 1) / kPixels;
    convolution<<<dim3(static_cast<unsigned>(ctas), 2), kPixels * kChannels / 2>>>(map, w, out, shape);
    run.expect_equal("out", run.host(out), reference(shape, images, weights));
  }
}
