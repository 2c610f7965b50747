// A CUDA graph of what a function launches.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "ptx/launch_shape.h"

namespace gemm::ptx {

/// Captures the launches of a function once for each stream, and launches the graph from then on. Edges
/// between dependent launches become programmatic. CUDA Runtime API, "Graph Management", "Stream Management":
/// cudaStreamBeginCapture.
class Graph {
 public:
  Graph() = default;
  ~Graph() {
    for (const auto& [stream, graph] : graphs_) cudaGraphExecDestroy(graph);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Throws std::runtime_error with the runtime's reason.
  void launch(Stream stream, const std::function<void(Stream)>& launches) {
    const std::lock_guard lock(mutex_);
    cudaGraphExec_t& graph = graphs_[stream];
    if (graph == nullptr) graph = capture(launches);
    check(cudaGraphLaunch(graph, stream), "launching the graph");
  }

 private:
  static void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // the runtime remembers it
    throw std::runtime_error(std::string(what) + " failed: " + cudaGetErrorString(status));
  }
  static cudaGraphExec_t capture(const std::function<void(Stream)>& launches) {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream to capture");
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    try {
      check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "beginning the capture");
      launches(stream);
      check(cudaStreamEndCapture(stream, &graph), "ending the capture");
      check(cudaGraphInstantiate(&executable, graph, 0), "making the graph executable");
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);  // after a launch that failed it must be ended, too
      cudaGetLastError();
      if (graph != nullptr) cudaGraphDestroy(graph);
      cudaStreamDestroy(stream);
      throw;
    }
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return executable;
  }

  std::mutex mutex_;
  std::map<Stream, cudaGraphExec_t> graphs_;
};

}  // namespace gemm::ptx
