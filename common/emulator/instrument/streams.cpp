#include "emulator/instrument/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "emulator/instrument/cuda_program.h"
#include "emulator/instrument/stream_order.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/random.h"
#include "emulator/machine/ranks.h"
#include "emulator/sync/dependent_launch.h"
#include "harness/backend/backend.h"

namespace emulator_cuda {

/// What an event knows, which outlives it while a stream has to record it.
struct Recording {
  std::uint64_t asked = 0, done = 0;  // how often it was to be recorded, and which of them has happened
  std::chrono::steady_clock::time_point time;
  StreamClock clock;  // what comes before the latest
};

struct Item {
  Operation run;
  std::shared_ptr<StreamWork> work;  // that it is
  std::shared_ptr<Recording> event;  // to wait for
  std::uint64_t number = 0;          // of its recordings
  bool can_run() const { return !event || event->done >= number; }
};

}  // namespace emulator_cuda

struct CUevent_st {
  std::shared_ptr<emulator_cuda::Recording> recording = std::make_shared<emulator_cuda::Recording>();
  emulator::ranks::Event of_ranks = emulator::ranks::make_event();  // in a run of several devices
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
  // Of a conditional node.
  std::uint64_t condition = 0;
  emulator_cuda::ConditionKind condition_kind{};
  std::vector<std::shared_ptr<CUgraph_st>> bodies;
  std::vector<CUgraph_st*> told_bodies;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::vector<std::uint64_t> conditions;
};

struct CUgraphExec_st {
  struct Node {
    emulator_cuda::NodeKind kind;
    emulator_cuda::Operation run;
    std::vector<std::size_t> after;
  };
  std::vector<Node> nodes;
  std::vector<std::uint64_t> conditions;
};

