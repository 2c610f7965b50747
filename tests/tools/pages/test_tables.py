"""The generators that turn records into tables and plots."""
import copy
import json
import re
import subprocess
import sys
import unittest

from generator import DEVICE, CONDITIONS, NOTHING_SEEN, ROOT, GeneratorTest, contestant, derive, set_tflops, shape, timed


RECORD = timed([
    shape(512, 512, 64, [contestant("01_naive", "step", 2, "16x16")]),
    shape(4096, 4096, 4096, [
        contestant("01_naive", "step", 5, "16x16"), contestant("01_naive", "step", 4, "8x32"),
        contestant("02_shared_tile", "step", 10, "32"), contestant("cublaslt_best", "baseline", 780, "algo 3"),
        contestant("wgmma_ceiling", "ceiling", 900)])])


class Generator(GeneratorTest):
    """In an empty repository with one record."""

    def setUp(self):
        super().setUp()
        self.write(RECORD)

    def tables(self, *arguments):
        return self.run_tool("tables.py", *arguments)

    def document(self, specification, name="README.md"):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"before\n\n<!-- table: {specification} -->\nstale\n<!-- /table -->\n\nafter\n")
        return path

    def describe(self, described):
        """Steps with what steps/steps.json says of them."""
        for step in described:
            (self.root / "steps" / step).mkdir(parents=True)
            (self.root / "steps" / step / "kernel.cuh").touch()
        (self.root / "steps/steps.json").write_text(json.dumps([{"name": step, **fields} for step, fields in described.items()]))

    def rows(self, specification):
        """The table's rows as lists of cells, heading first."""
        path = self.document(specification)
        done = self.tables()
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in path.read_text().splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line]

    def refused(self, specification, *parts):
        path = self.document(specification)
        before = path.read_text()
        done = self.tables()
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for part in ("README.md", *parts):
            self.assertIn(part, done.stderr)
        self.assertEqual(path.read_text(), before)


