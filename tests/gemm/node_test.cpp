// What a node of an epilogue is, and the order in which the nodes of a tree get a hook.
#include <string>

#include "../../steps/32_aux_tree/kernel.cuh"
#include "../../steps/33_reductions/kernel.cuh"
#include "catch.h"

namespace node_test {

using gemm::EmptyNode;
using gemm::EpiloguePlace;
using gemm::Node;
using gemm::TreePlace;

struct NoBase {
  void begin(const EpiloguePlace&) {}
};
struct OtherFragment : EmptyNode {
  void visit(float*, int) {}
};
struct NeedsMore : EmptyNode {
  void previsit(const gemm::step_33::Place&) {}
};

static_assert(Node<EmptyNode> && Node<gemm::Scale> && Node<gemm::SharedColumnBias<64>>);
static_assert(Node<gemm::Scale, gemm::step_32::Place>, "a node for any place is one for this place, too");
static_assert(!Node<NoBase>, "most hooks are missing");
static_assert(!Node<OtherFragment>, "a hook that takes something else hides the one that does nothing");
static_assert(!Node<NeedsMore> && Node<NeedsMore, gemm::step_33::Place>, "this place has no sums");
static_assert(!Node<gemm::step_32::StoreTensor, gemm::step_33::Place>, "nor this one what is stored");
static_assert(Node<gemm::step_33::ColumnSums<gemm::step_33::Ordered>, gemm::step_33::Place>);

std::string calls;

template <char kName>
struct Recorder : EmptyNode {
  void end_loop(const EpiloguePlace&) { calls += kName; }
  void visit(float (&x)[2], int, int) {
    calls += kName;
    x[0] = x[1] = kName;
  }
};
/// Writes down a `c` after its branch has had its turn.
template <typename Branch>
struct RecordingBranch : Branch {
  void end_loop(const EpiloguePlace&) { calls += 'c'; }
};
float latter(float, float branch) {
  return branch;
}

/// What every node of the tree writes down, for one hook and then for `visit`.
template <typename Tree, typename Place>
std::string recorded(const Place& at) {
  calls.clear();
  Tree tree;
  tree.each([&](auto& node) { node.end_loop(at); });
  calls += ' ';
  float x[2] = {0, 0};
  tree.visit(x, 0, 0);
  CHECK(x[0] == static_cast<float>('d'));
  return calls;
}

TEST_CASE("a tree calls the hooks of a branch's nodes before those of the node that has it") {
  const gemm::Shape shape{64, 64, 64};
  const gemm::TreeArguments given{{1, nullptr}, nullptr, 0};
  const TreePlace library{{given, shape, nullptr}, given, nullptr};
  const gemm::step_32::Place lesson{{given, shape, nullptr}, given, nullptr, nullptr, nullptr};
  using Inner = gemm::Branch<latter, Recorder<'d'>>;
  using Outer = RecordingBranch<gemm::Branch<latter, Recorder<'b'>, Inner>>;
  CHECK(recorded<gemm::TreeAt<TreePlace, Recorder<'a'>, Outer>>(library) == "abdc abd");
  using Step32Inner = gemm::step_32::Branch<latter, Recorder<'d'>>;
  using Step32Outer = RecordingBranch<gemm::step_32::Branch<latter, Recorder<'b'>, Step32Inner>>;
  CHECK(recorded<gemm::step_32::Tree<Recorder<'a'>, Step32Outer>>(lesson) == "abdc abd");
}

TEST_CASE("what a node needs is what its branch needs") {
  using Gradient = gemm::Branch<gemm::times, gemm::LoadTensor, gemm::Activate<gemm::gelu_tanh_slope>>;
  CHECK(Gradient::kLoads);
  CHECK(gemm::Branch<gemm::times, Gradient>::kLoads);
  CHECK(gemm::Branch<gemm::times, gemm::KeepMasked>::kMasks == 1);
  CHECK(gemm::step_32::Branch<gemm::times, gemm::step_32::KeepMasked>::kMasks == 1);
  CHECK(gemm::TreeAt<TreePlace, gemm::Scale, gemm::KeepMasked>::kMasks == 1);
  CHECK_FALSE(gemm::TreeAt<TreePlace, gemm::Scale>::kLoads);
}

}  // namespace node_test
