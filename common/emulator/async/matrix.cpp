#include "emulator/async/matrix.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "emulator/machine/machine.h"
#include "emulator/report/counters.h"
#include "emulator/report/report.h"
#include "emulator/sync/convergence.h"
#include "emulator/timeline/timeline.h"

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

float low_half(std::uint32_t pair) {
  return std::bit_cast<float>(pair << 16);
}
float high_half(std::uint32_t pair) {
  return std::bit_cast<float>(pair & 0xffff0000u);
}

struct MmaOperands {
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

/// Gathers the fragments of all lanes, multiplies, scatters. With g = lane / 4 and t = lane % 4:
/// a[0]: row g, k 2t, 2t+1; a[1]: row g+8; a[2], a[3]: the same rows, k + 8; b[0], b[1]: column g, k 2t.. and
/// 2t+8..; d[0], d[1]: row g, columns 2t, 2t+1; d[2], d[3]: row g+8.
void multiply(Rendezvous& meeting) {
  float a[16][16];  // [m][k]
  float b[16][8];   // [k][n]
  float d[16][8];   // [m][n]
  for (int lane = 0; lane < 32; ++lane) {
    const auto& from = *static_cast<MmaOperands*>(meeting.arguments[static_cast<std::size_t>(lane)]);
    const int g = lane / 4;
    const int k = lane % 4 * 2;
    for (int i = 0; i < 4; ++i) {
      a[g + i % 2 * 8][k + i / 2 * 8] = low_half(from.a[i]);
      a[g + i % 2 * 8][k + i / 2 * 8 + 1] = high_half(from.a[i]);
      d[g + i / 2 * 8][k + i % 2] = from.d[i];
    }
    for (int i = 0; i < 2; ++i) {
      b[k + i * 8][g] = low_half(from.b[i]);
      b[k + i * 8 + 1][g] = high_half(from.b[i]);
    }
  }
  for (int m = 0; m < 16; ++m) {
    for (int k = 0; k < 16; ++k) {
      for (int n = 0; n < 8; ++n) d[m][n] += a[m][k] * b[k][n];
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const auto& to = *static_cast<MmaOperands*>(meeting.arguments[static_cast<std::size_t>(lane)]);
    for (int i = 0; i < 4; ++i) to.d[i] = d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
  }
}

}  // namespace

void ldmatrix(const char* what, std::uint32_t* registers, unsigned matrices, bool transposed, const void* row,
              Where where) {
  require_convergence(what, where);
  Thread& thread = this_thread(what, where);
  const auto lane = static_cast<unsigned>(thread.lane());
  if (lane < 8 * matrices && reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    fail("shared-misaligned", Report(fmt::format("{}: a row starts at a misaligned address", what))
                                  .line("where", where.text())
                                  .line("by", name_thread(thread))
                                  .line("address", fmt::format("{}: {} bytes off a multiple of 16", row,
                                                               reinterpret_cast<std::uintptr_t>(row) % 16))
                                  .rule("every row of a matrix is 16 bytes at a multiple of 16",
                                        "PTX ISA, \"Warp Level Matrix Load Instruction: ldmatrix\"")
                                  .str());
  }
  // The lanes exchange addresses; then each reads what it receives, as an access of its own: a lane that gets
  // a value without being ordered behind its writer races, whichever lane supplied the address.
  if (timeline_on()) log_registers(OperationKind::kLdmatrix, registers, 4 * matrices, where);
  struct Rows {
    const char* what;
    unsigned matrices;
    Where where;
    const void* mine;
    const void* all[32];
  } rows{what, matrices, where, row, {}};
  warp_collective(
      what, 0xffffffffu, &rows,
      [](Rendezvous& meeting) {
        const void* addresses[32];
        for (std::size_t i = 0; i < 32; ++i) addresses[i] = static_cast<Rows*>(meeting.arguments[i])->mine;
        for (std::size_t i = 0; i < 32; ++i) {
          std::memcpy(static_cast<Rows*>(meeting.arguments[i])->all, addresses, sizeof addresses);
        }
        if (context.counters) {
          const Rows& first = *static_cast<Rows*>(meeting.arguments[0]);
          count_rows(first.what, addresses, 8 * first.matrices, first.where);
        }
      },
      true, false, where);
  for (unsigned matrix = 0; matrix < matrices; ++matrix) {
    const void* const* addresses = rows.all + 8 * matrix;
    const unsigned g = lane / 4;
    const unsigned t = lane % 4;
    if (transposed) {
      auto element = [&](unsigned r) -> std::uint32_t {
        return read_element<std::uint16_t>(static_cast<const unsigned char*>(addresses[r]) + 2 * g, where);
      };
      const std::uint32_t low = element(2 * t);
      registers[matrix] = element(2 * t + 1) << 16 | low;
    } else {
      registers[matrix] =
          read_element<std::uint32_t>(static_cast<const unsigned char*>(addresses[g]) + 4 * t, where);
    }
  }
}

void mma_m16n8k16_bf16(float* d, const std::uint32_t* a, const std::uint32_t* b, Where where) {
  require_convergence("mma_m16n8k16_bf16", where);
  if (timeline_on()) log_registers(OperationKind::kMma, a, 0, where);
  MmaOperands operands{d, a, b};
  warp_collective("mma_m16n8k16_bf16", 0xffffffffu, &operands, multiply, true, false, where);
}

}  // namespace emulator
