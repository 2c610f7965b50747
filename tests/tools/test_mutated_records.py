"""Damaged records: every generator answers every one of them with one sentence, and writes nothing."""
import copy
import json
import re
import subprocess

import test_figures
import test_stream_k_plot
import test_sweep
from generator import CONDITIONS, ROOT, GeneratorTest, TimelineTest, contestant, python_with, shape, timed, timelines

# What follows from something else in the record, so that another number contradicts it.
DERIVED = re.compile(r"\.(median_us|q1_us|q3_us|tflops|ceiling_share|(kernel|yardstick)_(us|tflops)|ratio|burst_shapes)$|"
                     r"\.(to_cublaslt|geometric_mean|worst)\.|\.samples_us\[0\]|figures\[0\]\.(median|q1|q3|lowest|highest)|"
                     r"\.(rows|columns)$")
# Whole numbers by chance.
FRACTIONS = re.compile(r"(idle_ms|seconds|clock_hz|bytes_per_second|_mhz\w*|power_w\w*|temperature_c_max|tflops|value|ts|dur)$|"
                       r"\.(median|low|high|q1|q3|lowest|highest|median_us|q1_us|q3_us|ceiling_share)$|samples(_us)?\[0\]$|"
                       r"working_set_mib$")
# (place, damage) that leaves a record as good as before: fields that may be missing or empty.
HARMLESS = re.compile(r"(choice|checks|where|cta|thread|threads|warp|offset|pending|tx|last_t|stage|k_tile|tile|drain|ts_|device|"
                      r"l2_read_requests|l2_write_requests|number|clock_mhz|otherData\.(tile|stages|ctas|sms|time|clock_mhz)) without|"
                      r"(throttle_reasons|checks|limits|summary|model) \[\]|"
                      r"(cublas_version|driver_version|runtime_version|variant) \"\"|displayTimeUnit|otherData\.(tile|stages|ctas|sms|time|clock_mhz)|tx -1")


def places(value, place=""):
    """(container, key, place) of everything in a record; of a list only the first."""
    pairs = value.items() if isinstance(value, dict) else list(enumerate(value))[:1]
    for key, item in pairs:
        here = f"{place}[{key}]" if isinstance(value, list) else f"{place}.{key}" if place else key
        yield value, key, here
        if isinstance(item, (dict, list)):
            yield from places(item, here)


def damages(value, place):
    """(what is done to it, the text of JSON that stands there then; None for nothing)."""
    yield "without", None
    yield "null", "null"
    if isinstance(value, bool):
        wrong = ["1", '"true"', "[]"]
    elif isinstance(value, (int, float)):
        wrong = [f'"{value}"', "NaN", "-Infinity", "1e999", "-1", "true", "[]", "{}"]
        if isinstance(value, int) and not FRACTIONS.search(place):
            wrong += [f"{value}.5", f"{value}.0"]
        if DERIVED.search(place):
            wrong += [json.dumps(2 * value + 1)]
    elif isinstance(value, str):
        wrong = ["5", "[]", '""', json.dumps(value + "\n"), '"\\ud800"']
    else:
        wrong = ["{}" if isinstance(value, list) else "[]", "[]", "{}", '"text"', "5"]
    yield from ((text, text) for text in dict.fromkeys(wrong))


MARK = "the place of the damage"


def mutations(record):
    """(description, text) of the record damaged in every way."""
    damaged = copy.deepcopy(record)
    found = {}
    for container, key, place in list(places(damaged)):
        original = container[key]
        for what, text in damages(original, place):
            if text is None and isinstance(container, list):
                continue
            description = f"{place} {what}"
            if HARMLESS.search(description):
                continue
            if text is None:
                order = list(container.items())
                del container[key]
                result = json.dumps(damaged)
                container.clear()
                container.update(order)
            else:
                container[key] = MARK
                result = json.dumps(damaged).replace(json.dumps(MARK), text)
                container[key] = original
            if result != json.dumps(record):
                found[description] = result
    return found


def timed_record():
    """With everything that a record may have."""
    contestants = [contestant("01_naive", "step", 5, "16x16"), contestant("02_shared_tile", "step", 10, "32"),
                   contestant("cublaslt_best", "baseline", 780, "algo 3"), contestant("wgmma_ceiling", "ceiling", 900)]
    contestants[0]["choice"] = {"variant": "16x16", "why": "it is the only one"}
    check = {"step": "01_naive", "variant": "16x16", "m": 64, "n": 64, "k": 64, "pattern": "exact", "ok": True, "launches": 1,
             "summary": "exact"}
    return timed([shape(4096, 4096, 4096, contestants, samples=7)], checks=[check])


