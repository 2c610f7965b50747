"""tools/records: check, diff, csv, migrate, compact and history, in an empty repository; the committed records; a counters' profile."""
import copy
import csv
import io
import json
import pathlib
import subprocess

from generator import ROOT, GeneratorTest, contestant, derive, python_with, shape, timed


def race(ours, others=(), rounds=7, **fields):
    """One shape; `ours` and `others` are (name, variant, TFLOP/s)."""
    steps = [contestant(name, "step", rate, variant) for name, variant, rate in [*ours, *others]]
    return timed([shape(4096, 4096, 4096, [*steps, contestant("cublaslt_best", "baseline", 780, "algo 3"),
                                           contestant("wgmma_ceiling", "ceiling", 900)], samples=rounds)], **fields)


def spread(record, index, factors):
    """The samples of one contestant times these."""
    one = record["shapes"][0]["contestants"][index]
    one["samples_us"] = [sample * factor for sample, factor in zip(one["samples_us"], factors)]
    derive(record["shapes"][0])


class Records(GeneratorTest):
    """With two files to compare."""

    def setUp(self):
        super().setUp()
        self.a, self.b = "docs/results/a.json", "docs/results/b.json"

    def save(self, path, record):
        (self.root / path).write_text(json.dumps(record))

    def records(self, *arguments):
        return self.run_tool("records", *arguments)

    def printed(self, *arguments):
        done = self.records(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refused(self, *arguments, status=2):
        done = self.records(*arguments)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (status, 1), done.stderr)
        return done.stderr


