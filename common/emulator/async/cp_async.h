// The engine behind cp.async: copies that land when the seed says so, in any order, and that count as done
// only for a thread that has waited for them.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/machine/machine.h"

namespace emulator {

/// PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy".
class CpAsyncEngine final : public Engine {
 public:
  explicit CpAsyncEngine(Gang& gang) : gang_(gang) {}

  void issue(const char* what, void* shared, const void* global, unsigned bytes, int source_bytes,
             Where where);
  void commit(Where where);
  /// Waits until at most `pending` of the running thread's committed groups are under way.
  void wait_groups(std::uint64_t pending, Where where);
  void wait_all(Where where);

  struct Handed {
    unsigned char* shared;
    const unsigned char* global;
    unsigned bytes;
    unsigned source_bytes;
    std::uint64_t group;
    Where where;
  };
  /// Hands the running thread's copies that it has not waited for to the copy engine, which lands them and
  /// arrives at an mbarrier (cp.async.mbarrier.arrive).
  std::vector<Handed> hand_over();

  std::size_t pending() const override { return under_way_.size(); }
  void complete_one(Random& random) override;
  void thread_exits(Thread& thread) override;
  std::string describe() const override;

  /// Whether a copy has written the 16 bytes around `shared`, and where the latest one came from; nullptr: it
  /// wrote zeros.
  bool has_written(const Cta& cta, std::uintptr_t shared) const;
  const void* last_source(const Cta& cta, std::uintptr_t shared) const;
  /// The source of the copy that is being issued, or nullptr.
  const void* issuing() const { return issuing_; }

  /// The running thread touches bytes that this copy is on its way to. Never returns.
  [[noreturn]] void fail_touched(std::uint32_t operation, const std::string& bytes, Access access,
                                 Where where);

 private:
  struct Operation {
    std::uint32_t id = 0;  // Cell::pending
    const char* what = "";
    Thread* thread = nullptr;
    unsigned char* shared = nullptr;
    const unsigned char* global = nullptr;
    unsigned bytes = 0;
    unsigned source_bytes = 0;
    std::uint64_t group = 0;  // of its thread, from 1
    Where where;
    bool landed = false;
    std::uint32_t waits = 0;  // of its thread, before it was issued
  };
  struct Stream {                 // what one thread has issued and not waited for
    std::uint64_t committed = 0;  // groups
    std::uint64_t finished = 0;   // groups that it has waited for
    std::vector<std::uint32_t> operations;
    // At its latest wait_group: the groups committed by then, those since the wait before, those left.
    std::uint64_t at_wait = 0;
    std::uint64_t since_wait_before = 0;
    std::uint64_t left = 0;
    std::uint32_t waits = 0;
    Where waited;
    Where committed_at;  // the latest commit
  };

  const void* source_of(const Cta& cta, std::uintptr_t shared) const;
  void land(Operation& operation);
  /// It is no longer under way.
  void forget(std::uint32_t id);
  /// Ends the wait for all operations of the stream up to and including `group`.
  void finish(Thread& thread, Stream& stream, std::uint64_t group);

  Gang& gang_;
  const void* issuing_ = nullptr;
  std::vector<std::vector<const void*>> sources_;  // [CTA of the gang][16 bytes of its dynamic memory]
  std::vector<Operation> operations_;              // by id - 1
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> under_way_;  // not landed
  std::unordered_map<const Thread*, Stream> streams_;
};

CpAsyncEngine& cp_async_engine(const char* what, Where where);

/// Every access to these bytes goes to the general path while a copy is under way.
void mark_pending(const void* address, unsigned bytes, std::uint32_t operation);
/// The copy that `thread` issued is over: from now on the stamp says what wrote these bytes.
void mark_copied(const void* address, unsigned bytes, std::uint32_t operation, const Thread& thread,
                 Stamp stamp, Where where);

}  // namespace emulator