class Tables(Generator):
    def test_a_written_table_checks_and_is_written_the_same_again(self):
        path = self.document("contestants record=docs/results/run.json")
        self.assertEqual(self.tables("--check").returncode, 1)
        self.assertIn("stale", path.read_text())
        self.assertEqual(self.tables().returncode, 0)
        written = path.read_text()
        self.assertTrue(written.startswith("before\n"))
        self.assertTrue(written.endswith("\nafter\n"))
        self.assertNotIn("stale", written)
        self.assertEqual(self.tables("--check").returncode, 0)
        self.assertEqual(self.tables().stdout, "")
        self.assertEqual(path.read_text(), written)

    def test_a_changed_number_is_noticed_and_the_file_named(self):
        path = self.document("contestants record=docs/results/run.json", "docs/method.md")
        self.tables()
        path.write_text(path.read_text().replace("780", "781"))
        done = self.tables("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("docs/method.md: a table or a number differs from its record", done.stderr)

    def test_a_changed_record_is_noticed(self):
        self.document("contestants record=docs/results/run.json")
        self.tables()
        record = copy.deepcopy(RECORD)
        set_tflops(record["shapes"][1], 0, 6)
        self.write(record)
        self.assertEqual(self.tables("--check").returncode, 1)

    def test_one_row_a_contestant(self):
        rows = self.rows("contestants record=docs/results/run.json columns=name,variant,tflops,gain,cublaslt,ceiling")
        self.assertEqual(rows, [
            ["", "variant", "TFLOP/s", "× step before", "× cuBLASLt", "of ceiling"],
            ["01_naive", "16x16", "5.00", "–", "0.006", "0.6 %"],
            ["01_naive", "8x32", "4.00", "–", "0.005", "0.4 %"],
            ["02_shared_tile", "32", "10.0", "2.00", "0.013", "1.1 %"],
            ["cuBLASLt best", "algo 3", "780", "–", "1.000", "86.7 %"],
            ["wgmma-only ceiling", "–", "900", "–", "1.154", "100.0 %"]])
        rows = self.rows("contestants record=docs/results/run.json only=02,ceiling columns=name,cublaslt intervals=yes")
        self.assertEqual(rows, [["", "× cuBLASLt [95 %]"], ["02_shared_tile", "0.013 [0.013, 0.013]"],
                                ["wgmma-only ceiling", "1.154 [1.154, 1.154]"]])

    def test_a_gain_has_an_interval_over_the_rounds(self):
        record = copy.deepcopy(RECORD)
        before, _, after = record["shapes"][1]["contestants"][:3]
        for one in record["shapes"][1]["contestants"]:
            one["samples_us"] = [10.0] * 9
        before["samples_us"] = [21.0, 19.0, 20.0, 20.5, 19.5, 22.0, 18.0, 20.1, 19.9]
        after["samples_us"] = [10.0] * 9
        derive(record["shapes"][1])
        record["rounds"] = 9
        self.write(record)
        rows = self.rows("contestants record=docs/results/run.json columns=name,gain only=01:16x16,02 intervals=yes")
        # Of nine samples the second and the eighth: 1 - 2 * (1 + 9) / 512 = 96 %.
        self.assertEqual(rows[2], ["02_shared_tile", "2.000 [1.900, 2.100]"])
        rows = self.rows("contestants record=docs/results/run.json columns=name,gain only=01:16x16,02")
        self.assertEqual(rows[2], ["02_shared_tile", "2.000"])

    def test_a_gain_is_over_the_step_that_it_builds_on(self):
        self.describe({"01_naive": {}, "02_shared_tile": {}, "03_other": {"builds_on": "01_naive"}})
        record = copy.deepcopy(RECORD)
        contestants = record["shapes"][1]["contestants"]
        record["shapes"][1] = shape(4096, 4096, 4096, [*contestants[:3], contestant("03_other", "step", 20), *contestants[3:]])
        self.write(record)
        rows = self.rows("contestants record=docs/results/run.json columns=name,gain only=step")
        self.assertEqual([row[1] for row in rows[1:]], ["–", "–", "2.00", "4.00 over 01"])
        # Where that one has no row, over the step before in the table.
        rows = self.rows("contestants record=docs/results/run.json columns=name,gain only=02,03")
        self.assertEqual([row[1] for row in rows[1:]], ["–", "2.00"])

    def test_tiles_of_cublaslt_have_names(self):
        record = copy.deepcopy(RECORD)
        for contestant in record["shapes"][1]["contestants"]:
            if contestant["kind"] == "baseline":
                contestant["variant"] = "best of 8: algo 66, tile 201, cluster 1x2"
        self.write(record)
        rows = self.rows("contestants record=docs/results/run.json columns=name,variant only=baseline")
        self.assertEqual(rows[1], ["cuBLASLt best", "best of 8: algo 66, 176x128, cluster 1x2"])

    def test_contestants_are_picked_by_number_variant_and_kind(self):
        rows = self.rows("contestants record=docs/results/run.json columns=name,variant only=01:8x32,02,ceiling")
        self.assertEqual(rows[1:], [["01_naive", "8x32"], ["02_shared_tile", "32"], ["wgmma-only ceiling", "–"]])

    def test_one_row_a_shape(self):
        rows = self.rows("shapes record=docs/results/run.json only=step")
        self.assertEqual(rows, [
            ["M×N×K", "01_naive 16x16", "01_naive 8x32", "02_shared_tile"],
            ["512×512×64", "2.00", "–", "–"], ["4096³", "5.00", "4.00", "10.0"]])

    def test_energy_is_known_where_the_power_limit_was_reached(self):
        shapes = [shape(512, 512, 64, [contestant("cublaslt_best", "baseline", 5), contestant("01_naive", "step", 4, "8x32")]),
                  shape(4096, 4096, 4096, [contestant("01_naive", "step", 10, "8x32"), contestant("cublaslt_best", "baseline", 10),
                                           contestant("wgmma_ceiling", "ceiling", 20)])]
        shapes[1]["conditions"] |= {"throttle_reasons": ["power_cap"], "power_w_median": 700, "power_w_max": 700}
        self.write(timed(shapes, mode="sustained", idle_ms=0))
        rows = self.rows("energy record=docs/results/run.json")
        # 700 W at 10 TFLOP/s are 70 pJ for each of 2 * 4096^3 operations.
        self.assertEqual(rows[1][3:], ["0.800 [0.800, 0.800] AMBIGUOUS", *["–"] * 6])
        self.assertEqual(rows[2][2:], ["700", "1.000 [1.000, 1.000] AMBIGUOUS", "9621", "70.0", "9621", "70.0", "4810", "35.0"])
        self.assertEqual(rows[3][3], "**0.894 [0.894, 0.894]**")

    def test_conditions(self):
        rows = self.rows("conditions record=docs/results/run.json")
        self.assertEqual(rows[1], ["512×512×64", "1905 [1800, 1980]", "512 (at most 611)", "55", "power cap"])

    def test_the_course_has_a_row_for_every_step_measured_or_not(self):
        self.describe({"01_naive": {"title": "one thread"}, "05_mma": {"title": "tensor cores"}})
        (self.root / "steps/06_x").mkdir()
        (self.root / "steps/06_x/kernel.cuh").touch()  # of which nothing is known yet
        (self.root / "steps/01_naive/README.md").touch()
        self.assertEqual(self.rows("course record=docs/results/run.json"), [
            ["part", "step", "the one new idea", "TFLOP/s", "× cuBLASLt"],
            ["I · CUDA cores", "[01_naive](steps/01_naive/README.md)", "one thread", "5.00", "0.006"],
            ["II · tensor cores, Ampere style", "05_mma", "tensor cores", "–", "–"], ["", "06_x", "–", "–", "–"]])

    def test_counters(self):
        counters = {"to_sm_bytes": 12288 << 20, "l2_read_bytes": 7850 << 20, "dram_read_bytes": 1168 << 20, "l2_hit_percent": 78.05}
        contestants = [{"name": name, "variant": variant, "kind": "step", "counters": counters}
                       for name, variant in (("01_naive", "16x16"), ("02_shared_tile", "32"))]
        self.write({"schema": 1, "device": {"name": "Test GPU"}, "commit": "abc1234", "date": "2025-01-02T03:04:05Z",
                    "pattern": "exact", "profiler": "a profiler", "metrics": dict.fromkeys(counters, "a metric"),
                    "shapes": [{"m": 64, "n": 64, "k": 64, "contestants": contestants}]})
        rows = self.rows("counters record=docs/results/run.json only=02")
        self.assertEqual(rows, [["", "variant", "to the SMs (MiB)", "read in the L2 (MiB)", "read in memory (MiB)",
                                 "hits of the L2"], ["02_shared_tile", "32", "12288", "7850", "1168", "78 %"]])

    def test_rates(self):
        """Bytes of one record over times of another, and the share of the plateau in the L2."""
        counters = {"to_sm_bytes": 40 * 10**6, "l2_read_bytes": 46 * 10**6, "dram_read_bytes": 5 * 10**6, "l2_hit_percent": 60}
        record = {"schema": 1, "device": {"name": "Test GPU"}, "commit": "abc1234", "date": "2025-01-02T03:04:05Z", "pattern": "exact",
                  "profiler": "a profiler", "metrics": dict.fromkeys(counters, "a metric"), "shapes": [{"m": 512, "n": 512, "k": 64, "contestants": [
                      {"name": name, "variant": variant, "kind": "step", "counters": counters}
                      for name, variant in (("01_naive", "16x16"), ("02_shared_tile", "32"))]}]}
        (self.root / "docs/results/bytes.json").write_text(json.dumps(record))
        plateau = "docs/results/roofline_h200.json"
        (self.root / plateau).write_text((ROOT / plateau).read_text())
        timed_one = copy.deepcopy(RECORD)
        set_tflops(timed_one["shapes"][0], 0, 2 * 512 * 512 * 64 / 5e6)  # 5 µs
        self.write(timed_one)
        table = "rates record=docs/results/bytes.json"
        self.assertEqual(self.rows(f"{table} times=docs/results/run.json only=01"), [
            ["", "variant", "to the SMs (TB/s)", "read in the L2 (TB/s)", "share of the plateau (9.2)", "read in memory (TB/s)"],
            ["01_naive", "16x16", "8.00", "9.20", "100 %", "1.00"]])
        self.refused(f"{table} times=docs/results/run.json", "02_shared_tile 32 was not timed")
        self.refused(table, "names no record of times")
        self.refused(f"{table} times=docs/results/bytes.json", "is not a record of")

    def test_wrong_results_of_variants(self):
        check = {"step": "51_x", "n": 64, "k": 64, "launches": 1}
        wrong = "exact: failed value; 4 of 4096 elements (0.0977 %) are wrong"
        checks = [{**check, "m": m, "variant": variant, "pattern": pattern, "ok": ok, "summary": "all right" if ok else wrong}
                  for m in (16, 64) for variant in ("nothing", "fence") for pattern in ("exact", "normal")
                  for ok in [variant == "fence" or m == 16 or pattern == "normal"]]
        record = {"schema": 1, "device": DEVICE, "commit": "abc1234", "date": "2025-01-02T03:04:05Z", "checks": checks}
        self.write(record)
        self.assertEqual(self.rows("checks record=docs/results/run.json"), [
            ["wrong share of D", "`nothing`", "`fence`"], ["16×64×64", "right", "right"],
            ["64³", "0.098 % (1 of 2 checks)", "right"]])
        del record["date"]
        self.write(record)
        self.refused("checks record=docs/results/run.json", "does not say when and where it was made")
        self.write(RECORD)
        self.refused("checks record=docs/results/run.json", "is not a record of verifications without times")

    def test_copies_between_gpus(self):
        def copier(variant, ctas, piece, microseconds, ratio):
            return {"name": "60_peer_copy", "variant": variant, "ctas": ctas, "piece_bytes": piece, "rounds": 7,
                    "median_us": microseconds, "q1_us": microseconds, "q3_us": microseconds,
                    "gigabytes_per_second": 2**26 / microseconds * 1e-3, "verdict": "SLOWER",
                    "to_copy_engine": {"median": ratio, "low": ratio, "high": ratio}}

        copies = [{"bytes": 2**26, "ranks": 2, "one_way": False, "topology": "2 devices",
                   "contestants": [copier("bulk", 4, 2**14, 400, 0.5), copier("bulk", 16, 2**14, 200, 1), copier("copy_engine", 0, 2**14, 200, 1)]}]
        record = {"schema": 2, "device": DEVICE, "commit": "abc1234", "date": "2025-01-02T03:04:05Z", "mode": "burst", "idle_ms": 15, "seed": 1,
                  "copies": copies}
        self.write(record)
        self.assertEqual(self.rows("copies record=docs/results/run.json")[1:], [
            ["64 MiB", "`bulk`", "4", "400.0", "168", "0.500 [0.500, 0.500]"], ["64 MiB", "`bulk`", "16", "200.0", "336", "1.000 [1.000, 1.000]"],
            ["64 MiB", "`copy_engine`", "–", "200.0", "336", "1"]])
        self.assertEqual(self.rows("copies record=docs/results/run.json by=ctas")[1:], [["4", "168"], ["16", "336"]])
        self.refused("copies record=docs/results/run.json by=bytes", "neither by=ctas nor by=piece_bytes")
        copies[0]["contestants"][0]["gigabytes_per_second"] *= 2
        self.write(record)
        self.refused("copies record=docs/results/run.json", "but by the median it is")

    def test_products_over_gpus(self):
        def gatherer(name, variant, microseconds, ratio, **more):
            return {"name": name, "variant": variant, "ctas": 0, "piece_bytes": 2**22, "rounds": 7, "median_us": microseconds, "q1_us": microseconds,
                    "q3_us": microseconds, "verdict": "FASTER", "to_reference": {"median": ratio, "low": ratio, "high": ratio}, **more}

        gathers = [{"m": 1000, "n": 1000, "k": 1000, "ranks": 2, "topology": "2 devices", "limit": 1.25, "contestants": [
            gatherer("61_gather_gemm", "copy_engine", 10, 1.2, tflops=200), gatherer("opponent", "cublaslt_alone", 8, 1.5, tflops=250),
            gatherer("opponent", "copies_alone", 2, 6)]}]
        self.write({"schema": 2, "device": DEVICE, "commit": "abc1234", "date": "2025-01-02T03:04:05Z", "mode": "burst", "idle_ms": 15, "seed": 1,
                    "gathers": gathers})
        self.assertEqual([row[1:] for row in self.rows("gathers record=docs/results/run.json")[1:]], [
            ["`copy_engine`", "–", "10.00", "200", "1.200 [1.200, 1.200]"], ["`cublaslt_alone`", "–", "8.000", "250", "1.500 [1.500, 1.500]"],
            ["`copies_alone`", "–", "2.000", "–", "6.000 [6.000, 6.000]"], ["limit", "–", "–", "–", "1.250"]])
        gathers[0]["limit"] = 1.5
        self.write({"schema": 2, "device": DEVICE, "commit": "abc1234", "date": "2025-01-02T03:04:05Z", "mode": "burst", "idle_ms": 15, "seed": 1,
                    "gathers": gathers})
        self.refused("gathers record=docs/results/run.json", "but by the medians it is 1.25")

    def test_what_a_step_chose(self):
        record = copy.deepcopy(RECORD)
        chosen = record["shapes"][1]["contestants"][0]
        chosen["choice"] = {"variant": "128x256", "why": "6 tiles on 4 SMs: 6 whole in 2 rounds. Predicted 5 us (L2 4 us)"}
        self.write(record)
        self.assertEqual(self.rows("choices record=docs/results/run.json value=cublaslt"), [
            ["M×N×K", "chosen", "the work", "speed"],
            ["4096³", "`128x256`", "6 tiles on 4 SMs: 6 whole in 2 rounds", "0.006"]])
        self.refused("choices record=docs/results/run.json value=slow", "no value 'slow'")
        self.write(RECORD)
        self.refused("choices record=docs/results/run.json", "has no step that chose a variant")

    def test_a_rival_has_a_row_a_shape_with_the_fastest_of_both_sides(self):
        record = timed([shape(512, 512, 64, [
            contestant("01_naive", "step", 3, "8x32"), contestant("02_shared_tile", "step", 4, "32"),
            contestant("deepgemm", "baseline", 5, "64x64"), contestant("deepgemm", "baseline", 2, "64x80"),
            contestant("cublaslt_best", "baseline", 2, "algo 3")], samples=6)])
        self.write(record)
        table = "rivals record=docs/results/run.json"
        rows = self.rows(table)
        self.assertEqual(rows[1][:2] + rows[1][3:5] + rows[1][6:], ["512×512×64", "`64x64`", "2.500", "02 `32`", "0.800 [0.800, 0.800]"])
        self.assertEqual((rows[2][0], rows[2][-1]), ("**geometric mean**", "**0.800**"))
        self.assertEqual(self.rows(f"{table} only=01")[1][-1], "0.600 [0.600, 0.600]")
        record["shapes"][0]["contestants"][3]["variant"] = "64x64"
        self.write(record)
        self.refused(table, "deepgemm 64x64 occurs twice")
        self.write(RECORD)
        self.refused(table, "has no deepgemm at 512×512×64; tools/rivals makes one")

    def suite(self):
        burst = copy.deepcopy(RECORD)
        burst["rounds"] = 6
        burst["shapes"][0] = shape(512, 512, 64, [contestant("01_naive", "step", 2, "16x16"),
                                                  contestant("cublaslt_best", "baseline", 500)], samples=6)
        for one in burst["shapes"][1]["contestants"]:
            one["samples_us"] *= 6
        derive(burst["shapes"][1])
        sustained = copy.deepcopy(burst)
        sustained.update(mode="sustained", idle_ms=0, shapes=sustained["shapes"][1:])
        ratios = [burst["shapes"][index]["contestants"][0]["to_cublaslt"] for index in (0, 1)]
        mean = (ratios[0]["median"] * ratios[1]["median"]) ** 0.5
        summary = {"name": "01_naive", "variant": "16x16", "burst_shapes": 2,
                   "geometric_mean": {"median": mean, "low": mean, "high": mean},
                   "worst": ratios[0], "worst_at": {"m": 512, "n": 512, "k": 64, "mode": "burst"}}
        return {"schema": 1, "burst": burst, "sustained": sustained, "summary": [summary]}

    def test_the_suite_has_one_row_a_shape_and_mode_and_its_summary(self):
        self.write(self.suite())
        path = self.document("suite record=docs/results/run.json only=01:16x16")
        rows = self.rows("suite record=docs/results/run.json only=01:16x16")
        self.assertEqual(rows, [
            ["M×N×K", "mode", "cuBLASLt best (TFLOP/s)", "01_naive", "of ceiling"],
            ["512×512×64", "burst", "500", "0.004 [0.004, 0.004] SLOWER", "–"],
            ["4096³", "burst", "780", "0.006 [0.006, 0.006] SLOWER", "0.6 %"],
            ["4096³", "sustained", "780", "0.006 [0.006, 0.006] SLOWER", "0.6 %"],
            ["**geometric mean**", "burst", "", "**0.005 [0.005, 0.005]**", ""],
            ["**worst**", "both", "", "**0.004** at 512×512×64 burst", ""]])
        self.assertIn("burst (15 ms idle before each launch) and sustained (back to back), normal inputs", path.read_text())
        self.assertEqual(self.rows("suite record=docs/results/run.json")[0][3::2],
                         ["01_naive 16x16", "01_naive 8x32", "02_shared_tile"])

    def test_a_part_of_the_suite_is_a_record(self):
        self.write(self.suite())
        self.assertEqual(self.rows("shapes record=docs/results/run.json mode=sustained only=02"),
                         [["M×N×K", "02_shared_tile"], ["4096³", "10.0"]])
        self.refused("shapes record=docs/results/run.json", "mode=burst or mode=sustained")
        self.refused("shapes record=docs/results/run.json mode=slow", "mode=burst or mode=sustained")
        self.write(RECORD)
        self.refused("shapes record=docs/results/run.json mode=sustained", "was timed burst, not sustained")
        self.refused("suite record=docs/results/run.json", "not a record of the suite", "but of a timed run")

    def test_a_page_may_be_written_before_the_records_of_suite_and_measuring(self):
        for name, tool in (("suite", "tools/compare --suite"), ("measuring", "tools/measuring")):
            path = self.document(f"{name} record=docs/results/{name}_h200.json")
            self.assertEqual(self.tables().returncode, 0)
            self.assertIn(f"*No record yet: `{tool} --json docs/results/{name}_h200.json` on the GPU", path.read_text())
            self.assertEqual(self.tables("--check").returncode, 0)
            self.refused(f"{name} record=docs/results/{name}_h100.json", "does not exist")

    def test_ways_of_timing_stand_above_what_they_should_have_said(self):
        races = []
        for mode in ("burst", "sustained"):
            race = copy.deepcopy(RECORD)
            race.update(mode=mode, idle_ms=15 * (mode == "burst"), shapes=race["shapes"][1:])
            races.append(race)

        def claim(key, how, yardstick, ours, theirs, against, conditions):
            flop = 2 * 4096**3 / 1e6
            return {"key": key, "how": how, "m": 4096, "n": 4096, "k": 4096, "yardstick": yardstick, "kernel_us": flop / ours,
                    "kernel_tflops": ours, "yardstick_us": flop / theirs, "yardstick_tflops": theirs, "ratio": ours / theirs,
                    "against": against, "conditions": conditions}

        claims = [claim("first_launch", "one launch", "cublas_default", 2.5, 5, 0, NOTHING_SEEN),
                  claim("zeros", "zeros", "cublaslt_best", 900, 800, 1, CONDITIONS)]
        self.write({"schema": 1, "kernel": "02_shared_tile", "variant": "32", "claims": claims, "races": races})
        rows = self.rows("measuring record=docs/results/run.json")
        self.assertEqual(rows[1:], [
            ["one launch", "4096³", "2.50", "cuBLAS default", "5.00", "0.500", "0.013", "–", "–"],
            ["zeros", "4096³", "900", "cuBLASLt best", "800", "1.125", "0.013", "1905", "512"],
            ["**this project's harness, burst**", "4096³", "10.0", "cuBLASLt best", "780", "", "0.013 [0.013, 0.013]", "1905",
             "512"],
            ["**this project's harness, sustained**", "4096³", "10.0", "cuBLASLt best", "780", "", "0.013 [0.013, 0.013]",
             "1905", "512"]])
        some = self.rows("measuring record=docs/results/run.json only=zeros")
        self.assertEqual([row[0] for row in some[1:]], ["zeros", "**this project's harness, sustained**"])
        self.refused("measuring record=docs/results/run.json only=zero", "'zero'", "did you mean 'zeros'")
        self.write(RECORD)
        self.refused("measuring record=docs/results/run.json", "is not a record of ways of timing")

    def test_a_record_of_counters_is_made_from_a_profile(self):
        heading = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
        values = {"lts__t_sector_hit_rate.pct": "78.05", "lts__t_sectors_op_read.sum": "2,097,152",
                  "dram__bytes_read.sum": "1,048,576", "l1tex__m_xbar2l1tex_read_bytes.sum": "134,217,728",
                  "lts__t_requests_op_read.sum": "1,540,000", "lts__t_requests_op_write.sum": "3,004,034"}
        rows = [f'"{launch}","kernel","{metric}","unit","{value}"' for launch in (0, 1) for metric, value in values.items()]
        profile = self.root / "profile.csv"
        profile.write_text("\n".join(["==PROF== Connected", heading, *rows]))
        where = ["--shape", "64x64x64", "--device", "Test GPU", "--commit", "abc1234", "--date", "2025-01-02"]
        done = self.run_tool("counters.py", profile, *where, "02_shared_tile:32", "03_register_tile:128")
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.root / "docs/results/run.json").write_text(done.stdout)
        self.assertEqual(self.rows("counters record=docs/results/run.json only=03")[1:],
                         [["03_register_tile", "128", "128", "64", "1", "78 %", "1.5", "3.0"]])
        for arguments, part in ((["02_shared_tile:32"], "2 launches and 1 kernels"), ([], "required")):
            refused = self.run_tool("counters.py", profile, *where, *arguments)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(part, refused.stderr)
        profile.write_text("\n".join([heading, rows[0]]))
        refused = self.run_tool("counters.py", profile, *where, "02_shared_tile:32")
        self.assertIn("lacks the metric lts__t_sectors_op_read.sum", refused.stderr)

    def test_a_page_that_cannot_be_read_is_named(self):
        (self.root / "docs/binary.md").write_bytes(b"\xff\xfe")
        for name, part in (("docs/none.md", "no such file"), ("docs", "cannot be read"), ("docs/binary.md", "cannot be read")):
            done = self.run_tool("tables.py", name)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn(part, done.stderr)

    def test_what_is_no_profile_is_refused(self):
        profile = self.root / "profile.csv"
        where = ["--device", "Test GPU", "--commit", "abc1234", "--date", "2025-01-02", "02_shared_tile:32"]
        for text, part in (('"ID","Metric Name"\n"1","a"\n', "has no column 'Metric Value'; write it with ncu --csv"),
                           ('"ID","Metric Name","Metric Value"\n"1","a","n/a"\n', "where a number should be"),
                           ("", "0 launches and 1 kernels")):
            profile.write_text(text)
            refused = self.run_tool("counters.py", profile, "--shape", "1x1x1", *where)
            self.assertEqual((refused.returncode, len(refused.stderr.splitlines())), (2, 1), refused.stderr)
            self.assertIn(part, refused.stderr)
        self.assertIn("cannot be read", self.run_tool("counters.py", self.root, "--shape", "1x1x1", *where).stderr)
        profile.write_text('"ID","Metric Name","Metric Value"\n"1","a","1"\n')
        self.assertIn("'0x1x1' is not a shape", self.run_tool("counters.py", profile, "--shape", "0x1x1", *where).stderr)

    def test_a_record_without_counters_is_refused(self):
        self.refused("counters record=docs/results/run.json", "is not a record of a profiler's counters", "a timed run")

    def test_the_mode_stands_below_every_table(self):
        for table in ("contestants", "shapes", "conditions"):
            path = self.document(f"{table} record=docs/results/run.json")
            self.tables()
            self.assertIn("Test GPU, burst (15 ms idle before each launch), normal inputs, 2025-01-02, commit abc1234",
                          path.read_text())

    def test_steps_link_to_their_chapters(self):
        chapter = self.document("contestants record=docs/results/run.json columns=name", "steps/01_naive/README.md")
        document = self.document("contestants record=docs/results/run.json columns=name", "docs/a/b.md")
        self.assertEqual(self.tables().returncode, 0)
        self.assertIn("| [01_naive](../../steps/01_naive/README.md) |", document.read_text())
        self.assertIn("| 01_naive |", chapter.read_text())

    def test_markers_in_a_code_block_are_text(self):
        path = self.document("contestants record=nowhere.json")
        path.write_text("```\n" + path.read_text() + "```\n")
        self.assertEqual(self.tables("--check").returncode, 0)

    def test_mistakes_are_named(self):
        self.refused("contestant record=docs/results/run.json", "'contestant'", "did you mean 'contestants'")
        self.refused("contestants", "names no record")
        self.refused("contestants record=docs/results/other.json", "docs/results/other.json does not exist")
        self.refused("contestants record=docs/results/run.json columns=tflop", "'tflop'", "did you mean 'tflops'")
        self.refused("shapes record=docs/results/run.json value=speed", "'speed'", "tflops")
        self.refused("contestants record=docs/results/run.json shape=77", "77x77x77", "4096x4096x4096")
        self.refused("contestants record=docs/results/run.json only=22", "only=22")
        self.refused("contestants record=docs/results/run.json colums=a", "'colums=a'", "'columns'")
        self.write({**RECORD, "schema": 3})
        self.refused("contestants record=docs/results/run.json", "not a record of schema 1 or 2")
        record = copy.deepcopy(RECORD)
        del record["shapes"][1]["contestants"][0]["tflops"]
        self.write(record)
        self.refused("contestants record=docs/results/run.json", "lacks the field 'tflops'")

    def test_a_table_without_end_is_refused(self):
        path = self.root / "README.md"
        path.write_text("<!-- table: contestants record=docs/results/run.json -->\nrest of the file\n")
        done = self.tables()
        self.assertEqual(done.returncode, 2)
        self.assertIn("README.md: line 1: the table has no end", done.stderr)
        self.assertIn("rest of the file", path.read_text())


