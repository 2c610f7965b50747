#include "emulator/instrument/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "emulator/instrument/cuda_program.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/random.h"
#include "emulator/sync/dependent_launch.h"
#include "harness/backend/backend.h"

namespace emulator_cuda {

/// What an event knows, which outlives it while a stream has to record it.
struct Recording {
  std::uint64_t asked = 0, done = 0;  // how often it was to be recorded, and which of them has happened
  std::chrono::steady_clock::time_point time;
};

struct Item {
  Operation run;
  std::shared_ptr<Recording> event;  // to wait for
  std::uint64_t number = 0;          // of its recordings
  bool can_run() const { return !event || event->done >= number; }
};

}  // namespace emulator_cuda

struct CUevent_st {
  std::shared_ptr<emulator_cuda::Recording> recording = std::make_shared<emulator_cuda::Recording>();
  // Recorded in a stream that was being captured.
  CUgraph_st* graph = nullptr;
  std::vector<CUgraphNode_st*> nodes;
};

struct CUgraphNode_st {
  emulator_cuda::NodeKind kind;
  emulator_cuda::Operation run;
  std::vector<std::size_t> after;  // numbers of nodes
  std::size_t number = 0;
  CUgraph_st* graph = nullptr;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

struct CUgraphExec_st {
  struct Node {
    emulator_cuda::NodeKind kind;
    emulator_cuda::Operation run;
    std::vector<std::size_t> after;
  };
  std::vector<Node> nodes;
};

struct CUstream_st {
  std::deque<emulator_cuda::Item> queue;
  bool waits_for_default = true;
  int priority = 0;
  std::uint64_t number = 0;     // in the order of creation
  CUgraph_st* graph = nullptr;  // while it is being captured
  std::vector<CUgraphNode_st*> latest;
};

namespace emulator_cuda {

bool may_go_on = false;

namespace {

struct Streams {
  std::recursive_mutex mutex;  // host code may have threads
  std::set<Stream> all;
  emulator::Random random;
  bool is_seeded = false;
  std::uint64_t made = 0;
  Stream latest = nullptr;  // the one that was the last to do something
  std::mutex children_mutex;
  std::vector<Operation> children;  // grids that kernels have launched
};
Streams& streams() {
  static Streams& instance = *new Streams;  // host code may use streams after the end of main
  return instance;
}
using Lock = std::lock_guard<std::recursive_mutex>;

emulator::Random& random_of_run() {
  Streams& s = streams();
  if (!std::exchange(s.is_seeded, true))
    s.random = emulator::Random(emulator::options().seed ^ 0x73747265616d73u);
  return s.random;
}

/// Whether the stream is a default one: cudaStreamLegacy and cudaStreamPerThread are small numbers.
bool is_default(Stream stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= 2;
}

CUstream_st& stream_of(Stream stream) {
  if (streams().all.count(stream) == 0)
    throw harness::Error("a stream is used that cudaStreamCreate did not make, or that was destroyed");
  return *stream;
}

/// A grid, and those that it has launched, in the order of their launches.
void run_with_children(const Operation& operation) {
  operation();
  Streams& s = streams();
  for (std::size_t i = 0;; ++i) {
    Operation child;
    {
      const std::lock_guard lock(s.children_mutex);
      if (i >= s.children.size()) {
        s.children.clear();
        return;
      }
      child = std::move(s.children[i]);
    }
    child();
  }
}

void run_first(CUstream_st& stream) {
  const Item item = std::move(stream.queue.front());
  stream.queue.pop_front();
  streams().latest = &stream;
  if (item.run) run_with_children(item.run);
}

/// One operation of a stream that can go on; the seed decides which. False where none can.
bool run_one() {
  Streams& s = streams();
  std::vector<CUstream_st*> ready;
  for (CUstream_st* stream : s.all) {
    if (!stream->queue.empty() && stream->queue.front().can_run()) ready.push_back(stream);
  }
  if (ready.empty()) return false;
  // In the order of their creation, not of their addresses.
  std::sort(ready.begin(), ready.end(),
            [](const CUstream_st* a, const CUstream_st* b) { return a->number < b->number; });
  run_first(*ready[ready.size() == 1 ? 0 : random_of_run().below(static_cast<std::uint32_t>(ready.size()))]);
  return true;
}

void note_work() {
  const Streams& s = streams();
  may_go_on = std::any_of(s.all.begin(), s.all.end(),
                          [](const CUstream_st* stream) { return !stream->queue.empty(); });
}

/// Runs operations until `is_done`.
template <typename Done>
void run_until(const Done& is_done) {
  while (!is_done() && run_one()) {
  }
  note_work();
}

void finish_blocking() {
  const auto is_done = [] {
    const auto& all = streams().all;
    return std::all_of(all.begin(), all.end(), [](const CUstream_st* stream) {
      return !stream->waits_for_default || stream->queue.empty();
    });
  };
  run_until(is_done);
}

CUgraphNode_st* add_captured(CUstream_st& stream, NodeKind kind, Operation operation) {
  CUgraphNode_st* node =
      add_node(stream.graph, kind, stream.latest.data(), stream.latest.size(), std::move(operation));
  stream.latest = {node};
  return node;
}

void enqueue(CUstream_st& stream, Item item) {
  stream.queue.push_back(std::move(item));
  note_work();
  const emulator::Completion completion = emulator::options().completion;
  if (completion == emulator::Completion::kLatest) return;
  if (completion == emulator::Completion::kEarliest) {
    run_until([&] { return stream.queue.empty(); });
    return;
  }
  while (random_of_run().below(2) == 0 && run_one()) {
  }
  note_work();
}

}  // namespace

Stream make_stream(bool waits_for_default_stream, int priority) {
  const Lock lock(streams().mutex);
  auto* stream = new CUstream_st;
  stream->waits_for_default = waits_for_default_stream;
  stream->priority = priority;
  stream->number = ++streams().made;
  streams().all.insert(stream);
  return stream;
}

void destroy_stream(Stream stream) {
  if (emulator::context.thread) return;  // its grids have their order already
  const Lock lock(streams().mutex);
  stream_of(stream);
  finish(stream);  // its work goes on without it
  streams().all.erase(stream);
  if (streams().latest == stream) streams().latest = nullptr;
  delete stream;
}

int priority_of(Stream stream) {
  return is_default(stream) ? 0 : stream_of(stream).priority;
}

bool waits_for_default_stream(Stream stream) {
  return is_default(stream) || stream_of(stream).waits_for_default;
}

void submit(Stream stream, NodeKind kind, Operation operation) {
  if (emulator::context.thread) {
    const std::lock_guard lock(streams().children_mutex);
    streams().children.push_back(std::move(operation));
    return;
  }
  const Lock lock(streams().mutex);
  if (is_default(stream)) {
    finish_blocking();
    streams().latest = nullptr;
    run_with_children(operation);
    return;
  }
  CUstream_st& queue = stream_of(stream);
  if (queue.graph) {
    add_captured(queue, kind, std::move(operation));
    return;
  }
  enqueue(queue, {std::move(operation), nullptr, 0});
}

void submit_dependent(Stream stream, Operation operation) {
  const Lock lock(streams().mutex);
  if (is_default(stream) || stream_of(stream).graph)
    return submit(stream, NodeKind::kKernel, std::move(operation));
  run_until([&] { return stream->queue.empty(); });
  if (streams().latest != stream) emulator::complete_grids();
  streams().latest = stream;
  run_with_children(operation);
}

void finish(Stream stream) {
  const Lock lock(streams().mutex);
  if (is_default(stream)) {
    finish_blocking();
  } else {
    const CUstream_st& queue = stream_of(stream);
    run_until([&] { return queue.queue.empty(); });
  }
  emulator::complete_grids();
}

void finish_all() {
  const Lock lock(streams().mutex);
  run_until([] { return false; });
  emulator::complete_grids();
}

bool is_empty(Stream stream) {
  const Lock lock(streams().mutex);
  if (!is_default(stream)) return stream_of(stream).queue.empty();
  const auto& all = streams().all;
  return std::all_of(all.begin(), all.end(), [](const CUstream_st* one) { return one->queue.empty(); });
}

void go_on() {
  const Lock lock(streams().mutex);
  run_one();
  note_work();
}

void forget_streams() {
  const Lock lock(streams().mutex);
  Streams& s = streams();
  for (CUstream_st* stream : s.all) stream->queue.clear();
  s.is_seeded = false;
  s.latest = nullptr;
  may_go_on = false;
  const std::lock_guard children_lock(s.children_mutex);
  s.children.clear();
}

// ---- Events.

CUevent_st* make_event() {
  return new CUevent_st;
}

void destroy_event(CUevent_st* event) {
  delete event;
}

void record(CUevent_st* event, Stream stream) {
  const Lock lock(streams().mutex);
  if (!is_default(stream) && stream_of(stream).graph) {
    event->graph = stream->graph;
    event->nodes = stream->latest;
    return;
  }
  event->graph = nullptr;
  const std::shared_ptr<Recording> recording = event->recording;
  const std::uint64_t number = ++recording->asked;
  submit(stream, NodeKind::kEmpty, [recording, number] {
    recording->done = std::max(recording->done, number);
    recording->time = std::chrono::steady_clock::now();
  });
}

void wait_for(Stream stream, CUevent_st* event) {
  const Lock lock(streams().mutex);
  if (event->graph) {
    CUstream_st& waiting = stream_of(stream);
    waiting.graph = event->graph;
    for (CUgraphNode_st* node : event->nodes) {
      if (std::find(waiting.latest.begin(), waiting.latest.end(), node) == waiting.latest.end())
        waiting.latest.push_back(node);
    }
    return;
  }
  const std::uint64_t number = event->recording->asked;
  if (event->recording->done >= number) return;
  if (is_default(stream)) return finish(event);
  enqueue(stream_of(stream), {nullptr, event->recording, number});
}

void finish(CUevent_st* event) {
  const Lock lock(streams().mutex);
  const std::shared_ptr<Recording> recording = event->recording;
  const std::uint64_t number = recording->asked;
  run_until([&] { return recording->done >= number; });
  emulator::complete_grids();
}

bool has_happened(CUevent_st* event) {
  const Lock lock(streams().mutex);
  return event->recording->done >= event->recording->asked;
}

std::chrono::steady_clock::time_point time_of(CUevent_st* event) {
  return event->recording->time;
}

// ---- Graphs.

CUgraph_st* make_graph() {
  return new CUgraph_st;
}

void destroy_graph(CUgraph_st* graph) {
  delete graph;
}

CUgraph_st* clone_graph(const CUgraph_st* graph) {
  auto copy = std::make_unique<CUgraph_st>();
  for (const auto& node : graph->nodes) {
    copy->nodes.push_back(std::make_unique<CUgraphNode_st>(*node));
    copy->nodes.back()->graph = copy.get();
  }
  return copy.release();
}

CUgraphNode_st* add_node(CUgraph_st* graph, NodeKind kind, CUgraphNode_st* const* after, std::size_t count,
                         Operation operation) {
  auto node = std::make_unique<CUgraphNode_st>();
  node->kind = kind;
  node->run = std::move(operation);
  node->number = graph->nodes.size();
  node->graph = graph;
  graph->nodes.push_back(std::move(node));
  CUgraphNode_st* added = graph->nodes.back().get();
  for (std::size_t i = 0; i < count; ++i) add_dependency(after[i], added);
  return added;
}

void add_dependency(CUgraphNode_st* from, CUgraphNode_st* to) {
  if (from->graph != to->graph) throw harness::Error("a node of a graph depends on a node of another graph");
  to->after.push_back(from->number);
}

std::vector<CUgraphNode_st*> nodes_of(const CUgraph_st* graph) {
  std::vector<CUgraphNode_st*> nodes;
  for (const auto& node : graph->nodes) nodes.push_back(node.get());
  return nodes;
}

NodeKind kind_of(const CUgraphNode_st* node) {
  return node->kind;
}

void set_operation(CUgraphNode_st* node, Operation operation) {
  node->run = std::move(operation);
}

namespace {

std::vector<CUgraphExec_st::Node> nodes_to_run(const CUgraph_st& graph) {
  std::vector<CUgraphExec_st::Node> nodes;
  for (const auto& node : graph.nodes) nodes.push_back({node->kind, node->run, node->after});
  return nodes;
}

/// In an order that the dependencies allow; the seed decides which.
void run_nodes(const std::vector<CUgraphExec_st::Node>& nodes) {
  std::vector<bool> is_done(nodes.size());
  for (std::size_t done = 0; done < nodes.size(); ++done) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& after = nodes[i].after;
      if (!is_done[i] &&
          std::all_of(after.begin(), after.end(), [&](std::size_t one) { return is_done[one]; }))
        ready.push_back(i);
    }
    if (ready.empty()) throw harness::Error("the nodes of a graph depend on each other in a circle");
    std::size_t next =
        ready[ready.size() == 1 ? 0 : random_of_run().below(static_cast<std::uint32_t>(ready.size()))];
    if (emulator::options().completion == emulator::Completion::kEarliest) next = ready.front();
    if (nodes[next].run) run_with_children(nodes[next].run);
    is_done[next] = true;
  }
}

}  // namespace