class Diff(Records):
    """What changed from one run to another."""

    def rows(self, *arguments):
        """The cells of the lines about contestants, by name."""
        lines = [line for line in self.printed("diff", self.a, self.b, *arguments).splitlines() if line.startswith("  ")]
        return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}

    def test_ratios_are_compared_with_their_intervals_and_times_are_not(self):
        before = race([("15_tma_store", "a", 700), ("16_cluster_multicast", "b", 700), ("17_ping_pong", "c", 700)])
        after = race([("15_tma_store", "a", 770), ("16_cluster_multicast", "b", 630), ("17_ping_pong", "c", 707)], date="2025-02-03")
        for record in (before, after):
            spread(record, 2, [0.97, 0.98, 0.99, 1, 1.01, 1.02, 1.03])
        self.save(self.a, before)
        self.save(self.b, after)
        rows = self.rows()
        flop = 2 * 4096**3 / 1e6
        self.assertEqual(rows["15_tma_store"], f"a {flop / 700:.1f} {flop / 770:.1f} 0.897 [0.897, 0.897] 0.987 [0.987, 0.987] "
                                               "1.100 [1.100, 1.100] FASTER")
        self.assertTrue(rows["16_cluster_multicast"].endswith("0.900 [0.900, 0.900] SLOWER"), rows)
        self.assertTrue(rows["17_ping_pong"].endswith("within the intervals"), rows)
        self.assertTrue(rows["cuBLASLt"].endswith("1 1 (reference)"), rows)
        text = self.printed("diff", self.a, self.b)
        self.assertIn("Two runs: their times are shown but not compared. What is compared are speeds relative to cuBLASLt best", text)
        self.assertIn("A: docs/results/a.json, Test GPU, 2025-01-02, commit abc1234, cuBLAS 13.1, normal inputs", text)
        self.assertIn("B: docs/results/b.json, Test GPU, 2025-02-03", text)

    def test_a_slower_machine_is_not_a_slower_kernel(self):
        before, after = race([("15_tma_store", "a", 700)]), race([("15_tma_store", "a", 700)])
        for index in range(3):
            spread(after, index, [1.25] * 7)
        self.save(self.a, before)
        self.save(self.b, after)
        self.assertTrue(self.rows()["15_tma_store"].endswith("1.000 [1.000, 1.000] within the intervals"))

    def test_a_comparison_of_times_is_refused(self):
        for path in (self.a, self.b):
            self.save(path, race([("15_tma_store", "a", 700)]))
        self.assertIn("times of two runs are not compared", self.refused("diff", self.a, self.b, "--by", "time"))

    def test_shares_of_the_ceiling(self):
        self.save(self.a, race([("15_tma_store", "a", 450)]))
        self.save(self.b, race([("15_tma_store", "a", 675)]))
        rows = self.rows("--by", "ceiling")
        self.assertIn("0.500 [0.500, 0.500] 0.750 [0.750, 0.750] 1.500 [1.500, 1.500] FASTER", rows["15_tma_store"])
        self.assertTrue(rows["wgmma-only"].endswith("(reference)"), rows)

    def test_what_only_one_of_them_has_is_listed(self):
        before = race([("15_tma_store", "a", 700)], [("15_tma_store", "old", 600)])
        after = race([("15_tma_store", "a", 700)], [("16_cluster_multicast", "new", 600)])
        after["shapes"].append(shape(64, 64, 64, [contestant("15_tma_store", "step", 1, "a")], samples=7))
        self.save(self.a, before)
        self.save(self.b, after)
        text = self.printed("diff", self.a, self.b)
        self.assertIn("only in A: 15_tma_store old\n", text)
        self.assertIn("only in B: 16_cluster_multicast new\n", text)
        self.assertIn("64x64x64: only in B", text)
        text = self.printed("diff", self.a, self.b, "--only", "16")
        self.assertNotIn("15_tma_store", text)
        self.assertNotIn("64x64x64", text)
        self.assertIn("picks no contestant", self.refused("diff", self.a, self.b, "--only", "11"))

    def test_without_the_reference_there_is_nothing_to_compare(self):
        before, after = race([("15_tma_store", "a", 700)]), race([("15_tma_store", "a", 700)])
        del after["shapes"][0]["contestants"][1]
        derive(after["shapes"][0])
        self.save(self.a, before)
        self.save(self.b, after)
        self.assertIn("no ratio in both", self.rows()["15_tma_store"])

    def test_other_modes_inputs_and_kinds_are_refused_other_machines_noted(self):
        self.save(self.a, race([("15_tma_store", "a", 700)]))
        self.save(self.b, race([("15_tma_store", "a", 700)], mode="sustained", idle_ms=0))
        self.assertIn("was timed burst, docs/results/b.json sustained", self.refused("diff", self.a, self.b))
        self.save(self.b, race([("15_tma_store", "a", 700)], pattern="zeros"))
        self.assertIn("with normal inputs, docs/results/b.json with zeros", self.refused("diff", self.a, self.b))
        (self.root / self.b).write_text((ROOT / "docs/results/l2_h200.json").read_text())
        self.assertIn("but of a profiler's counters", self.refused("diff", self.a, self.b))
        other = race([("15_tma_store", "a", 700)], cublas_version="14.0")
        other["device"]["name"] = "Another GPU"
        self.save(self.b, other)
        text = self.printed("diff", self.a, self.b)
        self.assertIn("Not the same GPU in A and B", text)
        self.assertIn("Not the same cuBLAS in A and B", text)

    def test_both_modes_of_a_suite(self):
        (self.root / self.a).write_text((ROOT / "docs/results/suite_h200.json").read_text())
        text = self.printed("diff", self.a, self.a, "--only", "22")
        self.assertEqual(text.count("22_peak"), 14)
        self.assertIn("\nsustained (back to back):\n", text)
        self.assertNotIn("FASTER", text)
        self.assertNotIn("SLOWER", text)


