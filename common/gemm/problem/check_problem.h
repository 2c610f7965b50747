// Which problems a variant takes, in sentences that say what was wrong and what would be right. For the host
// alone: no kernel includes it. gemm::prepare (step.h) checks all of it.
#pragma once

#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"

namespace gemm {

/// "", or what is wrong with groups that lie anywhere, of a problem with this N and K; M says nothing. TMA
/// takes addresses and rows that begin at multiples of 16 bytes.
std::string violated_placement_rule(const std::vector<PlacedGroup>& groups, const Shape& shape);

/// "", or what is wrong with groups of a problem of this shape: M is the number of rows of A and of D, and B
/// has N rows for each group.
std::string violated_group_rule(const std::vector<GroupRows>& groups, const Shape& shape);

/// "", or why groups are no strided batch: each has as many rows, one at least, and all are at one distance.
std::string violated_batch_rule(const std::vector<GroupRows>& groups);

/// "", or what is wrong with groups that have room for `capacity` rows each, group g from row g * capacity
/// on. `groups`: what the host knows of their rows; a host that knows nothing leaves it empty.
std::string violated_capacity_rule(const std::vector<GroupRows>& groups, int capacity, const Shape& shape);

/// "", or what is wrong with the size of weights [N][K] that have a scale for every `group` elements of K.
std::string violated_weight_rule(const Shape& shape, int group);

/// "", or what is wrong with N where D is quantised.
std::string violated_quantised_rule(const Shape& shape, const Types& types);

/// Throws std::invalid_argument where operands have other types than the variant's, or lie another way round.
void check_types(const Variant& variant, const Types& types);

/// Throws std::invalid_argument where the scales of blocks are not where TMA can load them from.
void check_scales(const Problem& problem);

}  // namespace gemm
