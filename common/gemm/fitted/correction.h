// The learned correction of a prediction by arithmetic: a network of two hidden layers, evaluated.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "gemm/fitted/learned_network.h"
#include "gemm/fitted/plan_features.h"
#include "gemm/fitted/prediction.h"

namespace gemm {

namespace learned {

constexpr bool fitted_to_these_features() {
  if (kInputs.size() != kPlanFeatures.size()) return false;
  for (std::size_t i = 0; i < kInputs.size(); ++i) {
    if (kInputs[i].feature != kPlanFeatures[i].name) return false;
  }
  return true;
}
static_assert(fitted_to_these_features(),
              "learned_network.h was fitted to features with other names, or in another order, than "
              "plan_features.h has: run tools/fit_choice.py");

/// A layer: biases, and the weights of every unit of the layer before.
template <std::size_t kFrom, std::size_t kTo>
struct Layer {
  std::array<float, kTo> biases;
  std::array<std::array<float, kTo>, kFrom> weights;  // [input][unit]

  constexpr Layer(const std::array<short, kFrom * kTo>& weight_numbers, double weight_unit,
                  const std::array<short, kTo>& bias_numbers, double bias_unit)
      : biases(), weights() {
    for (std::size_t to = 0; to < kTo; ++to) biases[to] = static_cast<float>(bias_numbers[to] * bias_unit);
    for (std::size_t i = 0; i < weight_numbers.size(); ++i)
      weights[i / kTo][i % kTo] = static_cast<float>(weight_numbers[i] * weight_unit);
  }
  std::array<float, kTo> sums(const std::array<float, kFrom>& inputs) const {
    std::array<float, kTo> sums = biases;
    for (std::size_t from = 0; from < kFrom; ++from) {
      if (inputs[from] == 0) continue;  // half of the units of a hidden layer are
      for (std::size_t to = 0; to < kTo; ++to) sums[to] += inputs[from] * weights[from][to];
    }
    return sums;
  }
};

/// The units of a hidden layer are 0 where their sum is negative.
template <std::size_t kUnits>
std::array<float, kUnits> units(std::array<float, kUnits> sums) {
  for (float& sum : sums) sum = std::max(sum, 0.0F);
  return sums;
}

inline constexpr Layer<kInputs.size(), kBiases1.size()> kHidden1(kWeights1, kWeightsUnit1, kBiases1,
                                                                 kBiasesUnit1);
inline constexpr Layer<kBiases1.size(), kBiases2.size()> kHidden2(kWeights2, kWeightsUnit2, kBiases2,
                                                                  kBiasesUnit2);
inline constexpr Layer<kBiases2.size(), 1> kOutput(kWeights3, kWeightsUnit3, kBiases3, kBiasesUnit3);

}  // namespace learned

/// The logarithm of how much longer a plan takes than arithmetic says.
inline double correction(const FittedTile& tile, const Prediction& arithmetic, const Shape& shape,
                         const Card& card) {
  const std::array values = features_of(tile, arithmetic, shape, card);
  std::array<float, values.size()> inputs;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const learned::Input& input = learned::kInputs[i];
    inputs[i] = static_cast<float>(
        std::clamp((values[i] - input.mean) * input.scale, -learned::kWidest, learned::kWidest));
  }
  const auto hidden_1 = learned::units(learned::kHidden1.sums(inputs));
  const auto hidden_2 = learned::units(learned::kHidden2.sums(hidden_1));
  return learned::kOutput.sums(hidden_2)[0];
}

}  // namespace gemm