class Csv(Records):
    """Rows for a spreadsheet."""

    def rows(self, *arguments):
        return list(csv.DictReader(io.StringIO(self.printed("csv", *arguments))))

    def test_a_row_for_each_shape_and_contestant(self):
        record = race([("15_tma_store", 'a, "b"', 700)])
        self.save(self.a, record)
        rows = self.rows(self.a)
        self.assertEqual([row["name"] for row in rows], ["15_tma_store", "cublaslt_best", "wgmma_ceiling"])
        one = record["shapes"][0]["contestants"][0]
        self.assertEqual(rows[0]["variant"], 'a, "b"')
        self.assertEqual(float(rows[0]["median_us"]), one["median_us"])
        self.assertEqual(float(rows[0]["to_cublaslt_low"]), one["to_cublaslt"]["low"])
        self.assertEqual((rows[0]["mode"], rows[0]["m"], rows[0]["rounds"], rows[0]["verdict"]), ("burst", "4096", "7", "SLOWER"))

    def test_every_kind_of_record_has_rows(self):
        def contestants(record):
            return [one for entry in record["shapes"] for one in entry["contestants"]]

        for name, entries, column in (
                ("suite", lambda record: contestants(record["burst"]) + contestants(record["sustained"]), "tflops"),
                ("measuring", lambda record: record["claims"], "ratio"), ("l2", contestants, "l2_hit_percent"),
                ("peer_copy", lambda record: [one for copy in record["copies"] for one in copy["contestants"]], "variant"),
                ("roofline", lambda record: record["figures"], "unit"), ("sweep", contestants, "variant")):
            path = self.root / f"docs/results/{name}.json"
            path.write_text((ROOT / f"docs/results/{name}_h200.json").read_text())
            found = self.rows(path)
            self.assertEqual(len(found), len(entries(json.loads(path.read_text()))), name)
            self.assertTrue(all(row[column] for row in found), name)

    def test_it_is_written_to_a_file_at_once_or_not_at_all(self):
        self.save(self.a, race([("15_tma_store", "a", 700)]))
        self.assertIn("wrote out.csv", self.printed("csv", self.a, "--output", "out.csv"))
        self.assertEqual((self.root / "out.csv").read_text(), self.printed("csv", self.a))
        self.assertIn("none/out.csv cannot be written", self.refused("csv", self.a, "--output", "none/out.csv"))

    def test_what_cannot_be_printed_is_said(self):
        self.save(self.a, race([("15_tma_store", "a", 700)]))
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([python_with("jsonschema"), "-B", "tools/records", "csv", self.a], cwd=self.root, stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("No space left on device", done.stderr)


class Check(Records):
    """Everything that is published, and what is damaged."""

    def test_committed_records_are_good(self):
        done = subprocess.run([python_with("jsonschema"), "-B", ROOT / "tools/records", "check"], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        said = done.stdout.splitlines()
        for folder, pattern in (("docs/results", "*.json"), ("docs/figures", "**/*.json"), ("docs/figures", "*.jsonl")):
            for path in (ROOT / folder).glob(pattern):
                self.assertEqual(sum(line.startswith(f"{path.relative_to(ROOT)}: ") for line in said), 1, path)

    def test_a_good_one_is_described_and_a_damaged_one_named(self):
        good = race([("15_tma_store", "a", 700)])
        self.save(self.a, good)
        bad = copy.deepcopy(good)
        bad["shapes"][0]["contestants"][0]["tflops"] *= 2
        self.save(self.b, bad)
        done = self.records("check", self.a, self.b, "none.json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "docs/results/a.json: a timed run (tools/compare --json); 1 shape, 3 rows\n")
        self.assertEqual(done.stderr.splitlines(), [
            "tools/records: the record docs/results/b.json is damaged: shapes[0].contestants[0].tflops is 1400, but by the median "
            "it is 700.", "tools/records: the record none.json does not exist."])

    def test_the_schema_alone_takes_every_record_to_be_what_it_is(self):
        """An editor or another program sees the whole schema, not the definition that tools/records picks."""
        script = """
import json, pathlib, sys
sys.path.insert(0, "tools/lib")
import schema
for path in sorted(pathlib.Path("docs/results").glob("*.json")):
    record = json.loads(path.read_text())
    assert schema.problem(record, "record") == "", path
    for key in list(record):
        damaged = {**record, key: None}
        assert schema.problem(damaged, "record"), (path, key)
"""
        done = subprocess.run([python_with("jsonschema"), "-B", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_schemas_are_schemas(self):
        script = """
import json, pathlib, jsonschema
for path in pathlib.Path("docs/schemas").glob("*.json"):
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))
    print(path.name)
"""
        done = subprocess.run([python_with("jsonschema"), "-B", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, len(done.stdout.split())), (0, 5), done.stderr)


class Migrate(Records):
    """Variants with the names of today."""

    def test_variants_are_renamed_and_nothing_else(self):
        record = race([("14_persistent", "128x256_group16", 700), ("14_persistent", "128x256_hilbert", 690)], commit="x_bands2",
                      checks=[{"step": "14_persistent", "variant": "128x256_group8", "m": 64, "n": 64, "k": 64, "pattern": "exact",
                               "ok": True, "launches": 1, "summary": "bands of _bands8"}])
        record["shapes"][0]["contestants"][0]["choice"] = {"variant": "128x256_2x1_group8", "why": "it is"}
        new = json.dumps(record, indent=1, sort_keys=True)
        old = new.replace("_group", "_bands")
        self.assertEqual(old.count("_bands"), 5)
        (self.root / self.a).write_text(old)
        self.assertIn("has variants with old names in 3 lines", self.refused("migrate", "--check", self.a, status=1))
        self.assertEqual((self.root / self.a).read_text(), old)
        self.assertIn("wrote docs/results/a.json: 3 lines", self.printed("migrate", self.a))
        self.assertEqual((self.root / self.a).read_text(), new)
        self.assertEqual(self.printed("migrate", "--check", self.a), "")
        self.assertEqual(self.printed("migrate", self.a), "")

    def test_nothing_is_written_unless_all_are_records(self):
        (self.root / self.a).write_text(json.dumps(race([("14_persistent", "a_bands8", 700)])))
        before = (self.root / self.a).read_text()
        (self.root / self.b).write_text("{")
        self.assertIn("b.json is not JSON", self.refused("migrate", self.a, self.b))
        self.assertEqual((self.root / self.a).read_text(), before)

    def test_a_link_stays_a_link(self):
        self.save(self.b, race([("14_persistent", "a_bands8", 700)]))
        (self.root / self.a).symlink_to(self.root / self.b)
        self.printed("migrate", self.a)
        self.assertTrue((self.root / self.a).is_symlink())
        self.assertIn("a_group8", (self.root / self.b).read_text())

    def test_committed_records_have_names_of_today(self):
        files = sorted((ROOT / "docs/results").glob("*.json"))
        done = subprocess.run([python_with("jsonschema"), "-B", ROOT / "tools/records", "migrate", "--check", *files],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Compact(Records):
    """The form in which records are committed: no samples but those that a page needs."""

    def setUp(self):
        super().setUp()
        record = race([("15_tma_store", "a", 700)], [("16_cluster_multicast", "b", 710), ("17_ping_pong", "c", 720)], rounds=9)
        spread(record, 0, [1, 1.01, 1.02, 1, 0.99, 1, 1.03, 1, 1])
        spread(record, 2, [1.02, 1.01, 1.02, 1, 0.99, 1, 1.03, 1, 1.05])
        self.save(self.a, record)
        self.page = self.root / "docs/page.md"

    def write_page(self, text):
        self.page.write_text(text)
        self.assertEqual(self.run_tool("tables.py").returncode, 0)

    def kept(self, path):
        """Whose samples are in a record."""
        return [one["name"] for one in json.loads((self.root / path).read_text())["shapes"][0]["contestants"] if "samples_us" in one]

    def test_samples_stay_where_a_page_needs_them(self):
        self.write_page(f"<!-- table: contestants record={self.a} only=15,16 -->\n<!-- /table -->\n\n"
                        "It is <!-- number: a 16 cublaslt --><!-- /number -->.\n")
        full = (self.root / self.a).read_text()
        self.assertIn("is not compact", self.refused("compact", "--check", self.a, status=1))
        self.assertEqual((self.root / self.a).read_text(), full)
        self.assertIn("wrote docs/results/a.json", self.printed("compact", self.a))
        self.assertEqual(self.kept(self.a), ["15_tma_store", "16_cluster_multicast"])
        self.assertEqual(self.run_tool("tables.py", "--check").returncode, 0)
        self.assertEqual(self.printed("compact", "--check", self.a), "")
        self.assertIn("1 shape, 5 rows", self.printed("check", self.a))
        # What no page needs any more goes, and what is gone is missed.
        self.write_page(f"<!-- table: contestants record={self.a} columns=name,median -->\n<!-- /table -->\n")
        self.printed("compact", self.a)
        self.assertEqual(self.kept(self.a), [])
        self.page.write_text("It takes <!-- number: a 17 times=15 --><!-- /number -->.\n")
        done = self.run_tool("tables.py")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("keeps no samples of 17_ping_pong c", done.stderr)

    def test_a_passed_check_does_not_repeat_its_pattern_and_shape(self):
        record = race([("15_tma_store", "a", 700)])
        check = {"step": "15_tma_store", "variant": "a", "m": 64, "n": 32, "k": 8, "pattern": "exact", "ok": True, "launches": 1}
        said = ["exact: all 2048 elements match bit for bit", "exact: all 2049 elements match bit for bit"]
        record["checks"] = [{**check, "summary": one} for one in said]
        self.save(self.a, record)
        self.printed("compact", self.a)
        kept = [one["summary"] for one in json.loads((self.root / self.a).read_text())["checks"]]
        self.assertEqual(kept, ["match bit for bit", said[1]])
        self.assertEqual(self.printed("compact", "--check", self.a), "")

    def test_full_and_compact_records_compare_and_export_alike(self):
        other = race([("15_tma_store", "a", 690)], [("16_cluster_multicast", "b", 730)], rounds=9)
        for index in range(4):  # an interval without width is moved past 1 by its last digit
            factors = [1, 1.01, 1.02, 1.03, 0.99, 0.98, 1.04, 0.97, 1.05]
            spread(other, index, factors[index:] + factors[:index])
        self.save(self.b, other)
        full = self.printed("diff", self.a, self.b), self.printed("diff", self.a, self.b, "--by", "ceiling")
        rows = list(csv.DictReader(io.StringIO(self.printed("csv", self.a))))
        self.printed("compact", self.a)
        self.assertEqual((self.printed("diff", self.a, self.b), self.printed("diff", self.a, self.b, "--by", "ceiling")), full)
        for before, after in zip(rows, csv.DictReader(io.StringIO(self.printed("csv", self.a))), strict=True):
            for key, value in after.items():
                if before[key] != value:
                    self.assertAlmostEqual(float(value) / float(before[key]), 1, 6, key)

    def test_a_compact_record_that_contradicts_itself_is_refused(self):
        self.printed("compact", self.a)
        good = json.loads((self.root / self.a).read_text())
        for change, part in (({"q1_us": 500}, "quartiles are not in order"), ({"rounds": 8}, "8 and 9 samples"),
                             ({"verdict": "FASTER"}, "by the interval it is SLOWER"), ({"tflops": 701}, "by the median it is 7"),
                             ({"samples_us": [1.0] * 8}, "there are 8 samples"), ({"rounds": None}, "rounds is null")):
            bad = copy.deepcopy(good)
            bad["shapes"][0]["contestants"][0].update(change)
            self.save(self.b, bad)
            self.assertIn(part, self.refused("check", self.b, status=1))
        for version, field in ((2, "rounds"), (1, "samples_us")):
            bad = copy.deepcopy(good)
            bad["schema"] = version
            bad["shapes"][0]["contestants"][0].pop(field, None)
            self.save(self.b, bad)
            self.assertIn(f"contestants[0] lacks the field '{field}'", self.refused("check", self.b, status=1))

    def test_nothing_is_written_unless_all_are_records(self):
        before = (self.root / self.a).read_text()
        (self.root / self.b).write_text("{")
        self.assertIn("b.json is not JSON", self.refused("compact", self.a, self.b))
        self.assertEqual((self.root / self.a).read_text(), before)

    def test_committed_records_are_compact(self):
        files = sorted((ROOT / "docs/results").glob("*.json"))
        done = subprocess.run([python_with("jsonschema"), "-B", ROOT / "tools/records", "compact", "--check", *files],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class History(Records):
    """Races over random shapes of which a line is left."""

    HISTORY = "docs/results/populations.csv"

    def setUp(self):
        super().setUp()
        shapes = []
        for m, chosen, fastest in ((64, 800, 800), (128, 700, 760), (256, 750, 750)):
            steps = [contestant("22_peak", "step", chosen, "auto"), contestant("22_peak", "step", fastest, "tile")]
            steps[0]["choice"] = {"variant": "tile", "why": "it is"}
            shapes.append(shape(m, 72, 64, [*steps, contestant("cublaslt_best", "baseline", 780)], samples=7))
        self.record = timed(shapes, population_seed=7)
        self.name = "docs/results/population_7.json"
        self.save(self.name, self.record)
        self.page = self.root / "docs/page.md"
        self.page.write_text("".join(f"<!-- number: population_7 {word} {value} --><!-- /number -->\n"
                                     for word in ("speed", "best", "off_sectors", "regret")
                                     for value in ("count", "geometric_mean", "tenth", "worst")))

    def lines(self, root=None):
        return list(csv.DictReader(io.StringIO(((root or self.root) / self.HISTORY).read_text(encoding="utf-8"))))

    def test_pages_take_the_same_numbers_from_the_line(self):
        self.assertEqual(self.run_tool("tables.py").returncode, 0)
        text = self.page.read_text()
        self.assertIn("speed worst -->0.897<", text)
        self.assertIn("regret worst -->1.086<", text)
        self.assertIn("wrote docs/results/populations.csv: population_7", self.printed("history", self.name))
        line = self.lines()[0]
        self.assertEqual((line["device"], line["date"], line["commit"], line["seed"], line["speed_count"]),
                         ("Test GPU", "2025-01-02T03:04:05Z", "abc1234", "7", "3"))
        (self.root / self.name).unlink()
        self.assertEqual(self.run_tool("tables.py", "--check").returncode, 0)
        self.assertIn("1 races", self.printed("check", self.HISTORY))
        self.page.write_text("<!-- number: population_7 bound worst --><!-- /number -->\n")
        done = self.run_tool("tables.py")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("only docs/results/populations.csv is left, which has no 'bound'", done.stderr)

    def test_lines_are_in_the_order_of_dates_and_replaced(self):
        self.printed("history", self.name)
        earlier = "docs/results/population_8.json"
        self.save(earlier, {**self.record, "date": "2025-01-01T00:00:00Z", "population_seed": 8})
        self.printed("history", earlier, self.name)
        self.assertEqual([line["name"] for line in self.lines()], ["population_8", "population_7"])

    def test_a_race_that_was_not_over_random_shapes_has_no_line(self):
        del self.record["population_seed"]
        self.save(self.name, self.record)
        self.assertIn("population_7 was not timed at random shapes", self.refused("history", self.name))
        self.assertFalse((self.root / self.HISTORY).exists())

    def test_a_damaged_line_is_named(self):
        self.printed("history", self.name)
        good = (self.root / self.HISTORY).read_text()
        for old, new, part in ((",speed_count,", ",count,", "its first line must be name,device"), ("abc1234,", "", "line 2 has too few"),
                               (",burst,3,", ",burst,three,", "line 2, speed_count is 'three'"),
                               (",burst,3,", ",burst,3,nan", "speed_geometric_mean is 'nan"), ("\n", "\n" + good.splitlines()[1] + "\n", "twice")):
            (self.root / self.HISTORY).write_text(good.replace(old, new))
            for command, status in ((["check", self.HISTORY], 1), (["history", self.name], 2)):
                self.assertIn(part, self.refused(*command, status=status))

    def test_what_is_deleted_was_written_down(self):
        """Every race that a page quotes is there as a record or as a line."""
        lines = {line["name"] for line in self.lines(ROOT)}
        self.assertGreaterEqual(len(lines), 14)
        self.assertFalse(lines & {path.stem for path in (ROOT / "docs/results").glob("*.json")})


class Arguments(Records):
    """The command line."""

    def test_wrong_arguments_are_named(self):
        for arguments, part in (([], "check|diff|csv|migrate|compact|history"), (["chek"], "'chek'"), (["diff", "x.json"], "B.json"),
                                (["csv"], "FILE"), (["migrate"], "FILE"), (["compact"], "FILE"), (["history"], "FILE"), (["csv", "a", "--otput", "b"], "--otput"),
                                (["diff", "a", "b", "--by", "speed"], "'speed'")):
            self.assertIn(part, self.refused(*arguments))

    def test_help_is_the_same_everywhere(self):
        text = self.printed("--help")
        self.assertTrue(text.startswith("Usage: tools/records check"))
        for action in ("check", "diff", "csv", "migrate", "compact", "history"):
            self.assertIn("tools/records migrate [--check] FILE ...", self.printed(action, "--help"))


class Counters(Records):
    """tools/counters.py makes no record that tools/tables.py would refuse."""

    def test_values_that_no_counter_has_are_refused(self):
        metrics = ("lts__t_sector_hit_rate.pct", "lts__t_sectors_op_read.sum", "dram__bytes_read.sum",
                   "l1tex__m_xbar2l1tex_read_bytes.sum")
        where = ["--shape", "64x64x64", "--device", "Test GPU", "--commit", "abc1234", "--date", "2025-01-02"]
        profile = pathlib.Path(self.root / "profile.csv")
        good = {metric: "50" for metric in metrics}

        def made(values, arguments=(), heading='"ID","Metric Name","Metric Value"'):
            rows = [f'"0","{metric}","{value}"' if value is not None else f'"0","{metric}"' for metric, value in values.items()]
            profile.write_text("\n".join([heading, *rows]))
            return self.run_tool("counters.py", profile, *(arguments or where), "02_shared_tile:32")

        self.assertEqual(made(good).returncode, 0)
        cycles = {"sm__cycles_elapsed.max": "5", "gpu__time_duration.sum": "0"}
        self.assertEqual(made({**good, **cycles}).returncode, 0)
        for values, part in (({metrics[0]: "101"}, "it must be at most 100"), ({metrics[1]: "nan"}, "a counter cannot have this value"),
                             ({metrics[1]: "inf"}, "a counter cannot have this value"), ({metrics[1]: "-1"}, "a counter cannot have this value"),
                             ({metrics[1]: ""}, "where a number should be"), ({metrics[1]: None}, "where a number should be")):
            done = made({**good, **values})
            self.assertEqual((done.returncode, len(done.stderr.splitlines()), done.stdout), (2, 1, ""), done.stderr)
            self.assertIn(part, done.stderr)
        for at, value, part in ((7, "yesterday", "date"), (5, "a b", "commit"), (3, "", "device.name"), (1, "64x64", "not a shape"),
                                (1, "²x1x1", "not a shape"), (1, "99999999x1x1", "it must be at most")):
            done = made(good, [*where[:at], value, *where[at + 1:]])
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn(part, done.stderr)
