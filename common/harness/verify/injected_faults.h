// A verifier is worth what it rejects: every kind of damage that it must notice, injected on purpose.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/verify/fault.h"
#include "harness/verify/verify.h"

namespace harness {

using InjectedFault = Fault<std::function<void(RunImage& image, const gemm::TileShape& tile)>>;

/// Those of D = A * B^T. They need a square D of at least 2 x 2 tiles and K > 16.
const std::vector<InjectedFault>& injected_faults();

/// Those of them that damage a result whatever its elements are, with any epilogue.
std::vector<InjectedFault> faults_of_any_result();

/// Those of an epilogue: of what it adds and of how. They need the same shape.
std::vector<InjectedFault> epilogue_faults(const gemm::Epilogue& epilogue);

/// Those of a problem in groups: another group's B, a tile stored past its group's last row, rows of no group
/// written. They need grouped_fault_groups.
std::vector<InjectedFault> group_faults();
/// Groups for them, of a shape with at least 16 rows: one that is empty, and guard rows.
std::vector<gemm::GroupRows> grouped_fault_groups(const gemm::Shape& shape);
/// The same in rooms of a kMaskedFaultGroups-th of M each.
inline constexpr int kMaskedFaultGroups = 4;
std::vector<gemm::GroupRows> masked_fault_groups(const gemm::Shape& shape);
/// The same for a strided batch: none is empty.
std::vector<gemm::GroupRows> strided_fault_groups(const gemm::Shape& shape);

/// An epilogue with everything that the variant computes, so that each part can be missing.
gemm::Epilogue fullest_epilogue(const gemm::EpilogueSupport& support);

/// The smallest problem inside `contract` that every injected fault fits: M = N, ragged in every direction.
gemm::Shape injected_fault_shape(const gemm::Contract& contract, const gemm::TileShape& tile);

/// "rejected by guard-after", or what is wrong with how `result` judged the fault.
struct Judgement {
  bool ok = false;
  std::string text;
};
Judgement judge(const std::string& check, const std::string& phrase, const CheckResult& result);
template <typename Damage>
Judgement judge(const Fault<Damage>& fault, const CheckResult& result) {
  return judge(fault.check, fault.phrase, result);
}

/// Runs the step's variant on the linked backend, sees that its result is accepted, damages the result in
/// every way and sees that each is rejected by the right check; exact and normal inputs. Prints a table.
/// Returns kExitOk or kExitMismatch.
int run_injected_faults(const gemm::Step& step, const gemm::Variant& variant);

}  // namespace harness