CUgraphNode_st* add_graph_node(CUgraph_st* graph, CUgraphNode_st* const* after, std::size_t count,
                               const CUgraph_st* child) {
  return add_node(graph, NodeKind::kGraph, after, count,
                  [nodes = nodes_to_run(*child)] { run_nodes(nodes); });
}

CUgraphExec_st* instantiate(const CUgraph_st* graph) {
  return new CUgraphExec_st{nodes_to_run(*graph)};
}

void destroy_instance(CUgraphExec_st* instance) {
  delete instance;
}

bool update_instance(CUgraphExec_st* instance, const CUgraph_st* graph) {
  std::vector<CUgraphExec_st::Node> nodes = nodes_to_run(*graph);
  const bool is_same =
      std::equal(nodes.begin(), nodes.end(), instance->nodes.begin(), instance->nodes.end(),
                 [](const auto& a, const auto& b) { return a.kind == b.kind && a.after == b.after; });
  if (is_same) instance->nodes = std::move(nodes);
  return is_same;
}

void set_operation(CUgraphExec_st* instance, const CUgraphNode_st* node, Operation operation) {
  if (node->number >= instance->nodes.size()) throw harness::Error("an instance of a graph has no such node");
  instance->nodes[node->number].run = std::move(operation);
}

void launch_graph(CUgraphExec_st* instance, Stream stream) {
  submit(stream, NodeKind::kGraph, [nodes = instance->nodes] { run_nodes(nodes); });
}

void begin_capture(Stream stream) {
  const Lock lock(streams().mutex);
  if (is_default(stream)) throw harness::Error("the default stream cannot be captured");
  CUstream_st& captured = stream_of(stream);
  if (captured.graph) throw harness::Error("a stream is to be captured that is being captured already");
  captured.graph = make_graph();
  captured.latest.clear();
}

CUgraph_st* end_capture(Stream stream) {
  const Lock lock(streams().mutex);
  CUgraph_st* graph = is_default(stream) ? nullptr : stream_of(stream).graph;
  if (!graph) throw harness::Error("cudaStreamEndCapture was given a stream that is not being captured");
  for (CUstream_st* other : streams().all) {
    if (other->graph != graph) continue;
    other->graph = nullptr;
    other->latest.clear();
  }
  return graph;
}

CUgraph_st* captured_graph(Stream stream) {
  const Lock lock(streams().mutex);
  return is_default(stream) ? nullptr : stream_of(stream).graph;
}

}  // namespace emulator_cuda
