#include "harness/verify/injected_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/groups.h"
#include "harness/verify/reference.h"
#include "harness/verify/survey.h"
#include "harness/verify/workload/auxiliary_workload.h"
#include "harness/verify/workload/typed_workload.h"
#include "harness/verify/workload/workload.h"

namespace harness {
namespace {

constexpr int kSlice = 16;  // the K extent of one tensor-core instruction

gemm::bf16& element(RunImage& image, int row, int column) {
  return image.d[static_cast<std::size_t>(gemm::offset(row, column, image.b_rule.rows))];
}

std::vector<gemm::bf16> rounded_product(const gemm::Shape& shape, const std::vector<gemm::bf16>& a,
                                        const std::vector<gemm::bf16>& b) {
  std::vector<double> value(static_cast<std::size_t>(gemm::offset(shape.m, 0, shape.n)));
  host_reference({shape, a.data(), b.data(), nullptr}, value.data(), nullptr);
  std::vector<gemm::bf16> product;
  product.reserve(value.size());
  for (const double sum : value) product.push_back(gemm::to_bf16(static_cast<float>(sum)));
  return product;
}

/// Calls body(row, column) for the last tile: the bottom right one, ragged in both directions.
template <typename Body>
void for_last_tile(const gemm::Shape& shape, const gemm::TileShape& tile, const Body& body) {
  for (int row = (shape.m - 1) / tile.m * tile.m; row < shape.m; ++row) {
    for (int column = (shape.n - 1) / tile.n * tile.n; column < shape.n; ++column) body(row, column);
  }
}

void miss_tile(RunImage& image, const gemm::TileShape& tile) {
  for_last_tile(image.shape(), tile, [&](int row, int column) { element(image, row, column) = kPoison; });
}

void miss_last_slice(RunImage& image, const gemm::TileShape&) {
  const gemm::Shape shape = image.shape();
  std::vector<gemm::bf16> a = image.a;
  for (int row = 0; row < shape.m; ++row) {
    for (int k = std::max(0, shape.k - kSlice); k < shape.k; ++k)
      a[static_cast<std::size_t>(gemm::offset(row, k, shape.k))] = {0};
  }
  image.d = rounded_product(shape, a, image.b);
}

void make_nan(RunImage& image, const gemm::TileShape&) {
  element(image, image.shape().m / 2, 3) = {0x7fff};
}

void make_infinity(RunImage& image, const gemm::TileShape&) {
  element(image, 5, image.shape().n / 2) = {0xff80};
}

void step_once(RunImage& image, const gemm::TileShape&) {
  gemm::bf16& victim = element(image, image.shape().m - 1, image.shape().n - 1);
  victim.bits = static_cast<std::uint16_t>(victim.bits + ((victim.bits & 1) == 0 ? 1 : -1));
}

void transpose_fragment(RunImage& image, const gemm::TileShape&) {
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < row; ++column)
      std::swap(element(image, 8 + row, column), element(image, 8 + column, row));
  }
}

// What a kernel that stores nothing leaves behind: the poison, because D is poisoned before every run.
// Without that, the right result of the run before would still be there.
void store_nothing(RunImage& image, const gemm::TileShape&) {
  std::fill(image.d.begin(), image.d.end(), kPoison);
}

// The right result of an earlier run on other inputs.
void keep_old_result(RunImage& image, const gemm::TileShape&) {
  image.d = correct_image(image.shape(), image.a_rule.pattern, image.a_rule.seed + 1).d;
}

// One row too many, all ones.
void write_behind(RunImage& image, const gemm::TileShape&) {
  const auto row_bytes = sizeof(gemm::bf16) * static_cast<std::size_t>(image.shape().n);
  for (std::size_t byte = 0; byte < std::min(row_bytes, image.after.size()); ++byte)
    image.after[byte] = byte % 2 == 0 ? 0x80 : 0x3f;
}

