// Grids of a stream that may overlap: a dependent launch starts when every CTA of the grid before has
// triggered (griddepcontrol.launch_dependents) or exited, and knows what that grid did only behind
// griddepcontrol.wait.
//
// The emulator runs grids one behind the other. What overlaps are their histories: before a dependent grid
// runs, the accesses of the grid before are put aside, and each access of the new grid to global memory is
// compared with those of the grids that may not have completed when its thread gets there. So a race is found
// under every schedule, whether or not it would have done damage.
//
// Which grids these are follows from who waited. `at_start`: those that may run when the grid starts; `behind
// the wait`: those that may still run when its wait has returned. The grid before is never among the second;
// the one before that is, if no thread of the grid before has waited for it, because then nothing keeps the
// grid before from completing first.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/machine/where.h"
#include "emulator/memory/shadow.h"

namespace emulator {

struct Grid;
struct Thread;
class Gang;

/// griddepcontrol.wait by the running thread.
void wait_for_prerequisites(const char* what, Where where);
/// griddepcontrol.launch_dependents by the running thread.
void launch_dependents(const char* what, Where where);

/// Before a grid runs: finds out which grids it may overlap.
void begin_grid(Grid& grid, const void* kernel);
/// The kernel of the grid that was begun last; nullptr where it has no address of its own.
const void* latest_kernel();
/// The gang's CTAs have exited.
void note_exits(const Gang& gang);
/// The grid has run without a report.
void end_grid(const Grid& grid);
/// A grid has ended with a report.
void forget_grids();
/// The host touches memory, or waits: whatever was launched has completed.
void complete_grids();

/// "kernel.cuh:48 by thread (3,0,0) of CTA (1,0,0) of the grid before": what a grid of the chain, before the
/// running one, has written there; or "".
std::string written_by_grid_before(std::uintptr_t address);

/// Reports an access to global memory that races with one of a grid that may still run.
void check_overlapping_grids(const Thread& thread, std::uintptr_t address, unsigned bytes, Access access,
                             Where where);

}  // namespace emulator
