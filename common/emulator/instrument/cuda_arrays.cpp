// The arrays of common/emulator/cuda/cuda_textures.h.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "emulator/cuda/cuda_runtime.h"
#include "harness/backend/backend.h"

struct cudaArray {
  emulator::TextureMemory texels;
  cudaChannelFormatDesc format;
  cudaExtent extent;
  unsigned flags = 0;
};

namespace {

emulator::TexelFormat texel_format(const cudaChannelFormatDesc& format) {
  const int bits = format.x;
  unsigned components = 0;
  for (const int component : {format.x, format.y, format.z, format.w}) {
    if (component == 0) break;
    if (component != bits)
      throw harness::Error("the emulator has only textures whose components have the same number of bits");
    ++components;
  }
  const bool is_float = format.f == cudaChannelFormatKindFloat;
  if (components == 0 || components == 3 || format.f == cudaChannelFormatKindNone ||
      (bits != 32 && bits != 16 && (bits != 8 || is_float))) {
    throw harness::Error(fmt::format(
        "a texture's element has 1, 2 or 4 components of 8, 16 or 32 bits, or floating-point ones "
        "of 16 or 32 bits, and not {} of {} bits",
        components, bits));
  }
  using Kind = emulator::TexelFormat::Kind;
  return {components, static_cast<unsigned>(bits) / 8,
          is_float                                  ? Kind::kFloat
          : format.f == cudaChannelFormatKindSigned ? Kind::kSigned
                                                    : Kind::kUnsigned};
}

const emulator::TextureMemory& texels_of(cudaArray_const_t array) {
  if (!array) throw harness::Error("a copy or an object is given an array that is a null pointer");
  return array->texels;
}

/// One side of a copy.
struct Side {
  unsigned char* memory;
  std::size_t pitch, rows;  // rows of a slice
  unsigned char* row(std::size_t y, std::size_t z) const { return memory + (z * rows + y) * pitch; }
};
Side side_of(cudaArray_const_t array, const cudaPos& at, const cudaPitchedPtr& pointer) {
  if (!array) {
    auto* memory = static_cast<unsigned char*>(pointer.ptr);
    const std::size_t rows = std::max<std::size_t>(1, pointer.ysize);
    return {memory + (at.z * rows + at.y) * pointer.pitch + at.x, pointer.pitch, rows};
  }
  const emulator::TextureMemory& texels = texels_of(array);
  auto* memory = static_cast<unsigned char*>(texels.memory);
  return {memory + (at.z * texels.height + at.y) * texels.pitch + at.x * texels.format.bytes(), texels.pitch,
          texels.height};
}

void check_inside(cudaArray_const_t array, const cudaPos& at, const cudaExtent& extent) {
  if (!array) return;
  const emulator::TextureMemory& texels = texels_of(array);
  if (at.x + extent.width > texels.width || at.y + extent.height > texels.height ||
      at.z + extent.depth > texels.depth) {
    throw harness::Error(fmt::format(
        "a copy of {} x {} x {} elements at ({}, {}, {}) leaves an array of {} x {} x {}", extent.width,
        extent.height, extent.depth, at.x, at.y, at.z, texels.width, texels.height, texels.depth));
  }
}

}  // namespace

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                              unsigned flags) {
  auto made = std::make_unique<cudaArray>();
  emulator::TextureMemory& texels = made->texels;
  made->format = *format;
  made->extent = extent;
  made->flags = flags;
  texels.format = texel_format(*format);
  texels.width = extent.width;
  texels.height = std::max<std::size_t>(1, extent.height);
  texels.depth = std::max<std::size_t>(1, extent.depth);
  texels.pitch = texels.width * texels.format.bytes();
  if (texels.width == 0) return cudaErrorInvalidValue;
  texels.memory = emulator_cuda::allocate(texels.pitch * texels.height * texels.depth);
  *array = made.release();
  return cudaSuccess;
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  if (!array) return cudaSuccess;
  emulator_cuda::free(array->texels.memory);
  delete array;
  return cudaSuccess;
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array) {
  texels_of(array);
  if (format) *format = array->format;
  if (extent) *extent = array->extent;
  if (flags) *flags = array->flags;
  return cudaSuccess;
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
  const cudaMemcpy3DParms& p = *parameters;
  cudaExtent extent = p.extent;
  check_inside(p.srcArray, p.srcPos, extent);
  check_inside(p.dstArray, p.dstPos, extent);
  if (const cudaArray_t array = p.srcArray ? p.srcArray : p.dstArray)
    extent.width *= texels_of(array).format.bytes();
  const Side from = side_of(p.srcArray, p.srcPos, p.srcPtr);
  const Side to = side_of(p.dstArray, p.dstPos, p.dstPtr);
  for (std::size_t z = 0; z < extent.depth; ++z) {
    for (std::size_t y = 0; y < extent.height; ++y)
      emulator_cuda::copy(to.row(y, z), from.row(y, z), extent.width);
  }
  return cudaSuccess;
}

