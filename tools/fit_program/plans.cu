#include "plans.h"

#include <array>
#include <cstddef>
#include <utility>

#include "kernel.cuh"

namespace {

using gemm::FittedPlan;
using gemm::Gemm;
using gemm::Launcher;
using Prepare = Launcher (*)(const Gemm&, const FittedPlan&);

template <std::size_t... kNumbers>
constexpr std::array<Prepare, sizeof...(kNumbers)> all_tiles(std::index_sequence<kNumbers...>) {
  return {static_cast<Prepare>(&gemm::step_22::BuiltTile<kNumbers>::prepare)...};
}

constexpr auto kPrepare = all_tiles(std::make_index_sequence<gemm::step_22::kTiles.size()>());

}  // namespace

gemm::Card fit::card() {
  return gemm::step_22::card();
}

Launcher fit::prepare(std::size_t tile, const Gemm& gemm, const FittedPlan& plan) {
  return kPrepare[tile](gemm, plan);
}