struct CUstream_st {
  std::deque<emulator_cuda::Item> queue;
  bool waits_for_default = true;
  int priority = 0;
  std::uint64_t number = 0;          // in the order of creation
  emulator_cuda::StreamClock clock;  // of its latest operation
  CUgraph_st* graph = nullptr;       // while it is being captured
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
  StreamClock of_default;   // the latest operation of the default stream
  StreamClock of_gone;      // the streams that were destroyed
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
  if (emulator::has_ranks())
    throw harness::Error("graphs and their streams are emulated in a run of one device only");
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

std::vector<const StreamWork*> pending_work() {
  std::vector<const StreamWork*> pending;
  for (const CUstream_st* stream : streams().all) {
    for (const Item& item : stream->queue) {
      if (item.work) pending.push_back(item.work.get());
    }
  }
  return pending;
}

/// Host code has waited for this, and knows what came before.
void note_wait(const StreamClock& clock) {
  if (!emulator::context.thread) host_has_waited(clock, pending_work());
}

/// What the default stream waits for.
StreamClock before_default() {
  StreamClock clock = streams().of_default;
  for (const CUstream_st* stream : streams().all) {
    if (stream->waits_for_default) clock.join(stream->clock);
  }
  return clock;
}

/// The work that host code now gives to the stream, after what the stream and the host have behind them.
std::shared_ptr<StreamWork> issue_into(Stream stream, NodeKind kind) {
  Streams& s = streams();
  if (is_default(stream)) {
    s.of_default = before_default();
    s.of_default.join(known_to_host());
    return issue(0, kind, s.of_default);
  }
  stream->clock.join(known_to_host());
  if (stream->waits_for_default) stream->clock.join(s.of_default);
  return issue(stream->number, kind, stream->clock);
}

bool run_one();

void run_work_of(const Item& item) {
  try {
    run_work(item.work, pending_work(), [&] { run_with_children(item.run); });
  } catch (const harness::EmulatorReport& report) {
    if (report.rule() != "global-uninitialised") throw;
    // Something that waits in another stream may be what should have written there before.
    note_unwritten(item.work);
    try {
      while (run_one()) {
      }
    } catch (const harness::EmulatorReport& other) {
      if (other.rule() == "stream-race") throw;
    }
    throw;
  }
}

void run_first(CUstream_st& stream) {
  const Item item = std::move(stream.queue.front());
  stream.queue.pop_front();
  streams().latest = &stream;
  if (item.run) run_work_of(item);
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
  // A kernel's streams only have names: what it launches runs in the order of the launches.
  if (emulator::context.thread) return new CUstream_st;
  if (emulator::has_ranks()) return emulator::ranks::make_stream(waits_for_default_stream);
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
  if (emulator::has_ranks()) return emulator::ranks::destroy_stream(stream);
  const Lock lock(streams().mutex);
  stream_of(stream);
  run_until([&] { return stream->queue.empty(); });  // its work goes on without it
  streams().of_gone.join(stream->clock);
  if (stream->waits_for_default) streams().of_default.join(stream->clock);
  streams().all.erase(stream);
  if (streams().latest == stream) streams().latest = nullptr;
  delete stream;
}

int priority_of(Stream stream) {
  return is_default(stream) || emulator::has_ranks() ? 0 : stream_of(stream).priority;
}

bool waits_for_default_stream(Stream stream) {
  return is_default(stream) || emulator::has_ranks() || stream_of(stream).waits_for_default;
}

void submit(Stream stream, NodeKind kind, Operation operation) {
  if (emulator::context.thread) {
    const std::lock_guard lock(streams().children_mutex);
    streams().children.push_back(std::move(operation));
    return;
  }
  if (emulator::has_ranks()) {
    using emulator::ranks::Work;
    const Work work = kind == NodeKind::kKernel                                ? Work::kKernel
                      : kind == NodeKind::kMemcpy || kind == NodeKind::kMemset ? Work::kCopy
                                                                               : Work::kOther;
    return emulator::ranks::submit(stream, work, std::move(operation));
  }
  const Lock lock(streams().mutex);
  if (is_default(stream)) {
    const std::shared_ptr<StreamWork> work = issue_into(stream, kind);
    finish_blocking();
    streams().latest = nullptr;
    run_work_of({std::move(operation), work, nullptr, 0});
    return;
  }
  CUstream_st& queue = stream_of(stream);
  if (queue.graph) {
    add_captured(queue, kind, std::move(operation));
    return;
  }
  enqueue(queue, {std::move(operation), issue_into(stream, kind), nullptr, 0});
}

void submit_dependent(Stream stream, Operation operation) {
  if (emulator::has_ranks()) return submit(stream, NodeKind::kKernel, std::move(operation));
  const Lock lock(streams().mutex);
  if (is_default(stream) || stream_of(stream).graph)
    return submit(stream, NodeKind::kKernel, std::move(operation));
  const std::shared_ptr<StreamWork> work = issue_into(stream, NodeKind::kKernel);
  run_until([&] { return stream->queue.empty(); });
  if (streams().latest != stream) emulator::complete_grids();
  streams().latest = stream;
  run_work_of({std::move(operation), work, nullptr, 0});
}

void finish(Stream stream) {
  if (emulator::context.thread) return;  // what a kernel has launched runs when the kernel has ended
  if (emulator::has_ranks()) return emulator::ranks::finish(stream);
  const Lock lock(streams().mutex);
  if (is_default(stream)) {
    finish_blocking();
    note_wait(before_default());
  } else {
    const CUstream_st& queue = stream_of(stream);
    run_until([&] { return queue.queue.empty(); });
    note_wait(queue.clock);
  }
  emulator::complete_grids();
}

void finish_all() {
  if (emulator::context.thread) return;
  if (emulator::has_ranks()) return emulator::ranks::finish_device(emulator::current_device());
  const Lock lock(streams().mutex);
  run_until([] { return false; });
  StreamClock all = streams().of_gone;
  all.join(streams().of_default);
  for (const CUstream_st* stream : streams().all) all.join(stream->clock);
  note_wait(all);
  emulator::complete_grids();
}

bool is_empty(Stream stream) {
  if (emulator::has_ranks()) return emulator::ranks::is_empty(stream);
  const Lock lock(streams().mutex);
  if (!is_default(stream)) {
    const CUstream_st& queue = stream_of(stream);
    if (queue.queue.empty()) note_wait(queue.clock);
    return queue.queue.empty();
  }
  const auto& all = streams().all;
  if (!std::all_of(all.begin(), all.end(), [](const CUstream_st* one) { return one->queue.empty(); }))
    return false;
  note_wait(before_default());
  return true;
}

void go_on() {
  if (emulator::has_ranks()) return emulator::ranks::go_on();
  const Lock lock(streams().mutex);
  run_one();
  note_work();
}

void forget_streams() {
  if (emulator::has_ranks()) emulator::ranks::forget_everything();
  const Lock lock(streams().mutex);
  Streams& s = streams();
  for (CUstream_st* stream : s.all) stream->queue.clear();
  s.is_seeded = false;
  s.latest = nullptr;
  s.of_default = s.of_gone = {};
  forget_work();
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
  if (emulator::has_ranks()) return emulator::ranks::record(event->of_ranks, stream);
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
  recording->clock = is_default(stream) ? streams().of_default : stream->clock;
}

void wait_for(Stream stream, CUevent_st* event) {
  if (emulator::has_ranks()) return emulator::ranks::wait_for(stream, event->of_ranks);
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
  (is_default(stream) ? streams().of_default : stream_of(stream).clock).join(event->recording->clock);
  if (event->recording->done >= number) return;
  if (is_default(stream)) return run_until([&] { return event->recording->done >= number; });
  enqueue(stream_of(stream), {nullptr, nullptr, event->recording, number});
}

void finish(CUevent_st* event) {
  if (emulator::has_ranks()) return emulator::ranks::finish(event->of_ranks);
  const Lock lock(streams().mutex);
  const std::shared_ptr<Recording> recording = event->recording;
  const std::uint64_t number = recording->asked;
  run_until([&] { return recording->done >= number; });
  note_wait(recording->clock);
  emulator::complete_grids();
}

bool has_happened(CUevent_st* event) {
  if (emulator::has_ranks()) return emulator::ranks::has_happened(event->of_ranks);
  const Lock lock(streams().mutex);
  if (event->recording->done < event->recording->asked) return false;
  note_wait(event->recording->clock);
  return true;
}

std::chrono::steady_clock::time_point time_of(CUevent_st* event) {
  if (emulator::has_ranks()) return emulator::ranks::time_of(event->of_ranks);
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

struct Condition {
  unsigned initial = 0;
  bool is_set_at_launch = false;
  std::atomic<unsigned> value{0};
};
/// By their handles; they live as long as the program.
std::deque<Condition>& conditions() {
  static std::deque<Condition>& all = *new std::deque<Condition>;
  return all;
}
Condition& condition_of(std::uint64_t handle) {
  if (handle == 0 || handle > conditions().size())
    throw harness::Error("a condition is used that cudaGraphConditionalHandleCreate did not make");
  return conditions()[handle - 1];
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

std::vector<CUgraphExec_st::Node> nodes_to_run(const CUgraph_st& graph);

Operation conditional_operation(const CUgraphNode_st& node) {
  std::vector<std::vector<CUgraphExec_st::Node>> bodies;
  for (const auto& body : node.bodies) bodies.push_back(nodes_to_run(*body));
  return [bodies, kind = node.condition_kind, condition = node.condition] {
    const std::atomic<unsigned>& value = condition_of(condition).value;
    if (kind == ConditionKind::kWhile) {
      while (value != 0) run_nodes(bodies.front());
      return;
    }
    // The second body of an if runs where it does not hold.
    const std::size_t chosen = kind == ConditionKind::kSwitch ? value.load() : (value != 0 ? 0 : 1);
    if (chosen < bodies.size()) run_nodes(bodies[chosen]);
  };
}

std::vector<CUgraphExec_st::Node> nodes_to_run(const CUgraph_st& graph) {
  std::vector<CUgraphExec_st::Node> nodes;
  for (const auto& node : graph.nodes) {
    const bool is_conditional = node->kind == NodeKind::kConditional;
    nodes.push_back({node->kind, is_conditional ? conditional_operation(*node) : node->run, node->after});
  }
  return nodes;
}

}  // namespace

std::uint64_t make_condition(CUgraph_st* graph, unsigned initial, bool is_set_at_launch) {
  Condition& condition = conditions().emplace_back();
  condition.initial = initial;
  condition.is_set_at_launch = is_set_at_launch;
  graph->conditions.push_back(conditions().size());
  return conditions().size();
}

void set_condition(std::uint64_t condition, unsigned value) {
  condition_of(condition).value = value;
}

CUgraphNode_st* add_conditional_node(CUgraph_st* graph, CUgraphNode_st* const* after, std::size_t count,
                                     std::uint64_t condition, ConditionKind kind, std::size_t bodies) {
  condition_of(condition);
  CUgraphNode_st* node = add_node(graph, NodeKind::kConditional, after, count, {});
  node->condition = condition;
  node->condition_kind = kind;
  for (std::size_t i = 0; i < std::max<std::size_t>(1, bodies); ++i) {
    node->bodies.push_back(std::make_shared<CUgraph_st>());
    node->told_bodies.push_back(node->bodies.back().get());
  }
  return node;
}

CUgraph_st** bodies_of(CUgraphNode_st* node) {
  return node->told_bodies.data();
}

CUgraphNode_st* add_graph_node(CUgraph_st* graph, CUgraphNode_st* const* after, std::size_t count,
                               const CUgraph_st* child) {
  return add_node(graph, NodeKind::kGraph, after, count,
                  [nodes = nodes_to_run(*child)] { run_nodes(nodes); });
}

CUgraphExec_st* instantiate(const CUgraph_st* graph) {
  return new CUgraphExec_st{nodes_to_run(*graph), graph->conditions};
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
  submit(stream, NodeKind::kGraph, [nodes = instance->nodes, used = instance->conditions] {
    for (const std::uint64_t one : used) {
      Condition& condition = condition_of(one);
      if (condition.is_set_at_launch) condition.value = condition.initial;
    }
    run_nodes(nodes);
  });
}

void begin_capture(Stream stream) {
  begin_capture_to(stream, make_graph(), nullptr, 0);
}

void begin_capture_to(Stream stream, CUgraph_st* graph, CUgraphNode_st* const* after, std::size_t count) {
  const Lock lock(streams().mutex);
  if (is_default(stream)) throw harness::Error("the default stream cannot be captured");
  CUstream_st& captured = stream_of(stream);
  if (captured.graph) throw harness::Error("a stream is to be captured that is being captured already");
  captured.graph = graph;
  captured.latest.assign(after, after + count);
}

std::vector<CUgraphNode_st*>& captured_nodes(Stream stream) {
  const Lock lock(streams().mutex);
  return stream_of(stream).latest;
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
  if (emulator::has_ranks()) return nullptr;
  const Lock lock(streams().mutex);
  return is_default(stream) ? nullptr : stream_of(stream).graph;
}

}  // namespace emulator_cuda
