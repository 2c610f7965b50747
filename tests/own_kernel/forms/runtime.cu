// What a program asks of the CUDA runtime beside memory and launches: streams that overlap, events, graphs,
// launches by kernels, textures and surfaces, memory of the host, tiles of several warps, groups of any kind.
//
// Broken on purpose: -D NO_EVENT (a stream reads what another one writes, without waiting for it), -D
// NO_DEPENDENCY (a node of a graph does not wait for the one whose result it reads), -D USE_FREED (a graph
// uses memory that it has freed), -D NO_SYNCHRONIZE (the host reads a copy that has not come), -D OUTSIDE (a
// surface is written below its last row).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cmath>
#include <cstdlib>
#include <vector>

namespace cg = cooperative_groups;

constexpr int kCount = 256;

__global__ void fill(int* values, int first) {
  values[threadIdx.x] = first + static_cast<int>(threadIdx.x);
}
__global__ void add(const int* a, const int* b, int* sums) {
  sums[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

/// a and b come from streams of their own.
void check_streams(emulate::Run& run) {
  int* a = run.buffer<int>("a", kCount);
  int* b = run.buffer<int>("b", kCount);
  int* sums = run.buffer<int>("sums", kCount);
  int* host = nullptr;
  cudaMallocHost(&host, kCount * sizeof(int));
  for (int i = 0; i < kCount; ++i) host[i] = -1;
  cudaStream_t first = nullptr, second = nullptr;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreate(&second);
  cudaEvent_t filled = nullptr;
  cudaEventCreateWithFlags(&filled, cudaEventDisableTiming);
  fill<<<1, kCount, 0, first>>>(a, 0);
  cudaEventRecord(filled, first);
  fill<<<1, kCount, 0, second>>>(b, 100);
#ifndef NO_EVENT
  cudaStreamWaitEvent(second, filled);
#endif
  add<<<1, kCount, 0, second>>>(a, b, sums);
  cudaMemcpyAsync(host, sums, kCount * sizeof(int), cudaMemcpyDeviceToHost, second);
#ifndef NO_SYNCHRONIZE
  while (cudaStreamQuery(second) == cudaErrorNotReady) {
  }
#endif
  for (int i = 0; i < kCount; ++i) run.expect(host[i] == 2 * i + 100, "the second stream's sums are wrong");
  cudaDeviceSynchronize();
  cudaEventDestroy(filled);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  cudaFreeHost(host);
}

void count_call(void* calls) {
  ++*static_cast<int*>(calls);
}

void check_graphs(emulate::Run& run) {
  int* a = run.buffer<int>("graph's a", kCount);
  int* b = run.buffer<int>("graph's b", kCount);
  int* sums = run.buffer<int>("graph's sums", kCount);
  int calls = 0;
  // Built of nodes: b is cleared and a is filled, then the sums.
  cudaGraph_t graph = nullptr;
  cudaGraphCreate(&graph, 0);
  cudaGraphNode_t nodes[2] = {}, sum = nullptr, call = nullptr;
  int start = 7;
  void* of_fill[] = {&a, &start};
  void* of_add[] = {&a, &b, &sums};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(fill);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(kCount);
  kernel.kernelParams = of_fill;
  cudaGraphAddKernelNode(&nodes[0], graph, nullptr, 0, &kernel);
  cudaMemsetParams clear{};
  clear.dst = b;
  clear.value = 0;
  clear.elementSize = 4;
  clear.width = kCount;
  clear.height = 1;
  cudaGraphAddMemsetNode(&nodes[1], graph, nullptr, 0, &clear);
  kernel.func = reinterpret_cast<void*>(add);
  kernel.kernelParams = of_add;
#ifdef NO_DEPENDENCY
  cudaGraphAddKernelNode(&sum, graph, nodes, 1, &kernel);
#else
  cudaGraphAddKernelNode(&sum, graph, nodes, 2, &kernel);
#endif
  cudaHostNodeParams host{count_call, &calls};
  cudaGraphAddHostNode(&call, graph, &sum, 1, &host);
  cudaGraphExec_t instance = nullptr;
  cudaGraphInstantiate(&instance, graph, nullptr, nullptr, 0);
  start = 1000;  // the node has its own copy
  cudaGraphLaunch(instance, nullptr);
  std::vector<int> expected(kCount);
  for (int i = 0; i < kCount; ++i) expected[static_cast<std::size_t>(i)] = 7 + i;
  run.expect_equal("the sums of the graph", run.host(sums), expected);
  kernel.func = reinterpret_cast<void*>(fill);
  kernel.kernelParams = of_fill;
  cudaGraphExecKernelNodeSetParams(instance, nodes[0], &kernel);
  cudaGraphLaunch(instance, nullptr);
  for (int& value : expected) value += 1000 - 7;
  run.expect_equal("the sums after a change", run.host(sums), expected);
  std::size_t count = 0;
  cudaGraphGetNodes(graph, nullptr, &count);
  run.expect(count == 4 && calls == 2, "the graph has other nodes or has called its host node otherwise");
  cudaGraphExecDestroy(instance);
  cudaGraphDestroy(graph);

  // Captured from two streams.
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamCreate(&other);
  cudaEventCreate(&fork);
  cudaEventCreate(&join);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(other, fork, 0);
  fill<<<1, kCount, 0, stream>>>(a, 1);
  fill<<<1, kCount, 0, other>>>(b, 2);
  cudaEventRecord(join, other);
  cudaStreamWaitEvent(stream, join, 0);
  add<<<1, kCount, 0, stream>>>(a, b, sums);
  cudaGraph_t captured = nullptr;
  cudaStreamEndCapture(stream, &captured);
  run.expect_equal("nothing runs while it is captured", run.host(sums), expected);
  cudaGraphInstantiate(&instance, captured, 0);
  cudaGraphLaunch(instance, stream);
  cudaStreamSynchronize(stream);
  for (int i = 0; i < kCount; ++i) expected[static_cast<std::size_t>(i)] = 3 + 2 * i;
  run.expect_equal("the sums of the captured graph", run.host(sums), expected);
  cudaGraphExecDestroy(instance);
  cudaGraphDestroy(captured);
  cudaEventDestroy(fork);
  cudaEventDestroy(join);
  cudaStreamDestroy(stream);
  cudaStreamDestroy(other);
}

__global__ void count_down(int* left, cudaGraphConditionalHandle goes_on) {
  cudaGraphSetConditional(goes_on, --*left != 0);
}
__global__ void note_round(int* rounds) {
  ++*rounds;
}

/// While `left` is not 0, counts it down and the rounds up; the rounds are kept in memory of the graph.
void check_conditions(emulate::Run& run) {
  int* left = run.buffer<int>("left", 1);
  int rounds = 0;
  cudaGraph_t graph = nullptr;
  cudaGraphCreate(&graph, 0);
  cudaGraphConditionalHandle goes_on = 0;
  cudaGraphConditionalHandleCreate(&goes_on, graph, 1, cudaGraphCondAssignDefault);
  cudaMemAllocNodeParams memory{};
  memory.bytesize = sizeof(int);
  cudaGraphNode_t allocation = nullptr, clear = nullptr, loop = nullptr, copy = nullptr, release = nullptr;
  cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &memory);
  int* counted = static_cast<int*>(memory.dptr);
  cudaMemsetParams zero{};
  zero.dst = counted;
  zero.elementSize = 4;
  zero.width = zero.height = 1;
  cudaGraphAddMemsetNode(&clear, graph, &allocation, 1, &zero);
  cudaGraphNodeParams node{cudaGraphNodeTypeConditional};
  node.conditional.handle = goes_on;
  node.conditional.type = cudaGraphCondTypeWhile;
  node.conditional.size = 1;
#ifdef USE_FREED
  cudaGraphAddMemFreeNode(&release, graph, &clear, 1, counted);
  cudaGraphAddNode(&loop, graph, &release, nullptr, 1, &node);
#else
  cudaGraphAddNode(&loop, graph, &clear, nullptr, 1, &node);
#endif
  cudaGraphAddMemcpyNode1D(&copy, graph, &loop, 1, &rounds, counted, sizeof(int), cudaMemcpyDeviceToHost);
#ifndef USE_FREED
  cudaGraphAddMemFreeNode(&release, graph, &copy, 1, counted);
#endif
  cudaStream_t body = nullptr;
  cudaStreamCreate(&body);
  cudaStreamBeginCaptureToGraph(body, node.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                cudaStreamCaptureModeGlobal);
  note_round<<<1, 1, 0, body>>>(counted);
  count_down<<<1, 1, 0, body>>>(left, goes_on);
  cudaStreamEndCapture(body, nullptr);
  cudaGraphExec_t instance = nullptr;
  cudaGraphInstantiate(&instance, graph, 0);
  for (const int count : {3, 5}) {
    cudaMemcpy(left, &count, sizeof count, cudaMemcpyHostToDevice);
    cudaGraphLaunch(instance, nullptr);
    cudaDeviceSynchronize();
    run.expect(rounds == count, "the body of the conditional node has run another number of times");
  }
  cudaGraphExecDestroy(instance);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(body);
}

/// Each launch halves the interval, until it has one element.
__global__ void divide(int* depth, int first, int count, int level) {
  if (count == 1) {
    depth[first] = level;
    return;
  }
  divide<<<1, 1>>>(depth, first, count / 2, level + 1);
  divide<<<1, 1>>>(depth, first + count / 2, count - count / 2, level + 1);
}

/// Each thread has a row of its own, for one launch to fill and the next to read.
__global__ void allocate_rows(int** rows) {
  cudaMalloc(reinterpret_cast<void**>(&rows[blockIdx.x]), kCount * sizeof(int));
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  fill<<<1, kCount, 0, stream>>>(rows[blockIdx.x], static_cast<int>(blockIdx.x));
  cudaStreamDestroy(stream);
}
__global__ void take_rows(int** rows, int* last) {
  last[blockIdx.x] = rows[blockIdx.x][kCount - 1];
  cudaFree(rows[blockIdx.x]);
}

void check_launches_by_kernels(emulate::Run& run) {
  int** rows = run.buffer<int*>("rows", 8);
  int* last = run.buffer<int>("last", 8);
  allocate_rows<<<8, 1>>>(rows);
  take_rows<<<8, 1>>>(rows, last);
  std::vector<int> expected(8);
  for (int i = 0; i < 8; ++i) expected[static_cast<std::size_t>(i)] = kCount - 1 + i;
  run.expect_equal("the last elements", run.host(last), expected);
  int* depth = run.buffer<int>("depth", 8);
  divide<<<1, 1>>>(depth, 0, 8, 0);
  run.expect_equal("the depths", run.host(depth), std::vector<int>(8, 3));
}

constexpr int kWidth = 8, kHeight = 4;

__global__ void fetch(cudaTextureObject_t linear, cudaTextureObject_t wrapped, cudaTextureObject_t bytes,
                      cudaTextureObject_t layers, cudaSurfaceObject_t surface, float* out) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  float* mine = out + (y * kWidth + x) * 5;
  mine[0] = tex2D<float>(linear, static_cast<float>(x) + 1.0f, static_cast<float>(y) + 0.5f);
  mine[1] = tex2D<float>(wrapped, (static_cast<float>(x) + 0.5f) / kWidth + 1,
                         (static_cast<float>(y) + 0.5f) / kHeight - 2);
  mine[2] = tex1Dfetch<float>(bytes, y * kWidth + x);
  mine[3] = tex2DLayered<float2>(layers, static_cast<float>(x), static_cast<float>(y), 1).y;
  const int row = kHeight - 1 - y;
#ifdef OUTSIDE
  surf2Dwrite(mine[0], surface, x * 4, row + 1);
#else
  surf2Dwrite(mine[0], surface, x * 4, row);
#endif
  __syncthreads();
  mine[4] = surf2Dread<float>(surface, x * 4, y);
}

