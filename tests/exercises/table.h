// An exercise with the kernel that it begins with and the step's own. CMakeLists.txt generates the table of
// each step, a source of its own: so this header is included by many that contain nothing else, and includes
// nothing.
#pragma once

namespace gemm {
struct Step;
}

/// Like exercise::Exercise.
struct ExerciseInTable {
  const char* step;
  const char* name;
  struct {
    const char* variant;
    const char* shape;
    int launches;
    int sms;
    const char* groups;
  } run;
  const char* rules[8];  // the rest is nullptr
};

struct CheckedInTable {
  ExerciseInTable exercise;
  const gemm::Step& (*handed_out)();
  const gemm::Step& (*solved)();
  const char* expect;  // as in a mutant; "rule": it is right, but not what is asked for
};

/// Those of one step, named like their tests: 11_ring.
extern const CheckedInTable kExercises[];
extern const unsigned kExerciseCount;
