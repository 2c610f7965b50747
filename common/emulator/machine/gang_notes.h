// What a rule keeps about a gang, beside the Gang itself.
#pragma once

#include <memory>

#include "emulator/machine/machine.h"

namespace emulator {

/// Dies with the gang; nothing of it is ever under way.
class GangNotes : public Engine {
 public:
  std::size_t pending() const override { return 0; }
  void complete_one(Random&) override {}
  void thread_exits(Thread&) override {}
};

/// Those of a gang of this OS thread: one object of each kind `Notes`, made from a Gang&.
template <typename Notes>
class NotesOf {
 public:
  /// nullptr: nothing was noted.
  static Notes* find(const Gang& gang) {
    if (latest == nullptr || latest_of != &gang) return nullptr;
    return latest;
  }
  static Notes& make(Gang& gang) {
    if (Notes* const found = find(gang)) return *found;
    auto made = std::make_unique<Owner>(gang);
    latest = &made->notes;
    latest_of = &gang;
    gang.engines.push_back(std::move(made));
    return *latest;
  }

 private:
  /// An OS thread runs one gang after the other.
  struct Owner final : GangNotes {
    explicit Owner(Gang& gang) : notes(gang) {}
    ~Owner() override {
      latest = nullptr;
      latest_of = nullptr;
    }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    void thread_exits(Thread& thread) override { notes.thread_exits(thread); }
    Notes notes;
  };
  static inline constinit thread_local Notes* latest = nullptr;
  static inline constinit thread_local const Gang* latest_of = nullptr;
};

}  // namespace emulator
