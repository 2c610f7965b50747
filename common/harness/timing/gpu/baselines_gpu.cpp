#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/timing/gpu/baselines.h"
#include "harness/timing/gpu/elementwise.h"
#include "harness/verify/workload/device_buffer.h"
#include "ptx/graph.cuh"
#include "ptx/workspace.h"

namespace harness {
namespace {

// Row-major D = A * B^T, seen with BLAS's eyes: a row-major [rows][columns] matrix is the column-major matrix
// columns x rows with leading dimension `columns`. So D' (n x m) = B (as n x k: its column-major view k x n,
// transposed) times A (its column-major view, k x m). That is the TN product of n x m x k.

/// A shared library that stays open for the life of the program.
class Library {
 public:
  /// `stem` is "libcublas"; tries the toolkit's major version first, then the others that are known to work.
  explicit Library(const std::string& stem) {
    std::vector<std::string> names;
    for (const int major : {CUDART_VERSION / 1000, 13, 12})
      names.push_back(fmt::format("{}.so.{}", stem, major));
    std::vector<std::string> folders = {
        ""};  // the loader's own search: LD_LIBRARY_PATH, cache, system folders
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
      const char* root = std::getenv(variable);
      if (root == nullptr || *root == '\0') continue;
      folders.push_back(std::string(root) + "/lib64/");
      folders.push_back(std::string(root) + "/lib/");
    }
#ifdef GEMM_CUDA_LIBRARY_DIR  // where the build found the toolkit
    folders.push_back(GEMM_CUDA_LIBRARY_DIR "/");
#endif
    folders.push_back("/usr/local/cuda/lib64/");
    for (const std::string& folder : folders) {
      for (const std::string& name : names) {
        handle_ = ::dlopen((folder + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
        if (handle_ != nullptr) return;
      }
    }
    problem_ =
        fmt::format("{} was not found (add its folder to LD_LIBRARY_PATH, or set CUDA_HOME)", names.front());
  }

  /// Sets `function` to the symbol; remembers the first one that is missing.
  template <typename Function>
  void find(Function*& function, const char* name) {
    if (!problem_.empty()) return;
    function = reinterpret_cast<Function*>(::dlsym(handle_, name));
    if (function == nullptr) problem_ = fmt::format("the library that was loaded has no function {}", name);
  }

  /// The same, but a function that is missing stays nullptr: older libraries do without it.
  template <typename Function>
  void find_if_there(Function*& function, const char* name) {
    if (problem_.empty()) function = reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

  const std::string& problem() const {
    return problem_;
  }

 private:
  void* handle_ = nullptr;
  std::string problem_;
};

void check_cublas(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(fmt::format("{} failed: cuBLAS status {}", what, static_cast<int>(status)));
}

/// cublasGemmEx; the header overloads the name for C++, so decltype cannot be asked.
using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                              const void* alpha, const void* a, cudaDataType, int lda, const void* b,
                              cudaDataType, int ldb, const void* beta, void* c, cudaDataType, int ldc,
                              cublasComputeType_t, cublasGemmAlgo_t);

// Since cuBLAS 12.5; older headers have no declaration.
using GemmGroupedBatchedEx = cublasStatus_t(cublasHandle_t, const cublasOperation_t*,
                                            const cublasOperation_t*, const int* m, const int* n,
                                            const int* k, const void* alpha, const void* const* a,
                                            cudaDataType, const int* lda, const void* const* b, cudaDataType,
                                            const int* ldb, const void* beta, void* const* c, cudaDataType,
                                            const int* ldc, int groups, const int* group_sizes,
                                            cublasComputeType_t);

// Scales of blocks: since cuBLAS 12.9, by the numbers of cublasLt.h, which older headers do not have.
constexpr std::size_t kCublasWithBlocks = 120900;
constexpr auto kScaleModeOfA = static_cast<cublasLtMatmulDescAttributes_t>(31);
constexpr auto kScaleModeOfB = static_cast<cublasLtMatmulDescAttributes_t>(32);
constexpr std::int32_t kVectorsOf128 = 4;
constexpr std::int32_t kBlocksOf128x128 = 5;
#if CUBLAS_VERSION >= 120900
static_assert(kScaleModeOfA == CUBLASLT_MATMUL_DESC_A_SCALE_MODE &&
                  kScaleModeOfB == CUBLASLT_MATMUL_DESC_B_SCALE_MODE &&
                  kVectorsOf128 == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F &&
                  kBlocksOf128x128 == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
              "the header's numbers");
#endif

/// The functions that are used, under their own names, and one handle of each library.
struct Cublas {
  Library lt_library{"libcublasLt"};  // first: cuBLAS needs it and finds it loaded
  Library library{"libcublas"};
  std::string problem;

  decltype(::cublasCreate_v2)* create = nullptr;
  decltype(::cublasSetStream_v2)* set_stream = nullptr;
  decltype(::cublasSetWorkspace_v2)* set_workspace = nullptr;
  GemmEx* gemm_ex = nullptr;
  GemmGroupedBatchedEx* gemm_grouped = nullptr;

  decltype(::cublasLtGetVersion)* lt_version = nullptr;
  decltype(::cublasLtCreate)* lt_create = nullptr;
  decltype(::cublasLtMatmul)* lt_matmul = nullptr;
  decltype(::cublasLtMatmulDescCreate)* lt_desc_create = nullptr;
  decltype(::cublasLtMatmulDescDestroy)* lt_desc_destroy = nullptr;
  decltype(::cublasLtMatmulDescSetAttribute)* lt_desc_set = nullptr;
  decltype(::cublasLtMatrixLayoutCreate)* lt_layout_create = nullptr;
  decltype(::cublasLtMatrixLayoutDestroy)* lt_layout_destroy = nullptr;
  decltype(::cublasLtMatrixLayoutSetAttribute)* lt_layout_set = nullptr;
  decltype(::cublasLtMatmulPreferenceCreate)* lt_preference_create = nullptr;
  decltype(::cublasLtMatmulPreferenceDestroy)* lt_preference_destroy = nullptr;
  decltype(::cublasLtMatmulPreferenceSetAttribute)* lt_preference_set = nullptr;
  decltype(::cublasLtMatmulAlgoGetHeuristic)* lt_heuristic = nullptr;
  decltype(::cublasLtMatmulAlgoConfigGetAttribute)* lt_config_get = nullptr;