void write_one_byte_in_front(RunImage& image, const gemm::TileShape&) {
  image.before.back() ^= 1;
}

void clobber(std::vector<gemm::bf16>& input) {
  input[input.size() / 2].bits ^= 1;
}

void swap_operands(RunImage& image, const gemm::TileShape&) {
  const gemm::Shape shape = image.shape();
  image.d = rounded_product({shape.n, shape.m, shape.k}, image.b, image.a);
}

// Stores with a row pitch that is 8 too large. What lands behind D is left out: that is another fault.
void store_with_wrong_pitch(RunImage& image, const gemm::TileShape&) {
  const gemm::Shape shape = image.shape();
  const std::vector<gemm::bf16> right = image.d;
  store_nothing(image, {});
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n; ++column) {
      const auto to = static_cast<std::size_t>(gemm::offset(row, column, shape.n + 8));
      if (to < image.d.size())
        image.d[to] = right[static_cast<std::size_t>(gemm::offset(row, column, shape.n))];
    }
  }
  // The gaps between the rows keep the right values, so that it is the values that must give it away.
  for (std::size_t i = 0; i < image.d.size(); ++i) {
    if (image.d[i].bits == kPoison.bits) image.d[i] = right[i];
  }
}

void read_with_wrong_pitch(RunImage& image, const gemm::TileShape&) {
  const gemm::Shape shape = image.shape();
  std::vector<gemm::bf16> a(image.a.size());
  for (int row = 0; row < shape.m; ++row) {
    for (int k = 0; k < shape.k; ++k) {
      const auto from = static_cast<std::size_t>(gemm::offset(row, k, shape.k + 8));
      a[static_cast<std::size_t>(gemm::offset(row, k, shape.k))] =
          from < a.size() ? image.a[from] : gemm::bf16{0};
    }
  }
  image.d = rounded_product(shape, a, image.b);
}

std::vector<InjectedFault> make_injected_faults() {
  return {
      {"missing tile", kNeverWritten, "the whole tile", false, miss_tile},
      {"missing last k-slice", kValue, "the end of K is missing", false, miss_last_slice},
      {"a NaN", kNan, "one element", false, make_nan},
      {"an infinity", kInfinity, "one element", false, make_infinity},
      {"one element, one bf16 step off", kValue, "1 bf16 step too", true, step_once},
      {"transposed fragment", kValue, "each 8 x 8 block is transposed", false, transpose_fragment},
      {"stale output, same inputs", kNeverWritten, "Nothing was stored at all", false, store_nothing},
      {"stale output, other inputs", kValue, "every element of D", false, keep_old_result},
      {"write past the end", kGuardAfter, "after D were overwritten", false, write_behind},
      {"write before the start", kGuardBefore, "before D was overwritten", false, write_one_byte_in_front},
      {"clobbered A", kInputA, "wrote to its input A", false,
       [](RunImage& image, const gemm::TileShape&) { clobber(image.a); }},
      {"clobbered B", kInputB, "wrote to its input B", false,
       [](RunImage& image, const gemm::TileShape&) { clobber(image.b); }},
      {"swapped operands", kValue, "the operands are swapped", false, swap_operands},
      {"wrong row pitch of D", kValue, "row pitch (leading dimension)", false, store_with_wrong_pitch},
      {"wrong row pitch of A", kValue, "A is read with a row pitch", false, read_with_wrong_pitch},
  };
}

/// D as it is when result(sum, row, column) is stored.
template <typename ResultAt>
void store_results(RunImage& image, const ResultAt& result) {
  const gemm::Shape shape = image.shape();
  std::vector<double> value(image.d.size());
  host_reference({shape, image.a.data(), image.b.data(), nullptr}, value.data(), nullptr);
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n; ++column) {
      const auto index = static_cast<std::size_t>(gemm::offset(row, column, shape.n));
      image.d[index] = gemm::to_bf16(static_cast<float>(result(value[index], row, column)));
    }
  }
}

