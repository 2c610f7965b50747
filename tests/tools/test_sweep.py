"""The map of tile sizes: the committed one against its record, and the generator on a made-up record."""
import copy
import json
import re
import subprocess
import unittest
import xml.etree.ElementTree

from generator import DEVICE, ROOT, GeneratorTest, contestant, derive, set_tflops, shape, timed


def set_ratio(record, index, ratio):
    """The contestant at `index` was that much faster than cuBLASLt."""
    set_tflops(record["shapes"][0], index, 800 * ratio)


def made_up_record():
    """Two rows and two columns: one cell with two numbers of stages, two others, and one that does not fit."""
    def cell(m, k, *limits):
        return {"m": m, "n": 128, "k": k, "instructions": k // 16, "warpgroups": m // 64, "most_stages": 0 if limits else 3,
                "limits": [{"what": what, "why": "made up"} for what in limits]}

    tiles = [("64x128x32_stages2", 0.4), ("64x128x32_stages17", 0.5), ("64x128x256_stages2", 0.6125), ("192x128x32_stages8", 0.9)]
    contestants = [contestant("sweep", "step", 800 * ratio, variant) for variant, ratio in tiles]
    contestants.append(contestant("cublaslt_best", "baseline", 800, "made up"))
    return timed([shape(8192, 8192, 8192, contestants)], device={**DEVICE, "name": "Made-up GPU"},
                 cells=[cell(64, 32), cell(64, 256), cell(192, 32), cell(192, 256, "shared memory")])


class Sweep(GeneratorTest):
    """In a repository with nothing but the tools, drawn by the environment of the real one."""

    RECORD = "docs/results/sweep_h200.json"

    def setUp(self):
        super().setUp()
        self.figure = self.root / "docs/figures/sweep_h200.svg"
        self.python = self.python_with_matplotlib()

    def draw(self, *arguments):
        return self.run_tool("figures/draw_sweep.py", *arguments, python=self.python)

    def words(self):
        """The texts of the figure."""
        tree = xml.etree.ElementTree.parse(self.figure)
        return ["".join(element.itertext()).strip() for element in tree.iter("{http://www.w3.org/2000/svg}text")]

    def refused(self, *parts):
        done = self.draw()
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_the_map_shows_the_best_number_of_stages_and_what_does_not_fit(self):
        self.write(made_up_record())
        self.assertEqual(self.draw().returncode, 0)
        words = self.words()
        for word in ("0.500", "17 stages", "0.613", "0.900", "8 stages", "shared memory", "64 × 128", "192 × 128",
                     "32 = 2 × 16", "256 = 16 × 16"):
            self.assertEqual(words.count(word), 1, f"{word}: {words}")
        self.assertNotIn("0.400", words)
        self.assertEqual(words.count("2 stages"), 1)
        self.assertTrue(any("8192³" in word and "burst" in word for word in words), words)
        self.assertTrue(any("Made-up GPU" in word for word in words), words)

    def test_the_same_record_gives_the_same_bytes_and_another_one_is_noticed(self):
        self.write(made_up_record())
        self.assertEqual(self.draw().returncode, 0)
        first = self.figure.read_bytes()
        self.assertEqual(self.draw("--check").returncode, 0)
        self.figure.unlink()
        self.assertEqual(self.draw("--check").returncode, 1)
        self.assertEqual(self.draw().returncode, 0)
        self.assertEqual(self.figure.read_bytes(), first)
        changed = made_up_record()
        set_ratio(changed, 1, 0.51)
        self.write(changed)
        done = self.draw("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("docs/figures/sweep_h200.svg: differs from its record", done.stderr)
        self.assertEqual(self.figure.read_bytes(), first)

    def test_mistakes_are_named(self):
        done = self.draw("docs/results/other.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("does not exist", done.stderr)
        record = made_up_record()
        del record["cells"]
        self.write(record)
        self.refused("is not a record of tile sizes (tools/sweep --json), but of a timed run")
        record = made_up_record()
        del record["shapes"][0]["contestants"][3]
        self.write(record)
        self.refused("192x128x32 was not timed")
        record = made_up_record()
        record["cells"][0]["limits"] = copy.deepcopy(record["cells"][3]["limits"])
        self.write(record)
        self.refused("64x128x32 was timed and does not fit")
        record = made_up_record()
        del record["shapes"][0]["contestants"][-1]
        derive(record["shapes"][0])
        self.write(record)
        self.refused("no ratios")
        record = made_up_record()
        record["shapes"][0]["contestants"][0]["variant"] = "64x128_2"
        self.write(record)
        self.refused("64x128_2")

    def test_the_committed_map_is_that_of_its_record(self):
        done = subprocess.run([self.python, "-B", ROOT / "tools/figures/draw_sweep.py", "--check"], capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


class Sizes(unittest.TestCase):
    """The sizes that are generated are those that the program knows."""

    def test_generated_sizes_are_those_of_the_program(self):
        header = (ROOT / "tools/sweep_program/cell.h").read_text()
        build = (ROOT / "tools/sweep_program/CMakeLists.txt").read_text()

        def in_header(name):
            return re.search(rf"\b{name}\{{([\d, ]+)\}}", header)[1].replace(",", "").split()

        def in_build(*names):
            return [size for name in names for size in re.search(rf"set\({name} ([\d ]+)\)", build)[1].split()]

        self.assertEqual(in_header("kTileM"), in_build("tiles_m"))
        self.assertEqual(in_header("kTileK"), in_build("tiles_k_shallow", "tiles_k_deep"))