  cublasHandle_t handle = nullptr;
  cublasLtHandle_t lt_handle = nullptr;
  void* workspace = nullptr;

  Cublas() {
    library.find(create, "cublasCreate_v2");
    library.find(set_stream, "cublasSetStream_v2");
    library.find(set_workspace, "cublasSetWorkspace_v2");
    library.find(gemm_ex, "cublasGemmEx");
    library.find_if_there(gemm_grouped, "cublasGemmGroupedBatchedEx");
    lt_library.find(lt_version, "cublasLtGetVersion");
    lt_library.find(lt_create, "cublasLtCreate");
    lt_library.find(lt_matmul, "cublasLtMatmul");
    lt_library.find(lt_desc_create, "cublasLtMatmulDescCreate");
    lt_library.find(lt_desc_destroy, "cublasLtMatmulDescDestroy");
    lt_library.find(lt_desc_set, "cublasLtMatmulDescSetAttribute");
    lt_library.find(lt_layout_create, "cublasLtMatrixLayoutCreate");
    lt_library.find(lt_layout_destroy, "cublasLtMatrixLayoutDestroy");
    lt_library.find(lt_layout_set, "cublasLtMatrixLayoutSetAttribute");
    lt_library.find(lt_preference_create, "cublasLtMatmulPreferenceCreate");
    lt_library.find(lt_preference_destroy, "cublasLtMatmulPreferenceDestroy");
    lt_library.find(lt_preference_set, "cublasLtMatmulPreferenceSetAttribute");
    lt_library.find(lt_heuristic, "cublasLtMatmulAlgoGetHeuristic");
    lt_library.find(lt_config_get, "cublasLtMatmulAlgoConfigGetAttribute");
    problem = !lt_library.problem().empty() ? lt_library.problem() : library.problem();
    if (!problem.empty()) return;
    try {
      check_cublas(create(&handle), "cublasCreate");
      check_cublas(lt_create(&lt_handle), "cublasLtCreate");
      workspace = device_allocate(kBaselineWorkspace, "the baselines' workspace");
    } catch (const Error& error) {
      problem = error.what();
    }
  }
};

/// Of the current device: handles and workspace are for one. Never destroyed: at exit the CUDA runtime may be
/// gone before it.
Cublas& cublas() {
  static std::map<int, Cublas*>& of_devices = *new std::map<int, Cublas*>;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) cudaGetLastError();
  Cublas*& instance = of_devices[device];
  if (instance == nullptr) instance = new Cublas;
  return *instance;
}

Cublas& usable_cublas() {
  Cublas& api = cublas();
  if (!api.problem.empty()) throw Error("no cuBLAS baseline: " + api.problem);
  return api;
}

/// The tiles that cuBLASLt was seen to choose, by the numbers of cublasLt.h (cublasLtMatmulTile_t, hundreds
/// more). As all of cuBLAS they are column-major: rows of D' are columns of D, so 176x128 is 128 x 176 here.
constexpr std::array<std::pair<std::uint32_t, const char*>, 188> kTiles{
    {{125, "72x128"},  {179, "136x128"}, {326, "64x160"},  {345, "64x336"},  {453, "192x48"},
     {491, "256x56"},  {494, "256x88"},  {116, "64x192"},  {211, "200x64"},  {218, "216x128"},
     {220, "224x64"},  {226, "240x64"},  {342, "64x304"},  {126, "72x192"},  {194, "160x192"},
     {224, "232x128"}, {322, "64x120"},  {331, "64x208"},  {10, "64x8"},     {12, "32x64"},
     {13, "64x32"},    {15, "64x64"},    {16, "128x32"},   {17, "64x128"},   {18, "128x64"},
     {19, "64x256"},   {20, "128x128"},  {21, "256x64"},   {23, "128x256"},  {24, "256x128"},
     {26, "64x96"},    {27, "96x64"},    {28, "96x128"},   {29, "128x160"},  {30, "160x128"},
     {31, "192x128"},  {32, "128x192"},  {104, "56x64"},   {124, "72x64"},   {134, "80x64"},
     {143, "88x64"},   {144, "88x128"},  {145, "88x192"},  {159, "104x192"}, {162, "104x384"},
     {164, "112x64"},  {165, "112x128"}, {166, "112x192"}, {167, "112x256"}, {181, "136x256"},
     {183, "144x64"},  {184, "144x128"}, {188, "152x64"},  {189, "152x128"}, {191, "152x256"},
     {193, "160x64"},  {195, "160x256"}, {197, "168x128"}, {201, "176x128"}, {202, "176x192"},
     {208, "192x64"},  {209, "192x192"}, {210, "192x256"}, {215, "208x128"}, {216, "208x192"},
     {227, "240x128"}, {232, "256x192"}, {236, "272x128"}, {239, "288x64"},  {240, "288x128"},
     {244, "304x128"}, {248, "320x128"}, {312, "64x16"},   {314, "64x40"},   {318, "64x80"},
     {319, "64x88"},   {320, "64x104"},  {323, "64x136"},  {324, "64x144"},  {328, "64x176"},
     {330, "64x200"},  {332, "64x216"},  {393, "128x8"},   {394, "128x16"},  {336, "64x248"},
     {170, "120x64"},  {33, "128x96"},   {59, "24x64"},    {217, "216x64"},  {135, "80x128"},
     {402, "128x104"}, {395, "128x24"},  {396, "128x40"},  {398, "128x56"},  {400, "128x80"},
     {401, "128x88"},  {404, "128x120"}, {405, "128x136"}, {406, "128x144"}, {408, "128x168"},
     {409, "128x176"}, {410, "128x184"}, {411, "128x200"}, {412, "128x208"}, {413, "128x216"},
     {415, "128x232"}, {416, "128x240"}, {417, "128x248"}, {419, "128x272"}, {421, "128x288"},
     {423, "128x304"}, {448, "192x8"},   {449, "192x16"},  {450, "192x24"},  {455, "192x72"},
     {456, "192x80"},  {458, "192x96"},  {459, "192x104"}, {460, "192x112"}, {463, "192x144"},
     {467, "192x176"}, {470, "192x208"}, {486, "256x8"},   {490, "256x48"},  {495, "256x96"},
     {497, "256x112"}, {22, "64x512"},   {71, "32x192"},   {276, "480x64"},  {313, "64x24"},
     {487, "256x16"},  {492, "256x72"},  {547, "384x96"},  {498, "256x120"}, {499, "256x136"},
     {500, "256x144"}, {501, "256x152"}, {502, "256x160"}, {548, "384x104"}, {576, "512x32"},
     {229, "248x64"},  {230, "248x128"}, {317, "64x72"},   {321, "64x112"},  {329, "64x184"},
     {407, "128x152"}, {414, "128x224"}, {465, "192x160"}, {488, "256x24"},  {399, "128x72"},
     {136, "80x192"},  {80, "40x64"},    {7, "8x64"},      {105, "56x128"},  {540, "384x32"},
     {92, "48x64"},    {137, "80x256"},  {178, "136x64"},  {186, "144x256"}, {157, "104x64"},
     {158, "104x128"}, {315, "64x48"},   {316, "64x56"},   {338, "64x272"},  {403, "128x112"},
     {538, "384x16"},  {397, "128x48"},  {204, "184x64"},  {160, "104x256"}, {452, "192x40"},
     {212, "200x128"}, {454, "192x56"},  {325, "64x152"},  {196, "168x64"},  {221, "224x128"},
     {106, "56x192"},  {107, "56x256"},  {171, "120x128"}, {235, "272x64"},  {327, "64x168"},
     {496, "256x104"}, {151, "96x192"},  {200, "176x64"},  {457, "192x88"},  {14, "32x128"},
     {247, "320x64"},  {333, "64x224"},  {347, "64x352"}}};
static_assert(CUBLASLT_MATMUL_TILE_64x64 == 15 && CUBLASLT_MATMUL_TILE_192x128 == 31, "the header's numbers");

std::string describe_tile(std::uint32_t id) {
  for (const auto& [number, name] : kTiles) {
    if (number == id) return name;
  }
  return fmt::format("tile {}", id);
}

std::string describe_cluster(std::uint16_t id) {
  switch (id) {
    case CUBLASLT_CLUSTER_SHAPE_1x1x1:
      return "cluster 1x1";
    case CUBLASLT_CLUSTER_SHAPE_2x1x1:
      return "cluster 2x1";
    case CUBLASLT_CLUSTER_SHAPE_1x2x1:
      return "cluster 1x2";
    case CUBLASLT_CLUSTER_SHAPE_2x2x1:
      return "cluster 2x2";
    case CUBLASLT_CLUSTER_SHAPE_4x1x1:
      return "cluster 4x1";
    case CUBLASLT_CLUSTER_SHAPE_1x4x1:
      return "cluster 1x4";
    case CUBLASLT_CLUSTER_SHAPE_4x2x1:
      return "cluster 4x2";
    case CUBLASLT_CLUSTER_SHAPE_2x4x1:
      return "cluster 2x4";
    default:
      return fmt::format("cluster {}", id);
  }
}

/// What scales a multiplication of cuBLASLt: alpha, and of fp8 operands what lies on the device. Its first
/// operand is our B. Each scale begins at a multiple of 16 bytes: cuBLASLt asks for that of scales of blocks,
/// and refused a launch (status 15) whose scale of a matrix lay 4 bytes behind one.
struct LtScales {
  float alpha = 1;
  const float* first = nullptr;   // of B
  const float* second = nullptr;  // of A
  const float* of_d = nullptr;
  std::shared_ptr<const gemm::ptx::DeviceCopy> slots{};  // where they lie, if not in the problem
};
constexpr int kScaleSlot = 4;  // floats: 16 bytes

bool has_bias_gradient(const gemm::Epilogue& epilogue) {
  return epilogue.reduction == gemm::Reduction::kColumnSums;
}

bool is_gradient(const gemm::Epilogue& epilogue) {
  return epilogue.auxiliary == gemm::Auxiliary::kMaskBackward ||
         epilogue.auxiliary == gemm::Auxiliary::kPreActivationBackward;
}

/// What cuBLASLt was asked to compute: everything but the addresses and the algorithm.
class MatmulProblem {
 public:
  /// `d_pitch`: elements from one row of D to the next, if not N.
  explicit MatmulProblem(const gemm::Shape& shape, const ProblemForm& form = {},
                         bool fast_accumulation = false, int d_pitch = 0)
      : api_(usable_cublas()), epilogue_(form.epilogue), types_(form.types) {
    const auto m = static_cast<std::uint64_t>(shape.m);
    const auto n = static_cast<std::uint64_t>(shape.n);
    const auto k = static_cast<std::uint64_t>(shape.k);
    check_cublas(api_.lt_desc_create(&operation_, compute_type(form.types.a), CUDA_R_32F),
                 "cublasLtMatmulDescCreate");
    if (fast_accumulation) set_operation(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
    if (form.types.have_blocks()) {
      set_operation(kScaleModeOfA, kBlocksOf128x128);  // of B
      set_operation(kScaleModeOfB, kVectorsOf128);     // of A
    }
    if (has_scale_pointers()) {  // as well aligned as those of a launch
      const auto* const slots = static_cast<const float*>(api_.workspace);
      set_scales({.first = slots, .second = slots + kScaleSlot, .of_d = slots + 2 * kScaleSlot});
    }
    // cuBLASLt computes D^T = B * A^T, column by column: its first operand is B. One whose K is contiguous is
    // a matrix of columns K long.
    const bool k_major_a = form.types.major_a == gemm::Major::kK;
    const bool k_major_b = form.types.major_b == gemm::Major::kK;
    set_operation(CUBLASLT_MATMUL_DESC_TRANSA, k_major_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set_operation(CUBLASLT_MATMUL_DESC_TRANSB, k_major_a ? CUBLAS_OP_N : CUBLAS_OP_T);
    set_operation(CUBLASLT_MATMUL_DESC_EPILOGUE, lt_epilogue());
    // The heuristics look at the address for its alignment; each launch sets its own, as well aligned.
    if (has_bias() || has_gradient())
      set_operation(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(api_.workspace));
    if (has_tensor()) {
      // A column of D^T is a row of D; of a mask the pitch is in bits.
      const int least = gemm::is_mask(epilogue_.auxiliary) ? gemm::ceil_div(shape.n, 128) * 128 : shape.n;
      set_operation(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, api_.workspace);
      set_operation(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
                    std::int64_t{form.aux_pitch > 0 ? form.aux_pitch : least});
    }
    check_cublas(api_.lt_layout_create(&first_, data_type(type_of_b(form.types)), k_major_b ? k : n,
                                       k_major_b ? n : k, k_major_b ? shape.k : shape.n),
                 "cublasLtMatrixLayoutCreate");
    check_cublas(api_.lt_layout_create(&second_, data_type(form.types.a), k_major_a ? k : m,
                                       k_major_a ? m : k, k_major_a ? shape.k : shape.m),
                 "cublasLtMatrixLayoutCreate");
    check_cublas(
        api_.lt_layout_create(&result_, data_type(form.types.d), n, m, d_pitch > 0 ? d_pitch : shape.n),
        "cublasLtMatrixLayoutCreate");
    // With an fp8 D there is a C nevertheless, and it is bf16.
    check_cublas(api_.lt_layout_create(
                     &source_, gemm::is_fp8(form.types.d) ? CUDA_R_16BF : data_type(form.types.d), n, m,
                     form.c_pitch > 0 ? form.c_pitch
                     : d_pitch > 0    ? d_pitch
                                      : shape.n),
                 "cublasLtMatrixLayoutCreate");
  }
  ~MatmulProblem() {
    if (source_ != nullptr) api_.lt_layout_destroy(source_);
    if (result_ != nullptr) api_.lt_layout_destroy(result_);
    if (second_ != nullptr) api_.lt_layout_destroy(second_);
    if (first_ != nullptr) api_.lt_layout_destroy(first_);
    if (operation_ != nullptr) api_.lt_desc_destroy(operation_);
  }
  MatmulProblem(const MatmulProblem&) = delete;
  MatmulProblem& operator=(const MatmulProblem&) = delete;

  /// A batch of `count` such products: elements from one A to the next, and from one B and D.
  void make_batch(std::int32_t count, std::int64_t a, std::int64_t b, std::int64_t d) const {
    for (const auto& [layout, stride] :
         {std::pair{first_, b}, std::pair{second_, a}, std::pair{result_, d}, std::pair{source_, d}}) {
      check_cublas(api_.lt_layout_set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                   "cublasLtMatrixLayoutSetAttribute");
      check_cublas(
          api_.lt_layout_set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
          "cublasLtMatrixLayoutSetAttribute");
    }
  }

  /// What the heuristics propose, best guess first.
  std::vector<cublasLtMatmulHeuristicResult_t> ask(int count) const {
    cublasLtMatmulPreference_t preference = nullptr;
    check_cublas(api_.lt_preference_create(&preference), "cublasLtMatmulPreferenceCreate");
    const std::unique_ptr<void, std::function<void(void*)>> guard(
        preference, [this, preference](void*) { api_.lt_preference_destroy(preference); });
    const std::size_t workspace = kBaselineWorkspace;
    check_cublas(api_.lt_preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                        sizeof workspace),
                 "cublasLtMatmulPreferenceSetAttribute");
    // Split-K may add its parts in place or in a binary32 workspace, but not in bf16.
    const std::uint32_t reductions =
        CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    check_cublas(api_.lt_preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                        sizeof reductions),
                 "cublasLtMatmulPreferenceSetAttribute");
    std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(count));
    int returned = 0;
    const cublasStatus_t status = api_.lt_heuristic(api_.lt_handle, operation_, first_, second_, source_,
                                                    result_, preference, count, found.data(), &returned);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) returned = 0;  // it has nothing for this shape
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
    found.resize(static_cast<std::size_t>(returned));
    std::erase_if(found, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
    return found;
  }

