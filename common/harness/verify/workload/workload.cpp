#include "harness/verify/workload/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "gemm/problem/check_problem.h"
#include "harness/backend/backend.h"
#include "harness/backend/device_reference.h"
#include "harness/backend/emulator_control.h"
#include "harness/backend/outside_stores.h"
#include "harness/base/problem.h"
#include "harness/verify/reference.h"
#include "harness/verify/workload/auxiliary_workload.h"
#include "harness/verify/workload/guarded_buffer.h"
#include "harness/verify/workload/placed_memory.h"
#include "harness/verify/workload/typed_workload.h"

namespace harness {

namespace {

std::size_t matrix_bytes(int rows, int columns) {
  return static_cast<std::size_t>(gemm::offset(rows, 0, columns)) * sizeof(gemm::bf16);
}

void check_groups(const gemm::Shape& shape, const ProblemForm& form) {
  const std::string rule = form.capacity > 0 ? gemm::violated_capacity_rule(form.groups, form.capacity, shape)
                                             : gemm::violated_group_rule(form.groups, shape);
  if (!rule.empty()) throw Error(rule);
  if (form.placement != 0 && form.capacity > 0)
    throw Error(
        "groups either lie anywhere or each have room for equally many rows: leave out the @ or the /");
  if (!form.epilogue.is_plain() || form.has_source || form.has_bias || form.in_place)
    throw Error("a problem with groups has no epilogue: leave out alpha, beta, bias and activation");
}

std::size_t checked_bytes(const gemm::Shape& shape, const ProblemForm& form) {
  if (shape.m < 1 || shape.n < 1 || shape.k < 1)
    throw Error(fmt::format("the shape {} is empty: every dimension must be at least 1", to_string(shape)));
  const std::int64_t needed = workload_bytes(shape, form);
  const DeviceInfo device = device_info();
  if (device.memory_free_bytes > 0 && needed > device.memory_free_bytes) {
    throw Error(fmt::format("{} needs {} of device memory, but {} of {} are free on {}", to_string(shape),
                            human_bytes(static_cast<double>(needed)),
                            human_bytes(static_cast<double>(device.memory_free_bytes)),
                            human_bytes(static_cast<double>(device.memory_bytes)), device.name));
  }
  return matrix_bytes(shape.m, shape.k);
}

/// Calls body(first_row, rows) for slabs of at most kReferenceSlab elements.
template <typename Body>
void for_slabs(int rows, int columns, const Body& body) {
  const int step = static_cast<int>(std::clamp<std::size_t>(
      kReferenceSlab / static_cast<std::size_t>(columns), 1, static_cast<std::size_t>(rows)));
  for (int row = 0; row < rows; row += step) body(row, std::min(step, rows - row));
}

/// `elements` on the device, [rule.rows][rule.columns].
void fill(gemm::bf16* elements, const InputRule& rule) {
  if (rule.rows == 0 || device_fill(elements, rule)) return;
  std::vector<gemm::bf16> slab;
  for_slabs(rule.rows, rule.columns, [&](int first, int rows) {
    slab.resize(static_cast<std::size_t>(gemm::offset(rows, 0, rule.columns)));
    fill_host(rule, first, rows, slab.data());
    copy_to_device(elements + gemm::offset(first, 0, rule.columns), slab.data(),
                   matrix_bytes(rows, rule.columns));
  });
}

InputDamage find_damage(const gemm::bf16* elements, const InputRule& rule) {
  InputDamage damage;
  if (rule.rows == 0) return damage;
  std::vector<gemm::bf16> slab;
  for_slabs(rule.rows, rule.columns, [&](int first, int rows) {
    slab.resize(static_cast<std::size_t>(gemm::offset(rows, 0, rule.columns)));
    copy_to_host(slab.data(), elements + gemm::offset(first, 0, rule.columns),
                 matrix_bytes(rows, rule.columns));
    compare_input(rule, first, rows, slab.data(), damage);
  });
  return damage;
}

/// Calls body(first_row, rows) for rows of no group, as far as there are groups.
template <typename Body>
void for_guard_rows(const std::vector<gemm::GroupRows>& groups, int m, const Body& body) {
  if (groups.empty()) return;
  int row = 0;
  for (const gemm::GroupRows& group : groups) {
    if (row < group.begin) body(row, group.begin - row);
    row = std::max(row, group.end);
  }
  if (row < m) body(row, m - row);
}

/// The same of A, whose rows of no group are poison.
InputDamage find_damage_of_a(const gemm::bf16* elements, const InputRules& rules) {
  InputDamage damage;
  const int columns = rules.a.columns;
  std::vector<gemm::bf16> slab;
  for_groups(rules.groups, 0, rules.a.rows, [&](int, int begin, int count) {
    for_slabs(count, columns, [&](int first, int rows) {
      slab.resize(static_cast<std::size_t>(gemm::offset(rows, 0, columns)));
      copy_to_host(slab.data(), elements + gemm::offset(begin + first, 0, columns),
                   matrix_bytes(rows, columns));
      compare_input(rules.a, begin + first, rows, slab.data(), damage);
    });
  });
  for_guard_rows(rules.groups, rules.a.rows, [&](int begin, int count) {
    for_slabs(count, columns, [&](int first, int rows) {
      slab.resize(static_cast<std::size_t>(gemm::offset(rows, 0, columns)));
      copy_to_host(slab.data(), elements + gemm::offset(begin + first, 0, columns),
                   matrix_bytes(rows, columns));
      for (std::size_t i = 0; i < slab.size(); ++i) {
        if (slab[i].bits == kPoison.bits || damage.count++ > 0) continue;
        damage.row = begin + first + static_cast<int>(i) / columns;
        damage.column = static_cast<int>(i) % columns;
        damage.expected = kPoison;
        damage.got = slab[i];
      }
    });
  });
  return damage;
}

}  // namespace

namespace {

template <typename Element>
std::span<const std::uint8_t> as_bytes(const std::vector<Element>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(Element)};
}

}  // namespace

