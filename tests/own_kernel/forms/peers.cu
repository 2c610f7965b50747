// Two devices of one process, in the CUDA runtime's own words: peer access, streams and events of both, a
// copy engine, and a flag of system scope that a kernel raises in the other device's memory.
//
// Run with GEMM_STEPS_DEVICES=2. Broken on purpose: -D NO_PEER_ACCESS, -D NO_EVENT (a kernel reads what a
// copy engine brings, without waiting for it), -D DEVICE_SCOPE (the flag has the scope of one device), -D
// FREED (the second device frees memory into which the first one may still be writing).
#include <cuda/atomic>

#include <vector>

constexpr int kCount = 256;

#ifdef DEVICE_SCOPE
using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
#else
using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;
#endif

__global__ void send(int* inbox, unsigned* flag) {
  inbox[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
  __syncthreads();
  if (threadIdx.x == 0) Flag(*flag).store(1, cuda::memory_order_release);
}

__global__ void receive(const int* inbox, unsigned* flag, int* out) {
  if (threadIdx.x == 0) {
    while (Flag(*flag).load(cuda::memory_order_acquire) == 0) {
    }
  }
  __syncthreads();
  out[threadIdx.x] = inbox[blockDim.x - 1 - threadIdx.x];
}

__global__ void twice(const int* in, int* out) {
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

void check_kernel(emulate::Run& run) {
  int devices = 0, can = 0;
  cudaGetDeviceCount(&devices);
  if (devices < 2) return;
  cudaDeviceCanAccessPeer(&can, 0, 1);
  run.expect(can == 1, "device 0 cannot access device 1");

  cudaStream_t streams[2];
  int *inbox = nullptr, *out = nullptr, *copied = nullptr, *source = nullptr;
  unsigned* flag = nullptr;
  cudaSetDevice(1);
  cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking);
  cudaMalloc(&inbox, kCount * sizeof(int));
  cudaMalloc(&out, kCount * sizeof(int));
  cudaMalloc(&copied, kCount * sizeof(int));
  cudaMalloc(&flag, sizeof(unsigned));
  cudaMemset(flag, 0, sizeof(unsigned));
  cudaDeviceSynchronize();  // the streams do not wait for the default stream
  cudaSetDevice(0);
  cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking);
  cudaMalloc(&source, kCount * sizeof(int));
  std::vector<int> values(kCount);
  for (int i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = i;
  cudaMemcpy(source, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice);
#ifndef NO_PEER_ACCESS
  run.expect(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess, "no peer access");
#endif

  cudaSetDevice(1);
  receive<<<1, kCount, 0, streams[1]>>>(inbox, flag, out);  // waits for what is launched behind it
  cudaSetDevice(0);
  send<<<1, kCount, 0, streams[0]>>>(inbox, flag);
  cudaMemcpyPeerAsync(copied, 1, source, 0, kCount * sizeof(int), streams[0]);
  cudaEvent_t arrived;
  cudaEventCreate(&arrived);
  cudaEventRecord(arrived, streams[0]);
#ifdef FREED
  cudaSetDevice(1);
  int* gone = nullptr;
  cudaMalloc(&gone, kCount * sizeof(int));
  cudaSetDevice(0);
  twice<<<1, kCount, 0, streams[0]>>>(source, gone);
  cudaSetDevice(1);
  cudaFree(gone);
#endif
  cudaSetDevice(1);
#ifndef NO_EVENT
  cudaStreamWaitEvent(streams[1], arrived, 0);
#endif
  int* doubled = nullptr;
  cudaMalloc(&doubled, kCount * sizeof(int));
  twice<<<1, kCount, 0, streams[1]>>>(copied, doubled);
  for (int device = 0; device < 2; ++device) {
    cudaSetDevice(device);
    cudaDeviceSynchronize();
  }

  std::vector<int> results(kCount);
  cudaMemcpy(results.data(), out, kCount * sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < kCount; ++i)
    run.expect(results[static_cast<size_t>(i)] == kCount - i, "what the peer has sent is wrong");
  cudaMemcpy(results.data(), doubled, kCount * sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < kCount; ++i)
    run.expect(results[static_cast<size_t>(i)] == 2 * i, "what the copy engine has brought is wrong");
  cudaSetDevice(0);
  cudaDeviceDisablePeerAccess(1);
  cudaStreamDestroy(streams[0]);
  cudaStreamDestroy(streams[1]);
  cudaEventDestroy(arrived);
  for (void* memory : {static_cast<void*>(inbox), static_cast<void*>(out), static_cast<void*>(copied),
                       static_cast<void*>(flag), static_cast<void*>(doubled), static_cast<void*>(source)})
    cudaFree(memory);
}
