"""The site's figures that move: their data against what they are made of, and clicks and keys in headless Chromium."""
import json
import os
import pathlib
import re
import sys
import unittest

from sandbox import ROOT
from test_site import BrowserTest, SiteTest, read, repository

sys.path.insert(0, str(ROOT / "tools/figures"))
import compact_trace  # noqa: E402 (the path comes first)
import draw_trace  # noqa: E402
import living_figures  # noqa: E402
import packed_json  # noqa: E402
import record_runs  # noqa: E402

RUNS = packed_json.read(ROOT / record_runs.RUNS)


class RunsTest(unittest.TestCase):
    """tests/CMakeLists.txt gives its tests the programs that record runs."""


class Runs(RunsTest):
    def test_committed_runs_are_what_the_programs_write(self):
        build = pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator"))

        def command(name, arguments):
            program = build / "bin" / (f"play_events_{arguments[0]}" if name == "events" else f"play_{name}")
            if not program.exists():
                self.skipTest(f"{program.name} is not built in {build}")
            return [str(program)]

        record_runs.play_command = command
        self.assertTrue(record_runs.recorded() == RUNS, "tools/figures/record_runs.py records them anew")

    def test_runs_show_what_their_settings_say(self):
        """A slow role never waits once a k-tile has come; the other one does."""
        for run in RUNS["ring"]:
            if run["stages"] > 2 and run["slow"] in ("the producer", "the consumer"):
                waits = blocked(run["events"])
                self.assertEqual([bool(waits["producer"]), bool(waits["consumer"])], [run["slow"] == "the consumer", run["slow"] == "the producer"], run)


def blocked(events):
    """After how many events a role's next wait cannot pass yet, once a first k-tile has come."""
    def role(event):
        if event["event"] in ("phase", "complete_tx", "mbarrier_init"):
            return None
        full = event.get("barrier", "empty").startswith("full")
        return "consumer" if event["event"] == "wgmma" or full == ("wait" in event["event"]) else "producer"

    phases, found = {}, {"producer": 0, "consumer": 0}
    for at, event in enumerate(events):
        phases[event.get("barrier")] = event.get("phase")
        for who in found if any(phase for name, phase in phases.items() if name and name.startswith("full")) else ():
            following = next((other for other in events[at + 1:] if role(other) == who), None)
            if following and "wait" in following["event"] and phases[following["barrier"]] < following["phase"]:
                found[who] += 1
    return found


class Marked(SiteTest):
    """Pages and data, without a browser."""

    def test_pictures_that_have_a_living_figure_are_marked_and_stay(self):
        counted = 0
        for page in repository.pages():
            text = re.sub(r"(?ms)^ *```.*?^ *```$", "", (ROOT / page).read_text(encoding="utf-8"))
            wanted = []
            for picture in re.findall(r"(?m)^!\[[^\]]*\]\(([^)]+)\)$", text):
                place = repository.linked(page, picture)
                if place and place[0] in living_figures.figures():
                    wanted.append((*living_figures.figures()[place[0]], picture.rpartition("/")[2]))
            shown = re.findall(r'<figure data-figure="(\w+)" data-name="([^"]+)"(?: data-keeps="picture")?><img src="(?:[^"]*/)?([^"/]+)" alt="[^"]+" />', read(repository.address(page)))
            self.assertEqual(shown, wanted, page)
            self.assertEqual("figures/figure.js" in read(repository.address(page)), bool(wanted), page)
            counted += len(wanted)
        self.assertGreater(counted, 45)