  /// The scales of a problem. What cuBLASLt does not read from the device is read once and becomes alpha; the
  /// scales of matrices, which lie close together, are copied once.
  LtScales scales_of(const gemm::Problem& problem) const {
    if (types_.have_blocks()) return {.first = problem.scales_b, .second = problem.scales_a};
    if (problem.scales == nullptr) return {.alpha = epilogue_.alpha};
    float scales[3];
    copy_to_host(scales, problem.scales, sizeof scales);
    if (!has_scale_pointers()) return {.alpha = scales[0] * scales[1] * scales[2]};
    float slots[3 * kScaleSlot] = {};
    for (int i = 0; i < 3; ++i) slots[i * kScaleSlot] = scales[i];
    LtScales made{.alpha = gemm::is_fp8(types_.d) ? 1 : scales[2],
                  .slots = std::make_shared<const gemm::ptx::DeviceCopy>(slots, sizeof slots)};
    const auto* const copied = static_cast<const float*>(made.slots->memory());
    made.first = copied + kScaleSlot;
    made.second = copied;
    made.of_d = copied + 2 * kScaleSlot;
    return made;
  }

  /// `gradient`: [n], where the bias's goes, if the epilogue has one.
  void run(const gemm::Problem& problem, const LtScales& scales, const cublasLtMatmulAlgo_t& algorithm,
           gemm::ptx::Stream stream, gemm::bf16* gradient = nullptr) const {
    const gemm::bf16* const b = types_.has_weights() ? problem.wide_b : problem.b;
    const bool has_source = epilogue_.beta != 0;
    if (has_scale_pointers()) set_scales(scales);
    const bool own_source = has_source || gemm::is_fp8(types_.d);
    if (has_bias()) set_operation(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(problem.bias));
    if (has_gradient()) set_operation(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(gradient));
    if (has_tensor()) set_operation(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, problem.auxiliary);
    const Cublas& here = usable_cublas();  // of the device that the stream belongs to
    check_cublas(
        here.lt_matmul(here.lt_handle, operation_, &scales.alpha, b, first_, problem.a, second_,
                       &epilogue_.beta, has_source ? problem.c : problem.d, own_source ? source_ : result_,
                       problem.d, result_, &algorithm, here.workspace, kBaselineWorkspace, stream),
        "cublasLtMatmul");
  }

