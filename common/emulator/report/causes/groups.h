// The groups of a problem's rows, for reports of elements of D that two CTAs store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/backend/name_groups.h"

namespace emulator {

struct Grid;
class Report;

/// The next launches' groups; `capacity` > 0: group g has room from row g * capacity on, and counts[g], in
/// device memory, says how many rows it has. To the next call.
void note_groups(const std::vector<gemm::GroupRows>& groups, int capacity, const int* counts);

/// The rows of the latest bulk store by the CTA with this key whose box has bytes at `address`.
std::optional<std::pair<std::int64_t, std::int64_t>> rows_of_box(const Grid& grid, std::uint32_t key,
                                                                 std::uintptr_t address);

/// Two CTAs store this element of D: the group that it belongs to, and which CTA stores beyond the last row
/// of its own. False where the problem has no groups, or none is left behind.
bool explain_groups(Report& report, const Grid& grid, std::uintptr_t address, std::uint32_t one,
                    std::uint32_t other);

}  // namespace emulator
