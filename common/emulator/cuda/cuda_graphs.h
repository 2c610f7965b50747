// Graphs of the CUDA runtime on the emulator: captured from streams or built of kernels, copies, fills, host
// functions, allocations, conditions and other graphs.
//
// CUDA Runtime API; CUDA C++ Programming Guide, "CUDA Graphs".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cuda_runtime_more.h"
#include "cuda_textures.h"
#include "emulator/instrument/streams.h"

// The names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)

using cudaGraph_t = CUgraph_st*;
using cudaGraphNode_t = CUgraphNode_st*;
using cudaGraphExec_t = CUgraphExec_st*;

inline constexpr cudaError_t cudaErrorGraphExecUpdateFailure = static_cast<cudaError_t>(910);

enum cudaGraphNodeType {
  cudaGraphNodeTypeKernel,
  cudaGraphNodeTypeMemcpy,
  cudaGraphNodeTypeMemset,
  cudaGraphNodeTypeHost,
  cudaGraphNodeTypeGraph,
  cudaGraphNodeTypeEmpty,
  cudaGraphNodeTypeMemAlloc = 10,
  cudaGraphNodeTypeMemFree,
  cudaGraphNodeTypeConditional = 13
};
struct cudaKernelNodeParams {
  void* func = nullptr;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes = 0;
  void** kernelParams = nullptr;
  void** extra = nullptr;
};
struct cudaMemsetParams {
  void* dst = nullptr;
  std::size_t pitch = 0;
  unsigned value = 0, elementSize = 1;
  std::size_t width = 0, height = 1;  // width counts elements
};
struct cudaHostNodeParams {
  cudaHostFn_t fn = nullptr;
  void* userData = nullptr;
};

inline cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = emulator_cuda::make_graph();
  return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  emulator_cuda::destroy_graph(graph);
  return cudaSuccess;
}
inline cudaError_t cudaGraphClone(cudaGraph_t* copy, cudaGraph_t graph) {
  *copy = emulator_cuda::clone_graph(graph);
  return cudaSuccess;
}

namespace emulator_cuda {
inline Operation operation_of(const cudaKernelNodeParams& node) {
  return grid_of_kernel_at(node.func, config(node.gridDim, node.blockDim, node.sharedMemBytes).shape,
                           node.kernelParams);
}
inline Operation operation_of(const cudaMemsetParams& node) {
  return [node] {
    for (std::size_t row = 0; row < std::max<std::size_t>(1, node.height); ++row) {
      char* memory = static_cast<char*>(node.dst) + row * node.pitch;
      const std::size_t bytes = node.width * node.elementSize;
      const auto* value = reinterpret_cast<const unsigned char*>(&node.value);
      if (std::all_of(value, value + node.elementSize, [&](unsigned char byte) { return byte == *value; })) {
        set(memory, *value, bytes);
        continue;
      }
      std::string pattern(bytes, '\0');
      for (std::size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<char>(value[i % node.elementSize]);
      copy(memory, pattern.data(), bytes);
    }
  };
}
inline Operation operation_of(const cudaMemcpy3DParms& node) {
  return [node] { cudaMemcpy3D(&node); };
}
inline Operation operation_of(const cudaHostNodeParams& node) {
  return [node] { node.fn(node.userData); };
}
}  // namespace emulator_cuda

#define EMULATOR_NODE(name, kind)                                                                       \
  inline cudaError_t cudaGraphAdd##name##Node(cudaGraphNode_t* node, cudaGraph_t graph,                 \
                                              const cudaGraphNode_t* after, std::size_t count,          \
                                              const EMULATOR_PARAMETERS_##name* parameters) {           \
    *node = emulator_cuda::add_node(graph, emulator_cuda::NodeKind::kind, after, count,                 \
                                    emulator_cuda::operation_of(*parameters));                          \
    return cudaSuccess;                                                                                 \
  }                                                                                                     \
  inline cudaError_t cudaGraph##name##NodeSetParams(cudaGraphNode_t node,                               \
                                                    const EMULATOR_PARAMETERS_##name* parameters) {     \
    emulator_cuda::set_operation(node, emulator_cuda::operation_of(*parameters));                       \
    return cudaSuccess;                                                                                 \
  }                                                                                                     \
  inline cudaError_t cudaGraphExec##name##NodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node, \
                                                        const EMULATOR_PARAMETERS_##name* parameters) { \
    emulator_cuda::set_operation(instance, node, emulator_cuda::operation_of(*parameters));             \
    return cudaSuccess;                                                                                 \
  }
#define EMULATOR_PARAMETERS_Kernel cudaKernelNodeParams
#define EMULATOR_PARAMETERS_Memset cudaMemsetParams
#define EMULATOR_PARAMETERS_Memcpy cudaMemcpy3DParms
#define EMULATOR_PARAMETERS_Host cudaHostNodeParams
EMULATOR_NODE(Kernel, kKernel)
EMULATOR_NODE(Memset, kMemset)
EMULATOR_NODE(Memcpy, kMemcpy)
EMULATOR_NODE(Host, kHost)
#undef EMULATOR_NODE
#undef EMULATOR_PARAMETERS_Kernel
#undef EMULATOR_PARAMETERS_Memset
#undef EMULATOR_PARAMETERS_Memcpy
#undef EMULATOR_PARAMETERS_Host