  /// "algo 66, 128x256, cluster 2x1, split-k 2"; ids that have no name here are printed as numbers.
  std::string describe(const cublasLtMatmulAlgo_t& algorithm) const {
    std::string text = fmt::format("algo {}, {}", config(algorithm, CUBLASLT_ALGO_CONFIG_ID),
                                   describe_tile(config(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID)));
    std::uint16_t cluster = 0;  // the one attribute of 16 bits
    std::size_t written = 0;
    const cublasStatus_t status = api_.lt_config_get(&algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID,
                                                     &cluster, sizeof cluster, &written);
    if (status == CUBLAS_STATUS_SUCCESS && cluster != 0) text += ", " + describe_cluster(cluster);
    const std::uint32_t split = config(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
    if (split > 1) text += fmt::format(", split-k {}", split);
    return text;
  }

 private:
  static cublasComputeType_t compute_type(gemm::Type type) {
    if (type == gemm::Type::kInt8) return CUBLAS_COMPUTE_32I;
    return type == gemm::Type::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  }
  /// It has no weights with scales: it multiplies what they replace, weights of A's type.
  static gemm::Type type_of_b(const gemm::Types& types) { return types.has_weights() ? types.a : types.b; }
  static cudaDataType data_type(gemm::Type type) {
    switch (type) {
      case gemm::Type::kBf16:
        return CUDA_R_16BF;
      case gemm::Type::kFp16:
        return CUDA_R_16F;
      case gemm::Type::kE4m3:
        return CUDA_R_8F_E4M3;
      case gemm::Type::kE5m2:
        return CUDA_R_8F_E5M2;
      case gemm::Type::kInt8:
        return CUDA_R_8I;
      case gemm::Type::kInt4:  // never asked for: type_of_b
      case gemm::Type::kE2m1:  // nobody has raced it
      case gemm::Type::kTf32:
      case gemm::Type::kFp32:
        return CUDA_R_32F;
    }
    return CUDA_R_32F;
  }
  /// cuBLASLt reads scales from the device where the operands are fp8; elsewhere their product is alpha.
  bool has_scale_pointers() const { return gemm::is_fp8(types_.a); }
  void set_scales(const LtScales& scales) const {
    set_operation(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(scales.first));
    set_operation(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(scales.second));
    // cuBLASLt refuses a scale of a D that is not fp8: it is alpha.
    if (gemm::is_fp8(types_.d))
      set_operation(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, static_cast<const void*>(scales.of_d));
  }
  bool has_bias() const { return epilogue_.bias == gemm::Bias::kColumn; }
  /// The sums over the rows of D: the bias that an epilogue has, or its gradient, has an element for each row
  /// of D^T.
  bool has_gradient() const { return has_bias_gradient(epilogue_); }
  bool has_tensor() const { return epilogue_.auxiliary != gemm::Auxiliary::kNone; }
  cublasLtEpilogue_t lt_epilogue() const {
    switch (epilogue_.auxiliary) {
      case gemm::Auxiliary::kPreActivation:
        return has_bias() ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      case gemm::Auxiliary::kMask:
        return has_bias() ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS : CUBLASLT_EPILOGUE_RELU_AUX;
      case gemm::Auxiliary::kPreActivationBackward:
        return has_gradient() ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
      case gemm::Auxiliary::kMaskBackward:
        return has_gradient() ? CUBLASLT_EPILOGUE_DRELU_BGRAD : CUBLASLT_EPILOGUE_DRELU;
      default:
        break;
    }
    switch (epilogue_.activation) {
      case gemm::Activation::kRelu:
        return has_bias() ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
      case gemm::Activation::kGelu:
        return has_bias() ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
      default:
        return has_bias() ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
  }

  template <typename Value>
  void set_operation(cublasLtMatmulDescAttributes_t attribute, const Value& value) const {
    check_cublas(api_.lt_desc_set(operation_, attribute, &value, sizeof value),
                 "cublasLtMatmulDescSetAttribute");
  }

  /// A 32-bit attribute; 0 when the algorithm has none.
  std::uint32_t config(const cublasLtMatmulAlgo_t& algorithm,
                       cublasLtMatmulAlgoConfigAttributes_t attribute) const {
    std::uint32_t value = 0;
    std::size_t written = 0;
    const cublasStatus_t status = api_.lt_config_get(&algorithm, attribute, &value, sizeof value, &written);
    return status == CUBLAS_STATUS_SUCCESS ? value : 0;
  }

  const Cublas& api_;
  gemm::Epilogue epilogue_;
  gemm::Types types_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr;   // B
  cublasLtMatrixLayout_t second_ = nullptr;  // A
  cublasLtMatrixLayout_t result_ = nullptr;  // D
  cublasLtMatrixLayout_t source_ = nullptr;  // C, with a row pitch of its own
};

}  // namespace

std::string cublas_version() {
  Library library("libcublasLt");
  decltype(::cublasLtGetVersion)* get = nullptr;
  library.find(get, "cublasLtGetVersion");
  if (get == nullptr) return "";
  const auto version = static_cast<unsigned>(get());
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string baselines_problem() {
  return cublas().problem;
}

Contestant cublas_default() {
  usable_cublas();
  return {.name = "cublas_default",
          .variant = "its own choice",
          .kind = ContestantKind::kBaseline,
          .prepare = [](const gemm::Gemm& problem) -> gemm::Launcher {
            return [problem](gemm::ptx::Stream stream) {
              const Cublas& api = usable_cublas();
              const auto [m, n, k] = problem.shape;
              const float one = 1;
              const float zero = 0;
              // Setting the stream takes the workspace away, so both are set, in this order.
              check_cublas(api.set_stream(api.handle, stream), "cublasSetStream");
              check_cublas(api.set_workspace(api.handle, api.workspace, kBaselineWorkspace),
                           "cublasSetWorkspace");
              check_cublas(api.gemm_ex(api.handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, problem.b,
                                       CUDA_R_16BF, k, problem.a, CUDA_R_16BF, k, &zero, problem.d,
                                       CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                           "cublasGemmEx");
            };
          }};
}

bool cublaslt_has(const gemm::Epilogue& epilogue) {
  const bool activation = epilogue.activation == gemm::Activation::kNone ||
                          epilogue.activation == gemm::Activation::kRelu ||
                          epilogue.activation == gemm::Activation::kGelu;
  if (!activation || epilogue.bias == gemm::Bias::kRow) return false;
  if (epilogue.has_more() && epilogue.beta != 0 && epilogue.auxiliary != gemm::Auxiliary::kPreActivation)
    return false;
  const bool is_backward = is_gradient(epilogue);
  if (epilogue.reduction != gemm::Reduction::kNone && !(is_backward && has_bias_gradient(epilogue)))
    return false;
  if (is_backward && epilogue.bias != gemm::Bias::kNone) return false;
  switch (epilogue.auxiliary) {
    case gemm::Auxiliary::kNone:
    case gemm::Auxiliary::kMaskBackward:
      return true;
    case gemm::Auxiliary::kPreActivation:
    case gemm::Auxiliary::kPreActivationBackward:
      return epilogue.activation == gemm::Activation::kGelu;
    case gemm::Auxiliary::kMask:
      return epilogue.activation == gemm::Activation::kRelu;
    default:
      return false;
  }
}

bool unfused_has(const gemm::Epilogue& epilogue) {
  if (!epilogue.has_more()) return true;
  if (epilogue.beta != 0 && epilogue.auxiliary != gemm::Auxiliary::kPreActivation) return false;
  if (epilogue.bias == gemm::Bias::kRow) return false;
  gemm::Epilogue rest = epilogue;
  rest.reduction = gemm::Reduction::kNone;
  if (epilogue.reduction != gemm::Reduction::kNone)
    return gemm::is_written(epilogue.reduction) && cublaslt_has(rest);
  const bool is_backward = epilogue.auxiliary == gemm::Auxiliary::kPreActivationBackward;
  return epilogue.auxiliary != gemm::Auxiliary::kGate &&
         (!is_backward || epilogue.activation == gemm::Activation::kGelu);
}

std::vector<Contestant> cublaslt_candidates(const gemm::Shape& shape, const ProblemForm& form,
                                            Accumulation accumulation) {
  const bool is_fp8 = gemm::is_fp8(form.types.a);
  // cuBLAS documentation, "128-element 1D and 128x128 2D Block Scaling": M and N are multiples of 4.
  if (form.types.have_blocks() && (usable_cublas().lt_version() < kCublasWithBlocks || shape.m % 4 != 0))
    return {};
  if (form.types.have_scale_pieces()) return {};  // nobody has raced such a step
  const bool fast = is_fp8 && accumulation == Accumulation::kFast;
  const auto matmul = std::make_shared<const MatmulProblem>(shape, form, fast);
  // The best is that with the accuracy of the kernels of the race.
  const bool same = !is_fp8 || fast == (form.types.promotion == 0);
  const bool has_gradient = has_bias_gradient(form.epilogue);
  const auto gradient = std::make_shared<const DeviceBuffer>(
      has_gradient ? sizeof(gemm::bf16) * static_cast<std::size_t>(shape.n) : 16, "the bias's gradient");
  std::vector<Contestant> candidates;
  for (const cublasLtMatmulHeuristicResult_t& result : matmul->ask(kRequestedAlgorithms)) {
    candidates.push_back({.name = same   ? "cublaslt_best"
                                  : fast ? "cublaslt_fast"
                                         : "cublaslt_promoted",
                          .variant = (fast     ? "fast accumulation, "
                                      : is_fp8 ? "full accumulation, "
                                      : form.types.has_weights()  // what weights of fewer bits replace
                                          ? fmt::format("weights in {}, ", gemm::name_of(form.types.a))
                                          : "") +
                                     matmul->describe(result.algo),
                          .kind = ContestantKind::kBaseline,
                          .prepare = [matmul, gradient, algorithm = result.algo](
                                         const gemm::Problem& problem) -> gemm::Launcher {
                            return [matmul, gradient, algorithm, problem,
                                    scales = matmul->scales_of(problem)](gemm::ptx::Stream stream) {
                              matmul->run(problem, scales, algorithm, stream, gradient->elements());
                            };
                          }});
    Contestant& made = candidates.back();
    // DGELU_BGRAD of cuBLASLt 13.1 rounds the product to bf16 before it multiplies by GELU's derivative, and
    // DGELU does not. A mask is written up to a row's last byte or further, whatever N is.
    made.allowance = {
        .product = has_gradient && form.epilogue.auxiliary == gemm::Auxiliary::kPreActivationBackward,
        .summands = has_gradient,
        .reduction = has_gradient,
        .slope = true,
        .padding = is_mask(form.epilogue.auxiliary)};
    if (has_gradient)
      made.deliver = [gradient](const gemm::Problem& problem, gemm::ptx::Stream stream) {
        launch_widening(gradient->elements(), problem.reduced, problem.reduced_length, stream);
      };
  }
  return candidates;
}

Contestant first_choice(const std::vector<Contestant>& candidates) {
  Contestant first = candidates.front();
  first.name = "cublaslt_first";
  return first;
}

namespace {

/// What the first of two kernels computes, and what of that the check has to allow for.
struct FirstOfTwo {
  gemm::Epilogue epilogue;
  Allowance allowance;
};

FirstOfTwo first_of_two(const gemm::Epilogue& epilogue) {
  if (!epilogue.has_more()) return {.epilogue = {}, .allowance = {.product = true}};
  gemm::Epilogue rest = epilogue;
  if (epilogue.reduction != gemm::Reduction::kNone) {
    rest.reduction = gemm::Reduction::kNone;
    return {.epilogue = rest, .allowance = {.summands = true, .slope = true}};
  }
  rest.auxiliary = gemm::Auxiliary::kNone;
  rest.activation = gemm::Activation::kNone;
  return {.epilogue = rest, .allowance = {.product = true}};
}

}  // namespace

std::vector<Contestant> cublaslt_unfused_candidates(const gemm::Shape& shape, const ProblemForm& form) {
  const FirstOfTwo first = first_of_two(form.epilogue);
  // The pre-activation is the product, and lies where that tensor is to be.
  const bool keeps = form.epilogue.auxiliary == gemm::Auxiliary::kPreActivation;
  if ((form.aux_pitch != 0 && form.aux_pitch != shape.n) || form.aux_offset != 0) return {};
  ProblemForm of_first;
  of_first.epilogue = first.epilogue;
  of_first.c_pitch = form.c_pitch;
  std::vector<Contestant> candidates = cublaslt_candidates(shape, of_first);
  for (Contestant& candidate : candidates) {
    candidate.name = "cublaslt_unfused";
    candidate.allowance = first.allowance;
    candidate.prepare = [multiply = candidate.prepare, first,
                         keeps](const gemm::Problem& problem) -> gemm::Launcher {
      gemm::Problem of_product = problem;
      of_product.epilogue = first.epilogue;
      if (keeps) of_product.d = static_cast<gemm::bf16*>(problem.auxiliary);
      gemm::Problem of_second = problem;
      if (problem.epilogue.has_more()) {  // the first one has done these
        of_second.epilogue.alpha = 1;
        of_second.epilogue.beta = 0;
        of_second.epilogue.bias = gemm::Bias::kNone;
        if (first.epilogue.activation == problem.epilogue.activation)
          of_second.epilogue.activation = gemm::Activation::kNone;
        if (first.epilogue.auxiliary == problem.epilogue.auxiliary)
          of_second.epilogue.auxiliary = gemm::Auxiliary::kNone;
      }
      return [product = multiply(of_product), of_second](gemm::ptx::Stream stream) {
        product(stream);
        launch_second(of_second, stream);
      };
    };
  }
  return candidates;
}

namespace {

/// The address of an element of a matrix of this type, whatever the pointer says.
const gemm::bf16* from_element(const gemm::bf16* matrix, gemm::Type type, std::int64_t element) {
  return reinterpret_cast<const gemm::bf16*>(reinterpret_cast<const std::uint8_t*>(matrix) +
                                             element * gemm::bytes_of(type));
}

/// The scales of a group's rows of A as cuBLASLt reads them: rows of scales without those of other groups,
/// each at a multiple of 16 bytes. They are copied once, not in each launch.
std::shared_ptr<const gemm::ptx::DeviceCopy> packed_scales(const gemm::Problem& part) {
  constexpr int kVector = 4;  // floats
  const auto blocks = static_cast<std::size_t>(gemm::ceil_div(part.shape.k, gemm::kScaleBlock));
  const auto pitch = static_cast<std::size_t>(gemm::ceil_div(part.shape.m, kVector) * kVector);
  std::vector<float> packed(blocks * pitch);
  for (std::size_t i = 0; i < blocks; ++i)
    copy_to_host(&packed[i * pitch], part.scales_a + static_cast<std::int64_t>(i) * part.scales_a_pitch,
                 static_cast<std::size_t>(part.shape.m) * sizeof(float));
  return std::make_shared<const gemm::ptx::DeviceCopy>(packed.data(), packed.size() * sizeof(float));
}

/// The groups that have rows, as problems of their own.
std::vector<gemm::Problem> parts_of(const gemm::Problem& problem) {
  const auto [m, n, k] = problem.shape;
  std::vector<gemm::Problem> parts;
  for (std::size_t i = 0; i < problem.groups.size(); ++i) {
    const gemm::GroupRows& rows = problem.groups[i];
    if (rows.count() == 0) continue;
    gemm::Problem part = problem;
    part.groups.clear();
    part.capacity = 0;
    part.shape.m = rows.count();
    const auto group = static_cast<int>(i);
    part.a = from_element(problem.a, problem.types.a, gemm::offset(rows.begin, 0, k));
    part.b = from_element(problem.b, problem.types.b, gemm::offset(group * n, 0, k));
    part.d += gemm::offset(rows.begin, 0, n);
    if (problem.types.have_blocks()) {
      part.scales_a += rows.begin;
      part.scales_b += group * gemm::ceil_div(n, gemm::kScaleBlock) * problem.scales_b_pitch;
    }
    parts.push_back(part);
  }
  return parts;
}

/// One call of cublasGemmGroupedBatchedEx: each group is a batch of one. cuBLAS documentation,
/// "cublasGemmGroupedBatchedEx": sizes and factors lie on the host, the arrays of addresses on the device.
struct GroupedCall {
  explicit GroupedCall(const std::vector<gemm::Problem>& parts)
      : count(static_cast<int>(parts.size())),
        transposed(parts.size(), CUBLAS_OP_T),
        plain(parts.size(), CUBLAS_OP_N),
        ones(parts.size(), 1),
        alpha(parts.size(), 1),
        beta(parts.size(), 0) {
    std::vector<const void*> a;
    std::vector<const void*> b;
    std::vector<void*> d;
    for (const gemm::Problem& part : parts) {
      rows.push_back(part.shape.m);
      n.push_back(part.shape.n);
      k.push_back(part.shape.k);
      a.push_back(part.a);
      b.push_back(part.b);
      d.push_back(part.d);
    }
    const std::size_t bytes = parts.size() * sizeof(void*);
    a_addresses = std::make_shared<gemm::ptx::DeviceCopy>(a.data(), bytes);
    b_addresses = std::make_shared<gemm::ptx::DeviceCopy>(b.data(), bytes);
    d_addresses = std::make_shared<gemm::ptx::DeviceCopy>(d.data(), bytes);
  }

  void run(const Cublas& api) const {
    check_cublas(api.gemm_grouped(
                     api.handle, transposed.data(), plain.data(), n.data(), rows.data(), k.data(),
                     alpha.data(), static_cast<const void* const*>(b_addresses->memory()), CUDA_R_16BF,
                     k.data(), static_cast<const void* const*>(a_addresses->memory()), CUDA_R_16BF, k.data(),
                     beta.data(), static_cast<void* const*>(const_cast<void*>(d_addresses->memory())),
                     CUDA_R_16BF, n.data(), count, ones.data(), CUBLAS_COMPUTE_32F),
                 "cublasGemmGroupedBatchedEx");
  }

  int count;
  std::vector<cublasOperation_t> transposed;
  std::vector<cublasOperation_t> plain;
  std::vector<int> rows, n, k;
  std::vector<int> ones;
  std::vector<float> alpha;
  std::vector<float> beta;
  std::shared_ptr<gemm::ptx::DeviceCopy> a_addresses;
  std::shared_ptr<gemm::ptx::DeviceCopy> b_addresses;
  std::shared_ptr<gemm::ptx::DeviceCopy> d_addresses;
};

}  // namespace

Contestant cublas_grouped() {
  return {.name = "cublas_grouped",
          .variant = "one call for all groups",
          .kind = ContestantKind::kBaseline,
          .prepare = [](const gemm::Problem& problem) -> gemm::Launcher {
            if (usable_cublas().gemm_grouped == nullptr)
              throw Error("this cuBLAS has no cublasGemmGroupedBatchedEx: it came with CUDA 12.5");
            return [call = GroupedCall(parts_of(problem))](gemm::ptx::Stream stream) {
              const Cublas& api = usable_cublas();
              check_cublas(api.set_stream(api.handle, stream), "cublasSetStream");
              check_cublas(api.set_workspace(api.handle, api.workspace, kBaselineWorkspace),
                           "cublasSetWorkspace");
              call.run(api);
            };
          }};
}

Contestant cublaslt_loop() {
  return {.name = "cublaslt_loop",
          .variant = "a launch for each group, in a graph",
          .kind = ContestantKind::kBaseline,
          .prepare = [](const gemm::Problem& problem) -> gemm::Launcher {
            struct Part {
              gemm::Problem problem;
              std::shared_ptr<const MatmulProblem> matmul;
              cublasLtMatmulAlgo_t algorithm;
              LtScales scales;
            };
            ProblemForm form;
            form.types = problem.types;
            std::vector<Part> parts;
            std::map<int, Part> by_rows;  // groups of one size are multiplied in one way
            for (const gemm::Problem& part : parts_of(problem)) {
              Part& like = by_rows[part.shape.m];
              if (like.matmul == nullptr) {
                like.matmul = std::make_shared<const MatmulProblem>(part.shape, form);
                const auto proposed = like.matmul->ask(1);
                if (proposed.empty())
                  throw Error(fmt::format("cuBLASLt proposes nothing for {}", to_string(part.shape)));
                like.algorithm = proposed.front().algo;
              }
              LtScales scales;
              if (part.types.have_blocks()) {
                scales.slots = packed_scales(part);
                scales.first = part.scales_b;
                scales.second = static_cast<const float*>(scales.slots->memory());
              }
              parts.push_back({part, like.matmul, like.algorithm, scales});
            }
            return [parts, graph = std::make_shared<gemm::ptx::Graph>()](gemm::ptx::Stream stream) {
              graph->launch(stream, [&parts](gemm::ptx::Stream on) {
                for (const Part& part : parts)
                  part.matmul->run(part.problem, part.scales, part.algorithm, on);
              });
            };
          }};
}

std::vector<Contestant> cublaslt_batch_candidates(const gemm::Shape& shape,
                                                  const std::vector<gemm::GroupRows>& groups) {
  const gemm::Shape one{groups.front().count(), shape.n, shape.k};
  const std::int64_t distance = groups.size() > 1 ? groups[1].begin - groups[0].begin : one.m;
  const auto matmul = std::make_shared<MatmulProblem>(one);
  matmul->make_batch(static_cast<std::int32_t>(groups.size()), distance * one.k,
                     gemm::offset(one.n, 0, one.k), distance * one.n);
  std::vector<Contestant> candidates;
  for (const cublasLtMatmulHeuristicResult_t& result : matmul->ask(kRequestedAlgorithms)) {
    candidates.push_back(
        {.name = "cublaslt_batch",
         .variant = fmt::format("one call for a strided batch, {}", matmul->describe(result.algo)),
         .kind = ContestantKind::kBaseline,
         .prepare = [matmul, algorithm = result.algo](const gemm::Problem& problem) -> gemm::Launcher {
           gemm::Problem first = problem;
           first.a += gemm::offset(problem.groups.front().begin, 0, problem.shape.k);
           first.d += gemm::offset(problem.groups.front().begin, 0, problem.shape.n);
           return [matmul, algorithm, first](gemm::ptx::Stream stream) {
             matmul->run(first, {}, algorithm, stream);
           };
         }});
  }
  return candidates;
}

std::vector<Contestant> cublaslt_chain_candidates(const gemm::Shape& shape, int layers) {
  if (shape.n % layers != 0) return {};  // its layers would have two shapes
  const gemm::Shape layer{shape.m, shape.n / layers, shape.k};
  const auto matmul = std::make_shared<const MatmulProblem>(layer, ProblemForm{}, false, shape.n);
  std::vector<Contestant> candidates;
  for (const cublasLtMatmulHeuristicResult_t& result : matmul->ask(kRequestedAlgorithms)) {
    candidates.push_back(
        {.name = "cublaslt_chain",
         .variant = fmt::format("{} launches in a graph, {}", layers, matmul->describe(result.algo)),
         .kind = ContestantKind::kBaseline,
         .prepare = [matmul, layers, layer,
                     algorithm = result.algo](const gemm::Problem& problem) -> gemm::Launcher {
           return [matmul, layers, layer, algorithm, problem,
                   graph = std::make_shared<gemm::ptx::Graph>()](gemm::ptx::Stream stream) {
             graph->launch(stream, [&](gemm::ptx::Stream on) {
               for (int i = 0; i < layers; ++i) {
                 gemm::Problem part = problem;
                 part.shape = layer;
                 part.b += gemm::offset(i * layer.n, 0, layer.k);
                 part.d += i * layer.n;
                 matmul->run(part, {}, algorithm, on);
               }
             });
           };
         }});
  }
  return candidates;
}

}  // namespace harness
