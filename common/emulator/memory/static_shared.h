// Static shared memory: the __shared__ variables that the threads of a gang have touched.
//
// Such a variable is a thread-local variable of the program, so an OS thread has one copy of it. In a gang of
// several CTAs that copy is the one of the CTA that ran last; those of the others wait in images, and the
// scheduler exchanges them when it switches to another CTA. A CTA sees one space of offsets: dynamic shared
// memory from 0, behind it, from the next multiple of 1024, the variables. An offset has the alignment of the
// address modulo 1024, and names the same variable in every CTA of the gang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "emulator/machine/where.h"

namespace emulator {

struct Cta;
class Gang;
struct Thread;

struct StaticVariable {
  std::string name;  // "" where the program has no symbols: all thread-local memory is one variable
  std::uintptr_t address = 0;
  std::uint32_t bytes = 0;
  std::uint32_t offset = 0;  // in the CTA's shared memory
};

class StaticShared {
 public:
  explicit StaticShared(Gang& gang) : gang_(gang) {}

  /// The variable that contains the address, found by the program's symbols at its first touch; or nullptr.
  const StaticVariable* touch(std::uintptr_t address, Where where);
  /// The one among those touched that contains the address or the offset, or nullptr.
  const StaticVariable* find(std::uintptr_t address) const;
  const StaticVariable* at(std::uint32_t offset) const;
  /// Behind the last variable.
  std::uint32_t end() const { return end_; }
  /// More than one CTA has a copy of something: a switch to another CTA exchanges them.
  bool exchanges() const { return in_place_ != nullptr; }
  /// How many bytes that is, for each of the two.
  std::size_t exchanged_bytes() const { return in_place_ ? exchanged_bytes_ : 0; }
  /// Whether the copies in place are this CTA's.
  bool in_place(const Cta& cta) const { return !in_place_ || in_place_ == &cta; }
  /// Puts the CTA's copies in place.
  void bring_in(Cta& cta) {
    if (in_place_ != &cta) exchange(cta);
  }
  /// Dynamic shared memory moves to the array that `extern __shared__` declares (cmake/link_extern_shared),
  /// if that is where the address lies. For the rest of the launch its addresses are the array's.
  void use_extern_array(std::uintptr_t address);

 private:
  void exchange(Cta& cta);
  std::uint32_t place(const StaticVariable& variable) const;
  void check_limits(const StaticVariable& variable, Where where) const;

  Gang& gang_;
  std::deque<StaticVariable> variables_;
  std::uint32_t end_ = 0;
  std::size_t exchanged_bytes_ = 0;
  Cta* in_place_ = nullptr;
  std::uintptr_t extern_array_ = 0;
};

/// The address of the array that this program's `extern __shared__` declarations name, or 0.
std::uintptr_t extern_shared_array();

}  // namespace emulator

/// Called where a kernel names an `extern __shared__` array.
extern "C" void emulator_use_extern_shared();