/// D as it is when the epilogue is another one, or adds another C or bias at (row, column).
template <typename SourceAt, typename BiasAt>
void store_result(RunImage& image, const gemm::Epilogue& epilogue, const SourceAt& source,
                  const BiasAt& bias) {
  store_results(image, [&](double sum, int row, int column) {
    return epilogue_value(epilogue, sum, source(row, column), bias(row, column));
  });
}

/// The steps of an epilogue in another order: what it makes of these numbers.
using Reordered = double (*)(gemm::Epilogue epilogue, double sum, double c, double bias);

InjectedFault reordered(const char* name, const char* phrase, Reordered order) {
  return {name, kValue, phrase, false, [order](RunImage& image, const gemm::TileShape&) {
            const InputRules rules = image.rules();
            store_results(image, [&](double sum, int row, int column) {
              return order(rules.epilogue, sum, source_at(rules, row, column), bias_at(rules, row, column));
            });
          }};
}

using ChangeEpilogue = void (*)(gemm::Epilogue&);
/// The element that is read in place of C(row, column), or of the bias at it.
using Moved = Element (*)(const gemm::Shape& shape, const gemm::TileShape& tile, Element element);

InjectedFault changed_epilogue(const char* name, const char* phrase, ChangeEpilogue change) {
  return {name, kValue, phrase, false, [change](RunImage& image, const gemm::TileShape&) {
            gemm::Epilogue epilogue = image.epilogue;
            change(epilogue);
            const InputRules rules = image.rules();
            store_result(
                image, epilogue, [&](int row, int column) { return source_at(rules, row, column); },
                [&](int row, int column) { return bias_at(rules, row, column); });
          }};
}

InjectedFault moved_source(const char* name, const char* phrase, Moved moved) {
  return {name, kValue, phrase, false, [moved](RunImage& image, const gemm::TileShape& tile) {
            const InputRules rules = image.rules();
            const gemm::Shape shape = image.shape();
            store_result(
                image, image.epilogue,
                [&](int row, int column) {
                  const Element from = moved(shape, tile, {row, column});
                  return source_at(rules, from.row, from.column);
                },
                [&](int row, int column) { return bias_at(rules, row, column); });
          }};
}

InjectedFault moved_bias(const char* name, const char* phrase, Moved moved) {
  return {name, kValue, phrase, false, [moved](RunImage& image, const gemm::TileShape& tile) {
            const InputRules rules = image.rules();
            const gemm::Shape shape = image.shape();
            store_result(
                image, image.epilogue, [&](int row, int column) { return source_at(rules, row, column); },
                [&](int row, int column) {
                  const Element from = moved(shape, tile, {row, column});
                  return bias_at(rules, from.row, from.column);
                });
          }};
}

int round_up(int value, int multiple) {
  return gemm::ceil_div(value, multiple) * multiple;
}

}  // namespace

const std::vector<InjectedFault>& injected_faults() {
  static const std::vector<InjectedFault> kAll = make_injected_faults();
  return kAll;
}

std::vector<InjectedFault> faults_of_any_result() {
  std::vector<InjectedFault> faults;
  for (const InjectedFault& fault : injected_faults()) {
    if (fault.check != kValue) faults.push_back(fault);
  }
  return faults;
}