struct Workload::Impl {
  Impl(const gemm::Shape& shape_of_problem, Pattern pattern_of_inputs, std::uint64_t seed_of_inputs,
       const ProblemForm& form_of_problem)
      : shape(shape_of_problem),
        pattern(pattern_of_inputs),
        seed(seed_of_inputs),
        form(form_of_problem),
        first_seed(seed),
        rules(make_rules()),
        a(checked_bytes(shape, form), "A"),
        b(matrix_bytes(rules.b.rows, shape.k), "B"),
        guarded_d(matrix_bytes(shape.m, shape.n), "D") {
    if (has_c())
      c_memory = std::make_unique<DeviceBuffer>(
          c_bytes() + sizeof(gemm::bf16) * static_cast<std::size_t>(form.c_offset), "C");
    if (rules.bias.rows > 0)
      bias_memory = std::make_unique<DeviceBuffer>(matrix_bytes(1, rules.bias.columns), "bias");
    if (form.placement != 0) {
      if (form.groups.empty()) throw Error("a placement needs groups: give their sizes before the @");
      placed = std::make_unique<PlacedMemory>(shape, rules.groups, form.placement);
    }
    fill_inputs();
    poison();
    // A kernel with beta = 0 that reads C computes NaN; on the emulator it is reported.
    if (has_c() && rules.c.rows == 0) device_off_limits(c(), c_bytes());
  }

  InputRules make_rules() const {
    if (!form.groups.empty()) {
      check_groups(shape, form);
      return grouped_rules(shape, pattern, seed, groups_now());
    }
    gemm::Epilogue fullest = form.epilogue;
    int bias_length = form.bias_length;
    if (form.has_bias && fullest.bias == gemm::Bias::kNone) fullest.bias = gemm::Bias::kColumn;
    if (form.has_bias && bias_length == 0) bias_length = std::max(shape.m, shape.n);
    InputRules made = input_rules(shape, pattern, seed, fullest, form.c_pitch, bias_length);
    made.epilogue = form.epilogue;
    return made;
  }
  /// Groups with a capacity have each other's counts under each seed: they are data, like A and B.
  std::vector<gemm::GroupRows> groups_now() const {
    return form.capacity > 0 ? with_others_counts(form.groups, seed - first_seed) : form.groups;
  }
  bool has_c() const { return !form.in_place && (form.has_source || form.epilogue.beta != 0); }
  std::int64_t c_pitch() const { return form.c_pitch > 0 ? form.c_pitch : shape.n; }
  std::size_t c_bytes() const { return matrix_bytes(shape.m, static_cast<int>(c_pitch())); }
  gemm::bf16* c() const {
    if (form.in_place) return d();
    return c_memory ? c_memory->elements() + form.c_offset : nullptr;
  }
  gemm::bf16* bias() const { return bias_memory ? bias_memory->elements() : nullptr; }

