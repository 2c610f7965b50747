// What the hardware is told about shared memory: swizzles, wgmma descriptors, tensor maps.
#include <fmt/ranges.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "ptx/descriptor.h"
#include "ptx/swizzle_mode.h"
#include "ptx/tensor_map_rules.h"
#include "ptx/wgmma_statement.cuh"

namespace gemm::ptx {
namespace {

constexpr Swizzle kAll[] = {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B};

/// The documented permutation, bit by bit: 128 B exchanges three address bits, 64 B two, 32 B one.
std::uint32_t by_bits(std::uint32_t offset, Swizzle swizzle) {
  const auto bit = [offset](int i) { return offset >> i & 1u; };
  std::uint32_t result = offset;
  if (swizzle == Swizzle::k32B || swizzle == Swizzle::k64B || swizzle == Swizzle::k128B)
    result ^= bit(7) << 4;
  if (swizzle == Swizzle::k64B || swizzle == Swizzle::k128B) result ^= bit(8) << 5;
  if (swizzle == Swizzle::k128B) result ^= bit(9) << 6;
  return result;
}

TEST_CASE("swizzled: the documented bits, for every offset of 64 KB") {
  for (const Swizzle swizzle : kAll) {
    std::uint32_t wrong = 0;
    for (std::uint32_t offset = 0; offset < 65536; ++offset)
      wrong += swizzled(offset, swizzle) != by_bits(offset, swizzle);
    INFO("span " << span_bytes(swizzle));
    CHECK(wrong == 0);
  }
}

TEST_CASE("swizzled: a permutation of every period that keeps each 16-byte unit in its row") {
  for (const Swizzle swizzle : kAll) {
    const auto period = static_cast<std::uint32_t>(period_bytes(swizzle));
    const auto span = static_cast<std::uint32_t>(span_bytes(swizzle));
    std::set<std::uint32_t> seen;
    for (std::uint32_t offset = 0; offset < period; ++offset) {
      const std::uint32_t to = swizzled(offset, swizzle);
      seen.insert(to);
      REQUIRE(to / span == offset / span);
      REQUIRE(to % 16 == offset % 16);
      REQUIRE(swizzled(to, swizzle) == offset);
      REQUIRE(swizzled(offset + 5 * period, swizzle) == to + 5 * period);
    }
    CHECK(seen.size() == period);
  }
}

TEST_CASE("swizzled: eight rows of one column meet in different banks") {
  // ldmatrix and wgmma read 8 rows x 16 bytes at a time; without a swizzle a pitch of 128 bytes puts all of
  // them in the same four banks.
  for (const Swizzle swizzle : {Swizzle::k64B, Swizzle::k128B}) {
    const auto span = static_cast<std::uint32_t>(span_bytes(swizzle));
    for (std::uint32_t unit = 0; unit < span / 16; ++unit) {
      std::set<std::uint32_t> banks;
      for (std::uint32_t row = 0; row < 8; ++row)
        banks.insert(swizzled(row * span + unit * 16, swizzle) % 128);
      CHECK(banks.size() == 8);
    }
  }
}

TEST_CASE("matrix descriptor: the fields are where the PTX ISA puts them") {
  CHECK(encode({.address = 0x400}) == 0x40);
  CHECK(encode({.leading_bytes = 16}) == std::uint64_t{1} << 16);
  CHECK(encode({.stride_bytes = 1024}) == std::uint64_t{64} << 32);
  CHECK(encode({.base_offset = 5}) == std::uint64_t{5} << 49);
  CHECK(encode({.swizzle = Swizzle::k128B}) == std::uint64_t{1} << 62);
  CHECK(encode({.swizzle = Swizzle::k64B}) == std::uint64_t{2} << 62);
  CHECK(encode({.swizzle = Swizzle::k32B}) == std::uint64_t{3} << 62);
  CHECK(encode({.address = 227 * 1024}) == 227 * 1024 / 16);
  CHECK(k_major_descriptor(0x2000, Swizzle::k128B) == 0x4000004000010200);
}

TEST_CASE("matrix descriptor: decode is the inverse of encode") {
  for (const Swizzle swizzle : kAll) {
    for (const std::uint32_t address : {0u, 16u, 1024u, 232432u, 262128u}) {
      for (const std::uint32_t stride : {0u, 256u, 512u, 1024u, 262128u}) {
        for (std::uint32_t base = 0; base < 8; ++base) {
          const MatrixDescriptor descriptor{.address = address,
                                            .leading_bytes = stride / 2 / 16 * 16,
                                            .stride_bytes = stride,
                                            .base_offset = base,
                                            .swizzle = swizzle};
          REQUIRE(decode(encode(descriptor)) == descriptor);
        }
      }
    }
  }
}

TEST_CASE("matrix descriptor: adding 2 moves 32 bytes along K and nothing else") {
  const std::uint64_t descriptor = k_major_descriptor(1024, Swizzle::k128B);
  const MatrixDescriptor moved = decode(descriptor + 2);
  CHECK(moved.address == 1024 + 32);
  CHECK(moved.stride_bytes == 1024);
  CHECK(moved.swizzle == Swizzle::k128B);
}

/// A legal specification to break one rule of at a time.
TensorMapSpec legal() {
  return matrix_spec(reinterpret_cast<const void*>(std::uintptr_t{0x10000}), 1000, 512, 128, 64,
                     Swizzle::k128B);
}

TEST_CASE("tensor map: a legal one breaks no rule") {
  CHECK(violated_rule(legal()).empty());
  CHECK(box_bytes(legal()) == 128 * 64 * 2);
  for (const Swizzle swizzle : kAll) {
    TensorMapSpec spec = legal();
    spec.swizzle = swizzle;
    spec.box[0] = static_cast<std::uint32_t>(span_bytes(swizzle)) / 2;
    CHECK(violated_rule(spec).empty());
  }
  TensorMapSpec wide = legal();
  wide.swizzle = Swizzle::kNone;
  wide.box = {256, 256};
  CHECK(violated_rule(wide).empty());
}

TEST_CASE("tensor map: every rule is named when it is broken") {
  const auto broken = [](auto change) {
    TensorMapSpec spec = legal();
    change(spec);
    return violated_rule(spec);
  };
  const auto says = [](const std::string& sentence, const std::string& words) {
    check_text(sentence, {words});
  };
  says(broken([](TensorMapSpec& s) { s.rank = 0; }), "rank is 0; it must be 1 to 5");
  says(broken([](TensorMapSpec& s) { s.rank = 6; }), "rank is 6");
  says(broken([](TensorMapSpec& s) { s.base = nullptr; }), "base address is null");
  says(broken([](TensorMapSpec& s) { s.base = reinterpret_cast<const void*>(std::uintptr_t{0x10008}); }),
       "8 bytes past a multiple of 16");
  says(broken([](TensorMapSpec& s) { s.extent[1] = 0; }), "dimension 1 has 0 elements");
  says(broken([](TensorMapSpec& s) { s.extent[0] = (std::uint64_t{1} << 32) + 1; }), "1 to 2^32");
  says(broken([](TensorMapSpec& s) { s.box[1] = 0; }), "box has 0 elements in dimension 1");
  says(broken([](TensorMapSpec& s) { s.box[1] = 257; }), "box has 257 elements in dimension 1");
  says(broken([](TensorMapSpec& s) { s.stride_bytes[1] = 1016; }), "stride of dimension 1 is 1016 bytes");
  says(broken([](TensorMapSpec& s) { s.stride_bytes[1] = std::uint64_t{1} << 40; }), "below 2^40");
  says(broken([](TensorMapSpec& s) { s.stride_bytes[1] = 0; }), "stride of dimension 1 is 0");
  says(broken([](TensorMapSpec& s) { s.box[0] = 7; }), "row of the box is 14 bytes");
  says(broken([](TensorMapSpec& s) { s.box[0] = 128; }), "longer than the swizzle's span of 128");
  says(broken([](TensorMapSpec& s) { s.swizzle = Swizzle::k32B; }), "longer than the swizzle's span of 32");
}

#define GEMM_TEXT_OF(...) #__VA_ARGS__
#define GEMM_TEXT(...) GEMM_TEXT_OF(__VA_ARGS__)
#define GEMM_NUMBERS(N, R, R1, R2, R3, R4, R5, R6, REST) \
  {N, {R, R1, R2, R3, R4, R5, R6}, GEMM_WGMMA_REGISTERS_##R, GEMM_TEXT(GEMM_WGMMA_ACCUMULATOR_##R(REST))},

TEST_CASE("wgmma wrappers: the macros name every register, and count the operands after them") {
  struct Width {
    int n;
    std::vector<int> operands;
    std::string registers, accumulator;
  };
  const std::vector<Width> all = {GEMM_WGMMA_EACH_WIDTH(GEMM_NUMBERS, "+f")};
  const std::vector<Width> integers = {GEMM_WGMMA_EACH_INTEGER_WIDTH(GEMM_NUMBERS, "+r")};
  std::set<int> widths;
  for (const auto& [n, operands, registers, accumulator] : all) {
    INFO("N = " << n);
    widths.insert(n);
    std::vector<std::string> names;
    std::vector<std::string> outputs;
    for (int i = 0; i < n / 2; ++i) {
      names.push_back(fmt::format("%{}", i));
      outputs.push_back(fmt::format("\"+f\"(d[{}])", i));
    }
    CHECK(registers == fmt::format("{}", fmt::join(names, ", ")));
    CHECK(accumulator == fmt::format("{}", fmt::join(outputs, ", ")));
    for (std::size_t i = 0; i < operands.size(); ++i) CHECK(operands[i] == n / 2 + static_cast<int>(i));
  }
  CHECK(all.size() == 32);
  CHECK(widths.size() == 32);
  CHECK((*widths.begin() == 8 && *widths.rbegin() == 256));
  for (const Width& width : integers) CHECK((width.n <= 24 || width.n % 16 == 0));
  CHECK(integers.size() == 18);  // 8, 16, 24, 32 and from there by 16
}

}  // namespace
}  // namespace gemm::ptx