std::vector<InjectedFault> epilogue_faults(const gemm::Epilogue& epilogue) {
  std::vector<InjectedFault> faults;
  if (epilogue.alpha != 1)
    faults.push_back(changed_epilogue("alpha missing", "alpha is missing",
                                      [](gemm::Epilogue& changed) { changed.alpha = 1; }));
  if (epilogue.beta != 0) {
    faults.push_back(changed_epilogue("beta * C missing", "beta * C is missing",
                                      [](gemm::Epilogue& changed) { changed.beta = 0; }));
    if (epilogue.beta != 1)
      faults.push_back(changed_epilogue("C without beta", "beta is missing",
                                        [](gemm::Epilogue& changed) { changed.beta = 1; }));
    faults.push_back(moved_source("transposed C", "C is transposed", [](auto&, auto&, Element element) {
      return Element{element.column, element.row};
    }));
    faults.push_back(
        moved_source("C of the tile before", "C of the neighbouring tile",
                     [](auto&, const gemm::TileShape& tile, Element element) {
                       return Element{element.row, element.column - (element.column < tile.n ? 0 : tile.n)};
                     }));
    faults.push_back(moved_source("C of the subtile before", "C of the neighbouring subtile",
                                  [](auto&, auto&, Element element) {
                                    return Element{element.row, element.column - 64};
                                  }));
    faults.push_back(
        moved_source("wrong row pitch of C", "C is read with a row pitch",
                     [](const gemm::Shape& shape, auto&, Element element) {
                       const std::int64_t index = gemm::offset(element.row, element.column, shape.n + 8);
                       return Element{static_cast<int>(index / shape.n), static_cast<int>(index % shape.n)};
                     }));
    faults.push_back({"clobbered C", kInputC, "wrote to its input C", false,
                      [](RunImage& image, const gemm::TileShape&) { clobber(image.c); }});
  }
  if (epilogue.bias != gemm::Bias::kNone) {
    faults.push_back(moved_bias("bias missing", "the bias is missing", [](auto&, auto&, Element) {
      return Element{-1, -1};
    }));
    faults.push_back(
        moved_bias("bias by the wrong index", "indexed by the row", [](auto&, auto&, Element element) {
          return Element{element.column, element.row};
        }));
    faults.push_back(moved_bias("bias of the first tile", "indexed inside the tile",
                                [](auto&, const gemm::TileShape& tile, Element element) {
                                  return Element{element.row % tile.m, element.column % tile.n};
                                }));
    faults.push_back(moved_bias("bias of the subtile before", "the bias of the neighbouring subtile",
                                [](auto&, auto&, Element element) {
                                  return Element{element.row - 64, element.column - 64};
                                }));
    if (epilogue.alpha != 1)
      faults.push_back(reordered("the bias before alpha", "alpha multiplies the bias",
                                 [](gemm::Epilogue asked, double sum, double c, double bias) {
                                   return epilogue_value(asked, sum, c,
                                                         static_cast<double>(asked.alpha) * bias);
                                 }));
    faults.push_back({"clobbered bias", kInputBias, "wrote to its input bias", false,
                      [](RunImage& image, const gemm::TileShape&) { clobber(image.bias); }});
  }
  const bool bends = epilogue.activation != gemm::Activation::kNone;
  if (bends && epilogue.bias != gemm::Bias::kNone)
    faults.push_back(reordered("the bias after the activation", "before the bias is added",
                               [](gemm::Epilogue asked, double sum, double c, double bias) {
                                 return epilogue_value(asked, sum, c, 0) + bias;
                               }));
  if (bends && epilogue.beta != 0)
    faults.push_back(reordered("C after the activation", "before beta * C is added",
                               [](gemm::Epilogue asked, double sum, double c, double bias) {
                                 const double added = static_cast<double>(asked.beta) * c;
                                 asked.beta = 0;
                                 return epilogue_value(asked, sum, 0, bias) + added;
                               }));
  if (bends && epilogue.alpha != 1)
    faults.push_back(reordered("alpha after the activation", "alpha is applied after the activation",
                               [](gemm::Epilogue asked, double sum, double c, double bias) {
                                 const auto alpha = static_cast<double>(asked.alpha);
                                 asked.alpha = 1;
                                 return alpha * epilogue_value(asked, sum, c, bias);
                               }));
  if (bends)
    faults.push_back(
        changed_epilogue("activation missing", "the activation is missing",
                         [](gemm::Epilogue& changed) { changed.activation = gemm::Activation::kNone; }));
  if (epilogue.activation == gemm::Activation::kGeluErf || epilogue.activation == gemm::Activation::kSilu) {
    faults.push_back(
        changed_epilogue("another activation", "the activation is gelu",
                         [](gemm::Epilogue& changed) { changed.activation = gemm::Activation::kGelu; }));
    faults.back().random_only = true;
  }
  if (epilogue.activation == gemm::Activation::kRelu)
    faults.push_back(
        changed_epilogue("another activation", "the activation is leaky_relu",
                         [](gemm::Epilogue& changed) { changed.activation = gemm::Activation::kLeakyRelu; }));
  return faults;
}

