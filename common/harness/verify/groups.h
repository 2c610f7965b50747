// Groups of rows: of given sizes, or drawn from a distribution by a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/groups.h"

namespace harness {

/// How the rows of A are distributed over the groups. In all of them each row is of one group.
///
/// equal     as many rows each, or one more
/// uniform   sizes proportional to independent numbers, uniform in (0, 1)
/// zipf      sizes proportional to 1, 1/2, 1/3, ..., in random order: a few groups have most of the rows
/// empty     as uniform, but half of the groups, chosen at random, have no rows
/// one       all rows in one group, chosen at random
enum class GroupSizes { kEqual, kUniform, kZipf, kEmpty, kOne };

/// So many rows in so many groups; the same for the same seed, on every machine.
std::vector<std::int64_t> draw_groups(int groups, int rows, GroupSizes distribution, std::uint64_t seed);

/// Groups of these sizes behind each other, in A with `m` rows. Behind each but the last are guard_rows rows
/// that are of none. Throws Error where a size is negative, or all of it is not `m` rows.
std::vector<gemm::GroupRows> place_groups(const std::vector<std::int64_t>& sizes, int guard_rows, int m);

/// Groups of these sizes, each in a room of `capacity` rows of A with `m` rows. Throws Error where a size is
/// negative or larger, or all rooms together are not `m` rows.
std::vector<gemm::GroupRows> place_masked_groups(const std::vector<std::int64_t>& sizes, int capacity, int m);

/// Reads what --groups says: sizes, "300,0,7", or a number of groups and a distribution, "40:zipf", and
/// perhaps a seed, "40:zipf:3". With "+2" at the end there are two guard rows between groups. With "/64" each
/// group has room for 64 rows, and these are its counts; a distribution then has half of all rows, or as many
/// as a fourth part says, "40:zipf:3:500/64", and what is above the capacity is left out. With "@5" at the
/// end they lie anywhere, as parse_placement says. "": no groups. Throws Error for anything else.
std::vector<gemm::GroupRows> parse_groups(const std::string& text, int m);

/// Of "300,0,7/512": 512; 0 where the text says none.
int parse_capacity(const std::string& text);

/// Of "300,0,7@5": 5, the seed that places the groups somewhere in memory, in any order; 0 where the text
/// says none. Of "300,0,7@5x", where each group also has an N and a K of its own: with kOwnSizesPlaced.
std::uint64_t parse_placement(const std::string& text);
inline constexpr std::uint64_t kOwnSizesPlaced = std::uint64_t{1} << 63;

/// Groups with a capacity of which each has the count of the one so many places on.
std::vector<gemm::GroupRows> with_others_counts(const std::vector<gemm::GroupRows>& groups,
                                                std::uint64_t places);

/// A count as a kernel may have written it that does not check: below 0 it means 0, and above the capacity
/// the capacity.
int unchecked_count(int count, int capacity);

/// "40 groups of 0 to 300 rows, 3 of them empty"
std::string to_string(const std::vector<gemm::GroupRows>& groups);

}  // namespace harness