class Plots(Generator):
    """Drawn by the environment of the repository itself, which is made on first use."""

    def setUp(self):
        super().setUp()
        self.python = self.python_with_matplotlib()

    def plot(self, *arguments):
        return self.run_tool("figures/plot_ladder.py", *arguments, python=self.python)

    def test_the_same_record_gives_the_same_bytes(self):
        ladder = self.root / "docs/results/run.ladder.svg"
        self.assertEqual(self.plot("docs/results/run.json").returncode, 0)
        first = ladder.read_bytes()
        ladder.unlink()
        self.assertEqual(self.plot("docs/results/run.json").returncode, 0)
        self.assertEqual(ladder.read_bytes(), first)
        for text in (b"02_shared_tile", b"10.0", b"cuBLASLt best 780", b"wgmma-only ceiling 900", b"burst"):
            self.assertIn(text, first)
        self.assertNotIn(b"<dc:date>", first)

    def test_a_plot_that_cannot_be_written_is_named(self):
        done = self.plot("docs/results/run.json", "--output", self.root / "none/x.svg")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("x.svg cannot be written: No such file or directory", done.stderr)

    def test_a_ladder_that_differs_from_its_record_is_named(self):
        self.assertEqual(self.plot("docs/results/run.json").returncode, 0)
        self.assertEqual(self.plot("--check").returncode, 0)
        record = copy.deepcopy(RECORD)
        set_tflops(record["shapes"][1], 2, 11)
        self.write(record)
        done = self.plot("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("docs/results/run.ladder.svg: differs from its record", done.stderr)

    def test_mistakes_are_named(self):
        done = self.plot("docs/results/other.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("does not exist", done.stderr)
        done = self.plot("--shape", "77", "docs/results/run.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("4096x4096x4096", done.stderr)


class Published(unittest.TestCase):
    """What is committed is what the records say."""

    def test_tables_of_the_docs_are_up_to_date(self):
        done = subprocess.run([sys.executable, ROOT / "tools/tables.py", "--check"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_names_of_cublaslts_tiles_are_those_of_the_program(self):
        sources = {path: (ROOT / path).read_text(encoding="utf-8")
                   for path in ("common/harness/timing/gpu/baselines_gpu.cpp", "tools/tables.py")}
        known, older = (dict(re.findall(pattern, text)) for pattern, text in
                        zip((r'\{(\d+), "(\d+x\d+)"\}', r'"(\d+)": "(\d+x\d+)"'), sources.values()))
        self.assertTrue(older)
        self.assertLessEqual(older.items(), known.items())
        for record in (ROOT / "docs/results").glob("*.json"):
            self.assertLessEqual(set(re.findall(r"\btile (\d+),", record.read_text(encoding="utf-8"))), set(older), record.name)

    def test_ladders_are_up_to_date(self):
        done = subprocess.run([sys.executable, ROOT / "tools/figures/plot_ladder.py", "--check"], capture_output=True,
                              text=True, check=False)
        if "could not be installed" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
