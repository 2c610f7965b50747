"""Figures and tables of the hardware: the committed ones against their sources, and the generators on a made-up record."""
import copy
import itertools
import json
import math
import pathlib
import re
import shutil
import site
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from unittest import mock

from generator import DEVICE, ROOT, GeneratorTest, TimelineTest, timelines

site.main()  # records are read here with jsonschema, and ctest starts Python without the packages of the system
sys.path.insert(0, str(ROOT / "tools" / "lib"))
sys.path.insert(0, str(ROOT / "tools/figures"))
import draw_accumulators  # noqa: E402 (the path comes first)
import draw_cluster  # noqa: E402
import draw_epilogue_path  # noqa: E402
import draw_phase_wheel  # noqa: E402
import draw_ring  # noqa: E402
import draw_roles  # noqa: E402
import draw_sm  # noqa: E402
import draw_speeds  # noqa: E402
import draw_step_map  # noqa: E402
import draw_stream_k  # noqa: E402
import draw_tensor_memory  # noqa: E402
import draw_tile_hierarchy  # noqa: E402
import draw_timelines  # noqa: E402
import palette  # noqa: E402
import records  # noqa: E402
import shared_banks  # noqa: E402


def figure(name, median, unit="clocks", **parameters):
    return {"name": name, "unit": unit, "what": "made up", "parameters": parameters, "median": median,
            "q1": 0.99 * median, "q3": 1.01 * median, "lowest": 0.9 * median, "highest": 1.1 * median,
            "impossible": False, "samples": [x * median for x in (0.9, 0.99, 1, 1.01, 1.1)]}