def suite_record():
    burst = timed_record()
    del burst["checks"]
    sustained = copy.deepcopy(burst)
    sustained.update(mode="sustained", idle_ms=0)
    ratio = burst["shapes"][0]["contestants"][0]["to_cublaslt"]
    return {"schema": 1, "burst": burst, "sustained": sustained, "summary": [
        {"name": "01_naive", "variant": "16x16", "burst_shapes": 1, "geometric_mean": ratio, "worst": ratio,
         "worst_at": {"m": 4096, "n": 4096, "k": 4096, "mode": "burst"}}]}


def measuring_record():
    flop = 2 * 4096**3 / 1e6
    race = timed_record()
    del race["checks"]
    return {"schema": 1, "kernel": "02_shared_tile", "variant": "32", "races": [race], "claims": [
        {"key": "zeros", "how": "zeros", "m": 4096, "n": 4096, "k": 4096, "yardstick": "cublaslt_best", "kernel_us": flop / 900,
         "kernel_tflops": 900, "yardstick_us": flop / 800, "yardstick_tflops": 800, "ratio": 900 / 800, "against": 0,
         "conditions": CONDITIONS}]}


def committed(name):
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


class Damaged(GeneratorTest):
    """In an empty repository of its own."""

    def page(self, *tables, kind="table"):
        self.document = self.root / "docs/page.md"
        self.document.write_text("".join(f"<!-- {kind}: {table} -->\nstale\n<!-- /{kind} -->\n" for table in tables))

    def tables(self, *names, **options):
        self.page(*(f"{name} record={self.RECORD}" for name in names), **options)

    def refused(self, command, texts, path=None, least=95):
        """Every text at `path` makes the command fail with one sentence; the good record does not."""
        path = path or self.RECORD
        good = (self.root / path).read_text(encoding="utf-8")
        names = list(texts)
        jobs = [{"path": path, "text": text, "command": [f"tools/{command[0]}", *command[1:]]} for text in [*texts.values(), good]]
        before = {file: file.read_bytes() for file in self.root.rglob("*") if file.is_file() and file != self.root / path}
        done = subprocess.run([python_with("jsonschema"), "-B", ROOT / "tests/tools/many.py"], cwd=self.root, text=True, check=False,
                              input="\n".join(map(json.dumps, jobs[:-1])), capture_output=True)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), len(names), done.stderr)
        wrong = [f"{name}: status {status}: {said}" for name, (status, said) in zip(names, answers)
                 if status not in (1, 2) or len(said.splitlines()) != 1 or not said.rstrip().endswith(".") or "Traceback" in said]
        self.assertFalse(wrong, "\n".join(wrong))
        after = {file: file.read_bytes() for file in self.root.rglob("*") if file.is_file() and file != self.root / path}
        self.assertEqual(before, after)
        self.assertGreaterEqual(len(names), least)
        (self.root / path).write_text(good, encoding="utf-8")
        done = self.run_tool(command[0], *command[1:], python=python_with("matplotlib"))
        self.assertEqual(done.returncode, 0, done.stderr)


