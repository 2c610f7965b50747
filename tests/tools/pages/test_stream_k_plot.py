"""The figure of waves, from a made-up record."""
import copy
import re
import subprocess
import sys
import unittest

from generator import ROOT, GeneratorTest, contestant, derive, set_tflops, shape, timed

sys.path.insert(0, str(ROOT / "tools/figures"))
sys.path.insert(0, str(ROOT / "tools/lib"))
import plot_stream_k  # noqa: E402 (the path comes first)


def size(m, n, plain):
    return shape(m, n, 8192, [
        contestant("18_stream_k", "step", 700, "hybrid"), contestant("18_stream_k", "step", plain, "data_parallel"),
        contestant("18_stream_k", "step", 650, "split_k2"), contestant("18_stream_k", "step", 690, "stream_k"),
        contestant("cublaslt_best", "baseline", 730, f"algo {m}"), contestant("wgmma_ceiling", "ceiling", 900)])


# 120, 90 and 210 tiles, not in order; the second is ragged.
RECORD = timed([size(1536, 2560, 450), size(1100, 2500, 640), size(1920, 3584, 550)])


class Waves(GeneratorTest):
    """tools/figures/plot_stream_k.py in an empty repository with one record."""

    def setUp(self):
        super().setUp()
        self.write(RECORD)

    def plot(self, *arguments, **options):
        return self.run_tool("figures/plot_stream_k.py", *arguments, **options)


class WavesFigure(Waves):
    """Points and mistakes."""

    def refused(self, record, *parts):
        self.write(record)
        done = self.plot("docs/results/run.json")
        self.assertEqual(done.returncode, 2, done.stdout)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse((self.root / "docs/results/run.waves.svg").exists())

    def test_a_record_without_the_variants_is_refused(self):
        record = copy.deepcopy(RECORD)
        for entry in record["shapes"]:
            del entry["contestants"][:2]
            derive(entry)
        self.refused(record, "lacks 18_stream_k's variants data_parallel and hybrid")

    def test_shapes_of_two_depths_are_refused(self):
        record = copy.deepcopy(RECORD)
        record["shapes"][1]["k"] = 4096
        derive(record["shapes"][1])
        self.refused(record, "different K (4096, 8192)")

    def test_two_shapes_of_as_many_tiles_are_refused(self):
        record = copy.deepcopy(RECORD)
        record["shapes"].append(size(2560, 1536, 400))
        self.refused(record, "1536x2560x8192 and 2560x1536x8192 have 120 tiles both")

    def test_one_shape_is_not_a_curve(self):
        self.refused({**RECORD, "shapes": RECORD["shapes"][:1]}, "a curve needs two or more")

    def test_a_record_that_is_missing_is_named(self):
        done = self.plot("docs/results/other.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("docs/results/other.json does not exist", done.stderr)

    def test_points_are_ordered_by_tiles_and_ragged_tiles_count(self):
        lines = {key: [(tiles, round(rate, 6)) for tiles, rate in line] for key, line in plot_stream_k.curves(RECORD).items()}
        self.assertEqual(lines["18_stream_k", "data_parallel"], [(90, 640), (120, 450), (210, 550)])
        self.assertEqual(lines["cublaslt_best", None], [(90, 730), (120, 730), (210, 730)])
        self.assertEqual(len(lines), 6)

    def test_the_tile_is_that_of_the_step(self):
        kernel = (ROOT / "steps/18_stream_k/kernel.cuh").read_text(encoding="utf-8")
        self.assertEqual(re.search(r"WgmmaTiling<(\d+), (\d+), ", kernel).groups(),
                         (str(plot_stream_k.TILE_M), str(plot_stream_k.TILE_N)))
        for (name, variant), *_ in plot_stream_k.LINES:
            if name == plot_stream_k.STEP:
                self.assertIn(f'("{variant}"', kernel)


class WavesPlots(Waves):
    """Drawn by the environment of the repository itself."""

    def setUp(self):
        super().setUp()
        self.python = self.python_with_matplotlib()

    def test_the_same_record_gives_the_same_bytes_and_a_change_is_noticed(self):
        figure = self.root / "docs/results/run.waves.svg"
        done = self.plot("docs/results/run.json", python=self.python)
        self.assertEqual(done.returncode, 0, done.stderr)
        first = figure.read_bytes()
        self.assertEqual(self.plot("docs/results/run.json", python=self.python).returncode, 0)
        self.assertEqual(figure.read_bytes(), first)
        for text in ("data-parallel", "split-K, 2", "Stream-K over everything", "hybrid", "cuBLASLt best",
                     "wgmma-only ceiling", "1 wave", "2 waves", "for 100 SMs", "K = 8192", "burst", "Test GPU"):
            self.assertIn(text.encode(), first)
        self.assertNotIn(b"3 waves", first)
        self.assertEqual(self.plot("--check", python=self.python).returncode, 0)
        record = copy.deepcopy(RECORD)
        set_tflops(record["shapes"][0], 0, 710)
        self.write(record)
        done = self.plot("--check", python=self.python)
        self.assertEqual(done.returncode, 1)
        self.assertIn("docs/results/run.waves.svg: differs from its record", done.stderr)


class PublishedWaves(unittest.TestCase):
    """What is committed is what the records say."""

    def test_figures_are_up_to_date(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools/figures/plot_stream_k.py", "--check"], capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)
        if "could not be installed" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
