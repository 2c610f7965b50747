#include "emulator/pending.h"

#include "emulator/report.h"

namespace emulator {

void fail_pending(std::uint32_t, const std::string& bytes, Access, Where where, const Thread& thread) {
  fail("asynchronous-copy", Report("an asynchronous operation is on its way to these bytes")
                                .line("bytes", bytes)
                                .line("where", where.text())
                                .line("who", who(thread))
                                .str());
}

}  // namespace emulator
