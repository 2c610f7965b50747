#include "emulator/instrument/reductions.h"

#include "emulator/report/report.h"
#include "gemm/problem/bf16.h"
#include "ptx/core.cuh"

namespace emulator {
namespace {

/// bf16 in which a sum is rounded once.
struct Bf16 {
  gemm::bf16 value;
  friend Bf16 operator+(Bf16 a, Bf16 b) {
    return {gemm::to_bf16(gemm::to_float(a.value) + gemm::to_float(b.value))};
  }
  friend bool operator<(Bf16 a, Bf16 b) { return gemm::to_float(a.value) < gemm::to_float(b.value); }
};

}  // namespace

Reduction reduction_of(const TensorMapBits& map, ReductionKind kind) {
  gemm::ptx::TensorMapSpec spec;
  if (!decode_tensor_map(map, spec)) return reduction<std::uint32_t>(kind);  // the store says so
  switch (spec.element) {
    case gemm::ptx::TensorElement::kFloat32:
      return reduction<float>(kind);
    case gemm::ptx::TensorElement::kBf16:
      return reduction<Bf16>(kind);
    case gemm::ptx::TensorElement::kUint32:
      return reduction<std::uint32_t>(kind);
    default: {
      Report report(
          "cp_reduce_async_bulk_tensor reduces elements of a type that the emulator does not support");
      fail(
          "unsupported",
          report.rule("the emulator supports float, bf16 and unsigned 32-bit integers", "this course").str());
    }
  }
}

uint3 cluster_ctaid() {
  const gemm::ptx::Extent& cluster = running_thread().cta->gang->grid.shape.cluster;
  const uint3 id = running_thread().cta->id;
  return {id.x % cluster.x, id.y % cluster.y, id.z % cluster.z};
}
uint3 cluster_nctaid() {
  const gemm::ptx::Extent& cluster = running_thread().cta->gang->grid.shape.cluster;
  return {cluster.x, cluster.y, cluster.z};
}
uint3 cluster_id() {
  const gemm::ptx::Extent& cluster = running_thread().cta->gang->grid.shape.cluster;
  const uint3 id = running_thread().cta->id;
  return {id.x / cluster.x, id.y / cluster.y, id.z / cluster.z};
}
uint3 cluster_count() {
  const gemm::ptx::LaunchShape& shape = running_thread().cta->gang->grid.shape;
  return {shape.grid.x / shape.cluster.x, shape.grid.y / shape.cluster.y, shape.grid.z / shape.cluster.z};
}

}  // namespace emulator
