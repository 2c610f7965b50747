// cuBLAS and cuBLASLt as contestants. Loaded at run time: without them there is no baseline, and one line
// that says so. GPU build only.
#pragma once

#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "harness/timing/timing.h"

namespace harness {

/// Every baseline may use this much device memory beside its operands.
inline constexpr std::size_t kBaselineWorkspace = std::size_t{64} << 20;

/// As many algorithms as cuBLASLt's heuristics are asked for.
inline constexpr int kRequestedAlgorithms = 32;

/// "" when cuBLAS and cuBLASLt can be used, otherwise one sentence: which library was
/// not found, or what failed.
std::string baselines_problem();

/// cublasGemmEx with its own choice of algorithm, binary32 accumulation.
Contestant cublas_default();

/// Whether cuBLASLt computes this epilogue in the kernel that multiplies: any alpha and beta, a bias by
/// column of D, ReLU, and GELU in the form with tanh. Of tensors beside D: GELU's pre-activation, beta * C
/// included, and ReLU's mask, written or read back. Of reductions: the sums over the rows of D of such a
/// gradient (CUBLASLT_EPILOGUE_DRELU_BGRAD, DGELU_BGRAD), in D's type; they are widened to fp32 for the
/// check, outside of what is timed. Its CUBLASLT_EPILOGUE_BGRADA and BGRADB are something else: they sum an
/// operand over K.
bool cublaslt_has(const gemm::Epilogue& epilogue);

/// Whether the pair of kernels below computes it: not gates, and not the largest of a row.
bool unfused_has(const gemm::Epilogue& epilogue);

/// How cuBLASLt adds fp8 products: in the tensor cores alone (FAST_ACCUM = 1), or with promotion to binary32
/// every few of them. Other types have one way. The one that adds as the kernels of the race do (all of which
/// promote, or not) is called cublaslt_best; the other one is cublaslt_fast or cublaslt_promoted.
enum class Accumulation { kFast, kFull };

/// One contestant per algorithm that cuBLASLt's heuristics propose for this shape, best guess first, at most
/// kRequestedAlgorithms; `variant` describes the algorithm. Only algorithms that add partial sums in
/// binary32. Empty when there is none: scales of blocks need cuBLAS 12.9 and an M that is a multiple of 4.
/// The caller has to race them: the heuristics' first guess is often not the fastest.
std::vector<Contestant> cublaslt_candidates(const gemm::Shape& shape, const ProblemForm& form = {},
                                            Accumulation accumulation = Accumulation::kFast);

/// Of such candidates the heuristics' first guess, as cublaslt_first: what a program gets that asks for one
/// algorithm and races none. cublas_default is that for a plain product.
Contestant first_choice(const std::vector<Contestant>& candidates);

/// The same, each followed by one more kernel (elementwise.h). Of an epilogue without a tensor or a reduction
/// that kernel does all. Where there is a reduction, the first one does whatever it has of the rest, and the
/// second one only reads D. Where there is a tensor, the first one does alpha, beta * C and the bias.
std::vector<Contestant> cublaslt_unfused_candidates(const gemm::Shape& shape, const ProblemForm& form);

/// Of a problem in groups: one call of cublasGemmGroupedBatchedEx; and a launch of cuBLASLt for each group
/// that has rows, with the first algorithm that its heuristics propose for that size, all in one CUDA graph.
Contestant cublas_grouped();
Contestant cublaslt_loop();

/// Of groups in bf16 that are a strided batch (violated_batch_rule): one call of cuBLASLt for all, one
/// candidate for each algorithm.
std::vector<Contestant> cublaslt_batch_candidates(const gemm::Shape& shape,
                                                  const std::vector<gemm::GroupRows>& groups);

/// Of a chain: a CUDA graph of `layers` launches of cuBLASLt, each of which multiplies A by as many rows of
/// B, one candidate for each algorithm. All read the same A: nobody hands activations on, so this chain has
/// less to do. Empty where N is no multiple of `layers`.
std::vector<Contestant> cublaslt_chain_candidates(const gemm::Shape& shape, int layers);

}  // namespace harness
