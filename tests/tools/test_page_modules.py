"""The emulator in the site's pages: modules of WebAssembly say what the same program says that is compiled for this processor.

Each test builds the modules that it needs (preset emulator-wasm). Without Emscripten, which 'tools/site --emulator' installs, all are
skipped: a test installs nothing. Compiling the emulator for a page takes minutes, so only the comparison of three modules belongs to
tools/test --all. The others belong to the long tier; the site's workflow runs all of them.
"""
import functools
import gzip
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import chromium
from sandbox import ROOT

sys.path.insert(0, str(ROOT / "tools/figures"))
import record_runs  # noqa: E402 (the path comes first)
import packed_json  # noqa: E402

BUILD = pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator"))
MODULES = ROOT / "build/emulator-wasm"
PANEL = ROOT / "tools/site_pages/emulator"
IN_NODE = PANEL / "run_in_node.js"
STEPS = ("11", "16", "73")
# A run in whose middle something goes wrong: at the 200th copy of some bytes, which a thread of the kernel makes. The words below the
# stacks are those of fiber_asyncify.cpp; the first copy of them in memory is the constant that they are compared with.
SABOTAGE = """
const fs = require("fs"), {callModule} = require(process.argv[1]), create = require(process.argv[2]);
const compiled = new WebAssembly.Module(fs.readFileSync(process.argv[2].replace(/js$/, "wasm")));
let copies = 0, memory;
const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (compiled, imports) => {
  const copy = imports.env.emscripten_memcpy_big;
  imports.env.emscripten_memcpy_big = (...words) => {
    if (++copies === 200 && process.argv[3] !== "stack") throw new WebAssembly.RuntimeError(process.argv[3]);
    const all = new Uint32Array(memory.buffer);
    for (let at = 0, found = 0; copies === 200 && at < all.length; ++at) if (all[at] === 0x6b616e61 && all[at + 1] === 0x72696521 && found++) all[at] = 0;
    return copy(...words);
  };
  const made = await instantiate(compiled, imports);
  memory = made.exports.memory;
  return made;
};
callModule(create, compiled, "page_run", "right", "128x256x192", "1", "random").then(said => console.log(JSON.stringify(said)));
"""
# Of a reader's scripts, what a module says of each.
SCRIPTS = """
const fs = require("fs"), {callModule} = require(process.argv[1]), create = require(process.argv[2]);
const compiled = new WebAssembly.Module(fs.readFileSync(process.argv[2].replace(/js$/, "wasm")));
(async () => {
  const said = [];
  for (const script of JSON.parse(process.argv[3])) said.push(await callModule(create, compiled, "page_mbarrier", script));
  console.log(JSON.stringify(said));
})();
"""
SCHEDULES = (("1", "random"), ("7", "random"), ("1", "earliest"), ("1", "latest"))
# What an x86 processor traps: arithmetic with a register that wgmma is still writing. In a module the store of the result is reported.
TRAPPED_ELSEWHERE = {("08", "no_wait")}


def said(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr}")
    return json.loads(done.stdout)


def native(number, *words):
    return said([BUILD / f"bin/page_{number}", *words])


def module(number, *words):
    return said(["node", IN_NODE, MODULES / f"bin/page_{number}.js", *words])


class ModulesTest(unittest.TestCase):
    def build(self, *numbers):
        for program in ("em++", "node"):
            if not shutil.which(program):
                self.skipTest(f"{program} is not installed; tools/site --emulator installs it")
        for command in (["cmake", "--preset", "emulator-wasm"],
                        ["cmake", "--build", MODULES, "--target", *(f"page_{number}" for number in numbers)]):
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-4000:])


