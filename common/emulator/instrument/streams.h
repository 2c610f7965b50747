// Streams, events and graphs of the CUDA runtime on the emulator. What is given to a stream waits in its
// queue until something waits for it; until then the seed decides which stream goes on, one operation at a
// time. So an order that no event and no synchronization demands is not kept under every schedule. The legacy
// default stream runs at once, after what it has to wait for.
//
// CUDA C++ Programming Guide, "Streams", "Events", "Implicit Synchronization" and "CUDA Graphs".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ptx/launch_shape.h"

struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;

namespace emulator_cuda {

using Stream = gemm::ptx::Stream;
using Operation = std::function<void()>;

/// What an operation is, for the graph that captures it.
/// The numbers are cudaGraphNodeType's.
enum class NodeKind : std::uint8_t {
  kKernel,
  kMemcpy,
  kMemset,
  kHost,
  kGraph,
  kEmpty,
  kAllocation = 10,
  kFree,
  kConditional = 13
};

Stream make_stream(bool waits_for_default_stream, int priority);
void destroy_stream(Stream stream);
int priority_of(Stream stream);
bool waits_for_default_stream(Stream stream);

/// Gives a stream something to do. A stream that is being captured makes a node of it. In a kernel: a grid
/// that the kernel launches, which runs when the kernel's own grid has ended.
void submit(Stream stream, NodeKind kind, Operation operation);
/// The same for a dependent launch, which nothing may separate from the launch before it.
void submit_dependent(Stream stream, Operation operation);
/// Waits until the stream is empty; nullptr: until all are that the default stream waits for.
void finish(Stream stream);
void finish_all();
bool is_empty(Stream stream);
/// Goes on with some stream, as the device does while host code looks at it.
void go_on();
/// Host code reads memory that the device may write.
extern bool may_go_on;
/// Between two runs: no stream has anything to do.
void forget_streams();

/// Whether a copy of these bytes by a stream may happen later: both are on the device or pinned.
bool can_copy_later(const void* to, const void* from);

CUevent_st* make_event();
void destroy_event(CUevent_st* event);
void record(CUevent_st* event, Stream stream);
void wait_for(Stream stream, CUevent_st* event);
void finish(CUevent_st* event);
bool has_happened(CUevent_st* event);
std::chrono::steady_clock::time_point time_of(CUevent_st* event);

// ---- Graphs.

CUgraph_st* make_graph();
void destroy_graph(CUgraph_st* graph);
CUgraph_st* clone_graph(const CUgraph_st* graph);
CUgraphNode_st* add_node(CUgraph_st* graph, NodeKind kind, CUgraphNode_st* const* after, std::size_t count,
                         Operation operation);
CUgraphNode_st* add_graph_node(CUgraph_st* graph, CUgraphNode_st* const* after, std::size_t count,
                               const CUgraph_st* child);
void add_dependency(CUgraphNode_st* from, CUgraphNode_st* to);
std::vector<CUgraphNode_st*> nodes_of(const CUgraph_st* graph);
NodeKind kind_of(const CUgraphNode_st* node);
void set_operation(CUgraphNode_st* node, Operation operation);
CUgraphExec_st* instantiate(const CUgraph_st* graph);
void destroy_instance(CUgraphExec_st* instance);
/// False: the graph has other nodes than the one of the instance.
bool update_instance(CUgraphExec_st* instance, const CUgraph_st* graph);
/// `node`: of the graph that was instantiated.
void set_operation(CUgraphExec_st* instance, const CUgraphNode_st* node, Operation operation);
void launch_graph(CUgraphExec_st* instance, Stream stream);

/// The condition of a conditional node, which kernels set. `initial`: its value when the graph is launched.
std::uint64_t make_condition(CUgraph_st* graph, unsigned initial, bool is_set_at_launch);
void set_condition(std::uint64_t condition, unsigned value);
enum class ConditionKind : std::uint8_t { kIf, kWhile, kSwitch };
/// The bodies are empty graphs, which belong to the node.
CUgraphNode_st* add_conditional_node(CUgraph_st* graph, CUgraphNode_st* const* after, std::size_t count,
                                     std::uint64_t condition, ConditionKind kind, std::size_t bodies);
CUgraph_st** bodies_of(CUgraphNode_st* node);

void begin_capture(Stream stream);
/// Adds to a graph, after these nodes.
void begin_capture_to(Stream stream, CUgraph_st* graph, CUgraphNode_st* const* after, std::size_t count);
/// What the next node of a stream that is being captured comes after.
std::vector<CUgraphNode_st*>& captured_nodes(Stream stream);
CUgraph_st* end_capture(Stream stream);
CUgraph_st* captured_graph(Stream stream);

}  // namespace emulator_cuda