  void fill_inputs() {
    fill(a.elements(), rules.a);
    // What a kernel makes of rows of no group must not matter.
    for_guard_rows(rules.groups, shape.m, [&](int first, int rows) {
      fill_device(a.elements() + gemm::offset(first, 0, shape.k), kPoisonByte, matrix_bytes(rows, shape.k));
    });
    if (form.capacity > 0) {
      std::vector<int> sizes;
      for (const gemm::GroupRows& group : rules.groups)
        sizes.push_back(unchecked_count(group.count(), form.capacity));
      if (!counts) counts = std::make_unique<DeviceBuffer>(sizes.size() * sizeof(int), "counts");
      copy_to_device(counts->bytes(), sizes.data(), sizes.size() * sizeof(int));
    }
    fill(b.elements(), rules.b);
    if (placed) {
      if (form.device_only) placed->move(form.placement + (seed - first_seed));
      placed->load(a.elements(), b.elements());
    }
    fill(bias(), rules.bias);
    if (!has_c()) return;
    if (rules.c.rows == 0) fill_device(c(), kPoisonByte, c_bytes());
    fill(c(), rules.c);
  }

  void use_inputs(std::uint64_t next) {
    if (next == seed) return;
    seed = next;
    rules = make_rules();
    fill_inputs();
  }

  gemm::Problem problem(const gemm::Epilogue& epilogue) const {
    gemm::Problem problem;
    static_cast<gemm::Gemm&>(problem) = {shape, a.elements(), b.elements(), d()};
    problem.epilogue = epilogue;
    problem.c = c();
    problem.c_pitch = c_pitch();
    problem.bias = bias();
    problem.bias_length = rules.bias.columns;
    problem.groups = rules.groups;
    problem.capacity = form.capacity;
    if (counts) problem.counts = reinterpret_cast<const int*>(counts->bytes());
    if (placed) {
      problem.a = nullptr;
      problem.b = nullptr;
      problem.d = nullptr;
      problem.groups.clear();
      problem.placed = placed->table();
      problem.placed_count = static_cast<int>(rules.groups.size());
      if (!form.device_only) problem.known = placed->groups();
    }
    if (form.has_bias && form.bias_length == 0)
      problem.bias_length = epilogue.bias == gemm::Bias::kRow ? shape.m : shape.n;
    return problem;
  }

