// Which k-tile of A or B some bytes belong to: what reports say of a stage. It is computed from addresses and
// coordinates when a report needs it, never from what a thread last said, and left out where it is not
// certain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/machine/machine.h"

namespace emulator {

struct LoadRecord;

/// Of the element at an address of A or B in global memory.
std::optional<int> k_tile_of(const Grid& grid, const void* global);
/// Of a box of A or B.
std::optional<int> k_tile_of(const Grid& grid, const LoadRecord& load);

/// Whether the address lies in D.
bool is_result(std::uintptr_t address);
/// "row 342 of A, which has 342 rows; column 56, in k-tile 0", "row 70, column 12 of D, in tile (0, 1)": an
/// address behind a matrix is in the row that it would have. Empty where nobody has said what the matrices
/// are.
std::string element_text(const Grid& grid, std::uintptr_t address);

/// All threads of the CTA have met at a barrier: what they stored since the last one has an end.
void end_barrier_interval(Cta& cta, const char* what, Where where);
/// The only k-tile that the CTA has put from global into shared memory between the same two barriers of the
/// CTA as the write with this stamp, or, where it has put none there, before them.
std::optional<int> k_tile_of_store(const Cta& cta, Stamp write);
/// The last barrier of the CTA before an access by one of its threads; nullptr before the first one.
const BarrierInterval* last_barrier(const Cta& cta, Stamp access);

/// Of the bytes of shared memory that the access with this stamp wrote last.
std::optional<int> k_tile_held(const Cta& cta, std::uintptr_t address, Stamp write);

/// "stage 2", where the place in shared memory has a name of that kind, stage[2].a; or "".
std::string stage_text(const Cta& cta, std::uintptr_t address);
/// "stage 1: the bytes hold k-tile 2, the write brings k-tile 5", as far as it is known. `held`: the stamp of
/// the write whose bytes are there, 0 if that is not at hand.
std::string content_text(const Thread& thread, std::uintptr_t address, Access now, Stamp held);

}  // namespace emulator