class DamagedRecords(Damaged):
    """Records, orders of tiles, and the event log."""

    def test_tables_of_a_timed_run(self):
        self.write(timed_record())
        self.tables("contestants", "shapes", "choices", "conditions", "course")
        self.refused(["tables.py"], mutations(timed_record()))

    def test_tables_of_the_suite(self):
        self.write(suite_record())
        self.tables("suite")
        self.refused(["tables.py"], mutations(suite_record()))

    def test_tables_of_ways_of_timing(self):
        self.write(measuring_record())
        self.tables("measuring")
        self.refused(["tables.py"], mutations(measuring_record()))

    def test_tables_of_counters(self):
        self.write(committed("docs/results/ragged_l2_h200.json"))
        self.tables("counters")
        self.refused(["tables.py"], mutations(committed("docs/results/ragged_l2_h200.json")))

    def test_tables_of_the_hardware(self):
        record = test_figures.made_up_record()
        self.write(record)
        self.page(f"hierarchy record={self.RECORD}", kind="roofline")
        self.refused(["roofline_table.py"], mutations(record))

    def test_the_figure_of_the_hardware(self):
        record = test_figures.made_up_record()
        path = "docs/results/roofline_h200.json"
        (self.root / path).write_text(json.dumps(record))
        self.refused(["figures/draw_roofline.py"], mutations(record), path)

    def test_the_ladder(self):
        self.write(timed_record())
        self.refused(["figures/plot_ladder.py", self.RECORD], mutations(timed_record()))

    def test_the_waves(self):
        self.write(test_stream_k_plot.RECORD)
        self.refused(["figures/plot_stream_k.py", self.RECORD], mutations(test_stream_k_plot.RECORD))

    def test_the_map_of_tile_sizes(self):
        record = test_sweep.made_up_record()
        self.write(record)
        self.refused(["figures/draw_sweep.py", self.RECORD], mutations(record))

    def test_the_orders_of_tiles(self):
        path = "docs/figures/rasters.json"
        (self.root / path).parent.mkdir()
        (self.root / path).write_text((ROOT / path).read_text())
        self.refused(["figures/draw_rasters.py"], mutations(committed(path)), path, least=60)

    def test_the_tool_for_records(self):
        self.write(timed_record())
        (self.root / "docs/results/other.json").write_text(json.dumps(timed_record()))
        texts = mutations(timed_record())
        self.refused(["records", "check", self.RECORD], texts)
        some = dict(list(texts.items())[::len(texts) // 100])
        self.refused(["records", "csv", self.RECORD], some)
        self.refused(["records", "diff", self.RECORD, "docs/results/other.json"], some)
        self.refused(["records", "diff", "docs/results/other.json", self.RECORD], some)
        self.refused(["records", "migrate", self.RECORD], some)

    def test_compact_records(self):
        self.write(timed_record())
        self.assertEqual(self.run_tool("records", "compact", self.RECORD).returncode, 0)
        compact = json.loads(self.record.read_text())
        # Without samples nothing says that an interval is too wide.
        texts = {what: text for what, text in mutations(compact).items() if not re.search(r"(to_cublaslt\.high|q3_us) \d", what)}
        self.refused(["records", "check", self.RECORD], texts)
        self.tables("contestants columns=name,median", "shapes", "choices", "conditions", "course")
        self.refused(["tables.py"], texts)

    def test_what_is_no_record_at_all(self):
        self.write(timed_record())
        self.tables("contestants")
        texts = {text[:20]: text for text in (
            "", "{", "[]", "5", "null", '"text"', "{}", '{"schema": 1}', '{"schema": "1"}', '{"schema": 1, "figures": []}',
            '{"schema": 1, "shapes": []}', "[" * 100000, '{"schema": 1, "shapes": ' * 10000, "1" * 5000, "\ufeff{}")}
        for command in (["tables.py"], ["figures/plot_ladder.py", self.RECORD], ["records", "check", self.RECORD],
                        ["records", "csv", self.RECORD]):
            self.refused(command, texts, least=len(texts))
            self.tables("contestants")


class DamagedTimelines(TimelineTest, Damaged):
    """What the emulator recorded."""

    def test_timelines(self):
        folder = self.root / "build/emulator/traces"
        folder.mkdir(parents=True)
        (self.root / "docs/timelines.md").write_text("<!-- model: -->\n<!-- /model -->\n")
        # Each is read once for every damage, and none lies in another CTA than the first: the others are left out.
        for name, path in timelines("09", "10").items():
            trace = json.loads(path.read_text(encoding="utf-8"))
            events = trace["traceEvents"]
            cta = events[0]["tid"] // 100
            trace["traceEvents"] = [event for event in events if event["tid"] // 100 == cta]
            trace["otherData"]["ctas"] = 1
            (folder / f"{name}.json").write_text(json.dumps(trace))
        first = next(event for event in trace["traceEvents"] if event["ph"] == "X")
        texts = mutations(trace)
        # The first event is a name; the first that takes time as well.
        for description, text in mutations({"traceEvents": [first]}).items():
            texts[f"a span: {description}"] = json.dumps(trace).replace(json.dumps(first), text[len('{"traceEvents": ['):-2], 1)
        self.refused(["figures/draw_trace.py", "10"], texts, "build/emulator/traces/10.json")


class Ends(GeneratorTest):
    """The same in processes of their own, some of them: what a user sees."""

    def test_a_damaged_record_ends_a_process_with_2_and_a_sentence(self):
        texts = mutations(timed_record())
        (self.root / "docs/page.md").write_text(f"<!-- table: contestants record={self.RECORD} -->\n<!-- /table -->\n")
        for description in list(texts)[::len(texts) // 5]:
            self.record.write_text(texts[description])
            for command in (["tables.py"], ["figures/plot_ladder.py", self.RECORD]):
                done = self.run_tool(*command)
                self.assertEqual((done.returncode, len(done.stderr.splitlines()), done.stdout), (2, 1, ""), f"{description}: {done.stderr}")
                self.assertIn(self.RECORD, done.stderr)

    def test_without_its_schema_a_tool_says_what_is_missing(self):
        self.write(timed_record())
        (self.root / "docs/schemas/record.schema.json").unlink()
        done = self.run_tool("records", "check", self.RECORD)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1))
        self.assertIn("docs/schemas/record.schema.json is missing", done.stderr)

    def test_bytes_that_are_no_text_are_named(self):
        self.record.write_bytes(b'{"schema": 1, "\xff": 1}')
        done = self.run_tool("records", "csv", self.RECORD)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1))
        self.assertIn("byte 15 is not UTF-8", done.stderr)
