// Statements of a kernel that order something, as the command line sees them. In a GPU build every function
// throws Error.
#pragma once

#include <string>
#include <vector>

namespace harness {

struct OrderingStatement {
  std::string what;    // "mbarrier_arrive"
  std::string place;   // "steps/11_mbarrier_ring/kernel.cuh:97"
  std::string detail;  // "empty", the array of its mbarrier; "1", what a wait for groups leaves; or ""
  std::string by;      // "warps 0-7"
};
inline bool is_same(const OrderingStatement& one, const OrderingStatement& other) {
  return one.what == other.what && one.place == other.place && one.detail == other.detail;
}

/// What is launched until take_ordering_statements() is listed, in the order in which it comes first.
void list_ordering_statements();
std::vector<OrderingStatement> take_ordering_statements();

/// No thread executes the statement from the next launch on: a wait returns at once, an arrival is not made,
/// a fence orders nothing, and nobody meets at a barrier.
void leave_out(const OrderingStatement& statement);
void leave_nothing_out();

}  // namespace harness