  /// What a kernel did to C; where beta is 0 it is all poison.
  InputDamage find_damage_of_c() const {
    if (!has_c()) return {};
    if (rules.c.rows > 0) return find_damage(c(), rules.c);
    InputDamage damage;
    const std::vector<gemm::bf16> now = read_device<gemm::bf16>(c(), c_bytes());
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i].bits == kPoison.bits || damage.count++ > 0) continue;
      damage.row = static_cast<int>(static_cast<std::int64_t>(i) / c_pitch());
      damage.column = static_cast<int>(static_cast<std::int64_t>(i) % c_pitch());
      damage.expected = kPoison;
      damage.got = now[i];
    }
    return damage;
  }

  std::size_t d_bytes() const { return guarded_d.size(); }
  gemm::bf16* d() const { return reinterpret_cast<gemm::bf16*>(guarded_d.bytes()); }

  void poison() {
    guarded_d.repair_guards();
    fill_device(d(), kPoisonByte, d_bytes());
    if (placed) placed->poison_d();
    if (form.in_place) fill(d(), rules.c);
  }

  /// A group's product, whose N and K are at most those of its dense matrices; zeros beside it.
  static void own_reference(const gemm::GroupSize& size, const gemm::Shape& dense, const gemm::bf16* a,
                            const gemm::bf16* b, double* value, float* norm) {
    const auto packed = [&](const gemm::bf16* from, int rows) {
      std::vector<gemm::bf16> to;
      for (int row = 0; row < rows; ++row) {
        const gemm::bf16* const first = from + gemm::offset(row, 0, dense.k);
        to.insert(to.end(), first, first + size.k);
      }
      return to;
    };
    const std::vector<gemm::bf16> own_a = packed(a, dense.m);
    const std::vector<gemm::bf16> own_b = packed(b, size.n);
    const auto elements = static_cast<std::size_t>(gemm::offset(dense.m, 0, size.n));
    std::vector<double> values(elements);
    std::vector<float> norms(norm != nullptr ? elements : 0);
    host_reference({{dense.m, size.n, size.k}, own_a.data(), own_b.data(), nullptr}, values.data(),
                   norm != nullptr ? norms.data() : nullptr);
    for (int row = 0; row < dense.m; ++row) {
      std::copy_n(values.begin() + gemm::offset(row, 0, size.n), size.n,
                  value + gemm::offset(row, 0, dense.n));
      if (norm != nullptr)
        std::copy_n(norms.begin() + gemm::offset(row, 0, size.n), size.n,
                    norm + gemm::offset(row, 0, dense.n));
    }
  }

  // The reference must come from what the inputs should be, not from what a kernel may have made of them.
  const Acceptance& reference(const gemm::Epilogue& epilogue, bool through_bf16) {
    Acceptance& acceptance =
        acceptances[{seed, epilogue.alpha, epilogue.beta, epilogue.bias, epilogue.activation, through_bf16}];
    if (!acceptance.low.empty()) return acceptance;
    const bool with_norm = !is_exact(pattern);
    InputRules computed = rules;
    computed.epilogue = epilogue;
    const bool rounds = through_bf16 || !is_exact(pattern, epilogue);
    acceptance = make_acceptance(shape, rounds && is_exact(pattern) ? Pattern::kNormal : pattern, epilogue);
    acceptance.pattern = pattern;
    std::vector<double> value;
    std::vector<float> norm;
    std::vector<gemm::bf16> host_a;
    std::vector<gemm::bf16> host_b;
    for_slabs(shape.m, shape.n, [&](int first, int rows) {
      const auto elements = static_cast<std::size_t>(gemm::offset(rows, 0, shape.n));
      value.assign(elements, 0);
      norm.assign(with_norm ? elements : 0, 0);
      bool on_device = false;
      for_groups(rules.groups, first, rows, [&](int group, int row, int rows_of_group) {
        const gemm::Shape part{rows_of_group, shape.n, shape.k};
        const std::int64_t to = gemm::offset(row - first, 0, shape.n);
        double* const values = value.data() + to;
        float* const norms = with_norm ? norm.data() + to : nullptr;
        const std::int64_t of_b = gemm::offset(group * shape.n, 0, shape.k);
        const bool own_sizes = placed && placed->has_own_sizes();
        on_device =
            !own_sizes && device_reference(gemm::Gemm{part, a.elements() + gemm::offset(row, 0, shape.k),
                                                      b.elements() + of_b, nullptr},
                                           values, norms);
        if (on_device) return;
        host_a.resize(static_cast<std::size_t>(gemm::offset(rows_of_group, 0, shape.k)));
        fill_host(rules.a, row, rows_of_group, host_a.data());
        if (host_b.empty()) host_b = host_input(rules.b);
        if (own_sizes) {
          own_reference(placed->size_of(group), part, host_a.data(), host_b.data() + of_b, values, norms);
        } else {
          host_reference({part, host_a.data(), host_b.data() + of_b, nullptr}, values, norms);
        }
      });
      if (on_device) spot_check(first, rows, value, norm);
      accept_rows(acceptance, computed, through_bf16, first, rows, value.data(),
                  with_norm ? norm.data() : nullptr);
    });
    return acceptance;
  }

  // A sample of what the device computed, recomputed on the host: the reference is not believed blindly, and
  // it read its inputs from memory that kernels may have written.
  void spot_check(int first, int rows, const std::vector<double>& value,
                  const std::vector<float>& norm) const {
    constexpr std::uint64_t kSamples = 16;
    const Inputs inputs(rules);
    for (std::uint64_t i = 0; i < kSamples; ++i) {
      const std::uint64_t bits = random_bits(rules.a.key ^ static_cast<std::uint64_t>(first), i);
      const int row = static_cast<int>((bits >> 32) % static_cast<std::uint64_t>(rows));
      const int column = static_cast<int>((bits & 0xffffffff) % static_cast<std::uint64_t>(shape.n));
      const auto index = static_cast<std::size_t>(gemm::offset(row, column, shape.n));
      double sum = 0;
      double sum_norm = 0;
      inputs.sum(first + row, column, sum, sum_norm);
      // Binary64 sums in different orders differ by far less than a thousandth of the bound.
      const double allowed = norm.empty() ? 0 : accumulation_error(shape.k, sum_norm) / 1000;
      const bool value_fits = value[index] == sum || (std::isnan(value[index]) && std::isnan(sum)) ||
                              std::abs(value[index] - sum) <= allowed;
      const bool norm_fits =
          norm.empty() || std::abs(static_cast<double>(norm[index]) - sum_norm) <= 0.02 * sum_norm;
      if (value_fits && norm_fits) continue;
      throw Error(
          fmt::format("the reference computed on the device cannot be trusted: D({}, {}) of {}, pattern {}, "
                      "is {} (norm {}) there and {} (norm {}) on the host",
                      first + row, column, to_string(shape), to_string(pattern), value[index],
                      norm.empty() ? 0 : norm[index], sum, sum_norm));
    }
  }

  gemm::Shape shape;
  Pattern pattern;
  std::uint64_t seed;
  ProblemForm form;
  std::uint64_t first_seed;  // of the form's own counts
  InputRules rules;
  DeviceBuffer a;
  DeviceBuffer b;
  GuardedBuffer guarded_d;
  std::unique_ptr<DeviceBuffer> c_memory;  // of a form with C outside of D
  std::unique_ptr<DeviceBuffer> bias_memory;
  std::unique_ptr<DeviceBuffer> counts;  // of groups that have a capacity
  std::unique_ptr<PlacedMemory> placed;  // of groups that lie anywhere; a, b and d have them one by one
  // By seed, epilogue, and whether two kernels made D; each computed once.
  using Key = std::tuple<std::uint64_t, float, float, gemm::Bias, gemm::Activation, bool>;
  std::map<Key, Acceptance> acceptances;
};

