// mma.sync for every type: one warp multiplies a[16][k] and b[8][k] and adds to c[16][8], with fragments
// loaded as the PTX ISA lays them out.
//
// Broken on purpose: -D SOME_LANES (the last eight lanes have exited).
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ptx/mma_sync.cuh"

namespace wrappers = gemm::ptx;

/// The register of an operand with the elements of `row` from k on, which lie one behind the other.
template <typename T>
__device__ std::uint32_t word(const T* matrix, int row, int depth, int k) {
  std::uint32_t bits;
  memcpy(&bits, matrix + row * depth + k, sizeof bits);
  return bits;
}

template <typename T, int kDepth, typename Sum, typename Multiply>
__device__ void multiply(const T* a, const T* b, const Sum* c, Sum* d, Multiply mma) {
  constexpr int kInRegister = static_cast<int>(4 / sizeof(T));
  constexpr int kColumns = kDepth / (4 * kInRegister);
  const int lane = static_cast<int>(threadIdx.x);
#ifdef SOME_LANES
  if (lane >= 24) return;
#endif
  const int g = lane / 4;
  const int t = lane % 4;
  std::uint32_t a_fragment[2 * kColumns];
  std::uint32_t b_fragment[kColumns];
  for (int i = 0; i < kColumns; ++i) {
    const int k = (i * 4 + t) * kInRegister;
    a_fragment[2 * i] = word(a, g, kDepth, k);
    a_fragment[2 * i + 1] = word(a, g + 8, kDepth, k);
    b_fragment[i] = word(b, g, kDepth, k);
  }
  Sum sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  mma(sums, a_fragment, b_fragment);
  for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[i];
}

#define KERNEL(name, T, Sum, depth)                                                                         \
  __global__ void name(const T* a, const T* b, const Sum* c, Sum* d) {                                      \
    multiply<T, depth>(a, b, c, d, [](auto& sums, auto& x, auto& y) { wrappers::mma_##name(sums, x, y); }); \
  }
KERNEL(m16n8k8_bf16, std::uint16_t, float, 8)
KERNEL(m16n8k16_bf16, std::uint16_t, float, 16)
KERNEL(m16n8k8_f16, std::uint16_t, float, 8)
KERNEL(m16n8k16_f16, std::uint16_t, float, 16)
KERNEL(m16n8k4_tf32, std::uint32_t, float, 4)
KERNEL(m16n8k8_tf32, std::uint32_t, float, 8)
KERNEL(m16n8k16_s8, std::uint8_t, std::int32_t, 16)
KERNEL(m16n8k32_s8, std::uint8_t, std::int32_t, 32)
KERNEL(m16n8k16_u8, std::uint8_t, std::int32_t, 16)
KERNEL(m16n8k32_u8, std::uint8_t, std::int32_t, 32)
KERNEL(m16n8k32_e4m3, std::uint8_t, float, 32)
KERNEL(m16n8k32_e5m2, std::uint8_t, float, 32)
KERNEL(m16n8k16_s8_u8, std::uint8_t, std::int32_t, 16)
KERNEL(m16n8k16_u8_s8, std::uint8_t, std::int32_t, 16)
KERNEL(m16n8k32_s8_u8, std::uint8_t, std::int32_t, 32)
KERNEL(m16n8k32_u8_s8, std::uint8_t, std::int32_t, 32)
KERNEL(m16n8k32_e4m3_e5m2, std::uint8_t, float, 32)
KERNEL(m16n8k32_e5m2_e4m3, std::uint8_t, float, 32)

/// Accumulators of f16, two in a register.
__global__ void f16_accumulators(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c,
                                 std::uint16_t* d) {
  const int lane = static_cast<int>(threadIdx.x);
  const int g = lane / 4;
  const int t = lane % 4;
  const std::uint32_t x[4] = {word(a, g, 16, 2 * t), word(a, g + 8, 16, 2 * t), word(a, g, 16, 2 * t + 8),
                              word(a, g + 8, 16, 2 * t + 8)};
  const std::uint32_t y[2] = {word(b, g, 16, 2 * t), word(b, g, 16, 2 * t + 8)};
  std::uint32_t sums[2] = {word(c, g, 8, 2 * t), word(c, g + 8, 8, 2 * t)};
  wrappers::mma_m16n8k16_f16(sums, x, y);
  memcpy(d + g * 8 + 2 * t, &sums[0], 4);
  memcpy(d + (g + 8) * 8 + 2 * t, &sums[1], 4);
}

namespace {

/// Small integers, and the bits that stand for them in each type.
int number(int i) {
  return i * 37 % 15 - 7;
}
std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
std::uint16_t as_bf16(int value) {
  return static_cast<std::uint16_t>(bits_of(static_cast<float>(value)) >> 16);
}
std::uint16_t as_f16(int value) {
  const __half half = __float2half(static_cast<float>(value));
  std::uint16_t bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}
/// The low bits must not matter.
std::uint32_t as_tf32(int value) {
  return bits_of(static_cast<float>(value)) | 0x1abcu;
}
std::uint8_t as_s8(int value) {
  return static_cast<std::uint8_t>(value);
}
/// The upper half of a binary16 has room for two bits behind the leading one, enough for 7.
std::uint8_t as_e5m2(int value) {
  return static_cast<std::uint8_t>(as_f16(value) >> 8);
}
std::uint8_t as_e4m3(int value) {
  const std::uint32_t bits = bits_of(static_cast<float>(value));
  if (value == 0) return 0;
  return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | (((bits >> 23 & 0xffu) - 120u) << 3 & 0x78u) |
                                   (bits >> 20 & 7u));
}
int same(int value) {
  return value;
}
int never_negative(int value) {
  return value < 0 ? value + 256 : value;
}

template <typename T>
struct Side {
  T (*encode)(int);
  int (*meant)(int);
};

template <typename T, typename Sum>
void check(emulate::Run& run, const char* name, void (*kernel)(const T*, const T*, const Sum*, Sum*),
           int depth, Side<T> of_a, Side<T> of_b) {
  std::vector<T> a(static_cast<std::size_t>(16 * depth));
  std::vector<T> b(static_cast<std::size_t>(8 * depth));
  std::vector<Sum> c(16 * 8);
  const auto row = [&](int i) { return static_cast<std::size_t>(i); };
  for (int i = 0; i < 16 * depth; ++i) a[row(i)] = of_a.encode(number(i));
  for (int i = 0; i < 8 * depth; ++i) b[row(i)] = of_b.encode(number(3 * i + 1));
  for (int i = 0; i < 16 * 8; ++i) c[row(i)] = static_cast<Sum>(i);
  std::vector<Sum> expected = c;
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      for (int k = 0; k < depth; ++k) {
        expected[row(m * 8 + n)] +=
            static_cast<Sum>(of_a.meant(number(m * depth + k)) * of_b.meant(number(3 * (n * depth + k) + 1)));
      }
    }
  }
  const std::string d_name = std::string("d of ") + name;
  Sum* d = run.buffer<Sum>("d", 16 * 8);
  kernel<<<1, 32>>>(run.buffer("a", a), run.buffer("b", b), run.buffer("c", c), d);
  run.expect_equal(d_name.c_str(), run.host(d), expected);
}

