#include "emulator/instrument/textures.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <set>

#include "emulator/instrument/generic_access.h"
#include "emulator/instrument/narrow_float.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"
#include "harness/backend/backend.h"

namespace emulator {
namespace {

struct TextureObject {
  TextureMemory memory;
  Sampling sampling;
  bool is_surface = false;
  std::atomic<bool> exists{true};
  TextureObject(TextureMemory its_memory, Sampling its_sampling, bool its_kind)
      : memory(its_memory), sampling(its_sampling), is_surface(its_kind) {}
};

/// An object's number is its address, which only creation and destruction look up: a kernel that is given a
/// number that is none is stopped.
struct Objects {
  std::mutex mutex;
  std::set<TextureObject*> known;
};
Objects& objects() {
  static Objects& instance = *new Objects;  // host code may destroy objects after the end of main
  return instance;
}

std::uint64_t keep(std::unique_ptr<TextureObject> object) {
  const std::lock_guard lock(objects().mutex);
  objects().known.insert(object.get());
  return reinterpret_cast<std::uint64_t>(object.release());
}

const TextureObject& object_of(std::uint64_t number, bool is_surface, Where where) {
  auto* object = reinterpret_cast<TextureObject*>(number);
  {
    thread_local TextureObject* latest = nullptr;
    if (object != latest) {
      const std::lock_guard lock(objects().mutex);
      if (objects().known.count(object) == 0) object = nullptr;
      latest = object;
    }
  }
  if (!object || !object->exists || object->is_surface != is_surface) {
    fail("texture-object",
         Report("a {} of an object that cudaCreate{}Object did not make, or that was destroyed",
                is_surface ? "surface access" : "texture fetch", is_surface ? "Surface" : "Texture")
             .line("where", where.text())
             .line("by", name_thread(*context.thread))
             .rule("an object must exist while a kernel uses it",
                   "CUDA C++ Programming Guide, \"Texture and Surface Memory\"")
             .str());
  }
  return *object;
}

double component_at(const unsigned char* bytes, const TexelFormat& format, bool gives_fraction) {
  const auto read = [&](auto value) {
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  const auto fraction = [&](auto value) {
    const auto number = static_cast<double>(value);
    if (!gives_fraction) return number;
    return std::max(-1.0, number / static_cast<double>(std::numeric_limits<decltype(value)>::max()));
  };
  const unsigned width = format.component_bytes;
  switch (format.kind) {
    case TexelFormat::Kind::kFloat:
      if (width == 4) return static_cast<double>(read(0.0F));
      return static_cast<double>(HalfFormat::widen(read(std::uint16_t{0})));
    case TexelFormat::Kind::kSigned:
      if (width == 1) return fraction(read(std::int8_t{0}));
      return width == 2 ? fraction(read(std::int16_t{0})) : fraction(read(std::int32_t{0}));
    case TexelFormat::Kind::kUnsigned:
      break;
  }
  if (width == 1) return fraction(read(std::uint8_t{0}));
  return width == 2 ? fraction(read(std::uint16_t{0})) : fraction(read(std::uint32_t{0}));
}

/// The element with these numbers, all inside.
Texel element(const TextureObject& object, std::size_t x, std::size_t y, std::size_t z, Where where) {
  const TextureMemory& memory = object.memory;
  const TexelFormat& format = memory.format;
  const auto* bytes = static_cast<const unsigned char*>(memory.memory) +
                      (z * memory.height + y) * memory.pitch + x * format.bytes();
  generic_access(bytes, format.bytes(), Access::kRead, where);
  Texel texel;
  for (unsigned i = 0; i < format.components; ++i)
    texel.component[i] = component_at(bytes + static_cast<std::size_t>(i) * format.component_bytes, format,
                                      object.sampling.gives_fractions);
  return texel;
}

/// The element that a coordinate names, by its address mode; -1: the border.
long addressed(long at, std::size_t count, AddressMode mode) {
  const auto n = static_cast<long>(count);
  switch (mode) {
    case AddressMode::kClamp:
      return std::clamp(at, 0L, n - 1);
    case AddressMode::kBorder:
      return at < 0 || at >= n ? -1 : at;
    case AddressMode::kWrap:
      return (at % n + n) % n;
    case AddressMode::kMirror:
      break;
  }
  const long in_period = (at % (2 * n) + 2 * n) % (2 * n);
  return in_period < n ? in_period : 2 * n - 1 - in_period;
}

struct Sampler {
  const TextureObject& object;
  int dimensions;
  long slice;  // of a layered texture; without layers the third coordinate's
  Where where;

  Texel at(const std::array<long, 3>& place) const {
    const TextureMemory& memory = object.memory;
    const std::array<std::size_t, 3> counts{memory.width, memory.height, memory.depth};
    std::array<std::size_t, 3> inside{0, 0, static_cast<std::size_t>(slice)};
    for (std::size_t i = 0; i < static_cast<std::size_t>(dimensions); ++i) {
      AddressMode mode = object.sampling.address[i];
      // Only normalized coordinates can wrap.
      if (!object.sampling.is_normalized && (mode == AddressMode::kWrap || mode == AddressMode::kMirror))
        mode = AddressMode::kClamp;
      const long number = addressed(place[i], counts[i], mode);
      if (number < 0) {
        Texel border;
        std::copy(object.sampling.border.begin(), object.sampling.border.end(), border.component.begin());
        return border;
      }
      inside[i] = static_cast<std::size_t>(number);
    }
    return element(object, inside[0], inside[1], inside[2], where);
  }
};

Texel sample(const TextureObject& object, int dimensions, std::array<float, 3> coordinates, std::size_t slice,
             Where where) {
  const TextureMemory& memory = object.memory;
  const std::array<std::size_t, 3> counts{memory.width, memory.height, memory.depth};
  const Sampler sampler{object, dimensions, static_cast<long>(std::min(slice, memory.depth - 1)), where};
  std::array<long, 3> first{};
  std::array<double, 3> weight{};
  for (std::size_t i = 0; i < static_cast<std::size_t>(dimensions); ++i) {
    auto coordinate = static_cast<double>(coordinates[i]);
    if (object.sampling.is_normalized) coordinate *= static_cast<double>(counts[i]);
    if (object.sampling.is_linear) coordinate -= 0.5;
    // What no element has is far outside; a NaN as well.
    coordinate = coordinate > -1e15 ? std::min(coordinate, 1e15) : -1e15;
    const double below = std::floor(coordinate);
    first[i] = static_cast<long>(below);
    // The hardware keeps eight bits of the weight.
    weight[i] = std::floor((coordinate - below) * 256 + 0.5) / 256;
  }
  if (!object.sampling.is_linear) return sampler.at(first);
  Texel mixed;
  for (unsigned corner = 0; corner < 1U << dimensions; ++corner) {
    double share = 1;
    std::array<long, 3> place = first;
    for (std::size_t i = 0; i < static_cast<std::size_t>(dimensions); ++i) {
      const bool is_next = (corner >> i & 1U) != 0;
      share *= is_next ? weight[i] : 1 - weight[i];
      place[i] += is_next ? 1 : 0;
    }
    if (share == 0) continue;
    const Texel texel = sampler.at(place);
    for (std::size_t i = 0; i < 4; ++i) mixed.component[i] += share * texel.component[i];
  }
  return mixed;
}

}  // namespace

std::uint64_t make_texture(const TextureMemory& memory, const Sampling& sampling) {
  return keep(std::make_unique<TextureObject>(memory, sampling, false));
}

std::uint64_t make_surface(const TextureMemory& memory) {
  return keep(std::make_unique<TextureObject>(memory, Sampling{}, true));
}

void destroy_texture(std::uint64_t number) {
  auto* object = reinterpret_cast<TextureObject*>(number);
  const std::lock_guard lock(objects().mutex);
  if (objects().known.count(object) == 0 || !object->exists.exchange(false))
    throw harness::Error("a texture or surface object was destroyed that was not created, or twice");
  // Its memory stays: no later object may have the same number while a thread remembers this one.
}

Texel sample_texture(std::uint64_t number, int dimensions, std::array<float, 3> at, std::size_t layer,
                     Where where) {
  return sample(object_of(number, false, where), dimensions, at, layer, where);
}

Texel sample_cube(std::uint64_t number, std::array<float, 3> direction, std::size_t cube, Where where) {
  const TextureObject& object = object_of(number, false, where);
  const auto [x, y, z] = direction;
  const float most = std::max({std::abs(x), std::abs(y), std::abs(z)});
  float s = 0;
  float t = 0;
  std::size_t face = 0;
  if (std::abs(x) == most) {
    face = x >= 0 ? 0 : 1;
    s = x >= 0 ? -z : z;
    t = -y;
  } else if (std::abs(y) == most) {
    face = y >= 0 ? 2 : 3;
    s = x;
    t = y >= 0 ? z : -z;
  } else {
    face = z >= 0 ? 4 : 5;
    s = z >= 0 ? x : -x;
    t = -y;
  }
  std::array<float, 3> at{(s / most + 1) / 2, (t / most + 1) / 2, 0};
  if (!object.sampling.is_normalized) {
    at[0] *= static_cast<float>(object.memory.width);
    at[1] *= static_cast<float>(object.memory.height);
  }
  return sample(object, 2, at, cube * 6 + face, where);
}

Texel fetch_texel(std::uint64_t number, long index, Where where) {
  const TextureObject& object = object_of(number, false, where);
  if (index < 0 || static_cast<std::size_t>(index) >= object.memory.width) return {};
  return element(object, static_cast<std::size_t>(index), 0, 0, where);
}

Texel gather_texels(std::uint64_t number, float x, float y, int component, Where where) {
  const TextureObject& object = object_of(number, false, where);
  std::array<double, 2> at{static_cast<double>(x), static_cast<double>(y)};
  if (object.sampling.is_normalized) {
    at[0] *= static_cast<double>(object.memory.width);
    at[1] *= static_cast<double>(object.memory.height);
  }
  const auto left = static_cast<long>(std::floor(at[0] - 0.5));
  const auto top = static_cast<long>(std::floor(at[1] - 0.5));
  const Sampler sampler{object, 2, 0, where};
  const auto one = [&](long dx, long dy) {
    return sampler.at({left + dx, top + dy, 0}).component[static_cast<std::size_t>(component)];
  };
  return {{one(0, 1), one(1, 1), one(1, 0), one(0, 0)}};
}

void* surface_place(std::uint64_t number, std::array<long, 3> at, unsigned bytes, bool is_store,
                    SurfaceBoundary boundary, Where where) {
  const TextureMemory& memory = object_of(number, true, where).memory;
  const std::array<long, 3> limits{static_cast<long>(memory.width * memory.format.bytes()) - bytes,
                                   static_cast<long>(memory.height) - 1, static_cast<long>(memory.depth) - 1};
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i] >= 0 && at[i] <= limits[i]) continue;
    if (boundary == SurfaceBoundary::kZero) return nullptr;
    if (boundary == SurfaceBoundary::kTrap) {
      fail("global-out-of-bounds",
           Report("a surface {} of {} bytes outside the surface", is_store ? "write" : "read", bytes)
               .line("where", where.text())
               .line("by", name_thread(*context.thread))
               .line("place",
                     fmt::format("byte {} of row {} of slice {}; the surface has {} bytes a row, {} rows "
                                 "and {} slices",
                                 at[0], at[1], at[2], memory.width * memory.format.bytes(), memory.height,
                                 memory.depth))
               .rule("with cudaBoundaryModeTrap an access outside the surface stops the kernel",
                     "CUDA C++ Programming Guide, \"Surface Functions\"")
               .str());
    }
    at[i] = std::clamp(at[i], 0L, limits[i]);
  }
  auto* place =
      static_cast<unsigned char*>(memory.memory) +
      (static_cast<std::size_t>(at[2]) * memory.height + static_cast<std::size_t>(at[1])) * memory.pitch +
      static_cast<std::size_t>(at[0]);
  generic_access(place, bytes, is_store ? Access::kWrite : Access::kRead, where);
  return place;
}

}  // namespace emulator
