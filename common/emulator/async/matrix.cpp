#include "emulator/async/matrix.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "emulator/async/tensor_core.h"
#include "emulator/async/wgmma.h"
#include "emulator/machine/machine.h"
#include "emulator/report/counters.h"
#include "emulator/report/report.h"
#include "emulator/sync/convergence.h"
#include "emulator/timeline/timeline.h"
#include "gemm/problem/types.h"

namespace emulator {
namespace {

/// Reads 2 or 4 bytes of a matrix row as an access of the running thread; the request was counted as a whole.
template <typename T>
T read_element(const void* address, Where where) {
  Context& c = context;
  const bool counters = c.counters;
  c.counters = false;
  shared_read<std::countr_zero(sizeof(T))>(address, where);
  c.counters = counters;
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

constexpr unsigned bits_of(MmaElement element) {
  switch (element) {
    case MmaElement::kBf16:
    case MmaElement::kF16:
      return 16;
    case MmaElement::kTf32:
      return 32;
    default:
      return 8;
  }
}

/// An element that lies `shift` bits up in a register, as a number of its accumulators' kind.
template <typename Sum>
Sum element_of(MmaElement element, std::uint32_t reg, unsigned shift) {
  const std::uint32_t bits = reg >> shift;
  switch (element) {
    case MmaElement::kBf16:
      return static_cast<Sum>(std::bit_cast<float>(bits << 16));
    case MmaElement::kF16:
      return static_cast<Sum>(gemm::to_float(gemm::fp16{static_cast<std::uint16_t>(bits)}));
    case MmaElement::kTf32:
      return static_cast<Sum>(gemm::to_float(gemm::tf32{bits}));
    case MmaElement::kS8:
      return static_cast<Sum>(static_cast<std::int32_t>(static_cast<std::int8_t>(bits)));
    case MmaElement::kU8:
      return static_cast<Sum>(bits & 0xffu);
    case MmaElement::kE4m3:
      return static_cast<Sum>(gemm::to_float(gemm::e4m3{static_cast<std::uint8_t>(bits)}));
    case MmaElement::kE5m2:
      return static_cast<Sum>(gemm::to_float(gemm::e5m2{static_cast<std::uint8_t>(bits)}));
  }
  return {};
}

struct MmaOperands {
  const MmaForm* form;
  void* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

constexpr unsigned kMaxDepth = 32;

/// Gathers the fragments of all lanes, multiplies, scatters. With g = lane / 4, t = lane % 4 and e elements
/// in a register, of which the first is in the lowest bits: a[i]: row g + i % 2 * 8, k from (i / 2 * 4 + t) *
/// e; b[i]: column g, k from (i * 4 + t) * e; d[0], d[1]: row g, columns 2t, 2t+1; d[2], d[3]: row g+8; of
/// 16-bit accumulators two are in a register.
template <typename Sum>
void multiply(Rendezvous& meeting) {
  Sum a[16][kMaxDepth];  // [m][k]
  Sum b[kMaxDepth][8];   // [k][n]
  Sum d[16][8];          // [m][n]
  const MmaForm form = *static_cast<MmaOperands*>(meeting.arguments[0])->form;
  const unsigned bits = bits_of(form.element);
  const unsigned in_register = 32 / bits;
  const unsigned columns = form.depth / (4 * in_register);  // of registers of A
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& from = *static_cast<MmaOperands*>(meeting.arguments[lane]);
    const unsigned g = lane / 4;
    const unsigned t = lane % 4;
    for (unsigned i = 0; i < columns; ++i) {
      for (unsigned e = 0; e < in_register; ++e) {
        const unsigned k = (i * 4 + t) * in_register + e;
        a[g][k] = element_of<Sum>(form.element, from.a[std::size_t{2} * i], e * bits);
        a[g + 8][k] = element_of<Sum>(form.element, from.a[2 * i + 1], e * bits);
        b[k][g] = element_of<Sum>(form.of_b.value_or(form.element), from.b[i], e * bits);
      }
    }
    for (unsigned i = 0; i < 4; ++i) {
      Sum& sum = d[g + i / 2 * 8][2 * t + i % 2];
      if (form.f16_sums) {
        sum = element_of<Sum>(MmaElement::kF16, static_cast<const std::uint32_t*>(from.d)[i / 2], i % 2 * 16);
      } else {
        std::memcpy(&sum, static_cast<const unsigned char*>(from.d) + std::size_t{4} * i, sizeof sum);
      }
    }
  }
  for (unsigned m = 0; m < 16; ++m) {
    for (unsigned k = 0; k < form.depth; ++k) {
      for (unsigned n = 0; n < 8; ++n) d[m][n] += a[m][k] * b[k][n];
    }
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& to = *static_cast<MmaOperands*>(meeting.arguments[lane]);
    for (unsigned i = 0; i < 4; ++i) {
      const Sum sum = d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
      if (!form.f16_sums) {
        std::memcpy(static_cast<unsigned char*>(to.d) + std::size_t{4} * i, &sum, sizeof sum);
      } else if (i % 2 == 0) {
        static_cast<std::uint32_t*>(to.d)[i / 2] = f16_bits(static_cast<float>(sum));
      } else {
        static_cast<std::uint32_t*>(to.d)[i / 2] |= f16_bits(static_cast<float>(sum)) << 16;
      }
    }
  }
}

template <typename T>
void write_element(void* address, T value, Where where) {
  Context& c = context;
  const bool counters = c.counters;
  c.counters = false;
  shared_write<std::countr_zero(sizeof(T))>(address, where);
  c.counters = counters;
  std::memcpy(address, &value, sizeof(T));
}

/// What a lane of ldmatrix or stmatrix says of the rows, and the addresses of all lanes.
template <typename Row>
struct Rows {
  const char* what;
  unsigned matrices;
  Where where;
  Row mine;
  Row all[32];
};

/// The addresses of the rows, exchanged among the lanes.
template <typename Row>
Rows<Row> exchange_rows(const char* what, unsigned matrices, Row row, Where where) {
  Rows<Row> rows{what, matrices, where, row, {}};
  warp_collective(
      what, 0xffffffffu, &rows,
      [](Rendezvous& meeting) {
        Row addresses[32];
        const auto of = [&](std::size_t lane) -> Rows<Row>& {
          return *static_cast<Rows<Row>*>(meeting.arguments[lane]);
        };
        for (std::size_t i = 0; i < 32; ++i) addresses[i] = of(i).mine;
        for (std::size_t i = 0; i < 32; ++i) std::memcpy(of(i).all, addresses, sizeof addresses);
        if (context.counters) {
          const Rows<Row>& first = of(0);
          count_rows(first.what, addresses, 8 * first.matrices, first.where);
        }
      },
      true, false, where);
  return rows;
}

/// The lane's row, where it has one, begins at a multiple of 16 bytes.
void check_row(const char* what, unsigned lane, unsigned matrices, const void* row, const char* section,
               Where where) {
  if (lane >= 8 * matrices || reinterpret_cast<std::uintptr_t>(row) % 16 == 0) return;
  fail("shared-misaligned", Report("{}: a row starts at a misaligned address", what)
                                .line("where", where.text())
                                .line("by", name_thread(running_thread()))
                                .line("address", "{}: {} bytes off a multiple of 16", row,
                                      reinterpret_cast<std::uintptr_t>(row) % 16)
                                .rule("every row of a matrix is 16 bytes at a multiple of 16", section)
                                .str());
}

}  // namespace

void ldmatrix(const char* what, std::uint32_t* registers, unsigned matrices, bool transposed, const void* row,
              Where where) {
  require_convergence(what, where);
  Thread& thread = this_thread(what, where);
  const auto lane = static_cast<unsigned>(thread.lane());
  check_row(what, lane, matrices, row, "PTX ISA, \"Warp Level Matrix Load Instruction: ldmatrix\"", where);
  check_loaded_registers(what, registers, matrices, where);
  // The lanes exchange addresses; then each reads what it receives, as an access of its own: a lane that gets
  // a value without being ordered behind its writer races, whichever lane supplied the address.
  if (timeline_on()) log_registers(OperationKind::kLdmatrix, registers, 4 * matrices, where);
  const auto rows = exchange_rows(what, matrices, row, where);
  for (unsigned matrix = 0; matrix < matrices; ++matrix) {
    const void* const* addresses = rows.all + std::size_t{8} * matrix;
    const unsigned g = lane / 4;
    const unsigned t = lane % 4;
    if (transposed) {
      auto element = [&](unsigned r) -> std::uint32_t {
        return read_element<std::uint16_t>(
            static_cast<const unsigned char*>(addresses[r]) + std::size_t{2} * g, where);
      };
      const std::uint32_t low = element(2 * t);
      registers[matrix] = element(2 * t + 1) << 16 | low;
    } else {
      registers[matrix] = read_element<std::uint32_t>(
          static_cast<const unsigned char*>(addresses[g]) + std::size_t{4} * t, where);
    }
  }
}

void stmatrix(const char* what, const std::uint32_t* registers, unsigned matrices, bool transposed, void* row,
              Where where) {
  require_convergence(what, where);
  Thread& thread = this_thread(what, where);
  const auto lane = static_cast<unsigned>(thread.lane());
  check_row(what, lane, matrices, row, "PTX ISA, \"Warp Level Matrix Store Instruction: stmatrix\"", where);
  if (timeline_on()) log_together(OperationKind::kShared, 0, 0, 4 * matrices, where);
  const auto rows = exchange_rows(what, matrices, row, where);
  const unsigned g = lane / 4;
  const unsigned t = lane % 4;
  for (unsigned matrix = 0; matrix < matrices; ++matrix) {
    void* const* addresses = rows.all + std::size_t{8} * matrix;
    if (transposed) {
      auto element = [&](unsigned r) {
        return static_cast<unsigned char*>(addresses[r]) + std::size_t{2} * g;
      };
      write_element(element(2 * t), static_cast<std::uint16_t>(registers[matrix]), where);
      write_element(element(2 * t + 1), static_cast<std::uint16_t>(registers[matrix] >> 16), where);
    } else {
      write_element(static_cast<unsigned char*>(addresses[g]) + std::size_t{4} * t, registers[matrix], where);
    }
  }
}

void mma_m16n8(const MmaForm& form, void* d, const std::uint32_t* a, const std::uint32_t* b, Where where) {
  require_convergence(form.what, where);
  if (timeline_on()) log_registers(OperationKind::kMma, a, 0, where);
  MmaOperands operands{&form, d, a, b};
  const bool integers = form.element == MmaElement::kS8 || form.element == MmaElement::kU8;
  warp_collective(form.what, 0xffffffffu, &operands, integers ? multiply<std::uint32_t> : multiply<float>,
                  true, false, where);
}

}  // namespace emulator