ProblemForm form_of(const gemm::Step& step, const gemm::Variant& variant) {
  ProblemForm form;
  form.has_source = variant.epilogues.source;
  form.types = variant.types;
  gemm::Epilogue asked = gemm::with_fixed(variant.epilogues, step.epilogue);
  if (!variant.epilogues.source) asked.beta = 0;  // of a step some of whose variants have C
  if (computes(variant, asked)) form.epilogue = asked;
  return form;
}

Workload::Workload(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed, const ProblemForm& form) {
  if (form.in_place && (form.c_pitch != 0 || form.c_offset != 0))
    throw Error(
        "D is stored in place of C, so C has the row pitch and the address of D: leave out the pitch and the "
        "offset of C");
  if (form.in_place && form.epilogue.beta == 0)
    throw Error("D can be stored in place of C only if C is read: give a beta that is not 0");
  if ((form.types.are_bf16() || narrows_d(form.types)) && form.epilogue.has_more()) {
    checked_bytes(shape, form);
    if (form.epilogue.beta != 0 && form.epilogue.auxiliary != gemm::Auxiliary::kPreActivation)
      throw Error(
          fmt::format("the epilogue {} has no C: leave out beta and --in-place", to_string(form.epilogue)));
    if (form.in_place && form.types.d != gemm::Type::kBf16)
      throw Error(
          fmt::format("D can be stored in place of C only if both are bf16, but D is {}: leave out "
                      "--in-place",
                      gemm::name_of(form.types.d)));
    if (form.epilogue.auxiliary == gemm::Auxiliary::kGate && shape.n % 2 != 0)
      throw Error(fmt::format("a gate makes one column of D from two, but N is {}: N must be even", shape.n));
    auxiliary_ = std::make_unique<AuxWorkload>(shape, pattern, seed, form);
    return;
  }
  if (form.types.are_bf16()) {
    impl_ = std::make_unique<Impl>(shape, pattern, seed, form);
    return;
  }
  checked_bytes(shape, form);
  if (!form.groups.empty()) {
    if (!form.types.have_blocks() || form.placement != 0)
      throw Error(
          "a problem with groups needs operands in bf16, or in fp8 with scales of blocks and rows of one A: "
          "take a variant that has them");
    check_groups(shape, form);
  }
  if (!form.epilogue.is_plain() || form.has_source || form.in_place)
    throw Error(fmt::format("{} has scales and no other epilogue: leave out alpha, beta, bias and activation",
                            to_string(form.types)));
  typed_ = std::make_unique<TypedWorkload>(shape, form.types, pattern, seed, form.saturates,
                                           form.wide_weights, form.groups, form.capacity);
}
Workload::~Workload() = default;
Workload::Workload(Workload&&) noexcept = default;
Workload& Workload::operator=(Workload&&) noexcept = default;

