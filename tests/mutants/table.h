// A mutant as its file describes it. CMakeLists.txt generates the table of each step, a source of its own: so
// this header is included by many that contain nothing else, and includes nothing.
#pragma once

namespace gemm {
struct Step;
}

struct MutantInTable {
  const char* name;
  const gemm::Step& (*step)();
  const char* variant;
  const char* shape;
  int launches;
  int sms;
  const char* expect;   // an emulator rule or "mismatch"; "a|b": whichever the schedule meets first
  bool passes_bare;     // a bare --check does not notice it: known, and not liked
  const char* alpha;    // of the epilogue; "": what the step computes unless asked
  const char* beta;     // the same
  const char* groups;   // of rows, as --groups says them; "": none
  const char* pattern;  // of the inputs; "": exact, or normal where results are rounded
  const char* says;     // "empty[1]; k-tile 4": every text stands in every report; "a|b": one of them does
};

/// Those of one step.
extern const MutantInTable kMutants[];
extern const unsigned kMutantCount;