def made_up_record():
    """Round numbers that no GPU has, under the names that tools/roofline gives its figures."""
    figures = [figure("dram.read", 4000), figure("dram.write", 3000), figure("dram.copy", 3500)]
    figures += [figure("l2.read", 8000 - 10 * mib, working_set_mib=mib) for mib in (4, 32, 128)]
    figures += [figure("latency.l2", 200 + mib, working_set_mib=mib) for mib in (4, 32)]
    figures += [figure("latency.l2_line.near", 200, lines=4, sms=10, sms_that_see_the_opposite=5,
                       variance_between_groups=0.95),
                figure("latency.l2_line.far", 300), figure("latency.l2_line.by_sm", 250)]
    figures += [figure("l1.read", 60 + width, bytes_per_lane=width) for width in (4, 16)]
    for width in (4, 8, 16):
        parameters = {"pattern": "row", "bytes_per_lane": width, "expected_wavefronts": width // 4}
        figures += [figure("shared.read", 125, **parameters), figure("shared.read.clocks", width / 4, **parameters)]
    for ways in (2, 32):
        parameters = {"pattern": "stride", "bytes_per_lane": 4, "expected_wavefronts": ways, "conflict_ways": ways}
        figures += [figure("shared.read", 128 / ways, **parameters), figure("shared.read.clocks", ways, **parameters)]
    for layout, wavefronts in (("plain", 32), ("swizzled", 4)):
        parameters = {"layout": layout, "row_bytes": 128, "bytes_per_lane": 16, "expected_wavefronts": wavefronts}
        figures += [figure("ldmatrix", 512 / wavefronts, **parameters),
                    figure("ldmatrix.clocks", wavefronts + 0.25, **parameters)]
    figures += [figure("latency.ffma", 5), figure("latency.shared", 30), figure("latency.l1", 40),
                figure("latency.dram", 900, region_mib=256)]
    for name, parameter, count, rate, throughput in (("fma", "warps", 32, 250, 50), ("mma_sync", "warps", 4, 2000, 400),
                                                     ("mma_sync", "warps", 8, 2500, 500),
                                                     ("wgmma", "warpgroups", 2, 4000, 800)):
        figures += [figure(name + ".rate", rate, **{parameter: count}),
                    figure(name + ".throughput", throughput, **{parameter: count}),
                    figure(name + ".clock", 2000, **{parameter: count})]
    for a, time, clocks, clock in (("memory", 600, 1030, 1600), ("nowhere", 570, 1028, 1700)):
        figures += [figure("loads.k_tile", clocks, a=a, b="memory"), figure("loads.time", time, a=a, b="memory"),
                    figure("loads.clock", clock, a=a, b="memory")]
    figures += [figure("barrier", 20 + threads / 64, threads=threads) for threads in (128, 1024)]
    figures += [figure("launch.back_to_back", 2.5), figure("launch.and_wait", 7)]
    figures += [figure("launch.between_events", time, "us", stores=stores, before=before) for time, stores, before in
                ((6, "nothing", "nothing"), (2, "nothing", "a kernel that waits"), (7, "16 KiB", "nothing"), (3, "16 KiB", "a kernel that waits"))]
    return {"schema": 1, "kind": "roofline", "commit": "abc1234", "date": "2025-01-02T03:04:05Z", "quick": False,
            "rounds": 15, "idle_ms": 15, "seconds": 9, "figures": figures,
            "device": {**{key: value for key, value in DEVICE.items() if key not in ("is_emulator", "memory_free_bytes")},
                       "name": "Made-up GPU"}}


class Committed(unittest.TestCase):
    """What is in the repository is what its generator makes."""

    def check(self, tool):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools" / tool, "--check"], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_drawings_without_timelines(self):
        drawn = [path for path in ROOT.glob("tools/figures/draw_*.py") if "from drawing import" in (text := path.read_text(encoding="utf-8"))
                 and "draw_trace" not in text]
        self.assertGreater(len(drawn), 14)
        for path in sorted(drawn):
            with self.subTest(path.name):
                self.check(f"figures/{path.name}")

    def test_promotion_figure(self):
        self.check("figures/plot_promotion.py")

    def test_roofline_tables(self):
        self.check("roofline_table.py")

    def test_docs_link_to_files_that_exist(self):
        for document in sorted(ROOT.glob("docs/**/*.md")):
            text = re.sub(r"(?ms)^ *```.*?^ *```$", "", document.read_text(encoding="utf-8"))  # C++ has [&](auto& node)
            for target in re.findall(r"\]\(([^)#\s]+)", text):
                if "://" not in target:
                    self.assertTrue((document.parent / target).exists(), f"{document.name} links to {target}")

    def test_the_program_measures_what_the_generators_read(self):
        source = "".join(path.read_text() for path in sorted((ROOT / "tools/roofline").glob("*.cu")))
        for name in {entry["name"] for entry in made_up_record()["figures"]}:
            base, _, suffix = name.rpartition(".")
            # ".rate" and the like are appended to a name in one place for all.
            whole = f'"{name}"' in source
            self.assertTrue(whole or (f'"{base}"' in source and f'".{suffix}"' in source), name)


class Captions(unittest.TestCase):
    """Every figure says what it is and what to see in it, and nothing in it is cut off."""

    FIGURES = sorted([*ROOT.glob("docs/figures/*.svg"), *ROOT.glob("docs/figures/traces/*.svg"), *ROOT.glob("docs/results/*.svg")])
    SVG = "{http://www.w3.org/2000/svg}"

    def drawn(self, path):
        """The root of a figure, in which each text has the look that its group says once."""
        root = xml.etree.ElementTree.parse(path).getroot()
        for group in root.iter(self.SVG + "g"):
            for element in group:
                element.attrib = {**group.attrib, **element.attrib}
        return root

    def test_a_title_and_a_sentence_stand_at_the_head(self):
        for path in self.FIGURES:
            root = self.drawn(path)
            texts = list(root.iter(self.SVG + "text"))
            if root.get("role") != "img":  # by matplotlib, where a line is a text
                self.assertTrue(any(re.fullmatch(r"[A-Z].* .*[a-z]\.", element.text or "") for element in texts), path.name)
                continue
            title, first = texts[0], texts[1]
            self.assertEqual((title.get("font-size"), title.get("font-weight"), title.get("y")), ("14", "bold", "26"), path.name)
            sentence = []
            for element in texts[1:]:
                if element.get("font-size") != "12" or element.get("fill") != palette.SOFT or element.get("x") != first.get("x"):
                    break
                sentence.append(element.text)
            self.assertRegex(" ".join(sentence), r"^[A-Z0-9].*\.$", path.name)

    def test_nothing_is_cut_off(self):
        for path in self.FIGURES:
            root = self.drawn(path)
            if root.get("role") != "img":
                continue
            width, height = float(root.get("width")), float(root.get("height"))
            for element in root.iter():
                right = float(element.get("x") or 0) + float(element.get("width") or 0) if element is not root else 0
                low = float(element.get("y") or 0) + float(element.get("height") or 0) if element is not root else 0
                for value, limit in ((element.get("x"), width), (element.get("y"), height), (element.get("cx"), width),
                                     (element.get("cy"), height), (right, width), (low, height)):
                    if value:
                        self.assertTrue(0 <= float(value) <= limit + 0.01, f"{path.name}: {element.attrib}")
                if element.tag == self.SVG + "text" and element.text and not element.get("transform"):
                    # A letter is about 0.6 of its size wide, a bold one 0.68.
                    wide = len(element.text) * float(element.get("font-size")) * (0.68 if element.get("font-weight") else 0.6)
                    begin = float(element.get("x")) - wide * {"middle": 0.5, "end": 1}.get(element.get("text-anchor"), 0)
                    self.assertGreaterEqual(begin, -wide / 8, f"{path.name}: {element.text}")
                    self.assertLessEqual(begin + wide, width + wide / 8, f"{path.name}: {element.text}")

    def test_the_two_texts_above_a_timeline_do_not_touch(self):
        for path in sorted(ROOT.glob("docs/figures/traces/*.svg")):
            texts = [element for element in self.drawn(path).iter(self.SVG + "text") if element.text]
            panels = [element for element in texts if element.text.startswith("Step ") and element.get("font-weight")]
            self.assertTrue(panels, path.name)
            # A bold letter is 0.59 of its size wide, one of these digits and signs 0.52.
            for element in panels:
                other, = [one for one in texts if one.get("y") == element.get("y") and one is not element]
                room = float(other.get("x")) - float(element.get("x"))
                self.assertLess(12 * 0.59 * len(element.text) + 11 * 0.52 * len(other.text), room, f"{path.name}: {element.text}")


class Clusters(unittest.TestCase):
    """Which CTA loads what, as the figure says and as the kernels do it."""

    def test_the_senders_are_the_peers_of_the_kernels(self):
        header = (ROOT / "common/gemm/tile/cluster_tile.cuh").read_text(encoding="utf-8")
        for line in ("int m = rank % kM;", "int n = rank / kM;", "return other % kM == m || other / kM == n;",
                     "kPeers = kM + kN - 1;"):
            self.assertIn(line, header)
        for high, wide in draw_cluster.CLUSTERS:
            for rank in range(high * wide):
                peers = [other for other in range(high * wide) if other % high == rank % high or other // high == rank // high]
                self.assertEqual(draw_cluster.senders(rank, high, wide), peers)
                self.assertEqual(len(peers), high + wide - 1)

    def test_the_bytes_that_the_page_gives(self):
        table = {(1, 1): 48, (2, 1): 32, (1, 2): 40, (2, 2): 24}
        page = (ROOT / "docs/clusters.md").read_text(encoding="utf-8")
        for (high, wide), kilobytes in table.items():
            self.assertEqual(draw_cluster.loaded_bytes(high, wide), kilobytes * 1024)
            row = next(line for line in page.splitlines() if line.startswith(f"| {high} × {wide} |"))
            self.assertEqual(row.split("|")[4].strip(), f"{kilobytes} KB")


class StartPage(unittest.TestCase):
    """What the figures of the start page say, against the sources."""

    def test_the_parities_of_the_ring_are_those_of_the_kernels(self):
        # PipelineState as in step 11: the consumers start at phase 0, the producer at phase 1; a lap flips both.
        stage, consumer, producer = 0, 0, 1
        for k_tile in range(3 * draw_ring.STAGES):
            self.assertEqual(draw_ring.parities(k_tile), (consumer, producer))
            stage += 1
            if stage == draw_ring.STAGES:
                stage, consumer, producer = 0, consumer ^ 1, producer ^ 1

    def test_the_phases_of_the_ring_count_completions(self):
        for count in range(3 * draw_ring.STAGES):
            for stage in range(draw_ring.STAGES):
                self.assertEqual(draw_ring.phase(count, stage), sum(k % draw_ring.STAGES == stage for k in range(count)))
        # Both waits that the text below the ring describes pass: the current phase has the other parity.
        following, issued = draw_ring.RELEASED + 1, draw_ring.ISSUED
        self.assertNotEqual(draw_ring.phase(draw_ring.ARRIVED, following % draw_ring.STAGES) % 2, draw_ring.parities(following)[0])
        self.assertNotEqual(draw_ring.phase(draw_ring.RELEASED, issued % draw_ring.STAGES) % 2, draw_ring.parities(issued)[1])

    def test_every_step_has_a_place_on_the_map_right_of_the_one_it_builds_on(self):
        where = draw_step_map.places()
        self.assertEqual(list(where), draw_step_map.steps())
        self.assertEqual(len(set(where.values())), len(where))
        for step, (column, _) in where.items():
            before = draw_step_map.builds_on(step)
            self.assertEqual(column, where[before][0] + 1 if before else 0, step)


class Speeds(unittest.TestCase):
    """The figure of the README, against the records and the README's own numbers."""

    def test_the_means_are_those_of_the_readme(self):
        speeds, shapes = draw_speeds.over_the_suite("NVIDIA H200")
        means = {number: f"{mean:.3f}" for number, mean, _, _ in speeds}
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        marked = re.findall(r"<!-- number: suite\w*_h200 (\d\d) geometric_mean -->([\d.]+)<", readme)
        self.assertGreater(len(marked), 2)
        for number, mean in marked:
            self.assertEqual(means[number], mean)
        self.assertEqual(shapes, 12)
        for _, mean, slowest, fastest in speeds:
            self.assertTrue(slowest < mean < fastest)

    def test_a_step_appears_when_a_record_has_it_and_the_newest_record_counts(self):
        older, newer = (copy.deepcopy(records.load(ROOT / "docs/results/suite_h200.json")) for _ in range(2))
        for record in (older, newer):  # of three steps
            for shape in record["burst"]["shapes"]:
                shape["contestants"] = [one for one in shape["contestants"] if one["kind"] != "step" or one["name"][:2] in ("15", "18", "22")]
            record["summary"] = [one for one in record["summary"] if one["name"][:2] in ("15", "18", "22")]
        for entry in [*newer["summary"], *(one for shape in newer["burst"]["shapes"] for one in shape["contestants"])]:
            if entry["name"] == "18_stream_k":
                entry["name"] = "19_work_queue"
            if entry["name"] == "22_peak" and "geometric_mean" in entry:
                entry["geometric_mean"]["median"] = 0.99
        with mock.patch.object(draw_speeds, "suites", return_value=[newer, older]):
            means = {number: mean for number, mean, _, _ in draw_speeds.over_the_suite("")[0]}
            text = draw_speeds.draw()
        self.assertEqual(list(means), ["15", "18", "19", "22"])
        self.assertEqual(means["19"], means["18"])
        self.assertEqual(means["22"], 0.99)
        self.assertIn("steps 15, 18, 19 and 22", text)


class Mechanisms(unittest.TestCase):
    """What the figures of single mechanisms say, against the sources."""

    def run_program(self, source):
        compiler = shutil.which("c++") or shutil.which("g++")
        if not compiler:
            self.skipTest("no C++ compiler")
        with tempfile.TemporaryDirectory(prefix="gemm-steps-test.") as folder:
            program = pathlib.Path(folder) / "program"
            program.with_suffix(".cpp").write_text(source)
            subprocess.run([compiler, "-std=c++20", f"-I{ROOT / 'common'}", program.with_suffix(".cpp"), "-o", program], check=True)
            return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()

    def test_the_waits_of_the_wheel_are_those_of_the_page(self):
        page = (ROOT / "docs/mbarriers.md").read_text(encoding="utf-8")
        for current in range(draw_phase_wheel.PHASES):
            does = "passes" if draw_phase_wheel.passes(current, draw_phase_wheel.WANTED) else "waits"
            row, = re.findall(rf"(?m)^\| {current} \| {current % 2} \| {does} \| (.*) \|$", page)
            word, *_ = draw_phase_wheel.VERDICTS[current]
            self.assertEqual(row.split(":")[0], {"right": "yes", "wrong": "no", "by luck": "only by chance"}[word])
            self.assertEqual(draw_phase_wheel.right(current, draw_phase_wheel.WANTED), word != "wrong")

    def test_partials_are_stored_before_they_are_added(self):
        events = [event for worker in draw_stream_k.workers(draw_stream_k.recorded(), "stream-K") for event in worker]
        stored = {event.tile: event.end for event in events if event.what == "store"}
        added = {event.tile: event.begin for event in events if event.what == "fix up"}
        self.assertEqual(set(stored), set(added))
        for tile, begin in added.items():
            self.assertLess(stored[tile], begin)

    def test_the_epilogue_is_that_of_step_15(self):
        kernel = (ROOT / "steps/15_tma_store/kernel.cuh").read_text(encoding="utf-8")
        order = ["cp_async_bulk_wait_group_read<kLate ? 1 : 0>()", "ptx::bar_sync(barrier, 128)", "ptx::cvt_rn_bf16x2_f32(", "ptx::stmatrix_x4(",
                 "ptx::fence_proxy_async_shared_cta()", "ptx::bar_sync(barrier, 128)", "ptx::cp_async_bulk_tensor_2d_store(",
                 "ptx::cp_async_bulk_wait_group<0>()"]
        at = 0
        for words in order:
            at = kernel.index(words, at) + 1
        fact = draw_epilogue_path.facts()
        self.assertIn(f"WgmmaTiling<{draw_epilogue_path.TILE_M}, {draw_epilogue_path.TILE_N}, 64, {draw_epilogue_path.WARPGROUPS}>", kernel)
        self.assertIn("bf16 d[T::kWarpgroups][2][64][64];", kernel)
        self.assertEqual((fact["rows"], fact["accumulators"], fact["subtiles"]), (64, 128, 4))
        self.assertEqual((fact["per_thread"], fact["pairs"], fact["stmatrix"], fact["kilobytes"]), (32, 16, 4, 8))

    def test_tensor_memory_is_that_of_step_73(self):
        kernel = (ROOT / "steps/73_roles_two_accumulators/kernel.cuh").read_text(encoding="utf-8")
        for words in ('variant<256, 4, 2>("128x256"', "kEpilogueWarps = 4;", "kIssuerWarp = 4;", "kColumns = kAccumulators * T::kColumns;",
                      "mbarrier_init(&full[i], 1);", "mbarrier_init(&empty[i], kEpilogueWarps);"):
            self.assertIn(words, kernel)
        line, = self.run_program("""
#include <cstdio>
#include "ptx/tcgen05_descriptor.h"
int main() { std::printf("%u\\n", gemm::ptx::tensor_memory_address(0, 64, 266)); }
""")
        self.assertEqual(int(line), draw_tensor_memory.address(64, 266))
        self.assertIn(f"0x{int(line):08x}", draw_tensor_memory.draw())


class Accumulators(unittest.TestCase):
    """Which thread holds which element, as the figure says and as the kernels store it."""

    def test_the_elements_are_those_that_the_kernels_store(self):
        tile = (ROOT / "common/gemm/tile/wgmma_tile.cuh").read_text(encoding="utf-8")
        for line in ("d_row = tile_row + row + block * 64 + warp * 16 + half * 8 + lane / 4;",
                     "d_column = tile_column + j * 8 + lane % 4 * 2;",
                     "accumulators[block][4 * j + 2 * half],", "accumulators[block][4 * j + 2 * half + 1]"):
            self.assertIn(line, tile)
        for thread in range(128):
            warp, lane = thread // 32, thread % 32
            for j in range(4):
                for half in range(2):
                    row, column = warp * 16 + half * 8 + lane // 4, j * 8 + lane % 4 * 2
                    register = 4 * j + 2 * half
                    self.assertEqual(draw_accumulators.element(thread, register), (row, column))
                    self.assertEqual(draw_accumulators.element(thread, register + 1), (row, column + 1))

    def test_every_element_has_one_holder(self):
        for n in (8, 256):
            held = {draw_accumulators.element(thread, register): (thread, register)
                    for thread in range(128) for register in range(n // 2)}
            self.assertEqual(set(held), {(row, column) for row in range(64) for column in range(n)})
            for place, holder in held.items():
                self.assertEqual(draw_accumulators.holder(*place), holder)

    def test_the_figure_names_a_lane_in_its_row(self):
        tree = xml.etree.ElementTree.fromstring(draw_accumulators.draw())
        texts = [(element.text or "", float(element.get("x", 0)), float(element.get("y", 0))) for element in tree.iter()]
        pairs = [(words, x, y) for words, x, y in texts if words.startswith("lane ")]
        self.assertEqual(len(pairs), 64)
        rows = {words: y for words, x, y in texts if words.isdigit() and x > 500}
        columns = {words.split()[1].rstrip(","): x for words, x, _ in texts if words.startswith("columns ") and x > 500}
        for words, x, y in pairs:
            lane, register = map(int, re.fullmatch(r"lane (\d+): d\[(\d)\], d\[\d\]", words).groups())
            row, column = lane // 4 + 4 * register, lane % 4 * 2
            self.assertEqual((x, y), (columns[str(column)], rows[str(row)]), words)


class StepFifteen(TimelineTest):
    """The figures of the start page that show step 15 and the model's constants."""

    def setUp(self):
        self.path = timelines("15")["15"]

    def test_the_committed_figures_are_what_the_kernel_did(self):
        for figure in (draw_roles, draw_sm):
            self.assertEqual(figure.draw(), (ROOT / figure.FIGURE).read_text(encoding="utf-8"))

    def test_the_tile_is_that_of_step_15(self):
        trace = json.loads(self.path.read_text(encoding="utf-8"))["otherData"]
        hierarchy = draw_tile_hierarchy
        self.assertEqual(trace["tile"], [hierarchy.TILE_M, hierarchy.TILE_N, hierarchy.TILE_K])
        self.assertEqual(trace["tile"], [draw_sm.TILE_M, draw_sm.TILE_N, draw_sm.TILE_K])
        self.assertEqual(hierarchy.tiles(), 512)
        self.assertEqual(hierarchy.accumulators_per_thread(), 128)

    def test_the_numbers_of_the_sm_are_those_of_the_pages(self):
        fact = draw_sm.facts()
        start = (ROOT / "docs/start.md").read_text(encoding="utf-8")
        for name in ("sms", "all_registers", "shared", "flop", "multiply", "shared_rate", "l2_scattered", "l2_merged", "l2_latency",
                     "tma_latency", "memory_rate", "memory_latency"):
            self.assertRegex(start, rf"(?m)^\| {re.escape(str(fact[name]))}\b", name)


class Timelines(TimelineTest):
    """The two timelines, drawn from the traces of steps 16 and 17."""

    def setUp(self):
        paths = timelines(*(name for name, _, _ in draw_timelines.TRACES))
        self.traces = {every: draw_timelines.draw_trace.load(paths[name]) for name, _, every in draw_timelines.TRACES}

    def test_the_committed_figure_is_what_the_kernels_did(self):
        self.assertEqual(draw_timelines.draw(), (ROOT / draw_timelines.FIGURE).read_text(encoding="utf-8"))

    def test_the_gaps_are_those_of_the_traces(self):
        for every, trace in self.traces.items():
            spans = draw_timelines.spans_of(trace, every)
            multiplied = sum(span.end - span.begin for span in spans if span.row == "tensor cores")
            clocks = sum(event["args"]["clocks"] for event in trace["events"]
                         if event["ph"] == "X" and event["name"] == "multiply" and event["pid"] == 100000)
            self.assertEqual(multiplied, clocks)  # a tile has no gap inside
            idle = draw_timelines.gaps(spans)
            self.assertEqual(len(idle), 2 if every == 1 else 3)
            self.assertEqual(max(idle) > 0, every == 1)

    def test_one_multiplies_at_a_time_and_one_stores_at_a_time(self):
        spans = draw_timelines.spans_of(self.traces[2], 2)
        for kind in ("multiply", "store"):
            chosen = sorted((span for span in spans if span.kind == kind and span.row != "tensor cores"), key=lambda span: span.begin)
            self.assertEqual([span.tile for span in chosen], list(range(4)))
            self.assertEqual([span.row for span in chosen], [f"consumer {tile % 2}" for tile in range(4)])
        stores = sorted((span for span in spans if span.kind == "store"), key=lambda span: span.begin)
        for before, after in zip(stores, stores[1:]):
            self.assertLessEqual(before.end, after.begin)

    def test_a_store_of_ping_pong_lies_under_a_multiplication(self):
        spans = draw_timelines.spans_of(self.traces[2], 2)
        for store in [span for span in spans if span.kind == "store" and span.tile < 3]:
            other, = [span for span in spans if span.row == "tensor cores" and span.tile == store.tile + 1]
            self.assertTrue(other.begin <= store.begin and store.end <= other.end, store)


class Palette(unittest.TestCase):
    """One palette, which colour-blind readers can use."""

    # Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, severity 1.
    EYES = {"normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
            "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
            "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))}

    @staticmethod
    def linear(color):
        values = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        return [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]

    @classmethod
    def lab(cls, color, eye):
        seen = [min(1, max(0, sum(weight * value for weight, value in zip(row, cls.linear(color))))) for row in cls.EYES[eye]]
        white = (0.95047, 1.0, 1.08883)
        rows = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
        x, y, z = (sum(weight * value for weight, value in zip(row, seen)) / base for row, base in zip(rows, white))
        root = [value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in (x, y, z)]
        return 116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])

    def distance(self, one, other, eye):
        return math.dist(self.lab(one, eye), self.lab(other, eye))

    def contrast(self, one, other):
        lighter, darker = sorted((sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), self.linear(color)))
                                  for color in (one, other)), reverse=True)
        return (lighter + 0.05) / (darker + 0.05)

    def test_colours_differ_for_every_eye(self):
        strong = [palette.GREEN, palette.BLUE, palette.ORANGE, palette.RED, palette.PURPLE]
        pale = [palette.ACTIVITY[name] for name in ("wait full", "wait empty", "wait order", "wait store", "wait source")]
        dark = [palette.DARK[palette.GREEN], palette.GREEN]
        browns = [palette.DARK[palette.ORANGE], palette.ORANGE]
        for colors, least in ((strong, 20), (pale, 7), (dark, 20), (browns, 20), (palette.PARITY, 7)):
            for one, other in itertools.combinations(colors, 2):
                for eye in self.EYES:
                    self.assertGreater(self.distance(one, other, eye), least, f"{one} and {other}, {eye}")

    def test_text_can_be_read(self):
        for color in (palette.GREEN, palette.BLUE, palette.RED, palette.PURPLE, palette.SOFT, palette.INK):
            self.assertGreater(self.contrast(color, palette.GROUND), 4.5, color)
        for color in (palette.ORANGE,):  # only beside a mark of that colour
            self.assertGreater(self.contrast(color, palette.GROUND), 3, color)
        for ground in palette.LIGHT.values():
            self.assertGreater(self.contrast(palette.INK, ground), 8, ground)

    def test_an_activity_has_one_colour_and_no_two_share_one(self):
        same = [{"copy", "issue"}, {"epilogue", "store"}]
        for one, other in itertools.combinations(palette.ACTIVITY, 2):
            self.assertEqual(palette.ACTIVITY[one] == palette.ACTIVITY[other], {one, other} in same, (one, other))

    def test_no_script_has_a_colour_of_its_own(self):
        for path in sorted([*ROOT.glob("tools/figures/*.py"), *ROOT.glob("tools/lib/*.py")]):
            if path.name != "palette.py":
                self.assertEqual(re.findall(r"#[0-9a-fA-F]{6}\b", path.read_text(encoding="utf-8")), [], path.name)

    def test_committed_figures_have_no_other_colours(self):
        known = {value.lower() for value in re.findall(r"#[0-9a-f]{6}", (ROOT / "tools/figures/palette.py").read_text(encoding="utf-8"))}
        for path in sorted([*ROOT.glob("docs/figures/*.svg"), *ROOT.glob("docs/figures/traces/*.svg")]):
            if path.name.startswith("sweep"):  # a scale between two of them
                continue
            used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-fA-F]{6})"', path.read_text(encoding="utf-8")))
            self.assertLessEqual(used, known, path.name)