gemm::Gemm Workload::gemm() const {
  return problem();
}

gemm::Problem Workload::problem() const {
  if (typed_) return typed_->problem();
  if (auxiliary_) return auxiliary_->problem();
  return problem(impl_->form.epilogue);
}

gemm::Problem Workload::problem(const gemm::Epilogue& epilogue) const {
  if (typed_) return typed_->problem();
  if (auxiliary_) return auxiliary_->problem(epilogue);
  return impl_->problem(epilogue);
}

std::uint64_t Workload::seed() const {
  if (typed_) return typed_->seed();
  if (auxiliary_) return auxiliary_->seed();
  return impl_->seed;
}

void Workload::use_inputs(std::uint64_t seed) {
  if (typed_) return typed_->use_inputs(seed);
  if (auxiliary_) return auxiliary_->use_inputs(seed);
  impl_->use_inputs(seed);
}

void Workload::poison() {
  if (typed_) return typed_->poison();
  if (auxiliary_) return auxiliary_->poison();
  impl_->poison();
}

namespace {

/// Erases the line that begins so.
void erase_line(std::string& text, std::string_view beginning) {
  const std::size_t begin = text.find(beginning);
  if (begin != std::string::npos) text.erase(begin, text.find('\n', begin) + 1 - begin);
}

CheckResult with_outside_stores(CheckResult result) {
  const std::string hint = take_outside_stores();
  const auto& failed = result.failed;
  if (!hint.empty() && std::find(failed.begin(), failed.end(), kNeverWritten) != failed.end()) {
    // What happened says more than what often happens.
    erase_line(result.report, fmt::format("  Hint: {}", kNoBlockStored));
    result.report += fmt::format("  Hint: {}\n", hint);
  }
  const std::string loads = take_outside_loads();
  if (!loads.empty() && hint.empty() && loads.find("more than a tile outside") != std::string::npos &&
      std::find(failed.begin(), failed.end(), kNeverWritten) != failed.end()) {
    erase_line(result.report, fmt::format("  Hint: {}", kNoBlockStored));
    result.report += fmt::format(
        "  Hint: {}, and tiles that lie outside D were computed: either a tile's number is turned into a "
        "position that the grid of tiles does not have (the last raster group is lower than the others), or "
        "there are more numbers than tiles. {}\n",
        kNoBlockStored, loads.substr(0, loads.find(" Does the map cover")));
  } else if (!loads.empty() && std::find(failed.begin(), failed.end(), kValue) != failed.end()) {
    // What happened explains it.
    erase_line(result.report, kNoMistakeFits);
    result.report += fmt::format("  Hint: {}\n", loads);
  }
  return result;
}

}  // namespace

CheckResult Workload::check(const gemm::TileShape& tile) {
  if (typed_) return with_outside_stores(typed_->check(tile));
  if (auxiliary_) return check(tile, auxiliary_->rules().epilogue());
  return check(tile, impl_->form.epilogue);
}

