#include "harness/verify/workload/rank_matrix.h"

#include <vector>

namespace harness {

void fill_matrix(const Ranks& ranks, int rank, gemm::bf16* elements, const InputRule& rule) {
  ranks.enter(rank);
  if (device_fill(elements, rule)) return;
  const std::vector<gemm::bf16> host = host_input(rule);
  ranks.copy_to(rank, elements, host.data(), host.size() * sizeof(gemm::bf16));
}

InputDamage damage_of_matrix(const Ranks& ranks, int rank, const gemm::bf16* elements,
                             const InputRule& rule) {
  InputDamage damage;
  std::vector<gemm::bf16> slab;
  in_slabs(rule.rows, rule.columns, [&](int first, int rows) {
    slab.resize(static_cast<std::size_t>(gemm::offset(rows, 0, rule.columns)));
    ranks.copy_from(rank, slab.data(), elements + gemm::offset(first, 0, rule.columns),
                    bytes_of_matrix(rows, rule.columns));
    compare_input(rule, first, rows, slab.data(), damage);
  });
  return damage;
}

}  // namespace harness
