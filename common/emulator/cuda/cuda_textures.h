// Arrays, textures and surfaces of the CUDA runtime on the emulator: objects over arrays, pitched and linear
// memory, with every address mode, point and linear filters, layers and cubes. Mipmaps are not there.
//
// CUDA Runtime API; CUDA C++ Programming Guide, "Texture and Surface Memory".
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "emulator/instrument/textures.h"

// The names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)

// ---- What an element is.

enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned = 0,
  cudaChannelFormatKindUnsigned = 1,
  cudaChannelFormatKindFloat = 2,
  cudaChannelFormatKindNone = 3
};
struct cudaChannelFormatDesc {
  int x, y, z, w;  // bits
  cudaChannelFormatKind f;
};
inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
template <typename T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  if constexpr (std::is_arithmetic_v<T>) {
    constexpr int kBits = sizeof(T) * 8;
    return {kBits, 0, 0, 0,
            std::is_floating_point_v<T> ? cudaChannelFormatKindFloat
            : std::is_signed_v<T>       ? cudaChannelFormatKindSigned
                                        : cudaChannelFormatKindUnsigned};
  } else if constexpr (requires(T vector) { vector.x; }) {
    cudaChannelFormatDesc format = cudaCreateChannelDesc<std::remove_cvref_t<decltype(T{}.x)>>();
    constexpr std::size_t kComponents = sizeof(T) / sizeof(T{}.x);
    if (kComponents > 1) format.y = format.x;
    if (kComponents > 2) format.z = format.x;
    if (kComponents > 3) format.w = format.x;
    return format;
  } else {
    static_assert(sizeof(T) == 2, "the emulator has no textures of this type");
    return {16, 0, 0, 0, cudaChannelFormatKindFloat};
  }
}

// ---- Places and extents.

struct cudaExtent {
  std::size_t width = 0, height = 0, depth = 0;
};
struct cudaPos {
  std::size_t x = 0, y = 0, z = 0;
};
struct cudaPitchedPtr {
  void* ptr = nullptr;
  std::size_t pitch = 0, xsize = 0, ysize = 0;
};
inline cudaExtent make_cudaExtent(std::size_t width, std::size_t height, std::size_t depth) {
  return {width, height, depth};
}
inline cudaPos make_cudaPos(std::size_t x, std::size_t y, std::size_t z) {
  return {x, y, z};
}
inline cudaPitchedPtr make_cudaPitchedPtr(void* memory, std::size_t pitch, std::size_t width,
                                          std::size_t height) {
  return {memory, pitch, width, height};
}

// ---- Arrays.

struct cudaArray;
using cudaArray_t = cudaArray*;
using cudaArray_const_t = const cudaArray*;
inline constexpr unsigned cudaArrayDefault = 0, cudaArrayLayered = 1, cudaArraySurfaceLoadStore = 2,
                          cudaArrayCubemap = 4, cudaArrayTextureGather = 8;
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                              unsigned flags = 0);
inline cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, std::size_t width,
                                   std::size_t height = 0, unsigned flags = 0) {
  return cudaMalloc3DArray(array, format, {width, height, 0}, flags);
}
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array);
inline cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  return cudaArrayGetInfo(format, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

struct cudaMemcpy3DParms {
  cudaArray_t srcArray = nullptr;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray = nullptr;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;  // its width counts elements where an array takes part, and bytes elsewhere
  cudaMemcpyKind kind = cudaMemcpyHostToHost;
};
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters);
inline cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t = nullptr) {
  return cudaMemcpy3D(parameters);
}
cudaError_t cudaMemcpy2DToArray(cudaArray_t array, std::size_t x_bytes, std::size_t y, const void* from,
                                std::size_t pitch, std::size_t width_bytes, std::size_t height,
                                cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DFromArray(void* to, std::size_t pitch, cudaArray_const_t array, std::size_t x_bytes,
                                  std::size_t y, std::size_t width_bytes, std::size_t height,
                                  cudaMemcpyKind kind);
/// Deprecated, and still called: so many bytes from a place on, row after row.
cudaError_t cudaMemcpyToArray(cudaArray_t array, std::size_t x_bytes, std::size_t y, const void* from,
                              std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t array, std::size_t x_bytes, std::size_t y,
                                std::size_t bytes, cudaMemcpyKind kind);
inline cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t array, std::size_t x_bytes, std::size_t y,
                                            const void* from, std::size_t pitch, std::size_t width_bytes,
                                            std::size_t height, cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy2DToArray(array, x_bytes, y, from, pitch, width_bytes, height, kind);
}
/// Rows at multiples of 512 bytes, as of cudaMallocPitch.
inline cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  *memory = {nullptr, (extent.width + 511) / 512 * 512, extent.width, extent.height};
  return cudaMalloc(&memory->ptr, memory->pitch * extent.height * extent.depth);
}
inline cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
  for (std::size_t row = 0; row < extent.height * extent.depth; ++row) {
    const std::size_t number = row / extent.height * memory.ysize + row % extent.height;
    cudaMemset(static_cast<char*>(memory.ptr) + number * memory.pitch, value, extent.width);
  }
  return cudaSuccess;
}

