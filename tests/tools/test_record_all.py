"""tools/record-all: which runs it derives from records, which it leaves out, and how it goes on."""
import json
import sys

from generator import contestant, shape, timed
from sandbox import ROOT, SandboxTest, make_executable

sys.path.insert(0, str(ROOT / "tools/lib"))
import drawn_shapes  # noqa: E402 (the path comes first)

# Answers as the comparison does; writes a record of the shapes asked for, and its arguments to a log.
COMPARISON = """#!/usr/bin/env python3
import json, re, sys
words = sys.argv[1:]
if words == ["--describe"]:
    print(json.dumps([{"name": "15_tma_store", "variants": [{"name": "a"}]}, {"name": "30_source_tile", "variants": [{"name": "b"}]}]))
elif words == ["--version"]:
    print("compare: commit fff0000, built today for the GPU")
else:
    open("LOG", "a").write(" ".join(words) + "\\n")
    if "5x8x8" in words:
        sys.exit("error: 5 rows are too few")
    shapes = [dict(zip("mnk", map(int, word.split("x")))) for word in words if re.fullmatch(r"\\d+x\\d+x\\d+", word)]
    for one in shapes:
        one["contestants"] = []
        if "--groups" in words:
            one["epilogue"] = "groups " + words[words.index("--groups") + 1]
    record = {"commit": "fff0000", "mode": "burst", "pattern": "normal", "seed": int(words[words.index("--seed") + 1]),
              "shapes": shapes, "rounds": 3, "checks": [len(shapes)]}
    open(words[words.index("--json") + 1], "w").write(json.dumps(record))
"""


