#!/usr/bin/env python3
"""The lesson in a step is the original of what stands in common/gemm. Step 21 spells out the kernel that later steps take from common/gemm: both are the same, names, the start, what narrows it and
how partials are exchanged apart."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAMES = {"FittedShared": "Shared", "FittedEpilogue": "Epilogue"}  # there: here


NARROWER = [  # step 22 builds it for what a plan needs: there, here
    (", BuiltFor kBuiltFor>\nstruct FittedRoles", ">\nstruct FittedRoles"),
    ("  using Usual = Roles<T, kGroups * T::kWarpgroups>;\n  static constexpr bool kClusters = kBuiltFor >= BuiltFor::kWholeInClusters;\n", ""),
    ("kClusters ? 56 : Usual::kProducerRegisters", "56"),
    ("!kClusters            ? Usual::kConsumerRegisters\n"
     "                                            : T::kWarpgroups == 3 ? 152\n"
     "                                                                  : std::min(224, Usual::kConsumerRegisters)",
     "std::min(224, Roles<T, kGroups * T::kWarpgroups>::kConsumerRegisters)"),
    ("  static constexpr int kMostAccumulators = T::kWarpgroups == 1 ? 192 : T::kWarpgroups == 2 ? 168 : 120;\n", ""),
    ("!kClusters || T::kBlocks * T::kN / 2 <= kMostAccumulators,",
     "T::kWarpgroups <= 2 && T::kBlocks * T::kN / 2 <= (T::kWarpgroups == 1 ? 176 : 168),"),
    ("SomeChunkBuffers<kChunkBuffers<T, kGroups * T::kWarpgroups>> d[", "ChunkBuffers d["),
    ("int kGroups, bool kTransposed, BuiltFor kBuiltFor>", "int kGroups>"),
    ("fitted_kernel(FittedWork passed,", "fitted_kernel(FittedWork given,"),
    ("FittedRoles<T, kGroups, kBuiltFor>", "FittedRoles<T, kGroups>"),
    ("  const FittedWork given = narrowed<kTransposed, kBuiltFor>(passed);\n", ""),
    ("load_work_tile<kBuiltFor>(", "load_work_tile<BuiltFor::kAnyPlan>("),
    ("      if (cluster.shape.ctas() > 1) ring.producer_tail(fill, all.k_tiles);\n", ""),
    ("    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();\n  }\n",
     "    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();\n  }\n"
     "  if (given.cluster.shape.ctas() > 1) { __syncwarp(); cluster.sync(); }\n"),
]


# How partials are exchanged: from here on, up to there. Each is in one of the two, or in both.
EXCHANGE = [
    ("const int slot =", "load_work_tile<"),
    ("SlotRange peers;", "load_work_tile<"),
    ("for (int i = 0; all.stream_k_tiles > 0 && i < fetched; ++i)", "      }\n      lockstep.leave();"),
    ("order.wait(kEpilogue", "const Epilogue last = "),
    ("const Epilogue last = ", "order.arrive(kEpilogue);"),
    ("if (all.stream_k_tiles > 0) {\n      constexpr int kWarpgroups", "if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group"),
]


def without_exchange(code):
    for begin, end in EXCHANGE:
        start = code.find(begin)
        if start >= 0 and code.find(end, start) >= 0:
            code = code[:start] + code[code.index(end, start):]
    return code


def kernel(text):
    """From the roles to the end of the kernel, without comments, one space between words."""
    begin = text.index("struct FittedRoles")
    end = text.index("\n}\n", text.index("__global__"))
    for there, here in NAMES.items():
        text = text[:begin] + re.sub(rf"\b{there}\b", here, text[begin:end]) + text[end:]
        end = text.index("\n}\n", text.index("__global__"))
    code = without_exchange(re.sub(r"//.*", "", text[begin:end]))
    # Step 22 starts the kernel in another way: who initialises the barriers, and who waits for it.
    start, work = code.index("const int warp = warp_index();"), code.index("Lockstep lockstep(")
    code = code[:start] + code[work:].replace("cluster.start<R::kThreads>(true);", "")
    return re.findall(r"\w+|[^\w\s]", code)


# What the library took from a step as it was: the step's file, the header, the names.
MOVED = [
    ("16_cluster_multicast/kernel.cuh", "tile/cluster_tile.cuh", ["struct Cluster", "void load_shares(", "TileGrid cluster_grid(", "TilePosition cluster_tile("]),
    ("19_work_queue/kernel.cuh", "pipeline/work_queue.cuh", ["struct PackedState", "struct alignas(8) QueuedMainloop"]),
    ("20_l2_lockstep/kernel.cuh", "pipeline/lockstep.cuh", ["struct LockstepPlan", "void leave("]),
    ("43_promotion/kernel.cuh", "pipeline/issue_order.cuh", ["enum class Phase", "struct IssueOrder"]),
    ("44_block_scales/kernel.cuh", "pipeline/scaled_parts.cuh", ["void promote"]),
    ("46_fitted_fp8/whole_store.cuh", "epilogue/whole_store.cuh", ["void store_whole_tile("]),
]


def definition(text, name):
    """The words from a name to where its braces close, without comments."""
    code = re.sub(r"//.*", "", text)
    begin = code.index(name)
    depth = 0
    for end in range(code.index("{", begin), len(code)):
        depth += {"{": 1, "}": -1}.get(code[end], 0)
        if depth == 0:
            return re.findall(r"\w+|[^\w\s]", code[begin:end])
    raise AssertionError(f"{name} is not closed")


# Step 76's loop over subtiles: in the step, in the library.
STORE = [
    ("kSubtileN", "kStoredColumns"),
    ("kStoreBarrier, kEpilogueThreads", "kBarrier, kThreads"),
    ("kRelease == Release::kLoaded && column", "column"),
    ("buffers[", "buffers.d["),
]


# Step 46's loop over the parts of a k-tile: in the step, in the library.
PARTS = [
    ("const int column = part * kColumns;\n", ""),
    ("scales_a, column,", "scales_a, part * kColumns,"),
    ("scales, column,", "scales, part * kColumns,"),
]


class MovedKernel(unittest.TestCase):
    def test_step_46_promotes_as_the_library_does(self):
        lesson = (ROOT / "steps/46_fitted_fp8/kernel.cuh").read_text(encoding="utf-8").split("auto finish_k_tile", 1)[1]
        library = (ROOT / "common/gemm/pipeline/promoting_reader.cuh").read_text(encoding="utf-8").split("void finish_k_tile", 1)[1]
        for here, there in PARTS:
            self.assertIn(here, lesson)
            lesson = lesson.replace(here, there)
        self.assertEqual(definition(lesson, "for (int part = 0"), definition(library, "for (int part = 0"))

    def test_step_76_stores_as_the_library_does(self):
        lesson = (ROOT / "steps/76_tensor_memory_store/kernel.cuh").read_text(encoding="utf-8")
        library = (ROOT / "common/gemm/epilogue/tensor_store.cuh").read_text(encoding="utf-8")
        for here, there in STORE:
            self.assertIn(here, lesson)
            lesson = lesson.replace(here, there)
        self.assertEqual(definition(lesson, "for (int column = 0"), definition(library, "for (int column = 0"))

    def test_what_the_library_took_from_a_step_is_still_the_same(self):
        for original, header, names in MOVED:
            lesson = (ROOT / "steps" / original).read_text(encoding="utf-8")
            library = (ROOT / "common/gemm" / header).read_text(encoding="utf-8")
            for name in names:
                with self.subTest(original=original, name=name):
                    self.assertEqual(definition(lesson, name), definition(library, name))

    def test_the_kernel_of_step_21_is_the_one_in_common(self):
        here = kernel((ROOT / "steps/21_fitted_tiles/kernel.cuh").read_text(encoding="utf-8"))
        narrowed = (ROOT / "common/gemm/fitted/fitted_kernel.cuh").read_text(encoding="utf-8")
        for theirs, ours in NARROWER:
            self.assertEqual(1, narrowed.count(theirs), theirs)
            narrowed = narrowed.replace(theirs, ours)
        there = kernel(narrowed)
        self.assertGreater(len(here), 600)
        self.assertEqual(here, there)
