"""Timelines: the committed figures, the model's constants against the records they come from, and what is refused."""
import json
import os
import pathlib
import shutil
import site
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from generator import TimelineTest, python_with, timelines
from sandbox import ROOT, SandboxTest, make_executable

site.main()  # records are read here with jsonschema, and ctest starts Python without the packages of the system
sys.path.insert(0, str(ROOT / "tools" / "lib"))
sys.path.insert(0, str(ROOT / "tools/figures"))
import draw_trace  # noqa: E402 (the path comes first)
import packed_json  # noqa: E402

FOLDER = "docs/figures/traces"


def constants():
    """name -> value, of the model."""
    about = json.loads(timelines("09")["09"].read_text(encoding="utf-8"))["otherData"]
    return {constant["name"]: constant["value"] for constant in about["model"]}


def record(name):
    return json.loads((ROOT / f"docs/results/{name}.json").read_text(encoding="utf-8"))


class Traces(TimelineTest):
    """The committed figures, and the model behind them."""

    def drawn_again(self, names):
        """Timelines are not committed: the kernels of this build run on the emulator, and what they did is drawn."""
        timelines(*draw_trace.traces_of(names))
        for name, draw in draw_trace.figures(names).items():
            drawn = draw()
            self.assertTrue((drawn if isinstance(drawn, bytes) else drawn.encode()) == (ROOT / name).read_bytes(),
                            f"{name} is not what these kernels did: run tools/figures/draw_trace.py")

    def test_the_figure_of_step_10_is_what_its_kernel_did(self):
        self.drawn_again(["10"])

    def test_committed_figures_are_what_the_kernels_did(self):
        self.drawn_again(list(draw_trace.FIGURES))

    def test_every_figure_is_shown_in_its_chapter(self):
        self.assertEqual({path.name for path in (ROOT / FOLDER).glob("*.svg") if not path.name.endswith(".gpu.svg")},
                         {f"{name}.svg" for name in draw_trace.FIGURES})
        for name in draw_trace.FIGURES:
            chapter, = ROOT.glob(f"steps/{name[:2]}_*/README.md")
            self.assertIn(f"../../{FOLDER}/{name}.svg", chapter.read_text(encoding="utf-8"))

    def test_constants_are_those_of_the_records(self):
        model = constants()
        roofline = record("roofline_h200")
        clock = roofline["device"]["clock_hz"]

        def median(name, **parameters):
            found, = [entry["median"] for entry in roofline["figures"] if entry["name"] == name
                      and all(entry["parameters"].get(key) == value for key, value in parameters.items())]
            return found

        expected = {"clock": clock / 1e6, "wgmma": median("wgmma.rate", warpgroups=2),
                    "mma.sync": median("mma_sync.rate", warps=8), "mma.sync of one warp": median("mma_sync.rate", warps=1),
                    "result of a multiplication": median("latency.mma_sync"),
                    "copies": median("l2.read", working_set_mib=2) * 1e9 / roofline["device"]["sm_count"] / clock,
                    "ld.global, cp.async": median("latency.dram", region_mib=256),
                    "shared memory": median("shared.write"), "shared memory, an mbarrier": median("latency.shared"),
                    "word in L2": median("latency.l2", working_set_mib=2)}
        for name, value in expected.items():
            self.assertLess(abs(model[name] / value - 1), 0.01, f"{name}: {model[name]}, recorded {value}")
        for threads in (128, 256, 512, 1024):
            line = model["barrier"] + threads * model["barrier, each thread"]
            self.assertLess(abs(line / median("barrier", threads=threads) - 1), 0.01)

    def test_the_latency_of_tma_fits_step_09(self):
        model = constants()
        shape, = [shape for shape in record("part3_h200")["shapes"] if shape["m"] == shape["n"] == shape["k"] == 8192]
        waves = -(-(8192 // 128) * (8192 // 256) // 132)
        clocks = {}
        for k, variant in ((64, "128x256"), (128, "128x256x128")):
            median, = [one["median_us"] for one in shape["contestants"] if (one["name"], one["variant"]) == ("09_tma", variant)]
            clocks[k] = median * model["clock"] / waves / (8192 // k)
        # A k-tile: its multiplication, its bytes, the latency, and a few waits and barriers.
        multiplication = 2 * 128 * 256 * 64 / model["wgmma"]
        transfer = 2 * (128 + 256) * 64 / model["copies"]
        self.assertLess(abs((clocks[128] - clocks[64] - multiplication) / transfer - 1), 0.1)
        waits = 2 * model["shared memory, an mbarrier"] + model["barrier"] + 256 * model["barrier, each thread"]
        latency = clocks[64] - multiplication - transfer - waits
        self.assertLess(abs(model["TMA copy"] / latency - 1), 0.1, latency)


class Comparisons(TimelineTest):
    """What stands above each other in a figure can be compared, and its caption says what is there."""

    @classmethod
    def setUpClass(cls):
        # Each test is a process. That they follow the schema, which takes long to tell, is what Traces sees.
        cls.traces = {name: draw_trace.with_end(json.loads(path.read_text(encoding="utf-8")))
                      for name, path in timelines(*draw_trace.RECORDED).items()}

    def shown(self):
        """(name of the figure, its traces), of those with more than one."""
        for name, (shown, _) in draw_trace.FIGURES.items():
            traces = [self.traces[one] for one in shown]
            if len(traces) > 1:
                yield name, traces

    def test_the_traces_are_those_of_the_table(self):
        self.assertEqual({one for shown, _ in draw_trace.FIGURES.values() for one in shown}, set(draw_trace.RECORDED))
        for name, (variant, shape, sms, held) in draw_trace.RECORDED.items():
            about = self.traces[name]["about"]
            self.assertEqual(about["step"][:2], draw_trace.BASES.get(name, name))
            self.assertEqual((about["backend"], about["variant"], about["shape"], about["sms"], about["ctas_per_sm"]),
                             ("model", variant, shape, sms, held))

    def test_both_halves_have_one_problem_on_as_many_sms(self):
        for name, traces in self.shown():
            self.assertEqual(len({(trace["about"]["shape"], trace["about"]["sms"]) for trace in traces}), 1, name)

    def test_tiles_are_equal_or_fit_the_problem(self):
        other_tiles = []
        for name, traces in self.shown():
            if len({tuple(trace["about"]["tile"]) for trace in traces}) == 1:
                continue
            other_tiles.append(name)
            for trace in traces:
                m, n, _ = map(int, trace["about"]["shape"].split("x"))
                tile_m, tile_n, _ = trace["about"]["tile"]
                if name != "21" or trace is traces[-1]:  # step 21 is about columns that do not fit
                    self.assertEqual((m % tile_m, n % tile_n), (0, 0), name)
        # Only where the tile itself is what a step changes; a k-tile of steps 42, 77 and 78 has other elements in the same bytes.
        self.assertEqual(other_tiles, ["12", "13", "17", "19", "20", "21", "77", "78", "42", "45"])

    def test_every_cta_of_the_launch_has_its_tracks(self):
        for name, trace in self.traces.items():
            ctas = {process for process in draw_trace.processes(trace).values() if process.startswith("CTA")}
            self.assertEqual(len(ctas), trace["about"]["ctas"], name)

    def test_as_many_ctas_are_shown_at_a_time_as_an_sm_holds(self):
        for name in ("05", "08", "09", "11", "18"):
            self.assertEqual(len(draw_trace.slots(self.traces[name])), draw_trace.RECORDED[name][3], name)

    def test_the_faster_step_looks_faster(self):
        """The times of a figure against those of a GPU at 4096 cubed. Step 17 is not here: there its waves decide."""
        shape, = [shape for shape in record("course_h200")["shapes"] if shape["m"] == shape["n"] == shape["k"] == 4096]
        times = {(one["name"], one["variant"]): one["median_us"] for one in shape["contestants"] if one["kind"] == "step"}
        compared = []
        for name, traces in self.shown():
            before, after = [(trace["about"]["step"], trace["about"]["variant"]) for trace in traces]
            if name == "17" or before not in times or after not in times:
                continue
            compared.append(name)
            measured, drawn = times[after] / times[before], traces[1]["end"] / traces[0]["end"]
            if abs(measured - 1) > 0.03:
                self.assertEqual(drawn > 1, measured > 1, f"{name}: measured {measured:.2f}, in the figure {drawn:.2f}")
            self.assertLess(abs(drawn - measured), 0.15, f"{name}: measured {measured:.2f}, in the figure {drawn:.2f}")
        self.assertLessEqual({"06", "07", "08", "09", "10", "12", "13", "15", "16"}, set(compared))

    def test_stream_k_keeps_all_sms_busier(self):
        whole, cut = self.traces["18.data_parallel"], self.traces["18"]
        self.assertGreater(draw_trace.busy(cut), draw_trace.busy(whole) + 0.1)
        for trace in (whole, cut):
            self.assertAlmostEqual(draw_trace.busy(trace), draw_trace.useful(trace), places=2)
        names = [name for name, _, _ in draw_trace.rows(cut)]
        self.assertEqual([name for name in names if name.startswith("tensor cores")], [f"tensor cores, SM {sm}" for sm in range(4)])

    def test_the_share_of_a_faster_half_is_larger(self):
        for name, traces in self.shown():
            ends, shares = [trace["end"] for trace in traces], [draw_trace.useful(trace) for trace in traces]
            self.assertAlmostEqual(ends[0] * shares[0], ends[1] * shares[1], msg=name)
            text = (ROOT / FOLDER / f"{name}.svg").read_text(encoding="utf-8")
            for trace, share in zip(traces, shares):
                step = trace["about"]["step"]
                if step[:2] == "77":
                    says = f"{25 * share:.0f} % of the fp8 tcgen05 rate"
                elif step[:2] == "78":
                    says = f"{12.5 * share:.0f} % of the 4-bit tcgen05 rate"
                elif step >= "70":
                    says = f"{50 * share:.0f} % of the tcgen05 rate"
                elif step[:2] in ("42", "43", "44", "46", "55"):
                    says = f"{50 * share:.0f} % of the fp8 wgmma rate"
                else:
                    says = f"{100 * share:.0f} % of the wgmma rate"
                self.assertNotRegex(says, r"1[0-9][0-9] %")
                self.assertIn(f"{trace['end']:,} clocks, {says}<", text)
        # What is multiplied beside D does not count.
        self.assertLess(draw_trace.useful(self.traces["22.base"]), draw_trace.busy(self.traces["22.base"]) - 0.05)

    def test_stages_and_parities_are_those_of_the_ring(self):
        trace = draw_trace.load(timelines("11")["11"])
        trace["parity"] = True
        said = {id(event): (event["args"]["stage"], event["args"]["k_tile"]) for event in trace["events"]
                if event["ph"] == "X" and event["name"] == "multiply" and "stage" in event["args"]}
        self.assertTrue(said)
        draw_trace.mark_stages(trace)
        for event in trace["events"]:  # what the kernel's own records say stays
            if id(event) in said:
                self.assertEqual((event["args"]["stage"], event["args"]["k_tile"]), said[id(event)])
        copies = sorted((event for event in trace["events"] if event["name"] == "copy" and event["args"]["cta"] == 0),
                        key=draw_trace.start_of)
        self.assertEqual([event["args"]["stage"] for event in copies], [0, 1, 2, 3, 0, 1, 2, 3])
        self.assertEqual([draw_trace.parity(trace, event) for event in copies], [0, 0, 0, 0, 1, 1, 1, 1])
        # A k-tile is multiplied when its copy is there.
        for copy in copies:
            for event in trace["events"]:
                if event["name"] == "multiply" and event["pid"] >= 100000 and event["args"]["cta"] == 0 \
                        and event["args"]["k_tile"] == copy["args"]["k_tile"]:
                    self.assertGreaterEqual(draw_trace.start_of(event), draw_trace.end_of(copy))

    def test_captions_say_what_is_there(self):
        for name, traces in self.shown():
            text = (ROOT / FOLDER / f"{name}.svg").read_text(encoding="utf-8")
            self.assertIn(draw_trace.change(traces), text.replace("\n", " "), name)
            self.assertIn("time in clocks", text)
        faster = {"end": 75, "about": {"shape": "1x1x1"}}
        slower = {"end": 100, "about": {"shape": "1x1x1"}}
        self.assertEqual(draw_trace.change([slower, faster]), "25 % less time")
        self.assertEqual(draw_trace.change([faster, slower]), "33 % more time")
        self.assertEqual(draw_trace.change([slower, slower]), "the same time")

    def test_gaps_of_ping_pong_are_closed(self):
        def idle(name):
            spans = sorted((event for (process, thread), events in draw_trace.tracks(self.traces[name]).items()
                            if (process, thread) == ("SM 0", "tensor cores") for event in events), key=draw_trace.start_of)
            return sum(max(0, draw_trace.start_of(after) - draw_trace.end_of(before)) for before, after in zip(spans, spans[1:]))
        self.assertGreater(idle("17.base"), 0)
        self.assertEqual(idle("17"), 0)


class Measured(TimelineTest):
    """The timelines of a GPU: what their figures show, what captions and chapters say, and how they are recorded again."""

    @classmethod
    def setUpClass(cls):
        cls.traces = {name: draw_trace.measured_of(name) for name in draw_trace.MEASURED}
        cls.models = timelines(*draw_trace.MEASURED)

    def shown(self, name):
        """The traces of a figure, measured, and of the model."""
        names = [one for one in draw_trace.FIGURES[name][0] if one in draw_trace.MEASURED]
        return [self.traces[one] for one in names], [draw_trace.load(self.models[one]) for one in names]

    def text(self, name):
        """The words of a figure, as they are in its description."""
        return (ROOT / FOLDER / f"{name}.gpu.svg").read_text(encoding="utf-8").partition("<desc>")[2].partition("</desc>")[0]

    def test_the_traces_are_those_of_the_table(self):
        self.assertEqual(set(draw_trace.kept(draw_trace.KEPT)), set(draw_trace.MEASURED))
        self.assertEqual({path.name for path in (ROOT / FOLDER).glob("*.gpu.svg")},
                         {f"{name}.gpu.svg" for name in draw_trace.MEASURED_FIGURES})
        for name, (variant, shape) in draw_trace.MEASURED.items():
            about = self.traces[name]["about"]
            self.assertEqual((about["backend"], about["device"]), ("gpu", "NVIDIA H200"))
            self.assertEqual((about["step"][:2], about["variant"], about["shape"]), (draw_trace.BASES.get(name, name), variant, shape))
            # The model's figure shows the same variant.
            self.assertEqual(variant, draw_trace.RECORDED[name][0], name)

    def test_both_halves_have_one_problem_of_whole_tiles(self):
        for name in draw_trace.MEASURED_FIGURES:
            traces, _ = self.shown(name)
            self.assertEqual(len({trace["about"]["shape"] for trace in traces}), 1, name)
            for trace in traces:
                m, n, _ = map(int, trace["about"]["shape"].split("x"))
                self.assertEqual((m % trace["about"]["tile"][0], n % trace["about"]["tile"][1]), (0, 0), name)

    def test_captions_say_where_the_times_come_from_and_what_recording_cost(self):
        for name in draw_trace.MEASURED_FIGURES:
            svg = (ROOT / FOLDER / f"{name}.gpu.svg").read_text(encoding="utf-8")
            self.assertIn("measured on an H200</text>", svg)
            traces, models = self.shown(name)
            self.assertIn(f"M × N × K = {traces[0]['about']['shape'].replace('x', ' × ')}", self.text(name))
            for trace in traces:
                times = trace["about"]["recording"]
                self.assertGreater(times["traced_us"], times["ordinary_us"])
                self.assertIn(f"{times['traced_us']:.1f} µs instead of {times['ordinary_us']:.1f} µs", self.text(name))
            self.assertIn(draw_trace.MEASURED_FIGURES[name].format(**draw_trace.measured_facts(traces, models)), self.text(name))
            self.assertNotIn("None", self.text(name))

    def test_a_chapter_shows_what_was_measured_and_what_the_model_says(self):
        for name in draw_trace.MEASURED_FIGURES:
            chapter, = ROOT.glob(f"steps/{name}_*/README.md")
            text = chapter.read_text(encoding="utf-8")
            for figure in (name, f"{name}.gpu"):
                self.assertIn(f"](../../{FOLDER}/{figure}.svg)", text)

    def clocks(self, name, key):
        """A fact of a figure as numbers: measured, and in the model."""
        def numbers(facts):
            return [text and int(text.replace(",", "")) for text in facts[key]]
        traces, models = self.shown(name)
        return numbers(draw_trace.measured_facts(traces, models)), numbers(draw_trace.measured_facts(models, models))

    def test_the_chapters_say_what_the_traces_show(self):
        def first(trace, name, role="consumer 1"):  # when this role first does that, and for how long altogether
            events, = [events for (process, thread), events in draw_trace.tracks(trace).items()
                       if process.startswith("CTA 0 ") and thread == role]
            events = [event for event in events if event["name"] == name]
            return draw_trace.start_of(events[0]), sum(event["args"]["clocks"] for event in events)

        (two, four), _ = self.clocks("11", "k_tile")
        self.assertAlmostEqual(four / two, 2 / 3, delta=0.06)
        for trace, model in zip(*self.shown("11")):
            self.assertGreater(first(trace, "multiply")[0], 1.4 * first(model, "multiply")[0])
            self.assertGreater(first(trace, "store")[1], 1.5 * first(model, "store")[1])
        (wide, narrow), (_, model) = self.clocks("12", "k_tile")
        self.assertAlmostEqual(narrow / wide, 1, delta=0.1)
        self.assertGreater(narrow, model + 200)
        (before, after), (_, model) = self.clocks("15", "gap")
        self.assertLess(after, before / 3)
        self.assertGreater(after, 3 * model)
        # Step 17: how long the first tile is multiplied, and how long it is stored.
        for trace, longer in zip((self.shown("17")[0][1], self.shown("17")[1][1]), (True, False)):
            tile = draw_trace.spans_of_tiles(trace, "consumer 0")[0]
            begin, end = draw_trace.start_of(tile[0]), draw_trace.end_of(tile[-1])
            events, = [events for (process, thread), events in draw_trace.tracks(trace).items()
                       if process.startswith("CTA 0 ") and thread == "consumer 0"]
            stored = max(draw_trace.end_of(event) for event in events if event["name"] == "store" and event["args"]["tile"] == 0)
            self.assertLess(stored - end, end - begin)
            self.assertEqual(stored - end > 5000, longer)
            self.assertEqual(stored - end < 2000, not longer)
        sixteen, seventeen = [trace["about"]["recording"] for trace in self.shown("17")[0]]
        self.assertGreater(seventeen["traced_us"], sixteen["traced_us"])
        self.assertLess(seventeen["ordinary_us"], sixteen["ordinary_us"])
        k_tiles = [sum(1 for tile in draw_trace.spans_of_tiles(trace, "consumer 1") for event in tile if not event["args"].get("drain"))
                   for trace in self.shown("18")[0]]
        self.assertEqual(k_tiles, [32, 20])
        measured, model = [first(traces[1], "pass partials")[1] for traces in self.shown("18")]
        self.assertAlmostEqual(measured / model, 10, delta=1.5)
        (measured,), (model,) = self.clocks("20", "k_tile")
        self.assertTrue(1.05 < measured / model < 1.2, measured / model)
        (measured,), (model,) = self.clocks("20", "gap")
        self.assertGreater(measured, 4 * model)

    def test_what_is_kept_of_a_run_is_its_first_cta_as_it_was(self):
        kept = draw_trace.kept(draw_trace.KEPT)["15"]
        pid = kept["traceEvents"][0]["pid"]
        other = [dict(event, pid=pid + 1) for event in kept["traceEvents"]]
        run = {"otherData": {key: value for key, value in kept["otherData"].items() if key != "recording"}, "traceEvents": kept["traceEvents"] + other}
        times = kept["otherData"]["recording"]
        printed = f"  overhead: {times['traced_us']} us when every CTA records, {times['ordinary_us']} us in the ordinary build, +12.1 %\n"
        self.assertEqual(draw_trace.first_cta("15", run, printed), kept)
        with self.assertRaisesRegex(draw_trace.UserError, "recorded 15 does not say what recording cost"):
            draw_trace.first_cta("15", run, "  open it at https://ui.perfetto.dev\n")


class Run(SandboxTest):
    """tools/run --trace with a GPU, a compiler and programs that only say how they were called."""

    def setUp(self):
        super().setUp()
        nvcc = make_executable(self.folder / "toolkit/bin/nvcc", '#!/bin/bash\necho "#$ TOP=$(dirname "$0")/.."\n')
        self.environment = {"CUDACXX": str(nvcc)}
        self.fake("nvidia-smi", 'echo "NVIDIA H200, 9.0"')
        for name in ("ninja", "c++"):
            self.fake(name, "")
        program = make_executable(self.folder / "program", f"""#!/bin/bash
echo "$0 $*" >>"{self.log}"
while (($# > 0)); do
  if [ "$1" = --json ]; then touch "$2"; fi
  shift
done
""")
        self.fake("cmake", f"""
case $1 in
  --version) echo cmake version 3.25.1 ;;
  --preset) touch build/$2/build.ninja ;;
  --build) mkdir -p $2/bin && cat "{program}" >$2/bin/$4 && chmod +x $2/bin/$4 ;;
esac""")

    def programs(self):
        """What was run: (preset, arguments)."""
        runs = [line for line in self.calls() if "/bin/02_shared_tile" in line]
        return [(line.split("/bin/")[0].rsplit("/", 1)[1], line.split(" ", 1)[1].split()) for line in runs]

    def test_on_a_gpu_the_ordinary_build_is_timed_first(self):
        done = self.run_tool("run", "02", "512", "--trace", "out.json", "--variant", "64", "--trace-ctas=3", **self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        (ordinary, timed), (traced, recorded) = self.programs()
        self.assertEqual((ordinary, traced), ("gpu", "gpu-trace"))
        self.assertEqual(timed[:-1], ["512", "--variant", "64", "--time", "--quick", "--no-baselines", "--json"])
        self.assertEqual(recorded[:-1], ["512", "--trace", "out.json", "--variant", "64", "--trace-ctas=3", "--trace-untraced"])
        self.assertEqual(timed[-1], recorded[-1])

    def test_without_a_trace_one_program_runs(self):
        done = self.run_tool("run", "02", "512", **self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.programs(), [("gpu", ["512"])])


class Refused(TimelineTest):
    """The script on a folder of its own."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-test."))
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("tools", "docs/schemas"):
            shutil.copytree(ROOT / folder, self.root / folder, ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / FOLDER).mkdir(parents=True)
        shutil.copy(ROOT / "docs/timelines.md", self.root / "docs")
        self.traces = self.root / "build/emulator/traces"
        self.traces.mkdir(parents=True)
        for path in timelines("09", "10").values():
            shutil.copy(path, self.traces)

    def run_tool(self, *arguments, figures=("10",)):
        return subprocess.run([python_with("jsonschema"), "-B", "tools/figures/draw_trace.py", *arguments, *figures], cwd=self.root,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)

    def test_what_was_drawn_checks_and_a_changed_trace_is_noticed(self):
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertEqual(self.run_tool("--check").returncode, 0)
        trace = json.loads((self.traces / "09.json").read_text())
        span = next(event for event in trace["traceEvents"] if event["ph"] == "X" and event["name"] == "multiply")
        span["args"]["clocks"] += 400
        (self.traces / "09.json").write_text(json.dumps(trace))
        done = self.run_tool("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("10.svg", done.stderr)

    def test_figures_are_well_formed_and_say_where_times_come_from(self):
        self.assertEqual(self.run_tool().returncode, 0)
        tree = xml.etree.ElementTree.parse(self.root / FOLDER / "10.svg")
        width, height = float(tree.getroot().get("width")), float(tree.getroot().get("height"))
        for element in tree.iter():
            for attribute, limit in (("x", width), ("y", height)):
                if element.get(attribute):
                    self.assertTrue(0 <= float(element.get(attribute)) <= limit, element.attrib)
        words = " ".join(element.text or "" for element in tree.iter())
        self.assertIn("not a measurement", words)
        self.assertIn("Step 09", words)

    def test_measuring_runs_every_step_of_the_table_on_the_gpu(self):
        for name, path in timelines(*draw_trace.traces_of(draw_trace.MEASURED_FIGURES)).items():
            shutil.copy(path, self.traces)
            if name in draw_trace.MEASURED:
                (self.traces / f"{name}.gpu.json.there").write_text(json.dumps({"displayTimeUnit": "ns", **draw_trace.kept(draw_trace.KEPT)[name]}))
        make_executable(self.root / "tools/run", """#!/bin/bash
echo "$*" >>calls
cp "${!#}.there" "${!#}"
echo "  overhead: 36.5 us when every CTA records, 33.25 us in the ordinary build, +9.8 %"
""")
        done = self.run_tool("--measure", figures=draw_trace.MEASURED_FIGURES)
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = (self.root / "calls").read_text().splitlines()
        self.assertEqual(len(calls), len(draw_trace.MEASURED))
        self.assertIn(f"10 3072x2816x512 --backend gpu --variant 128x256 --trace-ctas 1 --trace build/emulator/traces/11.base.gpu.json", calls)
        times = packed_json.read(self.root / draw_trace.KEPT)["18"]["otherData"]["recording"]
        self.assertEqual(times, {"traced_us": 36.5, "ordinary_us": 33.25})
        for name in draw_trace.MEASURED_FIGURES:
            self.assertIn("36.5 µs instead of 33.2 µs", (self.root / FOLDER / f"{name}.gpu.svg").read_text())
        make_executable(self.root / "tools/run", "#!/bin/bash\nexit 1\n")
        done = self.run_tool("--measure", figures=["11"])
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("failed", done.stderr)

    def test_what_is_missing_or_older_than_its_program_is_recorded(self):
        for path in timelines("09", "10").values():
            shutil.copy(path, self.root)
        make_executable(self.root / "tools/run", """#!/bin/bash
echo "$1 $3 $4" >>calls
case $1 in 09) cp 09.json "${!#}" ;; *) cp 10.json "${!#}" ;; esac
""")
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertFalse((self.root / "calls").exists())
        (self.traces / "09.json").unlink()
        program = make_executable(self.root / "build/emulator/bin/10_tma_double_buffer", "")
        os.utime(program, (2**31, 2**31))
        self.assertEqual(self.run_tool("--check").returncode, 0)
        self.assertEqual((self.root / "calls").read_text(), "09 emulator 768x128x512\n10 emulator 768x128x512\n")
        self.assertEqual({path.name for path in self.traces.iterdir()}, {"09.json", "10.json"})
        make_executable(self.root / "tools/run", "#!/bin/bash\n")  # which writes nothing
        done = self.run_tool()
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("tools/run 10 --backend emulator 768x128x512", done.stderr)

    def test_an_unknown_figure_is_named(self):
        done = self.run_tool(figures=["1O"])
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("there is no figure '1O'; did you mean", done.stderr)

    def test_nothing_is_recorded_when_an_argument_is_wrong(self):
        for arguments, part in ((["--measure", "--check"], "not allowed with"), (["--record", "--foo"], "--foo"), (["--record", "--check"], "not allowed with")):
            done = self.run_tool(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(part, done.stderr)
            self.assertNotIn("tools/run", done.stdout)

    def test_a_figure_that_cannot_be_written_is_named(self):
        (self.root / FOLDER / "10.svg").mkdir()
        done = self.run_tool()
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("10.svg cannot be written: Is a directory", done.stderr)

    def test_files_that_are_no_traces_are_refused(self):
        for text in ("{", "{}", '{"otherData": {"schema": 1}, "traceEvents": []}'):
            (self.traces / "10.json").write_text(text)
            done = self.run_tool()
            self.assertEqual(done.returncode, 2, text)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn("10.json", done.stderr)