inline cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                            const cudaGraphNode_t* after, std::size_t count, void* to,
                                            const void* from, std::size_t bytes, cudaMemcpyKind) {
  *node = emulator_cuda::add_node(graph, emulator_cuda::NodeKind::kMemcpy, after, count,
                                  [=] { emulator_cuda::copy(to, from, bytes); });
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                         const cudaGraphNode_t* after, std::size_t count) {
  *node = emulator_cuda::add_node(graph, emulator_cuda::NodeKind::kEmpty, after, count, {});
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                              const cudaGraphNode_t* after, std::size_t count,
                                              cudaGraph_t child) {
  *node = emulator_cuda::add_graph_node(graph, after, count, child);
  return cudaSuccess;
}

// ---- Memory: an allocation has its address from the beginning, and unwritten contents whenever its node has
// run.

struct cudaMemAllocNodeParams {
  cudaMemPoolProps poolProps;
  const cudaMemAccessDesc* accessDescs;
  std::size_t accessDescCount, bytesize;
  void* dptr;
};
enum cudaGraphMemAttributeType {
  cudaGraphMemAttrUsedMemCurrent,
  cudaGraphMemAttrUsedMemHigh,
  cudaGraphMemAttrReservedMemCurrent,
  cudaGraphMemAttrReservedMemHigh
};
namespace emulator_cuda {
/// That the graphs' allocations have taken so far; none of it is shared.
inline std::size_t& bytes_of_graphs() {
  static std::size_t bytes = 0;
  return bytes;
}
}  // namespace emulator_cuda
inline cudaError_t cudaDeviceGetGraphMemAttribute(int, cudaGraphMemAttributeType, void* value) {
  const auto bytes = static_cast<unsigned long long>(emulator_cuda::bytes_of_graphs());
  std::memcpy(value, &bytes, sizeof bytes);
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGraphMemTrim(int) {
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                            const cudaGraphNode_t* after, std::size_t count,
                                            cudaMemAllocNodeParams* parameters) {
  void* memory = emulator_cuda::allocate(parameters->bytesize);
  parameters->dptr = memory;
  emulator_cuda::bytes_of_graphs() += parameters->bytesize;
  *node = emulator_cuda::add_node(graph, emulator_cuda::NodeKind::kAllocation, after, count,
                                  [memory] { emulator_cuda::forget_contents(memory); });
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* after, std::size_t count, void* memory) {
  *node = emulator_cuda::add_node(graph, emulator_cuda::NodeKind::kFree, after, count,
                                  [memory] { emulator_cuda::forget_contents(memory); });
  return cudaSuccess;
}

// ---- Conditions.

using cudaGraphConditionalHandle = unsigned long long;
inline constexpr unsigned cudaGraphCondAssignDefault = 1;
enum cudaGraphConditionalNodeType { cudaGraphCondTypeIf, cudaGraphCondTypeWhile, cudaGraphCondTypeSwitch };
struct cudaConditionalNodeParams {
  cudaGraphConditionalHandle handle = 0;
  cudaGraphConditionalNodeType type = cudaGraphCondTypeIf;
  unsigned size = 0;
  cudaGraph_t* phGraph_out = nullptr;
};
inline cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                                    unsigned initial = 0, unsigned flags = 0) {
  *handle = emulator_cuda::make_condition(graph, initial, (flags & cudaGraphCondAssignDefault) != 0);
  return cudaSuccess;
}
inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) {
  emulator_cuda::set_condition(handle, value);
}