void check_textures(emulate::Run& run) {
  std::vector<float> texels(kWidth * kHeight);
  for (std::size_t i = 0; i < texels.size(); ++i) texels[i] = static_cast<float>(i * i);
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMallocArray(&array, &format, kWidth, kHeight, cudaArraySurfaceLoadStore);
  cudaMemcpy2DToArray(array, 0, 0, texels.data(), kWidth * 4, kWidth * 4, kHeight, cudaMemcpyHostToDevice);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description{};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
  description.filterMode = cudaFilterModeLinear;
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t linear = 0, wrapped = 0, bytes = 0, layers = 0;
  cudaCreateTextureObject(&linear, &resource, &description, nullptr);
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeWrap;
  description.filterMode = cudaFilterModePoint;
  description.normalizedCoords = 1;
  cudaCreateTextureObject(&wrapped, &resource, &description, nullptr);

  std::vector<unsigned char> shades(kWidth * kHeight);
  for (std::size_t i = 0; i < shades.size(); ++i) shades[i] = static_cast<unsigned char>(8 * i);
  cudaResourceDesc line{};
  line.resType = cudaResourceTypeLinear;
  line.res.linear.devPtr = run.buffer("shades", shades);
  line.res.linear.desc = cudaCreateChannelDesc<unsigned char>();
  line.res.linear.sizeInBytes = shades.size();
  cudaTextureDesc fractions{};
  fractions.readMode = cudaReadModeNormalizedFloat;
  cudaCreateTextureObject(&bytes, &line, &fractions, nullptr);

  cudaArray_t stack = nullptr;
  const cudaChannelFormatDesc pairs = cudaCreateChannelDesc<float2>();
  cudaMalloc3DArray(&stack, &pairs, make_cudaExtent(kWidth, kHeight, 2), cudaArrayLayered);
  std::vector<float2> both(2 * texels.size());
  for (std::size_t i = 0; i < both.size(); ++i) both[i] = make_float2(0, static_cast<float>(i));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(both.data(), kWidth * sizeof(float2), kWidth, kHeight);
  copy.dstArray = stack;
  copy.extent = make_cudaExtent(kWidth, kHeight, 2);
  copy.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&copy);
  resource.res.array.array = stack;
  cudaTextureDesc plain{};
  cudaCreateTextureObject(&layers, &resource, &plain, nullptr);

  cudaArray_t written = nullptr;
  cudaMallocArray(&written, &format, kWidth, kHeight, cudaArraySurfaceLoadStore);
  resource.res.array.array = written;
  cudaSurfaceObject_t surface = 0;
  cudaCreateSurfaceObject(&surface, &resource);

  float* out = run.buffer<float>("out", texels.size() * 5);
  fetch<<<1, dim3(kWidth, kHeight)>>>(linear, wrapped, bytes, layers, surface, out);
  std::vector<float> expected(texels.size() * 5);
  for (std::size_t i = 0; i < texels.size(); ++i) {
    const std::size_t column = i % kWidth, row = i / kWidth;
    const auto between = [&](std::size_t of_row) {  // halfway to the right neighbour
      const float* begin = &texels[of_row * kWidth];
      return (begin[column] + begin[column + 1 < kWidth ? column + 1 : column]) / 2;
    };
    expected[i * 5] = between(row);
    expected[i * 5 + 1] = texels[i];
    expected[i * 5 + 2] = static_cast<float>(shades[i]) / 255.0f;
    expected[i * 5 + 3] = static_cast<float>(texels.size() + i);
    expected[i * 5 + 4] = between(kHeight - 1 - row);
  }
  run.expect_close("out", run.host(out), expected, 1e-6);
  std::vector<float> back(texels.size());
  cudaMemcpy2DFromArray(back.data(), kWidth * 4, written, 0, 0, kWidth * 4, kHeight, cudaMemcpyDeviceToHost);
  run.expect(back[0] == expected[4], "the surface's array holds something else");
  for (const cudaTextureObject_t one : {linear, wrapped, bytes, layers}) cudaDestroyTextureObject(one);
  cudaDestroySurfaceObject(surface);
  for (const cudaArray_t one : {array, stack, written}) cudaFreeArray(one);
}

