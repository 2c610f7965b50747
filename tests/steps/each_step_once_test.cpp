// Every step's default variant once, on a few shapes under one schedule: what there is time for before a
// push. The tests of a step do the same with all its variants, on many more shapes and under many schedules.
#include "harness/backend/emulator_control.h"
#include "harness/verify/workload/rank_copy.h"
#include "harness/verify/workload/rank_gather.h"
#include "harness/verify/workload/rank_scatter.h"
#include "step_table.h"
#include "steps/verify_shape.h"

TEST_CASE("each step once", "[.once]") {
  for (const gemm::Step* step : gemm::all_steps()) {
    DYNAMIC_SECTION(step->name) {
      const gemm::Variant& variant = step->variants.front();
      if (step->takes_ranks()) {
        harness::control_emulator({.completion = harness::Completion::kLatest});
        CHECK((step->gathers()    ? harness::check_gather_case(variant, harness::gather_cases().front(), 2)
               : step->scatters() ? harness::check_scatter_case(variant, harness::scatter_cases().front(), 2)
                                  : harness::check_rank_case(variant, harness::rank_cases().front(), 2))
                  .ok);
        harness::control_emulator({});
        continue;
      }
      verify_where_edges_meet(*step, variant);
      // A ring of stages that wraps.
      verify(*step, variant, inside_contract(*step, {40, 72, (2 * variant.stages + 1) * variant.tile.k}),
             harness::Pattern::kExact, 4);
    }
  }
}
