#include "emulator/machine/float_trap.h"

#include <ucontext.h>

#include <cstdint>
#include <cstring>

#include "emulator/async/hopper.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/poison.h"

namespace emulator {

#if defined(__x86_64__) && defined(__linux__)

namespace {

/// The value that the trapped instruction read; the thread takes it up in report_trapped().
thread_local std::uint32_t trapped_value = 0;

/// Where the thread goes on, on its own stack, as if the instruction had called it.
[[noreturn]] void report_trapped() {
  Thread& thread = running_thread();
  ignore_poison();
  try {
    Where where;
    const HopperCta& cta = thread.cta->gang->hopper->cta(*thread.cta);
    if (thread.index / kWarpgroupSize < cta.warpgroups.size()) {
      const Warpgroup& warpgroup = *cta.warpgroups[thread.index / kWarpgroupSize];
      where = warpgroup.threads[thread.index - warpgroup.first_thread].latest;
    }
    fail_trapped(trapped_value, where);
  } catch (...) {
    // The report is with the gang. What lies above on the stack cannot be unwound from the middle of an
    // instruction; it is abandoned, as the stacks of the other threads are.
  }
  thread.state = ThreadState::kWaiting;
  while (true) thread.fiber->suspend();
}

/// An SSE or AVX instruction with floats among its operands, as far as is needed to find them.
class Instruction {
 public:
  explicit Instruction(const mcontext_t& machine) : machine_(machine) { known_ = decode(); }

  /// Poison among the operands, or 0.
  std::uint32_t poison() const {
    if (!known_) return 0;
    std::uint32_t found = memory_ != nullptr ? poison_at(memory_) : poison_in(rm_);
    if (found == 0 && reads_register_) found = poison_in(reg_);
    if (found == 0 && third_ >= 0) found = poison_in(third_);
    return found;
  }

 private:
  bool decode() {
    const auto* at = reinterpret_cast<const unsigned char*>(machine_.gregs[REG_RIP]);
    unsigned rex = 0;
    unsigned map = 0;
    bool operand_size = false;
    bool scalar = false;  // F3
    while (true) {
      if (*at == 0x66) {
        operand_size = true;
      } else if (*at == 0xf3) {
        scalar = true;
      } else if (*at == 0xf2) {
        return false;  // doubles
      } else {
        break;
      }
      ++at;
    }
    if (*at == 0xc5 || *at == 0xc4) {  // VEX
      unsigned last;
      if (*at == 0xc5) {
        last = at[1];
        rex = (~last >> 5 & 4u);  // R
        map = 1;
        at += 2;
      } else {
        rex = (~static_cast<unsigned>(at[1]) >> 5 & 7u);  // R, X, B
        map = at[1] & 31u;
        last = at[2];
        at += 3;
      }
      third_ = static_cast<int>(~last >> 3 & 15u);
      operand_size = (last & 3u) == 1;
      scalar = (last & 3u) == 2;
      if ((last & 3u) == 3) return false;
    } else {
      if ((*at & 0xf0u) == 0x40) rex = *at++ & 15u;
      if (*at++ != 0x0f) return false;
      map = 1;
    }
    if (map != 1) return false;
    const unsigned opcode = *at++;
    const bool converts_words = opcode == 0x5b;  // of packed floats, whatever the prefix
    const bool compares_one = opcode == 0x2e || opcode == 0x2f;
    if (operand_size && !converts_words) return false;  // doubles
    const bool unary = opcode == 0x2c || opcode == 0x2d || opcode == 0x5a || converts_words ||
                       (opcode >= 0x51 && opcode <= 0x53);
    reads_register_ = !unary && third_ < 0;
    if (compares_one) {
      reads_register_ = true;
      third_ = -1;
    }
    if (unary) third_ = -1;
    lanes_ = (scalar && !converts_words) || compares_one          ? 1
             : opcode == 0x5a || opcode == 0x2c || opcode == 0x2d ? 2
                                                                  : 4;
    const unsigned modrm = *at++;
    reg_ = static_cast<int>((modrm >> 3 & 7u) | (rex & 4u) << 1);
    const unsigned mod = modrm >> 6;
    unsigned base = modrm & 7u;
    if (mod == 3) {
      rm_ = static_cast<int>(base | (rex & 1u) << 3);
      return true;
    }
    std::uintptr_t address = 0;
    bool relative = false;
    if (base == 4) {
      const unsigned sib = *at++;
      const unsigned index = (sib >> 3 & 7u) | (rex & 2u) << 2;
      base = sib & 7u;
      if (index != 4) address += general(index) << (sib >> 6);
      if (base == 5 && mod == 0) {
        address += displacement32(at);
        at += 4;
        memory_ = reinterpret_cast<const void*>(address);
        return true;
      }
      address += general(base | (rex & 1u) << 3);
    } else if (base == 5 && mod == 0) {
      relative = true;  // to the next instruction
      address += displacement32(at);
    } else {
      address += general(base | (rex & 1u) << 3);
    }
    if (mod == 1) {
      address += static_cast<std::uintptr_t>(static_cast<std::intptr_t>(static_cast<signed char>(*at)));
    } else if (mod == 2) {
      address += displacement32(at);
    }
    if (relative) {
      at += 4 + (opcode == 0xc2 ? 1 : 0);
      address += reinterpret_cast<std::uintptr_t>(at);
    }
    memory_ = reinterpret_cast<const void*>(address);
    return true;
  }

  static std::uintptr_t displacement32(const unsigned char* at) {
    std::int32_t value;
    std::memcpy(&value, at, sizeof value);
    return static_cast<std::uintptr_t>(static_cast<std::intptr_t>(value));
  }

  std::uintptr_t general(unsigned number) const {
    static constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                       REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                       REG_R12, REG_R13, REG_R14, REG_R15};
    return static_cast<std::uintptr_t>(machine_.gregs[kOrder[number]]);
  }

  std::uint32_t poison_at(const void* place) const {
    for (unsigned i = 0; i < lanes_; ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, static_cast<const unsigned char*>(place) + std::size_t{4} * i, sizeof bits);
      if (is_poisoned(bits)) return bits;
    }
    return 0;
  }
  std::uint32_t poison_in(int vector_register) const {
    return poison_at(&machine_.fpregs->_xmm[vector_register]);
  }

  const mcontext_t& machine_;
  bool known_ = false;
  const void* memory_ = nullptr;
  int rm_ = 0;
  int reg_ = 0;
  int third_ = -1;
  bool reads_register_ = false;
  unsigned lanes_ = 4;
};

}  // namespace

bool handle_invalid(void* machine) {
  const Thread* thread = context.thread;
  if (thread == nullptr || thread->cta->gang->hopper == nullptr) return false;
  mcontext_t& state = static_cast<ucontext_t*>(machine)->uc_mcontext;
  if (state.fpregs == nullptr) return false;
  state.fpregs->mxcsr = (state.fpregs->mxcsr | kInvalidMask) & ~kInvalidFlag;
  const std::uint32_t value = Instruction(state).poison();
  if (value == 0) return true;
  trapped_value = value;
  constexpr std::uintptr_t kRedZone = 128;
  const auto stack = static_cast<std::uintptr_t>(state.gregs[REG_RSP]) - kRedZone;
  state.gregs[REG_RSP] = static_cast<greg_t>(stack / 16 * 16 - 8);  // as behind a call
  state.gregs[REG_RIP] = reinterpret_cast<greg_t>(&report_trapped);
  return true;
}

#else

bool handle_invalid(void*) {
  return false;
}

#endif

}  // namespace emulator
