// Any plan of any tile of step 22, prepared: for a program that is compiled without kernels.
#pragma once

#include <cstddef>

#include "gemm/fitted/fitted_plan.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "ptx/card.h"

namespace fit {

/// This card, as the model sees it.
gemm::Card card();

/// Tile number `tile` of step 22's kTiles, with a plan that plans_of() has for this tile and shape.
gemm::Launcher prepare(std::size_t tile, const gemm::Gemm& gemm, const gemm::FittedPlan& plan);

}  // namespace fit
