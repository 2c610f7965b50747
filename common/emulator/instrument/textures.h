// Texture and surface objects: what a fetch reads, how it is addressed and filtered. The shims of CUDA's own
// names are in common/emulator/cuda/cuda_textures.h.
//
// CUDA C++ Programming Guide, "Texture and Surface Memory" and "Texture Fetching".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "emulator/machine/where.h"

namespace emulator {

/// What the elements of an array or of a texture's memory are.
struct TexelFormat {
  unsigned components = 1, component_bytes = 4;
  enum class Kind : std::uint8_t { kSigned, kUnsigned, kFloat } kind = Kind::kFloat;
  unsigned bytes() const { return components * component_bytes; }
};

/// An array of CUDA: in rows without gaps; layers and faces of a cube follow one another.
struct TextureMemory {
  void* memory = nullptr;
  TexelFormat format;
  std::size_t width = 0, height = 1, depth = 1;  // depth: slices, layers or faces
  std::size_t pitch = 0;                         // bytes
};

enum class AddressMode : std::uint8_t { kWrap, kClamp, kMirror, kBorder };

struct Sampling {
  std::array<AddressMode, 3> address{AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
  bool is_linear = false;        // the filter
  bool is_normalized = false;    // coordinates
  bool gives_fractions = false;  // integers become [0, 1] or [-1, 1]
  std::array<float, 4> border{};
};

/// Every component of every format fits a double.
struct Texel {
  std::array<double, 4> component{};
};

std::uint64_t make_texture(const TextureMemory& memory, const Sampling& sampling);
std::uint64_t make_surface(const TextureMemory& memory);
/// Of either kind; refuses what is none.
void destroy_texture(std::uint64_t object);

/// A fetch in so many dimensions at floating-point coordinates; the rest of the coordinates is 0.
Texel sample_texture(std::uint64_t object, int dimensions, std::array<float, 3> at, std::size_t layer,
                     Where where);
/// A direction from the centre of a cube. `cube`: which one of a layered texture.
Texel sample_cube(std::uint64_t object, std::array<float, 3> direction, std::size_t cube, Where where);
/// tex1Dfetch: an element, 0 outside.
Texel fetch_texel(std::uint64_t object, long index, Where where);
/// The four texels that a linear filter would mix, of one component, in the order of tex2Dgather.
Texel gather_texels(std::uint64_t object, float x, float y, int component, Where where);

enum class SurfaceBoundary : std::uint8_t { kZero, kClamp, kTrap };
/// Where a surface has these bytes, checked as an access of the calling thread; nullptr outside, where
/// nothing is read or written. x counts bytes.
void* surface_place(std::uint64_t object, std::array<long, 3> at, unsigned bytes, bool is_store,
                    SurfaceBoundary boundary, Where where);

}  // namespace emulator