// ---- Objects.

enum cudaTextureAddressMode {
  cudaAddressModeWrap,
  cudaAddressModeClamp,
  cudaAddressModeMirror,
  cudaAddressModeBorder
};
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaResourceType {
  cudaResourceTypeArray,
  cudaResourceTypeMipmappedArray,
  cudaResourceTypeLinear,
  cudaResourceTypePitch2D
};
struct cudaMipmappedArray;
using cudaMipmappedArray_t = cudaMipmappedArray*;
struct cudaResourceDesc {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      cudaMipmappedArray_t mipmap;
    } mipmap;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      std::size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      std::size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
};
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization, seamlessCubemap;
};
struct cudaResourceViewDesc;
using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = unsigned long long;
cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description, const cudaResourceViewDesc* view);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource);
inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
  emulator::destroy_texture(texture);
  return cudaSuccess;
}
inline cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface) {
  emulator::destroy_texture(surface);
  return cudaSuccess;
}

// ---- Fetches.

namespace emulator_cuda {
template <typename T>
T texel_as(const emulator::Texel& texel) {
  const auto& from = texel.component;
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(from[0]);
  } else {
    T value{};
    const auto set = [](auto& component, double number) {
      component = static_cast<std::remove_reference_t<decltype(component)>>(number);
    };
    set(value.x, from[0]);
    if constexpr (requires { value.y; }) set(value.y, from[1]);
    if constexpr (requires { value.z; }) set(value.z, from[2]);
    if constexpr (requires { value.w; }) set(value.w, from[3]);
    return value;
  }
}
}  // namespace emulator_cuda

template <typename T>
T tex1Dfetch(cudaTextureObject_t texture, int index, emulator::Where where = emulator::Where::here()) {
  return emulator_cuda::texel_as<T>(emulator::fetch_texel(texture, index, where));
}
template <typename T>
T tex1D(cudaTextureObject_t texture, float x, emulator::Where where = emulator::Where::here()) {
  return emulator_cuda::texel_as<T>(emulator::sample_texture(texture, 1, {x, 0, 0}, 0, where));
}
template <typename T>
T tex2D(cudaTextureObject_t texture, float x, float y, emulator::Where where = emulator::Where::here()) {
  return emulator_cuda::texel_as<T>(emulator::sample_texture(texture, 2, {x, y, 0}, 0, where));
}
template <typename T>
T tex3D(cudaTextureObject_t texture, float x, float y, float z,
        emulator::Where where = emulator::Where::here()) {
  return emulator_cuda::texel_as<T>(emulator::sample_texture(texture, 3, {x, y, z}, 0, where));
}
template <typename T>
T tex1DLayered(cudaTextureObject_t texture, float x, int layer,
               emulator::Where where = emulator::Where::here()) {
  return emulator_cuda::texel_as<T>(emulator::sample_texture(
      texture, 1, {x, 0, 0}, static_cast<std::size_t>(layer < 0 ? 0 : layer), where));
}
template <typename T>
T tex2DLayered(cudaTextureObject_t texture, float x, float y, int layer,
               emulator::Where where = emulator::Where::here()) {
  return emulator_cuda::texel_as<T>(emulator::sample_texture(
      texture, 2, {x, y, 0}, static_cast<std::size_t>(layer < 0 ? 0 : layer), where));
}
template <typename T>
T texCubemap(cudaTextureObject_t texture, float x, float y, float z,
             emulator::Where where = emulator::Where::here()) {
  return emulator_cuda::texel_as<T>(emulator::sample_cube(texture, {x, y, z}, 0, where));
}
template <typename T>
T texCubemapLayered(cudaTextureObject_t texture, float x, float y, float z, int layer,
                    emulator::Where where = emulator::Where::here()) {
  return emulator_cuda::texel_as<T>(
      emulator::sample_cube(texture, {x, y, z}, static_cast<std::size_t>(layer < 0 ? 0 : layer), where));
}
template <typename T>
T tex2Dgather(cudaTextureObject_t texture, float x, float y, int component = 0,
              emulator::Where where = emulator::Where::here()) {
  return emulator_cuda::texel_as<T>(emulator::gather_texels(texture, x, y, component, where));
}

