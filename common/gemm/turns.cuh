// What step 17 taught: two teams of consumers that take turns, at the multiplication and at the epilogue.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"

namespace gemm {

enum Turn { kMainloop, kEpilogue, kTurns };

/// In shared memory. With one team there is nobody to take turns with, and nothing happens.
template <int kTeams>
struct TurnBarriers {
  static_assert(kTeams == 1 || kTeams == 2, "turns go to and fro");
  std::uint64_t turn[kTurns][kTeams];  // it is this team's turn to ...; one arrival of each warp of the other

  /// One thread calls it; a fence and a barrier of the CTA (or the cluster) must follow.
  __device__ __forceinline__ void init(int warps_of_a_team) {
    if constexpr (kTeams == 2) {
      for (auto& teams : turn) {
        for (std::uint64_t& one : teams)
          ptx::mbarrier_init(&one, static_cast<std::uint32_t>(warps_of_a_team));
      }
    }
  }
};

/// A team's view of them. Team 0 begins. Who waits for the turn at the multiplication has also made sure that
/// every stage the other one read has been filled: `full` barriers cannot be a phase behind.
template <int kTeams>
class Turns {
 public:
  __device__ __forceinline__ Turns(TurnBarriers<kTeams>& barriers, int team)
      : barriers_(barriers), team_(team), phase_(team == 0 ? 1 : 0) {}
  __device__ __forceinline__ void wait(Turn turn, int stage, int k_tile) {
    if constexpr (kTeams == 2) {
      ptx::mbarrier_wait_parity(
          &barriers_.turn[turn][team_], phase_,
          {"consumer", turn == kMainloop ? "mainloop turn" : "epilogue turn", stage, k_tile});
    }
  }
  __device__ __forceinline__ void pass(Turn turn) {
    if constexpr (kTeams == 2) {
      __syncwarp();  // lane 0 speaks for its warp: every lane has waited for what the warp waited for
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&barriers_.turn[turn][1 - team_]);
      if (turn == kEpilogue) phase_ ^= 1;
    }
  }

 private:
  TurnBarriers<kTeams>& barriers_;
  int team_;
  std::uint32_t phase_;  // of both: each turn comes once a tile
};

}  // namespace gemm