struct cudaGraphNodeParams {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  cudaKernelNodeParams kernel;
  cudaMemsetParams memset;
  cudaHostNodeParams host;
  struct {
    cudaMemcpy3DParms copyParams;
  } memcpy;
  struct {
    cudaGraph_t graph = nullptr;
  } graph;
  cudaMemAllocNodeParams alloc;
  struct {
    void* dptr = nullptr;
  } free;
  cudaConditionalNodeParams conditional;
};
inline cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                    std::size_t count, cudaGraphNodeParams* parameters) {
  cudaConditionalNodeParams& condition = parameters->conditional;
  switch (parameters->type) {
    case cudaGraphNodeTypeKernel:
      return cudaGraphAddKernelNode(node, graph, after, count, &parameters->kernel);
    case cudaGraphNodeTypeMemcpy:
      return cudaGraphAddMemcpyNode(node, graph, after, count, &parameters->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
      return cudaGraphAddMemsetNode(node, graph, after, count, &parameters->memset);
    case cudaGraphNodeTypeHost:
      return cudaGraphAddHostNode(node, graph, after, count, &parameters->host);
    case cudaGraphNodeTypeGraph:
      return cudaGraphAddChildGraphNode(node, graph, after, count, parameters->graph.graph);
    case cudaGraphNodeTypeEmpty:
      return cudaGraphAddEmptyNode(node, graph, after, count);
    case cudaGraphNodeTypeMemAlloc:
      return cudaGraphAddMemAllocNode(node, graph, after, count, &parameters->alloc);
    case cudaGraphNodeTypeMemFree:
      return cudaGraphAddMemFreeNode(node, graph, after, count, parameters->free.dptr);
    case cudaGraphNodeTypeConditional:
      *node = emulator_cuda::add_conditional_node(graph, after, count, condition.handle,
                                                  static_cast<emulator_cuda::ConditionKind>(condition.type),
                                                  condition.size);
      condition.phGraph_out = emulator_cuda::bodies_of(*node);
      return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}
/// Without edge data, which is for dependent launches.
inline cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                    const void*, std::size_t count, cudaGraphNodeParams* parameters) {
  return cudaGraphAddNode(node, graph, after, count, parameters);
}

inline cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) emulator_cuda::add_dependency(from[i], to[i]);
  return cudaSuccess;
}
/// Without an array, how many there are.
inline cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  const auto all = emulator_cuda::nodes_of(graph);
  if (nodes) {
    *count = std::min(*count, all.size());
    std::copy_n(all.begin(), *count, nodes);
  } else {
    *count = all.size();
  }
  return cudaSuccess;
}
inline cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  *type = static_cast<cudaGraphNodeType>(emulator_cuda::kind_of(node));
  return cudaSuccess;
}

inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph,
                                        unsigned long long = 0) {
  *instance = emulator_cuda::instantiate(graph);
  return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph, cudaGraphNode_t*, char*,
                                        std::size_t) {
  return cudaGraphInstantiate(instance, graph);
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* instance, cudaGraph_t graph,
                                                 unsigned long long) {
  return cudaGraphInstantiate(instance, graph);
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance) {
  emulator_cuda::destroy_instance(instance);
  return cudaSuccess;
}
inline cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream) {
  emulator_cuda::launch_graph(instance, stream);
  return cudaSuccess;
}
enum cudaGraphExecUpdateResult {
  cudaGraphExecUpdateSuccess,
  cudaGraphExecUpdateError,
  cudaGraphExecUpdateErrorTopologyChanged
};
struct cudaGraphExecUpdateResultInfo {
  cudaGraphExecUpdateResult result;
  cudaGraphNode_t errorNode, errorFromNode;
};
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t instance, cudaGraph_t graph,
                                       cudaGraphExecUpdateResultInfo* info) {
  const bool is_same = emulator_cuda::update_instance(instance, graph);
  if (info)
    *info = {is_same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged, nullptr,
             nullptr};
  return is_same ? cudaSuccess : cudaErrorGraphExecUpdateFailure;
}
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t instance, cudaGraph_t graph, cudaGraphNode_t*,
                                       cudaGraphExecUpdateResult* result) {
  cudaGraphExecUpdateResultInfo info{};
  const cudaError_t error = cudaGraphExecUpdate(instance, graph, &info);
  if (result) *result = info.result;
  return error;
}

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone,
  cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated
};
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  emulator_cuda::begin_capture(stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  CUgraph_st* captured = emulator_cuda::end_capture(stream);
  if (graph) *graph = captured;
  return cudaSuccess;
}
inline cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                                 const cudaGraphNode_t* after, const void*, std::size_t count,
                                                 cudaStreamCaptureMode) {
  emulator_cuda::begin_capture_to(stream, graph, after, count);
  return cudaSuccess;
}
inline cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                            unsigned long long* id, cudaGraph_t* graph,
                                            const cudaGraphNode_t** after, std::size_t* count) {
  CUgraph_st* captured = emulator_cuda::captured_graph(stream);
  *status = captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id) *id = reinterpret_cast<unsigned long long>(captured);
  if (graph) *graph = captured;
  if (!captured) return cudaSuccess;
  if (after) *after = emulator_cuda::captured_nodes(stream).data();
  if (count) *count = emulator_cuda::captured_nodes(stream).size();
  return cudaSuccess;
}
inline cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                            unsigned long long* id, cudaGraph_t* graph,
                                            const cudaGraphNode_t** after, const void*, std::size_t* count) {
  return cudaStreamGetCaptureInfo(stream, status, id, graph, after, count);
}
enum cudaStreamUpdateCaptureDependenciesFlags {
  cudaStreamAddCaptureDependencies,
  cudaStreamSetCaptureDependencies
};
inline cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, const cudaGraphNode_t* nodes,
                                                       std::size_t count, unsigned flags) {
  std::vector<cudaGraphNode_t>& after = emulator_cuda::captured_nodes(stream);
  if (flags == cudaStreamSetCaptureDependencies) after.clear();
  after.insert(after.end(), nodes, nodes + count);
  return cudaSuccess;
}
inline cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, const cudaGraphNode_t* nodes,
                                                       const void*, std::size_t count, unsigned flags) {
  return cudaStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}
inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status =
      emulator_cuda::captured_graph(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
// NOLINTEND(readability-identifier-naming)