class PageModules(ModulesTest):
    def compare(self, number, schedules):
        about = native(number)
        self.assertEqual(module(number), about)
        self.assertEqual(about["kernels"][0]["name"], "right")
        for kernel in about["kernels"]:
            for seed, completion in schedules:
                with self.subTest(step=number, kernel=kernel["name"], seed=seed, completion=completion):
                    words = kernel["name"], kernel["shape"], seed, completion
                    here, there = native(number, *words), module(number, *words)
                    if (number, kernel["name"]) in TRAPPED_ELSEWHERE:
                        self.assertEqual(there["outcome"], here["outcome"])
                        continue
                    for part in ("outcome", "rule", "text", "lines", "timeline", "events", "ledger"):
                        self.assertEqual(there.get(part), here.get(part), part)
                    # A broken kernel must be found, and the right one must be right: two empty answers would be equal, too.
                    self.assertEqual(here["outcome"] == "right", kernel["name"] == "right", here["text"])
                    if kernel["name"] == "right" and number != "04":  # timelines begin with step 05
                        self.assertIn('"traceEvents"', here["timeline"])
                        self.assertTrue(all(row["waits"] for row in json.loads(here["ledger"])["barriers"]), here["ledger"])

    def test_modules_say_what_programs_for_this_processor_say(self):
        self.build(*STEPS)
        for number in STEPS:
            self.compare(number, SCHEDULES[:1])

    def test_long_a_timeline_and_a_ledger_are_the_files_that_the_command_line_writes(self):
        self.build("11")
        kernel = native("11")["kernels"][0]
        with tempfile.TemporaryDirectory(prefix="gemm-steps-test.") as folder:
            file = pathlib.Path(folder) / "file.json"
            for part, flags, schedule in (("timeline", ["--trace", file], ("3", "latest")), ("ledger", ["--ledger", "--json", file], ("1", "random"))):
                done = subprocess.run([BUILD / "bin/11_mbarrier_ring", kernel["shape"], "--variant", kernel["variant"], "--sms", str(kernel["sms"]), *flags],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(module("11", "right", kernel["shape"], *schedule)[part], file.read_text(encoding="utf-8"))

    def test_long_a_trap_and_a_full_stack_are_reports_that_name_the_thread(self):
        self.build("11")
        for cause, rule in (("divide by zero", "division-by-zero"), ("memory access out of bounds", "illegal-instruction"), ("stack", "stack-overflow")):
            with self.subTest(cause=cause):
                answer = said(["node", "-e", SABOTAGE, PANEL / "run_kernel.js", MODULES / "bin/page_11.js", cause])
                self.assertEqual((answer["outcome"], answer["rule"]), ("report", rule))
                self.assertRegex(answer["text"], r"by       thread \(\d+,0,0\) \(warp \d+, lane \d+\) of CTA \(0,0,0\)")
                self.assertIn("mbarrier_init", answer["events"])

    def test_long_bad_input_gets_a_sentence(self):
        self.build("11")
        for words, sentence in ((("right", "128x128x", "1", "random"), "128x128x"), (("right", "128x128x65", "1", "random"), "multiple of 8"),
                                (("wrong", "128x128x64", "1", "random"), "there is no kernel 'wrong'; the kernels are right, producer_phase"),
                                (("right", "128x128x64", "x", "random"), "the seed is 'x'"), (("right", "128x128x64", "1", "soon"), "random, earliest or latest"),
                                (("right", "4096x4096x4096", "1", "random"), "too large for a page")):
            answer = module("11", *words)
            self.assertEqual(answer["outcome"], "refused")
            self.assertIn(sentence, answer["text"])
            self.assertEqual(answer, native("11", *words))

    def test_long_scripts_for_an_mbarrier_say_what_the_playground_says(self):
        self.build("mbarrier")
        scripts = [run["script"].strip() for run in packed_json.read(ROOT / record_runs.RUNS)["mbarrier"]] + ["init 2, arrive_expect 512, inval", "test 0", "init 0", "init 1, wait 3"]
        wrong = ["", "init", "init 1, arive", "init 1, complete 24"]
        answers = said(["node", "-e", SCRIPTS, PANEL / "run_kernel.js", MODULES / "bin/page_mbarrier.js", json.dumps(scripts + wrong)])
        with tempfile.TemporaryDirectory(prefix="gemm-steps-test.") as folder:
            file = pathlib.Path(folder) / "out.json"
            for script, answer in zip(scripts, answers):
                subprocess.run([BUILD / "bin/play_mbarrier", script, "--json", file], capture_output=True, check=False)
                wanted = json.loads(file.read_text(encoding="utf-8"))
                self.assertEqual(wanted.pop("script").strip(), answer.pop("script").strip())
                self.assertEqual(answer, wanted)
        for script, answer in zip(wrong, answers[len(scripts):]):
            with self.subTest(script=script):
                done = subprocess.run([BUILD / "bin/play_mbarrier", "--file", "/dev/stdin"], input=script, capture_output=True, text=True, check=False)
                self.assertEqual(f"error: {answer['error']}\n", done.stderr)

    def test_long_every_module_is_below_a_megabyte(self):
        found = sorted(MODULES.glob("bin/page_*.wasm"))
        if not found:
            self.skipTest("no module is built; tools/site --emulator builds them")
        for file in found:
            fetched = sum(len(gzip.compress(one.read_bytes(), 9)) for one in (file, file.with_suffix(".js")))
            self.assertLess(fetched, 1_000_000, file.name)

    def test_long_every_module_says_what_the_program_says(self):
        numbers = sorted(file.name[:2] for file in (ROOT / "steps").iterdir() if file.name[:2].isdigit() and (4 <= int(file.name[:2]) <= 18 or file.name[:2] == "73"))
        self.build(*numbers)
        done = subprocess.run(["cmake", "--build", BUILD, "--target", *(f"page_{number}" for number in numbers)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-4000:])
        for number in numbers:
            self.compare(number, SCHEDULES)


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>panel</title><link rel="icon" href="data:,">
<section class="emulator" data-program="{program}"><button type="button" hidden>Run this kernel here</button></section><script src="panel.js"></script></html>"""
# A module whose runs never end, as those of a kernel with an endless loop.
ENDLESS = """function createEmulator() {{ return Promise.resolve({{ccall: name => {{ while (name !== "page_describe"); return {about}; }}}}); }}"""


class Panels(ModulesTest):
    """The panel of a chapter, in headless Chromium."""

    def setUp(self):
        if not chromium.PROGRAM:
            self.skipTest("no Chromium here")
        self.build("11")
        folder = tempfile.TemporaryDirectory(prefix="gemm-steps-test.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for file in [*PANEL.glob("*.js"), *MODULES.glob("bin/page_11.*")]:
            shutil.copy(file, self.folder)
        (self.folder / "index.html").write_text(PAGE.format(program="page_11"), encoding="utf-8")
        handler = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=self.folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.root = f"http://127.0.0.1:{server.server_port}"
        self.browser = chromium.Browser()
        self.addCleanup(self.browser.close)

    def open(self, address):
        self.browser.open(address)
        self.browser.value("document.querySelector('.emulator button').click()")
        self.assertTrue(self.browser.wait_for("document.querySelector('.emulator form')", seconds=60))

    def run_kernel(self, kernel):
        """Runs a kernel; what the panel says of it."""
        self.browser.value(f"(select => {{ select.value = '{kernel}'; select.dispatchEvent(new Event('change')); }})(document.querySelector('.emulator select'))")
        self.browser.value("document.querySelector('.emulator form').requestSubmit()")
        self.assertTrue(self.browser.wait_for("!document.querySelector('.emulator [type=submit]').disabled", seconds=60))
        return self.browser.value("document.querySelector('.emulator [role=status]').textContent")

    def count(self, selector):
        return self.browser.value(f"document.querySelectorAll('{selector}').length")

    def test_long_kernels_run_and_their_reports_mark_their_lines(self):
        for file in (False, True):  # the second time what was recorded
            with self.subTest(file=file):
                self.open((self.folder / "index.html").as_uri() if file else f"{self.root}/index.html")
                self.assertIn("The result is right", self.run_kernel("right"))
                self.assertGreater(self.count(".emulator-timeline rect"), 20)
                self.assertGreater(self.count(".emulator-scroll tbody tr"), 3)
                ledger = self.browser.value("document.querySelector('.emulator-scroll').textContent")
                self.assertIn("one thread of each of warps 0 and 4", ledger)
                self.assertIn("TMA writes, wgmma reads: 49,152 bytes", ledger)
                self.assertEqual(self.count(".emulator-source .broken, .emulator-source .named"), 0)
                before = self.browser.value("document.querySelector('[aria-label=Barriers] tbody').textContent")
                self.browser.value("(slider => { slider.value = 20; slider.dispatchEvent(new Event('input')); })(document.querySelector('[type=range]'))")
                self.assertNotEqual(self.browser.value("document.querySelector('[aria-label=Barriers] tbody').textContent"), before)
                row, barrier = self.browser.value("[...document.querySelectorAll('tr.now')].map(row => row.textContent)")
                self.assertEqual(f"(0,0,0){row.partition('[0-')[0]}", barrier.partition("[")[0])
                self.assertIn("report: deadlock", self.run_kernel("producer_phase"))
                self.assertGreater(self.count(".emulator-source .named"), 1)
                self.assertIn("PipelineState", self.browser.value("document.querySelector('.emulator-source .broken').textContent"))
                self.assertIn("nobody", self.browser.value("document.querySelector('.emulator-scroll tbody').textContent"))  # arrives at empty
                self.assertEqual(self.browser.said, [])

    def test_long_a_loop_that_does_not_end_is_stopped(self):
        about = json.dumps(json.dumps(module("11")))
        (self.folder / "page_endless.js").write_text(ENDLESS.format(about=about), encoding="utf-8")
        (self.folder / "page_endless.wasm").write_bytes(b"\0asm\1\0\0\0")
        (self.folder / "endless.html").write_text(PAGE.format(program="page_endless"), encoding="utf-8")
        self.open(f"{self.root}/endless.html")
        self.browser.value("document.querySelector('.emulator form').requestSubmit()")
        self.assertTrue(self.browser.wait_for("!document.querySelector('.emulator form > [type=button]').hidden"))
        self.browser.value("document.querySelector('.emulator form > [type=button]').click()")
        self.assertTrue(self.browser.wait_for("document.querySelector('.emulator [role=status]').textContent.startsWith('Stopped')"))


if __name__ == "__main__":
    unittest.main()