CheckResult Workload::check(const gemm::TileShape& tile, const gemm::Epilogue& epilogue,
                            const Allowance& allowance) {
  if (typed_) return check(tile);
  if (auxiliary_) return with_outside_stores(auxiliary_->check(tile, epilogue, allowance));
  synchronize();
  const InputRules& rules = impl_->rules;
  InputRules computed = rules;
  computed.epilogue = epilogue;
  Verification verification(computed, tile);
  verification.add_clue(take_emulator_clue());
  // Inputs first: the device's reference reads them.
  const InputDamage a = find_damage_of_a(impl_->a.elements(), rules);
  const InputDamage b = find_damage(impl_->b.elements(), rules.b);
  const InputDamage c = impl_->find_damage_of_c();
  const InputDamage bias = find_damage(impl_->bias(), rules.bias);
  std::vector<std::string> beside;
  if (impl_->placed) {
    beside = {impl_->placed->gather(impl_->d()), impl_->placed->changed_input(false),
              impl_->placed->changed_input(true)};
  }
  const bool placed_changed = impl_->placed && !(beside[1].empty() && beside[2].empty());
  if (a.count + b.count + c.count + bias.count > 0 || placed_changed) impl_->fill_inputs();
  verification.check_values(impl_->reference(epilogue, allowance.product),
                            read_device<gemm::bf16>(impl_->d(), impl_->d_bytes()).data());
  verification.check_guard(impl_->guarded_d.read_before().data(), true);
  verification.check_guard(impl_->guarded_d.read_after().data(), false);
  verification.check_input(Operand::kA, a);
  verification.check_input(Operand::kB, b);
  verification.check_input(Operand::kC, c);
  verification.check_input(Operand::kBias, bias);
  CheckResult result = with_outside_stores(verification.result());
  // The error that is observed is that of sums over all of K, which groups with a K of their own do not have.
  if (result.ok && impl_->placed && impl_->placed->has_own_sizes())
    result.summary.resize(std::min(result.summary.size(), result.summary.find(" (accumulator")));
  if (std::find(result.failed.begin(), result.failed.end(), kNeverWritten) != result.failed.end() &&
      result.report.find(kNoBlockStored) != std::string::npos && rules.groups.empty()) {
    std::string owners = tile_owners();
    // Their numbers are as they should be where the positions are not.
    if (result.report.find("tiles that lie outside D were computed") != std::string::npos)
      owners = owners.substr(0, owners.find(" When "));
    if (owners.find(kStepOfCtas) != std::string::npos)
      erase_line(result.report, fmt::format("  Hint: {}", kNoBlockStored));
    if (!owners.empty()) result.report += fmt::format("  Hint: {}\n", owners);
  }
  const auto has_failed = [&](const char* check) {
    return std::find(result.failed.begin(), result.failed.end(), check) != result.failed.end();
  };
  if (impl_->placed && has_failed(kValue) && is_exact(rules.a.pattern) && epilogue.is_plain()) {
    const std::string pitch =
        impl_->placed->explain_pitch(read_device<gemm::bf16>(impl_->d(), impl_->d_bytes()));
    if (!pitch.empty()) {
      erase_line(result.report, kNoMistakeFits);
      erase_line(result.report, kNanHint);  // the NaN has been explained
      result.report += fmt::format("  Fits: {}.\n", pitch);
    }
  }
  for (const std::string& sentence : beside) {
    if (sentence.empty()) continue;
    result.ok = false;
    result.failed.push_back(sentence.substr(0, sentence.find(':')));
    result.report += (result.report.empty() ? "" : "\n") + sentence;
    result.summary = sentence;
  }
  return result;
}

std::uint64_t Workload::hash_of_results() const {
  std::uint64_t hash = 0;
  const auto add = [&](const auto& values) {
    for (const std::uint8_t byte : as_bytes(values)) hash = mix64(hash ^ byte);
  };
  if (typed_) {
    add(typed_->image().d);
  } else if (auxiliary_) {
    const AuxImage now = auxiliary_->image();
    add(now.d);
    add(now.tensor);
    add(now.reduced);
  } else {
    add(image().d);
  }
  return hash;
}

TypedWorkload& Workload::typed() {
  return *typed_;
}

AuxWorkload& Workload::auxiliary() {
  return *auxiliary_;
}

RunImage Workload::image() const {
  RunImage image;
  image.a_rule = impl_->rules.a;
  image.b_rule = impl_->rules.b;
  image.epilogue = impl_->form.epilogue;
  image.c_rule = impl_->rules.c;
  image.bias_rule = impl_->rules.bias;
  image.groups = impl_->rules.groups;
  if (impl_->has_c()) image.c = read_device<gemm::bf16>(impl_->c(), impl_->c_bytes());
  if (impl_->bias() != nullptr)
    image.bias = read_device<gemm::bf16>(impl_->bias(), matrix_bytes(1, image.bias_rule.columns));
  image.a = read_device<gemm::bf16>(impl_->a.elements(), matrix_bytes(impl_->shape.m, impl_->shape.k));
  image.b = read_device<gemm::bf16>(impl_->b.elements(), matrix_bytes(impl_->rules.b.rows, impl_->shape.k));
  image.before = impl_->guarded_d.read_before();
  if (impl_->placed) impl_->placed->gather(impl_->d());
  image.d = read_device<gemm::bf16>(impl_->d(), impl_->d_bytes());
  image.after = impl_->guarded_d.read_after();
  return image;
}

