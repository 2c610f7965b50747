#include "harness/verify/workload/auxiliary_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/backend/device_reference.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/verify/inputs.h"
#include "harness/verify/workload/device_buffer.h"

namespace harness {
namespace {

template <typename Element>
void put(void* device, const std::vector<Element>& host) {
  if (!host.empty()) copy_to_device(device, host.data(), host.size() * sizeof(Element));
}

template <typename Element>
std::vector<Element> get(const void* device, std::size_t bytes) {
  std::vector<Element> host(bytes / sizeof(Element));
  if (!host.empty()) copy_to_host(host.data(), device, bytes);
  return host;
}

std::size_t elements_of(const InputRule& rule) {
  return static_cast<std::size_t>(gemm::offset(rule.rows, 0, rule.columns));
}

}  // namespace

AuxWorkload::AuxWorkload(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                         const gemm::Epilogue& epilogue, int pitch, int offset, int bias_length, gemm::Type d)
    : rules_(aux_rules(shape, pattern, seed, epilogue, pitch, bias_length, d)),
      offset_(gemm::is_mask(epilogue.auxiliary) ? offset / 8 : 2 * offset) {
  constexpr std::size_t kSize = sizeof(gemm::bf16);
  a_ = std::make_unique<DeviceBuffer>(kSize * elements_of(rules_.base.a), "A");
  b_ = std::make_unique<DeviceBuffer>(kSize * elements_of(rules_.base.b), "B");
  if (rules_.base.bias.rows > 0)
    bias_ = std::make_unique<DeviceBuffer>(kSize * elements_of(rules_.base.bias), "bias");
  if (d != gemm::Type::kBf16) scales_ = std::make_unique<DeviceBuffer>(3 * sizeof(float), "scales");
  guarded_d_ = std::make_unique<DeviceBuffer>(d_bytes() + 2 * kGuardBytes, "D");
  guarded_tensor_ = std::make_unique<DeviceBuffer>(
      rules_.tensor_bytes() + static_cast<std::size_t>(offset_) + 2 * kGuardBytes, "auxiliary tensor");
  guarded_reduced_ =
      std::make_unique<DeviceBuffer>(reduced_bytes() + 2 * kGuardBytes, "result of the reduction");
  fill_inputs();
  poison();
  device_off_limits(guarded_reduced_->bytes(), kGuardBytes);
  device_off_limits(reduced() + reduced_bytes(), kGuardBytes);
  device_off_limits(guarded_d_->bytes(), kGuardBytes);
  device_off_limits(this->d() + d_bytes(), kGuardBytes);
  device_off_limits(guarded_tensor_->bytes(), kGuardBytes);
  device_off_limits(tensor() + rules_.tensor_bytes(), kGuardBytes);
}
AuxWorkload::~AuxWorkload() = default;

std::size_t AuxWorkload::d_bytes() const {
  return static_cast<std::size_t>(gemm::bytes_of(rules_.d)) *
         static_cast<std::size_t>(gemm::offset(rules_.base.a.rows, 0, rules_.columns_of_d()));
}
std::uint8_t* AuxWorkload::d() const {
  return guarded_d_->bytes() + kGuardBytes;
}
std::uint8_t* AuxWorkload::tensor() const {
  return guarded_tensor_->bytes() + kGuardBytes + offset_;
}

std::size_t AuxWorkload::reduced_bytes() const {
  return sizeof(float) *
         static_cast<std::size_t>(gemm::reduced_elements(rules_.epilogue().reduction, rules_.shape()));
}
std::uint8_t* AuxWorkload::reduced() const {
  return guarded_reduced_->bytes() + kGuardBytes;
}

void AuxWorkload::fill_inputs() {
  put(a_->bytes(), host_input(rules_.base.a));
  put(b_->bytes(), host_input(rules_.base.b));
  if (bias_) put(bias_->bytes(), host_input(rules_.base.bias));
  if (gemm::is_read(rules_.epilogue().auxiliary)) put(tensor(), aux_input(rules_));
  if (scales_) put(scales_->bytes(), std::vector<float>{1, 1, rules_.d_scale});
}

AuxRules AuxWorkload::rules_of(const gemm::Epilogue& epilogue) const {
  const gemm::Epilogue& own = rules_.epilogue();
  AuxRules rules = rules_;
  rules.base.epilogue = epilogue;
  const bool has_bias = epilogue.bias == gemm::Bias::kNone || epilogue.bias == own.bias;
  const bool has_tensor = epilogue.auxiliary == gemm::Auxiliary::kNone || epilogue.auxiliary == own.auxiliary;
  const bool has_result = !gemm::is_written(epilogue.reduction) || epilogue.reduction == own.reduction;
  if (!has_bias || !has_tensor || !has_result || epilogue.beta != 0 ||
      rules.columns_of_d() != rules_.columns_of_d())
    throw Error(
        fmt::format("the inputs are made for {}, but {} needs others: time the two one after the other",
                    to_string(own), to_string(epilogue)));
  return rules;
}

gemm::Problem AuxWorkload::problem(const gemm::Epilogue& epilogue) const {
  rules_of(epilogue);
  gemm::Problem problem;
  static_cast<gemm::Gemm&>(problem) = {rules_.shape(), a_->elements(), b_->elements(),
                                       reinterpret_cast<gemm::bf16*>(d())};
  problem.epilogue = epilogue;
  problem.bias = bias_ ? bias_->elements() : nullptr;
  problem.bias_length = rules_.base.bias.columns;
  if (rules_.pitch > 0) problem.auxiliary = tensor();
  problem.auxiliary_pitch = rules_.pitch;
  problem.reduced_length = static_cast<int>(reduced_bytes() / sizeof(float));
  if (problem.reduced_length > 0) problem.reduced = reinterpret_cast<float*>(reduced());
  problem.types.d = rules_.d;
  if (scales_) problem.scales = reinterpret_cast<const float*>(scales_->bytes());
  return problem;
}

void AuxWorkload::use_inputs(std::uint64_t seed) {
  if (seed == rules_.base.a.seed) return;
  rules_ = aux_rules(rules_.shape(), rules_.base.a.pattern, seed, rules_.epilogue(), rules_.pitch,
                     rules_.base.bias.columns, rules_.d);
  fill_inputs();
}

void AuxWorkload::poison() {
  put(guarded_d_->bytes(), guard_band());
  fill_device(d(), kPoisonByte, d_bytes());
  put(d() + d_bytes(), guard_band());
  put(guarded_tensor_->bytes(), guard_band());
  put(tensor() + rules_.tensor_bytes(), guard_band());
  put(guarded_reduced_->bytes(), guard_band());
  put(reduced() + reduced_bytes(), guard_band());
  if (reduced_bytes() > 0) fill_device(reduced(), kPoisonByte, reduced_bytes());
  const gemm::Auxiliary auxiliary = rules_.epilogue().auxiliary;
  if (!gemm::is_written(auxiliary)) return;
  std::vector<std::uint8_t> bytes(rules_.tensor_bytes());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = aux_poison(auxiliary, i);
  put(tensor(), bytes);
}

CheckResult AuxWorkload::check(const gemm::TileShape& tile, const gemm::Epilogue& epilogue,
                               const Allowance& allowance) {
  synchronize();
  const std::string clue = take_emulator_clue();
  const AuxRules rules = rules_of(epilogue);
  auto known = std::find_if(acceptances_.begin(), acceptances_.end(), [&](const auto& one) {
    return std::get<0>(one) == seed() && std::get<1>(one) == epilogue && std::get<2>(one) == allowance;
  });
  if (known == acceptances_.end())
    known = acceptances_.insert(known, {seed(), epilogue, allowance, aux_acceptance(rules, allowance)});
  CheckResult result = verify(rules, image(), std::get<3>(*known), tile);
  if (!result.ok) {
    fill_inputs();
    if (!clue.empty()) result.report += fmt::format("  Clue: {}\n", clue);
  }
  return result;
}

AuxImage AuxWorkload::image() const {
  constexpr std::size_t kSize = sizeof(gemm::bf16);
  AuxImage image;
  image.a = get<gemm::bf16>(a_->bytes(), kSize * elements_of(rules_.base.a));
  image.b = get<gemm::bf16>(b_->bytes(), kSize * elements_of(rules_.base.b));
  if (bias_) image.bias = get<gemm::bf16>(bias_->bytes(), kSize * elements_of(rules_.base.bias));
  image.before = get<std::uint8_t>(guarded_d_->bytes(), kGuardBytes);
  if (rules_.d == gemm::Type::kBf16) {
    image.d = get<gemm::bf16>(d(), d_bytes());
  } else {
    for (const std::uint8_t bits : get<std::uint8_t>(d(), d_bytes()))
      image.d.push_back(bits == kPoisonByte ? kPoison : gemm::to_bf16(gemm::to_float(gemm::e4m3{bits})));
  }
  image.after = get<std::uint8_t>(d() + d_bytes(), kGuardBytes);
  image.tensor_before = get<std::uint8_t>(guarded_tensor_->bytes(), kGuardBytes);
  image.tensor = get<std::uint8_t>(tensor(), rules_.tensor_bytes());
  image.tensor_after = get<std::uint8_t>(tensor() + rules_.tensor_bytes(), kGuardBytes);
  image.reduced_before = get<std::uint8_t>(guarded_reduced_->bytes(), kGuardBytes);
  image.reduced = get<float>(reduced(), reduced_bytes());
  image.reduced_after = get<std::uint8_t>(reduced() + reduced_bytes(), kGuardBytes);
  return image;
}

void AuxWorkload::restore(const AuxImage& image) {
  put(a_->bytes(), image.a);
  put(b_->bytes(), image.b);
  if (bias_) put(bias_->bytes(), image.bias);
  put(guarded_d_->bytes(), image.before);
  if (rules_.d == gemm::Type::kBf16) {
    put(d(), image.d);
  } else {
    std::vector<std::uint8_t> bytes;
    for (const gemm::bf16 one : image.d)
      bytes.push_back(one.bits == kPoison.bits ? kPoisonByte : gemm::to_e4m3(gemm::to_float(one)).bits);
    put(d(), bytes);
  }
  put(d() + d_bytes(), image.after);
  put(guarded_tensor_->bytes(), image.tensor_before);
  put(tensor(), image.tensor);
  put(tensor() + rules_.tensor_bytes(), image.tensor_after);
  put(guarded_reduced_->bytes(), image.reduced_before);
  put(reduced(), image.reduced);
  put(reduced() + reduced_bytes(), image.reduced_after);
}

std::int64_t aux_workload_bytes(const gemm::Shape& shape, const gemm::Epilogue& epilogue, int pitch) {
  const AuxRules rules = aux_rules(shape, Pattern::kExact, 1, epilogue, pitch);
  const std::int64_t elements = gemm::offset(shape.m, 0, shape.k) + gemm::offset(shape.n, 0, shape.k) +
                                gemm::offset(shape.m, 0, rules.columns_of_d());
  return elements * static_cast<std::int64_t>(sizeof(gemm::bf16)) +
         static_cast<std::int64_t>(rules.tensor_bytes() + 6 * kGuardBytes) +
         gemm::reduced_elements(epilogue.reduction, shape) * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace harness