class LivingFigures(BrowserTest):
    CASES = ((0, 1440, "light"), (1, 360, "dark"))  # the root, the width, the colours

    def show(self, place, name, root=1, width=1440, colours="light"):
        self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
        self.browser.open(f"{self.roots[root]}/{place}", width)
        self.figure = f"document.querySelector('figure[data-name=\"{name}\"]')"
        self.browser.value(f"{self.figure}.scrollIntoView()")
        self.assertTrue(self.browser.wait_for(f"{self.figure}.dataset.ready !== undefined && {self.figure}.querySelector('.figure-card') !== null"), name)

    def fits(self):
        self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth - innerWidth"), 0)
        self.assertEqual(self.browser.said, [])

    def part(self, selector):
        return f"{self.figure}.querySelector('{selector}')"

    def count(self, selector):
        return len(self.texts(selector))

    def texts(self, selector):
        return self.browser.value(f"[...{self.figure}.querySelectorAll('{selector}')].map(one => one.textContent)")

    def said(self):
        return self.texts(".figure-said")[0]

    def do(self, name):
        self.browser.click(self.part(f"[data-do={name}]"))

    def choose(self, index, value):
        self.browser.value(f"(() => {{ const one = {self.figure}.querySelectorAll('select')[{index}]; one.value = '{value}'; one.dispatchEvent(new Event('change')); }})()")

    def focus(self, selector):
        self.browser.value(f"{self.part(selector)}.focus()")

    def test_a_timeline_has_the_spans_of_its_trace(self):
        self.show("steps/12_warp_specialized/index.html", "timeline-12.gpu")
        found = self.browser.value("figures.data['timeline-12.gpu'].traces.map(trace => figures.decodeTimeline(trace).rows.map(row => [row.name, row.spans.map("
                                   "span => [span.letter, span.from, span.to, span.cta, span.tile ?? null, span.k ?? null, span.stage ?? null])]))")
        for name, rows in zip(("12.base", "12"), found):
            trace = draw_trace.measured_of(name)
            wanted = []
            for row, events, _ in draw_trace.rows(trace):
                spans = []
                for event in sorted(events, key=draw_trace.start_of):
                    letter = "d" if event["args"].get("drain") else compact_trace.LETTERS[event["name"]]
                    known = [event["args"].get(key) for key in ("tile", "k_tile", "stage")]
                    spans.append([letter, draw_trace.start_of(event), draw_trace.end_of(event), 0, *known])
                wanted.append([row, spans])
            self.assertEqual(rows, wanted, name)

    def test_a_timeline_is_played_zoomed_and_followed(self):
        for case in self.CASES:
            with self.subTest(case=case):
                self.show("steps/12_warp_specialized/index.html", "timeline-12", *case)
                self.fits()
                self.assertGreater(self.count(".bar"), 400)
                self.do("next")
                self.assertRegex(self.said(), r"^Clock \d+\. Step 1[12]: .* begins: ")
                first = self.said()
                self.focus(".timeline")
                self.browser.press("ArrowRight")
                self.assertNotEqual(self.said(), first)
                self.browser.press("ArrowLeft")
                self.assertEqual(self.said(), first)
                shown = f"['left', 'width'].map(name => parseFloat({self.part('.timeline-overview div')}.style[name]))"  # percent
                self.do("in")
                self.assertLess(self.browser.value(shown)[1], 70)
                self.browser.press("ArrowRight", shift=True)
                self.assertGreater(self.browser.value(shown)[0], 1)
                self.browser.press("0")
                self.assertEqual(self.browser.value(shown), [0, 100])
                self.choose(0, 1)
                self.assertGreater(self.count(".bar.faded"), 200)
                for _ in range(6):
                    self.do("next")
                    self.assertNotRegex(self.said(), "stage [02]")
                self.assertGreaterEqual(self.count(".timeline-life button"), 3)
                self.browser.click(self.part(".timeline-life button"))
                self.assertRegex(self.said(), r"^Clock [\d,]+\.")
                self.fits()

    def test_a_bar_says_what_it_is_and_shows_the_way_of_its_k_tile(self):
        self.show("steps/12_warp_specialized/index.html", "timeline-12")
        self.browser.click(self.part(".bar.act-copy"))
        self.assertRegex(self.texts(".timeline-tip")[0], r"^copies.*k-tile 0, stage 0.* clocks.* bytes$")
        self.assertRegex(self.said(), r"^copies: copy in flight, k-tile 0, stage 0\. Clock ")
        self.assertEqual(self.texts(".timeline-life b"), ["Issued", "In flight", "Full", "Multiplied", "Empty, taken again"])

    def test_every_timeline_can_be_stepped_through(self):
        for step in ("05_ldg_double_buffer", "15_tma_store", "18_stream_k", "41_operand_in_registers", "73_roles_two_accumulators"):
            with self.subTest(step=step):
                self.show(f"steps/{step}/index.html", f"timeline-{step[:2]}", width=360)
                self.do("next")
                self.assertRegex(self.said(), r"^Clock [\d,]+\. \w+")
                self.fits()

    def test_playing_goes_from_event_to_event_for_readers_who_want_less_motion(self):
        self.show("steps/12_warp_specialized/index.html", "timeline-12")
        self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
        self.do("play")
        self.assertTrue(self.browser.wait_for(f"{self.part('.figure-said')}.textContent.startsWith('Clock')"))
        self.do("play")
        self.assertEqual(self.browser.value(f"{self.part('[data-do=play]')}.getAttribute('aria-label')"), "Play")

    def test_the_ring_shows_each_event_of_its_log(self):
        for case in self.CASES:
            with self.subTest(case=case):
                self.show("steps/11_mbarrier_ring/index.html", "ring", *case)
                self.fits()
                self.choose(0, "the consumer")
                run = next(one for one in RUNS["ring"] if one["stages"] == 3 and one["slow"] == "the consumer")
                begin = next(at for at, event in enumerate(run["events"]) if event["event"] != "mbarrier_init")
                barriers, waiting = {}, False
                for event in run["events"][:begin]:
                    barriers[event["barrier"]] = event
                self.focus(".figure-card [data-do=next]")
                for event in run["events"][begin:]:
                    self.browser.press("ArrowRight")
                    if "barrier" in event:
                        barriers[event["barrier"]] = event
                    cells = [text for at, text in enumerate(self.texts("tbody td")) if at % 3]  # the stage's content is left out
                    for at, cell in enumerate(cells):
                        wanted = barriers[f"{'empty' if at % 2 else 'full'}[{at // 2}]"]
                        self.assertRegex(cell, rf"^phase {wanted['phase']} {wanted['phase'] % 2}missing: {wanted['pending']} arrival")
                        if at % 2 == 0:
                            self.assertIn(f"{wanted['tx']:,} bytes", cell)
                    waiting = waiting or bool(self.count(".ring-role.producer.blocked"))
                self.assertTrue(waiting)
                self.assertEqual(self.browser.value("figures.data.ring.ring.map(run => figures.replayRing(structuredClone(run)).farthest)"), [1] * len(RUNS["ring"]))
                self.assertIn("at most 1 phase ahead", self.texts(".ring-why")[0])
                self.browser.press("Home")
                self.do("phase")
                self.assertIn("phase 0 is complete, and phase 1 begins with parity 1", self.said())
                self.fits()

    def test_the_ring_says_what_it_shows(self):
        """Stages, the barrier of the last event, and step 14's ring, which has 4 stages; the reader's choice comes back."""
        self.show("steps/11_mbarrier_ring/index.html", "ring")
        self.assertEqual((self.texts(".ring-stage"), self.count("td.here")), (["0", "1", "2"], 0))
        self.do("next")
        self.assertEqual(self.count("td.here"), 1)
        self.assertIn("the last event's barrier", self.texts(".ring-key")[0])
        self.choose(0, "the consumer")
        self.browser.value(f"{self.part('.ring-slider')}.value = 40, {self.part('.ring-slider')}.dispatchEvent(new Event('input'))")
        self.assertRegex(self.texts(".ring-role.blocked .soft")[0], r"^Phase 0 must be complete, and \w+\[\d\] is still in phase 0 \(parity 0\): the wait does not pass\.$")
        stages = f"[...{self.figure}.querySelectorAll('select')].map(one => [one.value, one.disabled])[1]"
        self.choose(0, "the store")
        self.assertEqual(self.texts(".ring-kernel"), ["Step 14's kernel: a producer, 2 consumers, 4 stages, two tiles of 3 k-tiles."])
        self.assertEqual((self.browser.value(stages), len(self.texts(".ring-stage"))), (["4", True], 4))
        self.choose(0, "nobody")
        self.assertEqual(self.browser.value(stages), ["3", False])
        self.assertEqual(self.texts(".ring-kernel"), ["Step 12's kernel: a producer, one consumer, 3 stages, 6 k-tiles."])
        self.focus("[data-do=next]")
        self.browser.press("End")
        self.assertEqual([self.count(f"path.ring-{state}") for state in ("read", "done")], [0, 1])  # the last k-tile, whose stage nobody releases

    def test_keys_work_after_a_click_and_do_what_the_figure_says(self):
        self.show("steps/11_mbarrier_ring/index.html", "ring")
        before = self.said()
        self.browser.click(self.part(".ring-picture svg"))
        self.browser.press("ArrowRight")
        first = self.said()
        self.assertNotEqual(first, before)
        self.do("back")
        playing = f"{self.part('[data-do=play]')}.getAttribute('aria-label')"
        self.focus("[data-do=next]")
        self.browser.press(" ")  # plays, and makes no step
        self.assertEqual(self.browser.value(playing), "Pause")
        self.browser.press(" ")
        self.assertEqual(self.browser.value(playing), "Play")
        areas = self.browser.value(f"['back', 'next', 'play'].map(name => (box => [box.x, box.width])({self.figure}.querySelector(`[data-do=${{name}}] path`).getBBox()))")
        self.assertEqual(areas[0], [16 - areas[1][0] - areas[1][1], areas[1][1]])  # one step on is one step back in a mirror
        self.assertNotEqual(areas[1], areas[2])
        page = self.browser.value("location.href")
        for key in "np,.":  # which lead to other pages elsewhere
            self.browser.press(key)
        self.assertEqual(self.browser.value("new Promise(done => setTimeout(() => done(location.href), 200))"), page)
        self.browser.press("Home")
        self.browser.press("n")
        self.assertIn("phase 0 is complete", self.said())

    def test_swizzles_show_places_and_banks(self):
        for case in self.CASES:
            with self.subTest(case=case):
                self.show("docs/shared-memory.html", "swizzle", *case)
                for mode, banks in (("none", ["8×", *["–"] * 7]), ("32", ["1×"] * 8), ("64", ["1×"] * 8), ("128", ["1×"] * 8)):
                    self.do(f"mode-{mode}")
                    self.assertEqual(self.texts(".swizzle-bank"), banks, mode)
                    lines = next(one["lines"] for one in RUNS["swizzle"] if one["swizzle"].split()[0] == mode)
                    self.assertEqual(self.texts(".swizzle-cell"), [cell for line in lines for cell in line], mode)
                self.browser.click(self.part("[data-cell=\"3.0\"]"))
                self.assertIn("Row 3, bytes 48 to 63: at shared + 1,408, in banks 0 to 3.", self.said())
                self.browser.press("ArrowRight")
                self.assertIn("Row 3, bytes 32 to 47", self.said())
                self.fits()

    def test_a_descriptor_finds_its_bytes(self):
        for case in self.CASES:
            with self.subTest(case=case):
                self.show("docs/descriptors.html", "swizzle-descriptor", *case)
                for mode, descriptors in RUNS["descriptor"].items():
                    self.do(f"mode-{mode}")
                    self.choose(0, len(descriptors) - 1)
                    wanted = descriptors[-1]
                    self.assertEqual(self.texts(".descriptor-word")[0], wanted["descriptor"])
                    marked = self.browser.value(f"[...{self.figure}.querySelectorAll('.swizzle-cell')].flatMap((one, at) => one.matches('.chosen') ? [at] : [])")
                    self.assertEqual(marked, sorted((address - record_runs.ADDRESS) // 16 for row in wanted["rows"] for address in row), mode)
                    self.assertEqual(sorted(int(name[0]) for name in self.texts(".swizzle-cell.chosen")), sorted([*range(8)] * 2), mode)
                self.fits()

    def test_orders_of_tiles_show_what_a_wave_reads(self):
        for case in self.CASES:
            with self.subTest(case=case):
                self.show("docs/tile-scheduling.html", "raster", *case)
                for index, run in enumerate(RUNS["raster"]):
                    self.choose(1, index)
                    for order in run["orders"]:
                        self.choose(0, order["order"])
                        tiles, rows, columns = order["waves"][0]
                        read = (rows * run["row_bytes"] + columns * run["column_bytes"]) >> 20
                        self.assertRegex(self.said(), rf"^Wave 0 of {order['order'].replace('_', ' ').replace('group', 'groups of ')}: {tiles} tiles in {rows} rows? and {columns} columns? of D\..* {read} MiB together")
                        self.assertEqual(self.browser.value(f"{self.part('.raster-now')}.getAttribute('d').split('M').length - 1"), tiles)
                self.focus("[data-do=next]")
                self.browser.press("ArrowRight")
                self.assertRegex(self.said(), "^Wave 1 of hilbert")
                self.browser.press("End")
                self.assertRegex(self.said(), "^Wave 3 of hilbert: 116 tiles")
                self.browser.press("o")
                self.assertRegex(self.said(), "^Wave 3 of along n")
                self.fits()

    def test_whole_tiles_and_ranges_are_stepped_through(self):
        for case in self.CASES:
            with self.subTest(case=case):
                self.show("steps/18_stream_k/index.html", "stream_k", *case)
                for run in RUNS["stream_k"][::5]:
                    self.choose(1, run["k_tiles"])
                    self.choose(0, run["tiles"])
                    for index, name in ((1, "stream-K"), (2, "hybrid")):
                        self.choose(2, name)
                        shown = [run["divisions"][0], run["divisions"][index]]
                        self.assertEqual(self.count("rect"), sum(len(worker) for one in shown for worker in one["workers"]))
                        self.assertIn(f"Whole tiles end after {shown[0]['ends']:g} k-tiles, {name} after {shown[1]['ends']:g}.", self.said())
                self.choose(1, 64)
                self.choose(0, 5)
                self.choose(2, "stream-K")
                self.focus("[data-do=next]")
                for _ in range(4):
                    self.browser.press("ArrowRight")
                self.assertEqual(self.said(), "After 16 k-tiles: SM 0 stores its partials of tile 1, k-tiles 0 to 15, for the SM that multiplies its last k-tiles.")
                self.assertIn("1…" if case[1] == 360 else "1: 0–15", self.texts(".on-bar"))
                self.assertEqual(self.count("rect.lit.streamk-store"), 1)
                self.browser.press("End")
                self.assertIn("Cutting saves 35.", self.said())
                self.browser.press("t")
                self.assertIn("SM 0 begins to multiply", self.said())
                self.fits()

    def test_tensor_memory_shows_each_event_of_its_log(self):
        for case in self.CASES:
            with self.subTest(case=case):
                self.show("steps/73_roles_two_accumulators/index.html", "tensor_memory", *case)
                for run in RUNS["tensor_memory"]:
                    self.choose(1, run["accumulators"])
                    self.choose(0, run["slow"])
                    waits = {"Issuer": False, "Epilogue": False}
                    together = False
                    self.focus("[data-do=next]")
                    barriers = {event["barrier"]: event for event in run["events"] if event["event"] == "mbarrier_init"}
                    for event in run["events"][len(barriers):]:
                        self.browser.press("ArrowRight")
                        barriers[event.get("barrier")] = event
                        for which in range(run["accumulators"]):
                            cells = self.texts("tbody td")[2 * which:2 * which + 2]
                            for kind, cell in zip(("full", "empty"), cells):
                                wanted = barriers[f"accumulators.{kind}[{which}]"]
                                self.assertRegex(cell, rf"^phase {wanted['phase']}, parity {wanted['phase'] % 2}missing: {wanted['pending']} arrival")
                        if event["event"] == "mbarrier_arrive":
                            which = event["barrier"][-2]
                            self.assertEqual(self.texts(f"[data-cell=\"{which}.{event['warp']}\"]"), [f"warp {event['warp']} has read it"])
                        together = together or bool(self.count(".tensor-cell.tensor-adding") and self.count(".tensor-cell.tensor-reading"))
                        for text in self.texts(".ring-role"):
                            waits[text.split(",")[0]] |= "waits at" in text and "next waits" not in text
                    # What two accumulators are for, and the figure's first sentence.
                    self.assertEqual(together, run["accumulators"] == 2 and run["slow"] == "nobody")
                    # A slow role waits only before the first tile; the other one waits for it.
                    self.assertTrue(waits["Epilogue" if run["slow"] == "the issuer" or run["accumulators"] == 1 else "Issuer"], run["slow"])
                self.choose(1, 2)
                self.browser.click(self.part("[data-cell=\"1.2\"]"))
                self.assertIn("lanes 64 to 95", self.said())
                self.assertIn("begin at 0x00400100", self.said())
                self.fits()

    def test_an_mbarrier_is_stepped_through(self):
        for case in self.CASES:
            with self.subTest(case=case):
                self.show("docs/mbarriers.html", "mbarrier", *case)
                self.assertEqual(self.count(".mbarrier-own"), 1)
                for index, run in enumerate(RUNS["mbarrier"]):
                    self.choose(0, index)
                    self.focus(".figure-card [data-do=next]")
                    for event in run["events"]:
                        self.assertEqual(self.texts("[aria-current=step]"), [event["event"]])
                        self.assertIn(event["word"], self.texts(".mbarrier-word")[0])
                        self.assertIn(f"{event['pending']} of {event['count']} missing", self.texts(".mbarrier-board")[0])
                        self.browser.press("ArrowRight")
                    shown = self.browser.value(f"(one => one.hidden ? '' : one.textContent)({self.part('.mbarrier-report')})")
                    self.assertEqual(shown, run["report"], run["title"])
                self.fits()

    def test_a_script_of_ones_own_where_the_emulator_is_in_the_page(self):
        answer = json.dumps(RUNS["mbarrier"][1])
        source = f"const wait = setInterval(() => {{ if (window.figures) {{ clearInterval(wait); figures.runMbarrier = async ({{script}}) => {{ window.asked = script; return {answer}; }}; }} }}, 1);"
        self.browser.call("Page.addScriptToEvaluateOnNewDocument", source=source)
        self.show("docs/mbarriers.html", "mbarrier")
        self.browser.value(f"{self.part('.mbarrier-own input')}.value = 'init 2, arrive'")
        self.browser.click(self.part(".mbarrier-own button"))
        self.assertTrue(self.browser.wait_for(f"{self.figure}.querySelectorAll('.mbarrier-script li').length === {len(RUNS['mbarrier'][1]['events'])}"))
        self.assertEqual(self.browser.value("window.asked"), "init 2, arrive")

    def run_script(self, script):
        """What the figure says of a script of the reader's own."""
        self.browser.value(f"{self.part('.mbarrier-own input')}.value = {json.dumps(script)}")
        self.browser.click(self.part(".mbarrier-own button"))
        said = f"{self.part('.figure-said')}.textContent"
        self.browser.wait_for(f"{said} !== 'The emulator runs your script.'")
        return self.browser.value(said)

    def test_a_file_names_the_command_that_runs_a_script(self):
        self.show("docs/mbarriers.html", "mbarrier")
        self.assertIn("In a terminal, this runs the script: tools/play mbarrier init 2, arrive", self.run_script("init 2, arrive"))
        self.fits()

    def test_the_emulator_runs_a_script_in_the_page(self):
        self.show("docs/mbarriers.html", "mbarrier", root=0)
        if not self.browser.value("figures.data.mbarrier.program"):
            self.skipTest("the site was built without the emulator; tools/site --emulator builds it")
        self.assertIn("A phase of this barrier takes 3 arrivals", self.run_script("init 3, arrive 3, test 0"))
        self.assertEqual(self.texts(".mbarrier-script li"), ["init 3", "arrive", "arrive", "arrive", "test 0"])
        self.focus(".figure-card [data-do=next]")
        self.browser.press("End")
        self.assertIn("yes: complete", self.said())
        self.assertIn("did you mean 'arrive'", self.run_script("init 1, arive"))
        self.run_script("init 2, arrive, wait 0")
        self.browser.press("End")
        self.focus(".figure-card [data-do=next]")
        self.browser.press("End")
        self.assertIn("deadlock", self.texts(".mbarrier-report")[0])
        self.fits()

    def test_the_picture_is_one_click_away_and_remains_without_javascript(self):
        self.show("steps/11_mbarrier_ring/index.html", "ring")
        self.assertGreater(self.browser.value(f"{self.part('img')}.offsetHeight"), 100)  # the text beside it describes it
        self.assertEqual(self.count(".figure-still"), 0)
        self.show("steps/11_mbarrier_ring/index.html", "timeline-11")
        self.assertEqual(self.browser.value(f"{self.part('img')}.offsetHeight"), 0)
        self.browser.click(self.part(".figure-still"))
        self.assertGreater(self.browser.value(f"{self.part('img')}.offsetHeight"), 100)
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        self.browser.open(f"{self.roots[1]}/docs/mbarriers.html", 360)
        node = self.browser.call("DOM.getDocument")["root"]["nodeId"]
        pictures = self.browser.call("DOM.querySelectorAll", nodeId=node, selector="figure[data-figure] > img")["nodeIds"]
        self.assertEqual(len(pictures), 2)
        for picture in pictures:
            self.assertGreater(self.browser.call("DOM.getBoxModel", nodeId=picture)["model"]["height"], 50)

    def test_controls_have_names_and_can_be_reached(self):
        for place, name in (("steps/12_warp_specialized/index.html", "timeline-12"), ("steps/11_mbarrier_ring/index.html", "ring"),
                            ("docs/descriptors.html", "swizzle-descriptor"), ("docs/mbarriers.html", "mbarrier"), ("docs/tile-scheduling.html", "raster"),
                            ("steps/18_stream_k/index.html", "stream_k"), ("steps/73_roles_two_accumulators/index.html", "tensor_memory")):
            with self.subTest(name=name):
                self.show(place, name)
                nameless = self.browser.value(f"[...{self.figure}.querySelectorAll('button, select, input, [role=application], [role=region], [role=group]')].filter("
                                              "one => !(one.getAttribute('aria-label') || one.textContent.trim() || one.closest('label'))).map(one => one.outerHTML)")
                self.assertEqual(nameless, [])
                self.focus(".figure-tools button")
                reached = {self.browser.value("document.activeElement.dataset.do")}
                for _ in range(40):
                    self.browser.press("Tab")
                    reached.add(self.browser.value(f"{self.figure}.contains(document.activeElement) ? (document.activeElement.dataset.do || document.activeElement.tagName) : ''"))
                self.assertGreaterEqual(reached, {"SELECT", "SUMMARY"} | ({"mode-none"} if "swizzle" in name else {"next", "play"}))


if __name__ == "__main__":
    unittest.main()