__device__ int sum_of(const cg::thread_group& group, int* memory, int value) {
  for (unsigned i = group.size() / 2; i > 0; i /= 2) {
    memory[group.thread_rank()] = value;
    group.sync();
    if (group.thread_rank() < i) value += memory[group.thread_rank() + i];
    group.sync();
  }
  return value;
}

/// Sums over the CTA, over groups of 16 and over tiles of 64; `values` is the host's memory.
__global__ void sums_of_groups(const int* values, int* sums) {
  __shared__ int memory[kCount];
  __shared__ cg::block_tile_memory<kCount> scratch;
  const auto block = cg::this_thread_block(scratch);
  const unsigned thread = block.thread_rank();
  const int value = values[thread];
  const int all = sum_of(cg::this_thread_block(), memory, value);
  block.sync();
  const cg::thread_group few = cg::tiled_partition(cg::this_thread_block(), 16);
  const int some = sum_of(few, memory + thread / 16 * 16, value);
  const auto warps = cg::tiled_partition<64>(block);
  const int pair_of_warps = cg::reduce(warps, value, cg::plus<int>());
  if (thread == 0) sums[0] = all;
  if (few.thread_rank() == 0) sums[1 + thread / 16] = some;
  if (warps.thread_rank() == 63) sums[17 + warps.meta_group_rank()] = pair_of_warps;
}

void check_groups(emulate::Run& run) {
  std::vector<int> values(kCount);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i % 19);
  cudaHostRegister(values.data(), kCount * sizeof(int), cudaHostRegisterMapped);
  int* on_device = nullptr;
  cudaHostGetDevicePointer(&on_device, values.data(), 0);
  int* sums = run.buffer<int>("sums of groups", 21);
  sums_of_groups<<<1, kCount>>>(on_device, sums);
  std::vector<int> expected(21);
  for (std::size_t i = 0; i < values.size(); ++i) {
    expected[0] += values[i];
    expected[1 + i / 16] += values[i];
    expected[17 + i / 64] += values[i];
  }
  run.expect_equal("the sums of groups", run.host(sums), expected);
  cudaHostUnregister(values.data());
}

void check_kernel(emulate::Run& run) {
  check_streams(run);
  check_graphs(run);
  check_conditions(run);
  check_launches_by_kernels(run);
  check_textures(run);
  check_groups(run);
}