template <typename T, typename Sum>
void check(emulate::Run& run, const char* name, void (*kernel)(const T*, const T*, const Sum*, Sum*),
           int depth, T (*encode)(int), int (*meant)(int)) {
  check(run, name, kernel, depth, Side<T>{encode, meant}, Side<T>{encode, meant});
}

}  // namespace

void check_kernel(emulate::Run& run) {
  check(run, "m16n8k8_bf16", m16n8k8_bf16, 8, as_bf16, same);
  check(run, "m16n8k16_bf16", m16n8k16_bf16, 16, as_bf16, same);
  check(run, "m16n8k8_f16", m16n8k8_f16, 8, as_f16, same);
  check(run, "m16n8k16_f16", m16n8k16_f16, 16, as_f16, same);
  check(run, "m16n8k4_tf32", m16n8k4_tf32, 4, as_tf32, same);
  check(run, "m16n8k8_tf32", m16n8k8_tf32, 8, as_tf32, same);
  check(run, "m16n8k16_s8", m16n8k16_s8, 16, as_s8, same);
  check(run, "m16n8k32_s8", m16n8k32_s8, 32, as_s8, same);
  check(run, "m16n8k16_u8", m16n8k16_u8, 16, as_s8, never_negative);
  check(run, "m16n8k32_u8", m16n8k32_u8, 32, as_s8, never_negative);
  check(run, "m16n8k32_e4m3", m16n8k32_e4m3, 32, as_e4m3, same);
  check(run, "m16n8k32_e5m2", m16n8k32_e5m2, 32, as_e5m2, same);
  const Side<std::uint8_t> s8{as_s8, same}, u8{as_s8, never_negative}, e4m3{as_e4m3, same},
      e5m2{as_e5m2, same};
  check(run, "m16n8k16_s8_u8", m16n8k16_s8_u8, 16, s8, u8);
  check(run, "m16n8k16_u8_s8", m16n8k16_u8_s8, 16, u8, s8);
  check(run, "m16n8k32_s8_u8", m16n8k32_s8_u8, 32, s8, u8);
  check(run, "m16n8k32_u8_s8", m16n8k32_u8_s8, 32, u8, s8);
  check(run, "m16n8k32_e4m3_e5m2", m16n8k32_e4m3_e5m2, 32, e4m3, e5m2);
  check(run, "m16n8k32_e5m2_e4m3", m16n8k32_e5m2_e4m3, 32, e5m2, e4m3);

  std::vector<std::uint16_t> a(16 * 16, as_f16(200)), b(8 * 16, as_f16(1)), c(16 * 8, as_f16(5));
  for (std::size_t i = 0; i < 16; ++i) b[i] = as_f16(100);  // column 0: 16 * 20000 is no number of f16
  std::vector<std::uint16_t> expected(16 * 8, as_f16(16 * 200 + 5));
  for (std::size_t m = 0; m < 16; ++m) expected[m * 8] = 0x7c00;
  // 3205 lies halfway between 3204 and 3206, numbers of f16, and the even one of them is taken.
  std::uint16_t* d = run.buffer<std::uint16_t>("d", 16 * 8);
  f16_accumulators<<<1, 32>>>(run.buffer("a", a), run.buffer("b", b), run.buffer("c", c), d);
  run.expect_equal("d of f16_accumulators", run.host(d), expected);
}