namespace {

/// Row `row` of D becomes what row `from` of A and the B of `group` give.
void multiply_row(RunImage& image, int row, int from, int group) {
  const auto [m, n, k] = image.shape();
  std::vector<double> value(static_cast<std::size_t>(n));
  host_reference({{1, n, k},
                  image.a.data() + gemm::offset(from, 0, k),
                  image.b.data() + gemm::offset(group * n, 0, k),
                  nullptr},
                 value.data(), nullptr);
  for (int column = 0; column < n; ++column)
    image.d[static_cast<std::size_t>(gemm::offset(row, column, n))] =
        gemm::to_bf16(static_cast<float>(value[static_cast<std::size_t>(column)]));
}

void use_wrong_b(RunImage& image, const gemm::TileShape&) {
  const gemm::GroupRows last = image.groups.back();
  for (int row = last.begin; row < last.end; ++row) multiply_row(image, row, row, 0);
}

// What a tile of the first group leaves when it is as high as a tile, and comes last.
void overwrite_next_group(RunImage& image, const gemm::TileShape&) {
  const gemm::GroupRows next = image.groups[1];
  for (int row = next.begin; row < std::min(next.end, next.begin + 3); ++row)
    multiply_row(image, row, row, 0);
}

// Rows of A that are of no group hold NaN, and a kernel may find anything there.
void write_guard_row(RunImage& image, const gemm::TileShape&) {
  multiply_row(image, image.groups[1].end, image.groups[1].begin, 1);
}

void miss_group(RunImage& image, const gemm::TileShape&) {
  const gemm::GroupRows last = image.groups.back();
  const int n = image.shape().n;
  std::fill(image.d.begin() + gemm::offset(last.begin, 0, n), image.d.begin() + gemm::offset(last.end, 0, n),
            kPoison);
}

}  // namespace

std::vector<InjectedFault> group_faults() {
  return {{"B of another group", kValue, "are A times the B of group 0", false, use_wrong_b},
          {"tile past its group", kValue, "rows of group 1 are A times the B of group 0", false,
           overwrite_next_group},
          {"guard row written", kGuardRows, "after the last row of group 1", false, write_guard_row},
          {"missing group", kNeverWritten, "", false, miss_group}};
}

std::vector<gemm::GroupRows> grouped_fault_groups(const gemm::Shape& shape) {
  const int half = shape.m / 2;
  return {{0, half - 5}, {half - 5, half}, {half + 2, half + 2}, {half + 2, shape.m}};
}

std::vector<gemm::GroupRows> masked_fault_groups(const gemm::Shape& shape) {
  const int capacity = shape.m / kMaskedFaultGroups;
  return {{0, capacity},
          {capacity, 2 * capacity - 5},
          {2 * capacity, 2 * capacity},
          {3 * capacity, 4 * capacity}};
}

std::vector<gemm::GroupRows> strided_fault_groups(const gemm::Shape& shape) {
  constexpr int kProducts = 4;
  constexpr int kGuardRows = 2;
  const int rows = (shape.m - (kProducts - 1) * kGuardRows) / kProducts;
  std::vector<gemm::GroupRows> groups;
  for (int i = 0; i < kProducts; ++i)
    groups.push_back({i * (rows + kGuardRows), i * (rows + kGuardRows) + rows});
  return groups;
}

