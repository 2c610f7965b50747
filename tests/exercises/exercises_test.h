// The exercises of the table that is linked.
#pragma once

#include <string>
#include <vector>

#include "exercise.h"
#include "gemm/problem/step.h"
#include "table.h"

struct Checked {
  exercise::Exercise exercise;
  const gemm::Step* handed_out;
  const gemm::Step* solved;
  std::string expect;
};

inline const std::vector<Checked>& exercises() {
  static const std::vector<Checked> all = [] {
    std::vector<Checked> checked;
    for (unsigned i = 0; i < kExerciseCount; ++i) {
      const CheckedInTable& in = kExercises[i];
      const ExerciseInTable& exercise = in.exercise;
      checked.push_back({{exercise.step,
                          exercise.name,
                          {exercise.run.variant, exercise.run.shape, exercise.run.launches, exercise.run.sms,
                           exercise.run.groups},
                          {}},
                         &in.handed_out(),
                         &in.solved(),
                         in.expect});
      for (const char* rule : exercise.rules) {
        if (rule != nullptr) checked.back().exercise.rules.emplace_back(rule);
      }
    }
    return checked;
  }();
  return all;
}
