// One problem on the device: inputs, guarded output, reference, verification.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "harness/verify/inputs.h"
#include "harness/verify/inputs/input_value.h"
#include "harness/verify/verify.h"

namespace harness {

/// What a problem with an epilogue is, beyond its shape.
struct ProblemForm {
  gemm::Epilogue epilogue;
  bool has_source = false;    // C exists even where beta is 0: then it is NaN, and off limits on the emulator
  bool has_bias = false;      // a bias exists even where the epilogue has none, long enough for any
  bool in_place = false;      // D is C
  int c_pitch = 0;            // elements from one row of C to the next; 0: N
  int c_offset = 0;           // elements that C starts behind an address that is aligned well
  int bias_length = 0;        // 0: as long as the epilogue needs it
  int aux_pitch = 0;          // elements, or bits, from one row of the auxiliary tensor to the next; 0: least
  int aux_offset = 0;         // elements, or bits, that it starts behind an address that is aligned well
  gemm::Types types{};        // other than bf16: scales, and no epilogue
  bool saturates = true;      // where D is fp16 some of it does; cuBLASLt makes infinities there
  bool wide_weights = false;  // weights exist in bf16, too: for an opponent that multiplies nothing else
  std::vector<gemm::GroupRows> groups{};  // rows in groups, each with its B, and no epilogue
  int capacity = 0;                       // rows that each group has room for; 0: they lie as `groups` says
  std::uint64_t placement = 0;            // not 0: they lie anywhere instead, where this seed places them
  bool device_only = false;  // and the host knows nothing of them; they move under each seed of the inputs
  bool operator==(const ProblemForm&) const = default;
};

/// What a variant computes unless it is told: its step's epilogue where it can, D = A * B^T otherwise.
ProblemForm form_of(const gemm::Step& step, const gemm::Variant& variant);

/// The same, with all rows by one B.
inline ProblemForm without_groups(ProblemForm form) {
  form.groups.clear();
  form.capacity = 0;
  form.placement = 0;
  form.device_only = false;
  return form;
}

class TypedWorkload;
class AuxWorkload;

/// Owns A, B and D on the device, D between guard bands, and what else the form needs. Throws Error when it
/// does not fit (needed, free).
class Workload {
 public:
  Workload(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed, const ProblemForm& form = {});
  ~Workload();
  Workload(Workload&&) noexcept;
  Workload& operator=(Workload&&) noexcept;

  std::uint64_t seed() const;  // of the inputs

  gemm::Gemm gemm() const;
  gemm::Problem problem() const;
  /// The same inputs with another epilogue. Throws Error where it needs an input that is not there.
  gemm::Problem problem(const gemm::Epilogue& epilogue) const;
  /// Fills A, B, C and the bias anew, at the addresses where they are: a second launch of the same plan must
  /// not give what the first one left somewhere. Groups that have a capacity get each other's counts.
  void use_inputs(std::uint64_t seed);
  /// Fills D and its guard bands with NaN patterns; call before every verified run.
  void poison();
  /// Checks D against the reference (computed once, on first use), the guard bands, and that A and B are
  /// unchanged. `tile` only helps the report to locate the damage.
  CheckResult check(const gemm::TileShape& tile);
  /// The same for D of another epilogue, which an opponent may have computed.
  CheckResult check(const gemm::TileShape& tile, const gemm::Epilogue& epilogue,
                    const Allowance& allowance = {});

  /// Of the bits of all that a kernel writes, as the device has it now.
  std::uint64_t hash_of_results() const;

  /// Where the types are not bf16, what it consists of.
  TypedWorkload& typed();
  /// Where the epilogue has a tensor of its own, a gate, or a reduction.
  AuxWorkload& auxiliary();
  /// Where there is neither: what the device holds now; for the injected faults, which damage it and put it
  /// back.
  RunImage image() const;
  void restore(const RunImage& image);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;            // where none of the others is
  std::unique_ptr<TypedWorkload> typed_;  // where the types are not bf16
  std::unique_ptr<AuxWorkload> auxiliary_;
};

/// Runs `launcher` so many times and checks every launch, each with inputs of its own: those of the workload
/// first, and then those of the seeds behind it. Ends with the first that is wrong; the workload has its own
/// inputs again.
CheckResult launch_and_check(Workload& workload, const gemm::Launcher& launcher, int launches,
                             const gemm::TileShape& tile);

/// Prepares the problem twice, launches one plan in two streams and the other one in the second stream, and
/// checks the last launch. The emulator reports what launches share that may run at the same time.
CheckResult launch_in_streams(Workload& workload, const gemm::Variant& variant, const gemm::TileShape& tile);

/// Device bytes a workload takes, guard bands included.
std::int64_t workload_bytes(const gemm::Shape& shape, const ProblemForm& form = {});

}  // namespace harness