gemm::Epilogue fullest_epilogue(const gemm::EpilogueSupport& support) {
  gemm::Epilogue epilogue;
  if (support.alpha) epilogue.alpha = 2;
  if (support.source) epilogue.beta = -0.5F;
  if (!support.biases.empty()) epilogue.bias = support.biases.front();
  if (!support.activations.empty()) epilogue.activation = support.activations.front();
  return gemm::with_fixed(support, epilogue);
}

gemm::Shape injected_fault_shape(const gemm::Contract& contract, const gemm::TileShape& tile) {
  const int side_multiple = std::lcm(contract.m_multiple, contract.n_multiple);
  const int side = round_up(std::max(tile.m, tile.n) + 24, side_multiple);
  return {side, side, round_up(std::max(2 * tile.k, 64) + kSlice / 2, contract.k_multiple)};
}

Judgement judge(const std::string& check, const std::string& phrase, const CheckResult& result) {
  if (result.ok) return {false, "ACCEPTED"};
  if (result.failed != std::vector<std::string>{check})
    return {false, fmt::format("rejected by {}, not by {}", fmt::join(result.failed, ", "), check)};
  if (result.report.find(phrase) == std::string::npos)
    return {false, fmt::format("rejected by {}, but the report does not say '{}'", check, phrase)};
  return {true, fmt::format("rejected by {}", check)};
}

namespace {

/// Runs the variant and damages the result in all these ways; how many were not rejected as they must be, or
/// -1 where the result was wrong to begin with. `arguments` are those of Fault::damage after the image.
template <typename AnyWorkload, typename Damage, typename... Arguments>
int inject(AnyWorkload& workload, const gemm::Variant& variant, Pattern pattern,
           const std::vector<Fault<Damage>>& faults, const Arguments&... arguments) {
  workload.poison();
  prepare(variant, workload.problem())(nullptr);
  synchronize();
  const CheckResult undamaged = workload.check(variant.tile);
  fmt::print("  {:<40} {}\n", "(undamaged)", undamaged.ok ? "accepted" : "REJECTED");
  if (!undamaged.ok) {
    fmt::print("{}\nThe injected faults need a correct result to start from.\n", undamaged.report);
    return -1;
  }
  int failures = 0;
  const auto judge_damaged = [&](const Fault<Damage>& fault, const auto& damaged) {
    workload.restore(damaged);
    const Judgement judgement = judge(fault, workload.check(variant.tile));
    if (!judgement.ok) ++failures;
    fmt::print("  {:<40} {}\n", fault.name, judgement.text);
  };
  for_each_fault(faults, pattern, workload.image(), judge_damaged, arguments...);
  return failures;
}

/// The sum of what inject(pattern) returns for two patterns, or -1; prints what is injected into first.
template <typename Inject>
int inject_in_patterns(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
                       const std::string& details, const Inject& inject_in) {
  int failures = 0;
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
    fmt::print("{} {}, {}, pattern {}{}\n", step.name, variant.name, to_string(shape), to_string(pattern),
               details);
    const int more = inject_in(pattern);
    if (more < 0) return more;
    failures += more;
  }
  return failures;
}

int inject_plain(const gemm::Step& step, const gemm::Variant& variant, const gemm::Epilogue& epilogue,
                 const std::vector<InjectedFault>& faults, const std::vector<gemm::GroupRows>& groups = {},
                 int capacity = 0, std::uint64_t placement = 0) {
  const gemm::Shape shape = injected_fault_shape(step.contract, variant.tile);
  const std::string details = (epilogue.is_plain() ? "" : ", " + to_string(epilogue)) +
                              (groups.empty() ? "" : ", " + to_string(groups));
  return inject_in_patterns(step, variant, shape, details, [&](Pattern pattern) {
    Workload workload(shape, pattern, 1,
                      {.epilogue = epilogue, .groups = groups, .capacity = capacity, .placement = placement});
    return inject(workload, variant, pattern, faults, variant.tile);
  });
}