class Banks(unittest.TestCase):
    """The model of shared memory."""

    def test_the_swizzle_is_that_of_the_kernels(self):
        compiler = shutil.which("c++") or shutil.which("g++")
        if not compiler:
            self.skipTest("no C++ compiler")
        with tempfile.TemporaryDirectory(prefix="gemm-steps-test.") as folder:
            program = pathlib.Path(folder) / "swizzles"
            source = program.with_suffix(".cpp")
            source.write_text("""
#include <cstdio>
#include "gemm/tile/swizzle.h"
template <int kSpan> void print() {
  for (int offset = 0; offset < 4096; ++offset)
    std::printf("%d %d %d %d\\n", kSpan, offset, gemm::swizzle<kSpan>(offset),
                gemm::swizzle_chunk<kSpan>(offset / kSpan, offset % kSpan / 16));
}
int main() { print<128>(); print<64>(); print<32>(); }
""")
            subprocess.run([compiler, "-std=c++20", f"-I{ROOT / 'common'}", source, "-o", program], check=True)
            lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
        self.assertEqual(len(lines), 3 * 4096)
        for line in lines:
            span, offset, swizzled, chunk = map(int, line.split())
            self.assertEqual(shared_banks.swizzle(offset, span), swizzled)
            self.assertEqual(shared_banks.place("swizzled", span, offset // span, offset % span // 16) % span // 16,
                             chunk)

    def test_each_swizzle_is_a_permutation_inside_its_rows(self):
        for span in (32, 64, 128):
            places = [shared_banks.swizzle(offset, span) for offset in range(8 * span)]
            self.assertEqual(sorted(places), list(range(8 * span)))
            self.assertTrue(all(place // span == offset // span for offset, place in enumerate(places)))

    def test_wavefronts_of_known_patterns(self):
        cases = [([4 * lane for lane in range(32)], 4, 1), ([0] * 32, 4, 1), ([16 * lane for lane in range(32)], 16, 4),
                 ([8 * lane for lane in range(32)], 8, 2), ([128 * lane for lane in range(32)], 4, 32),
                 ([8 * lane for lane in range(32)], 4, 2),
                 ([lane % 8 * 128 + lane // 8 * 16 for lane in range(32)], 16, 32)]
        for offsets, width, expected in cases:
            self.assertEqual(shared_banks.wavefronts(offsets, width), expected)

    def test_ldmatrix_conflicts_in_the_plain_layout_only(self):
        for row_bytes, plain in ((128, 32), (64, 16), (32, 8)):
            self.assertEqual(shared_banks.wavefronts(shared_banks.ldmatrix_x4("plain", row_bytes), 16), plain)
            for layout in ("padded", "swizzled"):
                self.assertEqual(shared_banks.wavefronts(shared_banks.ldmatrix_x4(layout, row_bytes), 16), 4)


class Roofline(GeneratorTest):
    """The generators in an empty repository with a made-up record."""

    RECORD = "docs/results/roofline_h200.json"

    def setUp(self):
        super().setUp()
        self.document = self.root / "docs/memory.md"

    def table(self, name):
        """The generated rows, heading first."""
        self.document.write_text(f"before\n\n<!-- roofline: {name} -->\nstale\n<!-- /roofline -->\n")
        done = self.run_tool("roofline_table.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in self.document.read_text().splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line]

    def refused(self, *parts):
        self.document.write_text("<!-- roofline: hierarchy -->\n<!-- /roofline -->\n")
        for tool in ("roofline_table.py", "figures/draw_roofline.py"):
            done = self.run_tool(tool)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            for part in parts:
                self.assertIn(part, done.stderr)

    def test_what_was_generated_checks_and_a_changed_number_is_noticed(self):
        self.write(made_up_record())
        self.table("hierarchy")
        self.assertEqual(self.run_tool("roofline_table.py", "--check").returncode, 0)
        self.assertEqual(self.run_tool("figures/draw_roofline.py").returncode, 0)
        self.assertEqual(self.run_tool("figures/draw_roofline.py", "--check").returncode, 0)
        changed = made_up_record()
        changed["figures"][0] = figure("dram.read", 4100)
        self.write(changed)
        done = self.run_tool("roofline_table.py", "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("docs/memory.md", done.stderr)
        done = self.run_tool("figures/draw_roofline.py", "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("docs/figures/hierarchy.svg", done.stderr)
        self.assertIn("docs/figures/roofline.svg", done.stderr)

    def test_figures_are_well_formed(self):
        self.write(made_up_record())
        for tool in ("figures/draw_roofline.py", "figures/draw_swizzle.py"):
            self.assertEqual(self.run_tool(tool).returncode, 0)
        for path in (self.root / "docs/figures").glob("*.svg"):
            tree = xml.etree.ElementTree.parse(path)
            width, height = float(tree.getroot().get("width")), float(tree.getroot().get("height"))
            for element in tree.iter():
                for attribute, limit in (("x", width), ("y", height), ("cx", width), ("cy", height)):
                    if element.get(attribute):
                        self.assertTrue(0 <= float(element.get(attribute)) <= limit, f"{path.name}: {element.attrib}")

    def test_hierarchy_table(self):
        self.write(made_up_record())
        rows = {row[0]: row[1:] for row in self.table("hierarchy")}
        self.assertEqual(rows["registers"], ["256 KiB per SM", "–", "–", "5.00", "2.50"])
        # 125 bytes/clock on 100 SMs at 2 GHz.
        self.assertEqual(rows["shared memory"], ["228 KiB per SM", "125", "25.0", "30.0", "15.0"])
        # The fastest working set counts: 7.96 TB/s.
        self.assertEqual(rows["L2"], ["50.0 MiB", "39.8", "7.96", "204", "102"])
        self.assertEqual(rows["device memory, read"], ["140 GiB", "20.0", "4.00", "900", "450"])
        self.assertEqual(rows["device memory, copy"], ["", "17.5", "3.50", "–", "–"])

    def test_ridge_and_tile_tables(self):
        self.write(made_up_record())
        rows = self.table("ridges")
        self.assertEqual(rows[0][2:], ["FFMA (fp32), 50.0 TFLOP/s", "mma.sync (bf16), 500 TFLOP/s",
                                       "wgmma (bf16), 800 TFLOP/s"])
        self.assertEqual(rows[1], ["device memory", "4.00", "12.5", "125", "200"])
        self.assertEqual(rows[3], ["shared memory", "25.0", "2.00", "20.0", "32.0"])
        rows = {row[0]: row[1:] for row in self.table("tiles")}
        self.assertEqual(rows["128×128"], ["64.0", "39.1", "62.5", "509"])
        rows = {row[0]: row[1:] for row in self.table("warp_tiles")}
        self.assertEqual(rows["64×64"], ["128", "32.0", "78.1", "62 %"])
        rows = {row[0]: row[1:] for row in self.table("wgmma_shapes")}
        self.assertEqual(rows["m64n256k16"], ["51.2", "80.0", "64 %"])
        # 20 bytes/clock for 900 clocks.
        self.assertEqual(self.table("in_flight")[2], ["device memory", "20.0", "900", "17.6 KiB"])

    def test_tables_of_measurements(self):
        self.write(made_up_record())
        self.assertEqual(self.table("conflicts")[1:],
                         [["4 bytes, neighbouring lanes neighbouring addresses", "1", "1.0", "125.0"],
                          ["8 bytes, neighbouring lanes neighbouring addresses", "2", "2.0", "125.0"],
                          ["16 bytes, neighbouring lanes neighbouring addresses", "4", "4.0", "125.0"],
                          ["4 bytes, lanes 2 words apart", "2", "2.0", "64.0"],
                          ["4 bytes, lanes 32 words apart", "32", "32.0", "4.0"]])
        self.assertEqual(self.table("ldmatrix")[1:], [["plain, rows of 128 bytes", "32", "32.2", "16.0"],
                                                      ["swizzled, rows of 128 bytes", "4", "4.2", "128.0"]])
        self.assertEqual(self.table("l2")[1], ["4 MiB", "7.96", "204"])
        self.assertIn("two groups", self.document.read_text())
        self.assertEqual(self.table("arithmetic")[2], ["mma.sync m16n8k16, 4 warps per SM", "2000", "49 %", "400", "2000"])
        self.assertEqual(self.table("overheads")[1], ["`__syncthreads` of 128 threads", "22.0 clocks"])
        self.assertEqual(self.table("launches")[1:], [["an empty kernel", "6.00", "2.00"],
                                                      ["a kernel that stores 16 KiB of each CTA", "7.00", "3.00"]])
        self.assertEqual(self.table("loads")[1:], [["its own k-tiles", "its own k-tiles", "1.000", "1030", "1600"],
                                                   ["nothing", "its own k-tiles", "0.950", "1028", "1700"]])

    def test_two_groups_of_lines_are_claimed_only_where_they_are(self):
        record = made_up_record()
        for entry in record["figures"]:
            if entry["name"] == "latency.l2_line.near":
                entry["parameters"]["variance_between_groups"] = 0.7
        self.write(record)
        self.table("l2")
        self.assertIn("do not fall into two groups", self.document.read_text())

    def test_a_table_without_a_record(self):
        rows = {row[0]: row[1:] for row in self.table("layouts")}
        self.assertEqual(rows["plain, rows of 128 bytes"], ["16384", "32", "4"])
        self.assertEqual(rows["padded, rows of 128 bytes"], ["18432", "4", "4"])
        self.assertEqual(rows["swizzled, rows of 64 bytes"], ["8192", "4", "4"])

    def test_bad_records_are_refused(self):
        self.refused("there is no docs/results/roofline_h200.json", "build/gpu/bin/roofline --json")
        self.record.write_text("{")
        self.refused("roofline_h200.json", "is not JSON")
        self.write({"schema": 1, "shapes": []})
        self.refused("is not a record of the limits of a GPU (tools/roofline), but of a timed run")
        quick = made_up_record()
        quick["quick"] = True
        self.write(quick)
        self.refused("--quick")
        impossible = made_up_record()
        impossible["figures"][0]["impossible"] = True
        self.write(impossible)
        self.refused("hardware cannot have", "dram.read")
        lacking = made_up_record()
        lacking["figures"] = [entry for entry in lacking["figures"] if entry["name"] != "latency.dram"]
        self.write(lacking)
        self.refused("latency.dram", "region_mib=256")
        shapeless = copy.deepcopy(made_up_record())
        del shapeless["device"]["l2_bytes"]
        self.write(shapeless)
        self.refused("l2_bytes")

    def test_bad_markers_are_refused(self):
        for text, part in (("<!-- roofline: hierarchi -->\n<!-- /roofline -->\n", "did you mean 'hierarchy'"),
                           ("<!-- roofline: l2 wide=1 -->\n<!-- /roofline -->\n", "wide=1"),
                           ("<!-- roofline: l2 -->\n", "write <!-- /roofline -->")):
            self.document.write_text(text)
            done = self.run_tool("roofline_table.py")
            self.assertEqual(done.returncode, 2)
            self.assertIn(part, done.stderr)
            self.assertEqual(self.document.read_text(), text)
