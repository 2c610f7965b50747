// A CUDA graph of what a function launches: the emulator's counterpart, which launches it anew each time.
#pragma once

#include <functional>

#include "ptx/launch_shape.h"

namespace gemm::ptx {

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(Stream stream, const std::function<void(Stream)>& launches) { launches(stream); }
};

}  // namespace gemm::ptx