int inject_typed(const gemm::Step& step, const gemm::Variant& variant, const std::vector<TypedFault>& faults,
                 const std::vector<gemm::GroupRows>& groups = {}, int capacity = 0) {
  const gemm::Shape shape = injected_fault_shape(step.contract, variant.tile);
  const std::string details =
      ", " + to_string(variant.types) + (groups.empty() ? "" : ", " + to_string(groups));
  return inject_in_patterns(step, variant, shape, details, [&](Pattern pattern) {
    TypedWorkload workload(shape, variant.types, pattern, 1, true, false, groups, capacity);
    return inject(workload, variant, pattern, faults, workload.rules(), variant.tile);
  });
}

/// An epilogue with a tensor of its own, a gate, or a reduction. The tensor has padding between its rows.
int inject_auxiliary(const gemm::Step& step, const gemm::Variant& variant, const gemm::Epilogue& epilogue) {
  const gemm::Shape shape = fitting_shape(variant, injected_fault_shape(step.contract, variant.tile));
  const int pitch = gemm::is_mask(epilogue.auxiliary) ? 0 : shape.n + 8;
  return inject_in_patterns(step, variant, shape, ", " + to_string(epilogue), [&](Pattern pattern) {
    AuxWorkload workload(shape, pattern, 1,
                         {.epilogue = epilogue, .aux_pitch = pitch, .types = variant.types});
    return inject(workload, variant, pattern, aux_faults(epilogue, variant.types.d), workload.rules(),
                  variant.tile);
  });
}

}  // namespace

int run_injected_faults(const gemm::Step& step, const gemm::Variant& variant) {
  const bool plain = computes(variant, {});
  int failures = 0;
  if (!variant.types.are_bf16() && !narrows_d(variant.types)) {
    failures = inject_typed(step, variant, typed_faults(variant.types));
  } else if (plain) {
    failures = inject_plain(step, variant, {}, injected_faults());
  }
  const gemm::Epilogue fullest = fullest_epilogue(variant.epilogues);
  if (fullest.has_more()) {
    failures = inject_auxiliary(step, variant, fullest);
  } else if (failures >= 0 && !fullest.is_plain()) {
    std::vector<InjectedFault> faults = epilogue_faults(fullest);
    const std::vector<InjectedFault> others = faults_of_any_result();
    if (!plain) faults.insert(faults.end(), others.begin(), others.end());
    const int more = inject_plain(step, variant, fullest, faults);
    failures = more < 0 ? more : failures + more;
  }
  if (failures >= 0 && variant.takes_groups()) {
    const gemm::Shape shape = injected_fault_shape(step.contract, variant.tile);
    const bool masked = variant.groups == gemm::GroupForm::kMasked;
    const int capacity = masked ? shape.m / kMaskedFaultGroups : 0;
    const bool strided = variant.groups == gemm::GroupForm::kStrided;
    const auto groups = masked    ? masked_fault_groups(shape)
                        : strided ? strided_fault_groups(shape)
                                  : grouped_fault_groups(shape);
    const int more = variant.types.are_bf16()
                         ? inject_plain(step, variant, {}, group_faults(), groups, capacity,
                                        variant.takes_placed_groups() ? 1 : 0)
                         : inject_typed(step, variant, typed_group_faults(), groups, capacity);
    failures = more < 0 ? more : failures + more;
  }
  if (failures < 0) return kExitMismatch;
  fmt::print("{}\n", failures == 0 ? "Every damaged result was rejected for the right reason."
                                   : fmt::format("{} damaged results were not rejected for the right reason.",
                                                 failures));
  return failures == 0 ? kExitOk : kExitMismatch;
}

}  // namespace harness
