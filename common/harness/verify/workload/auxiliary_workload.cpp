#include "harness/verify/workload/auxiliary_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/verify/inputs.h"
#include "harness/verify/workload/guarded_buffer.h"

namespace harness {
namespace {

std::size_t elements_of(const InputRule& rule) {
  return static_cast<std::size_t>(gemm::offset(rule.rows, 0, rule.columns));
}

AuxRules rules_of_form(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                       const ProblemForm& form) {
  return aux_rules(shape, pattern, seed, form.epilogue, form.aux_pitch, form.bias_length, form.types.d,
                   form.c_pitch);
}

bool has_source(const ProblemForm& form) {
  return !form.in_place && (form.has_source || form.epilogue.beta != 0);
}

/// Of C, with what lies in front of it.
std::size_t source_elements(const gemm::Shape& shape, const ProblemForm& form) {
  return static_cast<std::size_t>(gemm::offset(shape.m, 0, std::max(form.c_pitch, shape.n)) + form.c_offset);
}

}  // namespace

AuxWorkload::AuxWorkload(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                         const ProblemForm& form)
    : form_(form), rules_(rules_of_form(shape, pattern, seed, form)) {
  constexpr std::size_t kSize = sizeof(gemm::bf16);
  const gemm::Epilogue& epilogue = form.epilogue;
  const gemm::Type d = form.types.d;
  a_ = std::make_unique<DeviceBuffer>(kSize * elements_of(rules_.base.a), "A");
  b_ = std::make_unique<DeviceBuffer>(kSize * elements_of(rules_.base.b), "B");
  if (rules_.base.bias.rows > 0)
    bias_ = std::make_unique<DeviceBuffer>(kSize * elements_of(rules_.base.bias), "bias");
  if (d != gemm::Type::kBf16) scales_ = std::make_unique<DeviceBuffer>(3 * sizeof(float), "scales");
  if (has_source(form)) c_ = std::make_unique<DeviceBuffer>(kSize * source_elements(shape, form), "C");
  d_ = std::make_unique<GuardedBuffer>(
      static_cast<std::size_t>(gemm::bytes_of(d) * gemm::offset(shape.m, 0, rules_.columns_of_d())), "D");
  tensor_ = std::make_unique<GuardedBuffer>(
      rules_.tensor_bytes(), "auxiliary tensor",
      static_cast<std::size_t>(gemm::is_mask(epilogue.auxiliary) ? form.aux_offset / 8
                                                                 : 2 * form.aux_offset));
  reduced_ = std::make_unique<GuardedBuffer>(
      sizeof(float) * static_cast<std::size_t>(gemm::reduced_elements(epilogue.reduction, shape)),
      "result of the reduction");
  fill_inputs();
  poison();
  // A kernel with beta = 0 that reads C computes NaN; on the emulator it is reported.
  if (has_c() && rules_.base.c.rows == 0) device_off_limits(c(), c_bytes());
}
AuxWorkload::~AuxWorkload() = default;

gemm::bf16* AuxWorkload::c() const {
  if (form_.in_place) return reinterpret_cast<gemm::bf16*>(d_->bytes());
  return has_c() ? c_->elements() + form_.c_offset : nullptr;
}

std::size_t AuxWorkload::c_bytes() const {
  return sizeof(gemm::bf16) *
         (source_elements(rules_.shape(), form_) - static_cast<std::size_t>(form_.c_offset));
}

void AuxWorkload::fill_inputs() {
  write_device(a_->bytes(), host_input(rules_.base.a));
  write_device(b_->bytes(), host_input(rules_.base.b));
  if (bias_) write_device(bias_->bytes(), host_input(rules_.base.bias));
  if (has_c() && rules_.base.c.rows == 0) fill_device(c(), kPoisonByte, c_bytes());
  if (has_c() && rules_.base.c.rows > 0) write_device(c(), host_input(rules_.base.c));
  if (gemm::is_read(rules_.epilogue().auxiliary)) write_device(tensor_->bytes(), aux_input(rules_));
  if (scales_) write_device(scales_->bytes(), std::vector<float>{1, 1, rules_.d_scale});
}

AuxRules AuxWorkload::rules_of(const gemm::Epilogue& epilogue) const {
  const gemm::Epilogue& own = rules_.epilogue();
  AuxRules rules = rules_;
  rules.base.epilogue = epilogue;
  const bool has_bias = epilogue.bias == gemm::Bias::kNone || epilogue.bias == own.bias;
  const bool has_tensor = epilogue.auxiliary == gemm::Auxiliary::kNone || epilogue.auxiliary == own.auxiliary;
  const bool has_result = !gemm::is_written(epilogue.reduction) || epilogue.reduction == own.reduction;
  const bool has_source = epilogue.beta == 0 || rules.base.c.rows > 0;
  if (!has_bias || !has_tensor || !has_result || !has_source || rules.columns_of_d() != rules_.columns_of_d())
    throw Error(
        fmt::format("the inputs are made for {}, but {} needs others: time the two one after the other",
                    to_string(own), to_string(epilogue)));
  return rules;
}

gemm::Problem AuxWorkload::problem(const gemm::Epilogue& epilogue) const {
  rules_of(epilogue);
  gemm::Problem problem;
  static_cast<gemm::Gemm&>(problem) = {rules_.shape(), a_->elements(), b_->elements(),
                                       reinterpret_cast<gemm::bf16*>(d_->bytes())};
  problem.epilogue = epilogue;
  problem.c = c();
  problem.c_pitch = std::max(form_.c_pitch, rules_.shape().n);
  problem.bias = bias_ ? bias_->elements() : nullptr;
  problem.bias_length = rules_.base.bias.columns;
  if (rules_.pitch > 0) problem.auxiliary = tensor_->bytes();
  problem.auxiliary_pitch = rules_.pitch;
  problem.reduced_length = static_cast<int>(reduced_->size() / sizeof(float));
  if (problem.reduced_length > 0) problem.reduced = reinterpret_cast<float*>(reduced_->bytes());
  problem.types.d = rules_.d;
  if (scales_) problem.scales = reinterpret_cast<const float*>(scales_->bytes());
  return problem;
}

void AuxWorkload::use_inputs(std::uint64_t seed) {
  if (seed == rules_.base.a.seed) return;
  rules_ = rules_of_form(rules_.shape(), rules_.base.a.pattern, seed, form_);
  fill_inputs();
}

void AuxWorkload::poison() {
  for (const GuardedBuffer* buffer : {d_.get(), tensor_.get(), reduced_.get()}) buffer->repair_guards();
  fill_device(d_->bytes(), kPoisonByte, d_->size());
  if (form_.in_place) write_device(c(), host_input(rules_.base.c));
  if (reduced_->size() > 0) fill_device(reduced_->bytes(), kPoisonByte, reduced_->size());
  const gemm::Auxiliary auxiliary = rules_.epilogue().auxiliary;
  if (!gemm::is_written(auxiliary)) return;
  std::vector<std::uint8_t> bytes(tensor_->size());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = aux_poison(auxiliary, i);
  write_device(tensor_->bytes(), bytes);
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
  image.a = read_device<gemm::bf16>(a_->bytes(), kSize * elements_of(rules_.base.a));
  image.b = read_device<gemm::bf16>(b_->bytes(), kSize * elements_of(rules_.base.b));
  if (bias_) image.bias = read_device<gemm::bf16>(bias_->bytes(), kSize * elements_of(rules_.base.bias));
  if (has_c()) image.c = read_device<gemm::bf16>(c(), c_bytes());
  image.before = d_->read_before();
  if (rules_.d == gemm::Type::kBf16) {
    image.d = read_device<gemm::bf16>(d_->bytes(), d_->size());
  } else {
    for (const std::uint8_t bits : read_device<std::uint8_t>(d_->bytes(), d_->size()))
      image.d.push_back(bits == kPoisonByte ? kPoison : gemm::to_bf16(gemm::to_float(gemm::e4m3{bits})));
  }
  image.after = d_->read_after();
  image.tensor_before = tensor_->read_before();
  image.tensor = read_device<std::uint8_t>(tensor_->bytes(), tensor_->size());
  image.tensor_after = tensor_->read_after();
  image.reduced_before = reduced_->read_before();
  image.reduced = read_device<float>(reduced_->bytes(), reduced_->size());
  image.reduced_after = reduced_->read_after();
  return image;
}

void AuxWorkload::restore(const AuxImage& image) {
  write_device(a_->bytes(), image.a);
  write_device(b_->bytes(), image.b);
  if (bias_) write_device(bias_->bytes(), image.bias);
  if (has_c()) write_device(c(), image.c);
  write_device(d_->before(), image.before);
  if (rules_.d == gemm::Type::kBf16) {
    write_device(d_->bytes(), image.d);
  } else {
    std::vector<std::uint8_t> bytes;
    for (const gemm::bf16 one : image.d)
      bytes.push_back(one.bits == kPoison.bits ? kPoisonByte : gemm::to_e4m3(gemm::to_float(one)).bits);
    write_device(d_->bytes(), bytes);
  }
  write_device(d_->after(), image.after);
  write_device(tensor_->before(), image.tensor_before);
  write_device(tensor_->bytes(), image.tensor);
  write_device(tensor_->after(), image.tensor_after);
  write_device(reduced_->before(), image.reduced_before);
  write_device(reduced_->bytes(), image.reduced);
  write_device(reduced_->after(), image.reduced_after);
}

std::int64_t aux_workload_bytes(const gemm::Shape& shape, const ProblemForm& form) {
  const gemm::Epilogue& epilogue = form.epilogue;
  const AuxRules rules = rules_of_form(shape, Pattern::kExact, 1, form);
  const std::int64_t elements =
      gemm::offset(shape.m, 0, shape.k) + gemm::offset(shape.n, 0, shape.k) +
      gemm::offset(shape.m, 0, rules.columns_of_d()) +
      static_cast<std::int64_t>(has_source(form) ? source_elements(shape, form) : 0);
  return elements * static_cast<std::int64_t>(sizeof(gemm::bf16)) +
         static_cast<std::int64_t>(rules.tensor_bytes() + 6 * kGuardBytes) +
         gemm::reduced_elements(epilogue.reduction, shape) * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace harness