class RecordAll(SandboxTest):
    def setUp(self):
        super().setUp()
        self.results = self.repository / "docs/results"
        self.results.mkdir(parents=True)
        self.program = make_executable(self.folder / "compare", COMPARISON.replace("LOG", str(self.folder / "runs")))
        self.fake("nvidia-smi", "echo NVIDIA H200")

    def add(self, name, shapes, variants=("a",), **fields):
        """An old record of step 15, with cuBLASLt."""
        made = []
        for (m, n, k), groups in shapes:
            made.append(shape(m, n, k, [*(contestant("15_tma_store", "step", 700, variant) for variant in variants),
                                        contestant("cublaslt_best", "baseline", 800)]))
            if groups:
                made[-1]["epilogue"] = f"groups {groups}"
        (self.results / f"{name}.json").write_text(json.dumps(timed(made, **fields)))

    def damaged(self, name):
        """A folder in which the file `name` was cut off."""
        folder = self.folder / "damaged"
        folder.mkdir()
        (folder / name).write_text('{"shapes": [')
        return folder

    def run_all(self, *arguments):
        return self.run_tool("record-all", "--program", self.program, *arguments)

    def calls(self):
        runs = self.folder / "runs"
        return runs.read_text().splitlines() if runs.exists() else []

    def test_a_record_says_what_is_run(self):
        self.add("other_h200", [((64, 64, 64), ""), ((128, 64, 64), "")], seed=7)
        self.add("course_h200", [((4096, 4096, 4096), "")])
        done = self.run_tool("record-all", "--list")
        self.assertEqual(done.stdout.splitlines(), [
            "course_h200: tools/compare 15:a 4096x4096x4096 --time --mode burst --pattern normal --seed 1",
            "other_h200: tools/compare 15:a 64x64x64 128x64x64 --time --mode burst --pattern normal --seed 7"])

    def test_a_record_of_step_30_without_c_is_made_without_c(self):
        for name, epilogue in (("no_source", ""), ("source", "alpha 1, beta 1")):
            one = shape(64, 64, 64, [contestant("30_source_tile", "step", 700, "b"), contestant("cublaslt_best", "baseline", 800)])
            one |= {"epilogue": epilogue} if epilogue else {}
            (self.results / f"{name}_h200.json").write_text(json.dumps(timed([one])))
        done = self.run_tool("record-all", "--list")
        self.assertEqual(["--beta 0" in line for line in done.stdout.splitlines()], [True, False], done.stdout)

    def test_shapes_of_other_groups_are_other_runs_and_one_record(self):
        self.add("grouped_h200", [((64, 64, 64), "2:equal"), ((128, 64, 64), "4:equal")])
        done = self.run_all()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([call.split(" --groups ")[1].split()[0] for call in self.calls()], ["2:equal", "4:equal"])
        record = json.loads((self.results / "grouped_h200.json").read_text())
        self.assertEqual([one["m"] for one in record["shapes"]], [64, 128])
        self.assertEqual(record["checks"], [1, 1])

    def test_it_goes_on_where_it_stopped(self):
        self.add("course_h200", [((64, 64, 64), "")], commit="fff0000")
        self.add("other_h200", [((128, 64, 64), "")])
        done = self.run_all()
        self.assertIn("course_h200: made by this commit already", done.stdout)
        self.assertEqual(len(self.calls()), 1)
        self.assertIn("128x64x64", self.calls()[0])

    def test_what_takes_too_long_is_left_for_the_next_call(self):
        self.add("course_h200", [((64, 64, 64), "")])
        done = self.run_all("--minutes", "0.1")
        self.assertEqual((done.returncode, self.calls()), (0, []))
        self.assertIn("1 record is left", done.stdout)
        self.add("other_h200", [((64, 64, 64), "")])
        self.assertIn("2 records are left", self.run_all("--minutes", "0.1").stdout)

    def test_another_seed_draws_other_shapes_at_the_same_commit(self):
        for seed, runs in (("5", 1), ("5", 1), ("6", 2), ("5", 3)):
            done = self.run_all("--drawn", seed, "--only", "drawn_30")
            self.assertEqual((done.returncode, len(self.calls())), (0, runs), done.stdout + done.stderr)

    def test_a_damaged_record_is_one_sentence(self):
        (self.results / "course_h200.json").write_text('{"shapes": [')
        self.assert_refused(self.run_all(), "course_h200.json is not JSON")
        self.assert_refused(self.run_all("--drawn", "5", "--to", self.damaged("drawn_30_h200.json"), "--only", "drawn_30"),
                            "drawn_30_h200.json is not JSON")

    def test_a_record_of_a_variant_that_is_gone_stays_as_it_is(self):
        self.add("other_h200", [((64, 64, 64), "")], variants=("a", "old"))
        before = (self.results / "other_h200.json").read_text()
        done = self.run_all()
        self.assertIn("other_h200: left as it is, because there is no 15:old today", done.stdout)
        self.assertEqual(((self.results / "other_h200.json").read_text(), self.calls()), (before, []))

    def test_a_failed_run_keeps_the_old_record_and_says_why(self):
        self.add("other_h200", [((5, 8, 8), "")])
        before = (self.results / "other_h200.json").read_text()
        done = self.run_all()
        self.assertEqual(done.returncode, 1)
        self.assertIn("5 rows are too few", done.stdout)
        self.assertEqual((self.results / "other_h200.json").read_text(), before)

    def test_several_gpus_share_the_records(self):
        for index in range(4):
            self.add(f"r{index}_h200", [((64 + index, 64, 64), "")])
        self.assertEqual(self.run_all("--share", "2/2").returncode, 0)
        self.assertEqual([call.split()[1] for call in self.calls()], ["65x64x64", "67x64x64"])

    def test_bad_input_is_one_sentence(self):
        self.add("course_h200", [((64, 64, 64), "")])
        self.assert_refused(self.run_all("--share", "3/2"), "--share 3/2", "1/4")
        self.assert_refused(self.run_all("--only", "nothing"), "--only nothing", "--list")
        self.assert_refused(self.run_all("--minutes", "0"), "--minutes")
        self.assert_refused(self.run_all("--to", "/nowhere"), "/nowhere")
        self.fake("nvidia-smi", "exit 9")
        self.assert_refused(self.run_all(), "no NVIDIA GPU", "--list")

    def test_shapes_are_drawn_by_the_seed_alone(self):
        for step in drawn_shapes.ELECTIVES:
            self.assertEqual(drawn_shapes.drawn(step, 5), drawn_shapes.drawn(step, 5))
            self.assertNotEqual(drawn_shapes.drawn(step, 5), drawn_shapes.drawn(step, 6))
            self.assertEqual(len({one[0] for one in drawn_shapes.drawn(step, 5)}), drawn_shapes.COUNT)
        done = self.run_tool("record-all", "--drawn", "44071", "--list", "--only", "drawn_51")
        self.assertEqual(done.stdout.split()[:5], ["drawn_51_h200:", "tools/compare", "51:pdl_prefetch", "51:graph", "2x75776x4736"])
