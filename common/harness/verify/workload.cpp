#include "harness/verify/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/backend/device_reference.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/verify/reference.h"

namespace harness {

/// Device memory that frees itself.
class DeviceBuffer {
 public:
  DeviceBuffer(std::size_t bytes, std::string_view name) : memory_(device_allocate(bytes, name)) {}
  ~DeviceBuffer() { device_free(memory_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  std::uint8_t* bytes() const { return static_cast<std::uint8_t*>(memory_); }
  gemm::bf16* elements() const { return static_cast<gemm::bf16*>(memory_); }

 private:
  void* memory_;
};

namespace {

std::size_t matrix_bytes(int rows, int columns) {
  return static_cast<std::size_t>(gemm::offset(rows, 0, columns)) * sizeof(gemm::bf16);
}

std::size_t checked_bytes(const gemm::Shape& shape) {
  if (shape.m < 1 || shape.n < 1 || shape.k < 1)
    throw Error(fmt::format("the shape {} is empty: every dimension must be at least 1", to_string(shape)));
  const std::int64_t needed = workload_bytes(shape);
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

void fill(const DeviceBuffer& buffer, const InputRule& rule) {
  if (device_fill(buffer.elements(), rule)) return;
  std::vector<gemm::bf16> slab;
  for_slabs(rule.rows, rule.columns, [&](int first, int rows) {
    slab.resize(static_cast<std::size_t>(gemm::offset(rows, 0, rule.columns)));
    fill_host(rule, first, rows, slab.data());
    copy_to_device(buffer.elements() + gemm::offset(first, 0, rule.columns), slab.data(),
                   matrix_bytes(rows, rule.columns));
  });
}

InputDamage find_damage(const DeviceBuffer& buffer, const InputRule& rule) {
  InputDamage damage;
  std::vector<gemm::bf16> slab;
  for_slabs(rule.rows, rule.columns, [&](int first, int rows) {
    slab.resize(static_cast<std::size_t>(gemm::offset(rows, 0, rule.columns)));
    copy_to_host(slab.data(), buffer.elements() + gemm::offset(first, 0, rule.columns),
                 matrix_bytes(rows, rule.columns));
    compare_input(rule, first, rows, slab.data(), damage);
  });
  return damage;
}

template <typename Element>
std::vector<Element> read(const void* device, std::size_t bytes) {
  std::vector<Element> host(bytes / sizeof(Element));
  copy_to_host(host.data(), device, bytes);
  return host;
}

}  // namespace

struct Workload::Impl {
  Impl(const gemm::Shape& shape_of_problem, Pattern pattern_of_inputs, std::uint64_t seed_of_inputs)
      : shape(shape_of_problem),
        pattern(pattern_of_inputs),
        seed(seed_of_inputs),
        a_rule(input_rule(pattern, seed, Operand::kA, shape.m, shape.k)),
        b_rule(input_rule(pattern, seed, Operand::kB, shape.n, shape.k)),
        a(checked_bytes(shape), "A"),
        b(matrix_bytes(shape.n, shape.k), "B"),
        guarded_d(d_bytes() + 2 * kGuardBytes, "D") {
    fill(a, a_rule);
    fill(b, b_rule);
    poison();
    device_off_limits(before(), kGuardBytes);
    device_off_limits(after(), kGuardBytes);
  }

  void use_inputs(std::uint64_t next) {
    if (next == seed) return;
    seed = next;
    a_rule = input_rule(pattern, seed, Operand::kA, shape.m, shape.k);
    b_rule = input_rule(pattern, seed, Operand::kB, shape.n, shape.k);
    fill(a, a_rule);
    fill(b, b_rule);
  }

  std::size_t d_bytes() const { return matrix_bytes(shape.m, shape.n); }
  std::uint8_t* before() const { return guarded_d.bytes(); }
  gemm::bf16* d() const { return reinterpret_cast<gemm::bf16*>(guarded_d.bytes() + kGuardBytes); }
  std::uint8_t* after() const { return guarded_d.bytes() + kGuardBytes + d_bytes(); }

  void poison() {
    const std::vector<std::uint8_t> band = guard_band();
    copy_to_device(before(), band.data(), kGuardBytes);
    fill_device(d(), kPoisonByte, d_bytes());
    copy_to_device(after(), band.data(), kGuardBytes);
  }

  // The reference must come from what the inputs should be, not from what a kernel may have made of them.
  const Acceptance& reference() {
    Acceptance& acceptance = acceptances[seed];
    if (!acceptance.low.empty()) return acceptance;
    const bool with_norm = !is_exact(pattern);
    acceptance = make_acceptance(shape, pattern);
    std::vector<double> value;
    std::vector<float> norm;
    std::vector<gemm::bf16> host_a;
    std::vector<gemm::bf16> host_b;
    for_slabs(shape.m, shape.n, [&](int first, int rows) {
      const auto elements = static_cast<std::size_t>(gemm::offset(rows, 0, shape.n));
      value.resize(elements);
      norm.resize(with_norm ? elements : 0);
      const gemm::Shape slab{rows, shape.n, shape.k};
      const gemm::Gemm on_device{slab, a.elements() + gemm::offset(first, 0, shape.k), b.elements(), nullptr};
      if (device_reference(on_device, value.data(), with_norm ? norm.data() : nullptr)) {
        spot_check(first, rows, value, norm);
      } else {
        host_a.resize(static_cast<std::size_t>(gemm::offset(rows, 0, shape.k)));
        fill_host(a_rule, first, rows, host_a.data());
        if (host_b.empty()) host_b = host_input(b_rule);
        host_reference({slab, host_a.data(), host_b.data(), nullptr}, value.data(),
                       with_norm ? norm.data() : nullptr);
      }
      accept_rows(acceptance, first, rows, value.data(), norm.data());
    });
    return acceptance;
  }

  // A sample of what the device computed, recomputed on the host: the reference is not believed blindly, and
  // it read its inputs from memory that kernels may have written.
  void spot_check(int first, int rows, const std::vector<double>& value,
                  const std::vector<float>& norm) const {
    constexpr std::uint64_t kSamples = 16;
    const Inputs inputs(a_rule, b_rule);
    for (std::uint64_t i = 0; i < kSamples; ++i) {
      const std::uint64_t bits = random_bits(a_rule.key ^ static_cast<std::uint64_t>(first), i);
      const int row = static_cast<int>((bits >> 32) % static_cast<std::uint64_t>(rows));
      const int column = static_cast<int>((bits & 0xffffffff) % static_cast<std::uint64_t>(shape.n));
      const auto index = static_cast<std::size_t>(gemm::offset(row, column, shape.n));
      double sum = 0;
      double sum_norm = 0;
      inputs.sum(first + row, column, sum, sum_norm);
      // Binary64 sums in different orders differ by far less than a thousandth of the bound.
      const double allowed = norm.empty() ? 0 : accumulation_error(shape.k, sum_norm) / 1000;
      const bool value_fits = std::abs(value[index] - sum) <= allowed;
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
  InputRule a_rule;
  InputRule b_rule;
  DeviceBuffer a;
  DeviceBuffer b;
  DeviceBuffer guarded_d;                           // guard band, D, guard band
  std::map<std::uint64_t, Acceptance> acceptances;  // by seed, each computed once
};

Workload::Workload(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed)
    : impl_(std::make_unique<Impl>(shape, pattern, seed)) {}
Workload::~Workload() = default;
Workload::Workload(Workload&&) noexcept = default;
Workload& Workload::operator=(Workload&&) noexcept = default;

gemm::Gemm Workload::gemm() const {
  return {impl_->shape, impl_->a.elements(), impl_->b.elements(), impl_->d()};
}

std::uint64_t Workload::seed() const {
  return impl_->seed;
}

void Workload::use_inputs(std::uint64_t seed) {
  impl_->use_inputs(seed);
}

void Workload::poison() {
  impl_->poison();
}

CheckResult Workload::check(const gemm::TileShape& tile) {
  synchronize();
  Verification verification(impl_->a_rule, impl_->b_rule, tile);
  verification.add_clue(take_emulator_clue());
  // Inputs first: the device's reference reads them.
  const InputDamage a = find_damage(impl_->a, impl_->a_rule);
  const InputDamage b = find_damage(impl_->b, impl_->b_rule);
  if (a.count > 0) fill(impl_->a, impl_->a_rule);
  if (b.count > 0) fill(impl_->b, impl_->b_rule);
  verification.check_values(impl_->reference(), read<gemm::bf16>(impl_->d(), impl_->d_bytes()).data());
  verification.check_guard(read<std::uint8_t>(impl_->before(), kGuardBytes).data(), true);
  verification.check_guard(read<std::uint8_t>(impl_->after(), kGuardBytes).data(), false);
  verification.check_input(Operand::kA, a);
  verification.check_input(Operand::kB, b);
  return verification.result();
}

RunImage Workload::image() const {
  RunImage image;
  image.a_rule = impl_->a_rule;
  image.b_rule = impl_->b_rule;
  image.a = read<gemm::bf16>(impl_->a.elements(), matrix_bytes(impl_->shape.m, impl_->shape.k));
  image.b = read<gemm::bf16>(impl_->b.elements(), matrix_bytes(impl_->shape.n, impl_->shape.k));
  image.before = read<std::uint8_t>(impl_->before(), kGuardBytes);
  image.d = read<gemm::bf16>(impl_->d(), impl_->d_bytes());
  image.after = read<std::uint8_t>(impl_->after(), kGuardBytes);
  return image;
}

void Workload::restore(const RunImage& image) {
  copy_to_device(impl_->a.elements(), image.a.data(), matrix_bytes(impl_->shape.m, impl_->shape.k));
  copy_to_device(impl_->b.elements(), image.b.data(), matrix_bytes(impl_->shape.n, impl_->shape.k));
  copy_to_device(impl_->before(), image.before.data(), kGuardBytes);
  copy_to_device(impl_->d(), image.d.data(), impl_->d_bytes());
  copy_to_device(impl_->after(), image.after.data(), kGuardBytes);
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
  workload.use_inputs(seed);
  return result;
}

std::int64_t workload_bytes(const gemm::Shape& shape) {
  const std::int64_t elements = gemm::offset(shape.m, 0, shape.k) + gemm::offset(shape.n, 0, shape.k) +
                                gemm::offset(shape.m, 0, shape.n);
  return elements * static_cast<std::int64_t>(sizeof(gemm::bf16)) +
         2 * static_cast<std::int64_t>(kGuardBytes);
}

}  // namespace harness