namespace {

/// Calls copy(texels of a row, number of the row) for each row of a rectangle of the array.
template <typename Copy>
cudaError_t copy_rows(cudaArray_const_t array, std::size_t x_bytes, std::size_t y, std::size_t width_bytes,
                      std::size_t height, Copy copy) {
  const std::size_t element = texels_of(array).format.bytes();
  check_inside(array, {x_bytes / element, y, 0}, {width_bytes / element, height, 1});
  const Side side = side_of(array, {x_bytes / element, y, 0}, {});
  for (std::size_t row = 0; row < height; ++row) copy(side.row(row, 0), row);
  return cudaSuccess;
}

/// The texels from (x_bytes, y) on, of which `bytes` are copied as if the rows were one.
unsigned char* texels_from(const char* name, cudaArray_const_t array, std::size_t x_bytes, std::size_t y,
                           std::size_t bytes) {
  const emulator::TextureMemory& texels = texels_of(array);
  const std::size_t begin = y * texels.pitch + x_bytes;
  if (begin + bytes > texels.pitch * texels.height)
    throw harness::Error(fmt::format("{} copies more bytes than the array has", name));
  return static_cast<unsigned char*>(texels.memory) + begin;
}

}  // namespace

cudaError_t cudaMemcpy2DToArray(cudaArray_t array, std::size_t x_bytes, std::size_t y, const void* from,
                                std::size_t pitch, std::size_t width_bytes, std::size_t height,
                                cudaMemcpyKind) {
  return copy_rows(array, x_bytes, y, width_bytes, height, [&](unsigned char* texels, std::size_t row) {
    emulator_cuda::copy(texels, static_cast<const unsigned char*>(from) + row * pitch, width_bytes);
  });
}

cudaError_t cudaMemcpy2DFromArray(void* to, std::size_t pitch, cudaArray_const_t array, std::size_t x_bytes,
                                  std::size_t y, std::size_t width_bytes, std::size_t height,
                                  cudaMemcpyKind) {
  return copy_rows(array, x_bytes, y, width_bytes, height, [&](const unsigned char* texels, std::size_t row) {
    emulator_cuda::copy(static_cast<unsigned char*>(to) + row * pitch, texels, width_bytes);
  });
}

cudaError_t cudaMemcpyToArray(cudaArray_t array, std::size_t x_bytes, std::size_t y, const void* from,
                              std::size_t bytes, cudaMemcpyKind) {
  emulator_cuda::copy(texels_from("cudaMemcpyToArray", array, x_bytes, y, bytes), from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t array, std::size_t x_bytes, std::size_t y,
                                std::size_t bytes, cudaMemcpyKind) {
  emulator_cuda::copy(to, texels_from("cudaMemcpyFromArray", array, x_bytes, y, bytes), bytes);
  return cudaSuccess;
}

namespace {

emulator::TextureMemory memory_of(const cudaResourceDesc& resource) {
  switch (resource.resType) {
    case cudaResourceTypeArray:
      return texels_of(resource.res.array.array);
    case cudaResourceTypeLinear: {
      const auto& linear = resource.res.linear;
      const emulator::TexelFormat format = texel_format(linear.desc);
      return {linear.devPtr, format, linear.sizeInBytes / format.bytes(), 1, 1, linear.sizeInBytes};
    }
    case cudaResourceTypePitch2D: {
      const auto& pitched = resource.res.pitch2D;
      return {pitched.devPtr,      texel_format(pitched.desc), pitched.width, pitched.height, 1,
              pitched.pitchInBytes};
    }
    case cudaResourceTypeMipmappedArray:
      break;
  }
  throw harness::Error(
      "the emulator has no mipmapped arrays; make the texture object over an array (cudaResourceTypeArray)");
}

}  // namespace

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description, const cudaResourceViewDesc* view) {
  if (view)
    throw harness::Error("the emulator has no views of resources; pass nullptr to cudaCreateTextureObject");
  if (description->sRGB)
    throw harness::Error("the emulator does not convert sRGB; convert the texels before the copy");
  emulator::Sampling sampling;
  for (std::size_t i = 0; i < 3; ++i)
    sampling.address[i] = static_cast<emulator::AddressMode>(description->addressMode[i]);
  sampling.is_linear = description->filterMode == cudaFilterModeLinear;
  sampling.is_normalized = description->normalizedCoords != 0;
  sampling.gives_fractions = description->readMode == cudaReadModeNormalizedFloat;
  std::copy(std::begin(description->borderColor), std::end(description->borderColor),
            sampling.border.begin());
  const emulator::TextureMemory memory = memory_of(*resource);
  const bool is_float = memory.format.kind == emulator::TexelFormat::Kind::kFloat;
  if (sampling.is_linear && !is_float && !sampling.gives_fractions)
    return cudaErrorInvalidValue;  // only floating-point values can be filtered
  if (is_float) sampling.gives_fractions = false;
  *texture = emulator::make_texture(memory, sampling);
  return cudaSuccess;
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource) {
  if (resource->resType != cudaResourceTypeArray) return cudaErrorInvalidValue;
  *surface = emulator::make_surface(memory_of(*resource));
  return cudaSuccess;
}
