#include "harness/verify/workload/rank_run.h"

namespace harness {

CheckResult RankRun::run(const gemm::RankLauncher& launcher, int epochs, Readers first, const Delay& delay) {
  constexpr int kInFlight = 64;  // no queue is endless
  poison();
  for (int i = 0; i < epochs; ++i) {
    start(launcher, i == 0 ? first : Readers::kBeside, delay);
    if ((i == 0 && first == Readers::kApart) || i % kInFlight == kInFlight - 1) ranks().synchronize();
  }
  ranks().synchronize();
  return check();
}

}  // namespace harness