// ---- Surfaces: x counts bytes.

enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };

namespace emulator_cuda {
template <typename T>
T surface_read(cudaSurfaceObject_t surface, std::array<long, 3> at, cudaSurfaceBoundaryMode boundary,
               emulator::Where where) {
  const void* place = emulator::surface_place(surface, at, sizeof(T), false,
                                              static_cast<emulator::SurfaceBoundary>(boundary), where);
  T value{};
  if (place) __builtin_memcpy(&value, place, sizeof value);
  return value;
}
template <typename T>
void surface_write(const T& value, cudaSurfaceObject_t surface, std::array<long, 3> at,
                   cudaSurfaceBoundaryMode boundary, emulator::Where where) {
  void* place = emulator::surface_place(surface, at, sizeof(T), true,
                                        static_cast<emulator::SurfaceBoundary>(boundary), where);
  if (place) __builtin_memcpy(place, &value, sizeof value);
}
}  // namespace emulator_cuda

#define EMULATOR_SURFACE(name, parameters, ...)                                       \
  template <typename T>                                                               \
  T name##read(cudaSurfaceObject_t surface, EMULATOR_LIST parameters,                 \
               cudaSurfaceBoundaryMode boundary = cudaBoundaryModeTrap,               \
               emulator::Where where = emulator::Where::here()) {                     \
    return emulator_cuda::surface_read<T>(surface, {__VA_ARGS__}, boundary, where);   \
  }                                                                                   \
  template <typename T>                                                               \
  void name##read(T* value, cudaSurfaceObject_t surface, EMULATOR_LIST parameters,    \
                  cudaSurfaceBoundaryMode boundary = cudaBoundaryModeTrap,            \
                  emulator::Where where = emulator::Where::here()) {                  \
    *value = emulator_cuda::surface_read<T>(surface, {__VA_ARGS__}, boundary, where); \
  }                                                                                   \
  template <typename T>                                                               \
  void name##write(T value, cudaSurfaceObject_t surface, EMULATOR_LIST parameters,    \
                   cudaSurfaceBoundaryMode boundary = cudaBoundaryModeTrap,           \
                   emulator::Where where = emulator::Where::here()) {                 \
    emulator_cuda::surface_write(value, surface, {__VA_ARGS__}, boundary, where);     \
  }
#define EMULATOR_LIST(...) __VA_ARGS__
EMULATOR_SURFACE(surf1D, (int x), x, 0, 0)
EMULATOR_SURFACE(surf2D, (int x, int y), x, y, 0)
EMULATOR_SURFACE(surf3D, (int x, int y, int z), x, y, z)
EMULATOR_SURFACE(surf1DLayered, (int x, int layer), x, 0, layer)
EMULATOR_SURFACE(surf2DLayered, (int x, int y, int layer), x, y, layer)
EMULATOR_SURFACE(surfCubemap, (int x, int y, int face), x, y, face)
#undef EMULATOR_LIST
#undef EMULATOR_SURFACE
// NOLINTEND(readability-identifier-naming)