void Workload::restore(const RunImage& image) {
  copy_to_device(impl_->a.elements(), image.a.data(), matrix_bytes(impl_->shape.m, impl_->shape.k));
  copy_to_device(impl_->b.elements(), image.b.data(), matrix_bytes(impl_->rules.b.rows, impl_->shape.k));
  write_device(impl_->guarded_d.before(), image.before);
  copy_to_device(impl_->d(), image.d.data(), impl_->d_bytes());
  if (impl_->placed) impl_->placed->scatter(impl_->d());
  write_device(impl_->guarded_d.after(), image.after);
  if (impl_->has_c()) copy_to_device(impl_->c(), image.c.data(), impl_->c_bytes());
  if (impl_->bias() != nullptr)
    copy_to_device(impl_->bias(), image.bias.data(), matrix_bytes(1, image.bias_rule.columns));
}

CheckResult launch_and_check(Workload& workload, const gemm::Launcher& launcher, int launches,
                             const gemm::TileShape& tile) {
  const std::uint64_t seed = workload.seed();
  CheckResult result;
  for (int i = 0; i < launches; ++i) {
    workload.use_inputs(seed + static_cast<std::uint64_t>(i));
    workload.poison();
    launcher(nullptr);
    result = workload.check(tile);
    if (result.ok) continue;
    if (i > 0) {
      const std::string which =
          fmt::format("launch {} of {} of one plan, with other inputs", i + 1, launches);
      result.summary = which + ": " + result.summary;
      result.report = which + "\n" + result.report;
    }
    break;
  }
  if (result.ok) check_workspaces();
  workload.use_inputs(seed);
  return result;
}

CheckResult launch_in_streams(Workload& workload, const gemm::Variant& variant, const gemm::TileShape& tile) {
  struct Scope {
    Scope() { begin_streams_at_once(); }
    ~Scope() { end_streams_at_once(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };
  static char streams[2];  // the emulator runs one launch behind the other, and only tells streams apart
  const auto first = reinterpret_cast<gemm::ptx::Stream>(&streams[0]);
  const auto second = reinterpret_cast<gemm::ptx::Stream>(&streams[1]);
  const Scope scope;
  const gemm::Launcher plan = gemm::prepare(variant, workload.problem());
  const gemm::Launcher other = gemm::prepare(variant, workload.problem());
  workload.poison();
  plan(first);
  plan(second);
  workload.use_inputs(workload.seed());
  workload.poison();
  other(second);
  return workload.check(tile);
}

std::int64_t workload_bytes(const gemm::Shape& shape, const ProblemForm& form) {
  if (!form.types.are_bf16() && !narrows_d(form.types))
    return typed_workload_bytes(shape, form.types,
                                static_cast<int>(std::max<std::size_t>(1, form.groups.size())));
  if (form.epilogue.has_more()) return aux_workload_bytes(shape, form);
  const bool has_c = !form.in_place && (form.has_source || form.epilogue.beta != 0);
  const auto groups = static_cast<std::int64_t>(std::max<std::size_t>(1, form.groups.size()));
  const std::int64_t elements =
      gemm::offset(shape.m, 0, shape.k) + groups * gemm::offset(shape.n, 0, shape.k) +
      gemm::offset(shape.m, 0, shape.n) +
      (has_c ? gemm::offset(shape.m, 0, std::max(form.c_pitch, shape.n)) + form.c_offset : 0);
  const std::int64_t placed =
      form.placement != 0 ? placed_elements(shape, static_cast<int>(form.groups.size())) : 0;
  return (elements + placed) * static_cast<std::int64_t>(sizeof(gemm::bf16)) +
         2 * static_cast<std::int64_t>(kGuardBytes);
}

}  // namespace harness
