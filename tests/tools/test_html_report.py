"""--html FILE of tools/run and tools/emulate: a page about a broken rule, its lines, and the page in headless Chromium."""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import accessibility
import chromium
from sandbox import ROOT

sys.path.insert(0, str(ROOT / "tools/figures"))
import packed_json  # noqa: E402 (the path comes first)
import record_reports  # noqa: E402

BUILD = pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator"))
EXAMPLE = "tests/own_kernel/inline_ptx/ring.cu"


class Shown(html.parser.HTMLParser):
    """What a page says: marked lines by their anchors, rows of its table, and what it would fetch."""

    def __init__(self, text):
        super().__init__()
        self.named, self.links, self.fetched, self.rows, self.inside, self.pictures = {}, [], [], [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        about = dict(attributes)
        if tag not in ("meta", "link", "img", "br"):
            self.inside.append((tag, about))
        if tag == "a":
            self.links.append(about["href"])
        if tag == "tr":
            self.rows.append("")
        self.fetched += [about[name] for name in ("src", "href") if name in about and not about[name].startswith(("#", "data:"))]
        self.pictures += tag == "img"

    def handle_endtag(self, tag):
        self.inside.pop()

    def handle_data(self, text):
        for tag, about in self.inside:
            if "named" in about.get("class", "") and tag == "div":
                self.named[about["id"]] = self.named.get(about["id"], "") + text
        if any(tag == "tr" for tag, _ in self.inside):
            self.rows[-1] += " " + text


class HtmlReport(unittest.TestCase):
    def setUp(self):
        if BUILD != ROOT / "build/emulator":
            self.skipTest("tools/emulate uses build/emulator, and these tests are of another build")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-test."))
        self.addCleanup(shutil.rmtree, self.folder)
        self.page = self.folder / "page.html"

    def run_tool(self, *words):
        return subprocess.run(list(map(str, words)), cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def own_kernel(self):
        """The page about an example whose consumer reads a tile before it has come, made with what tools/emulate calls."""
        program, data = self.folder / "ring", self.folder / "data.json"
        done = self.run_tool("tools/own_kernel/emulate-cc", EXAMPLE, "-o", program, "--name", EXAMPLE, "--kit", BUILD / "emulate/kit", "-D", "NO_WAIT")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.run_tool(program, "--html-data", data).returncode, 3)
        done = self.run_tool(sys.executable, "-B", "tools/lib/report_page.py", data, self.page, f"{EXAMPLE}={ROOT / EXAMPLE}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.page.read_text(encoding="utf-8")

    def step(self, *words):
        """The page about step 11, with a rule that it breaks where it is switched on."""
        data = self.folder / "data.json"
        done = self.run_tool(BUILD / "bin/11_mbarrier_ring", "--check", "--strict", "convergence", "--html-data", data, *words)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.run_tool(sys.executable, "-B", "tools/lib/report_page.py", data, self.page).returncode, 0)
        return self.page.read_text(encoding="utf-8")

    def test_a_page_has_both_places_and_the_order_of_events(self):
        text = self.own_kernel()
        shown = Shown(text)
        self.assertEqual(shown.fetched, [])
        for part, role in (("load_tile(s.a[stage], &map_a", "load"), ("multiply(d, a + 2 * k", "read")):
            named = [line for line in shown.named.values() if part in line]
            self.assertEqual(len(named), 1, shown.named)
            self.assertTrue(named[0].endswith(f" {role}"), named)
        for link in shown.links:
            self.assertTrue(link[1:] in shown.named or link[1:] in ("report", "source", "timeline", "events"), link)
        self.assertIn("load-not-waited", shown.rows[-1])
        self.assertTrue(any("the phase is complete" in row or "try_wait" in row for row in shown.rows))
        self.assertEqual(shown.pictures, 1)

    def test_a_page_has_the_report_behind_a_stricter_rule_as_well(self):
        # A kernel without its initial fence breaks a rule of the course, and one without its wait a rule of the PTX ISA.
        source = (ROOT / "tests/own_kernel/tma_transpose.cu").read_text(encoding="utf-8")
        (self.folder / "tma_transpose.cu").write_text(re.sub(r".*fence_mbarrier_init.*\n", "", source), encoding="utf-8")
        program, data = self.folder / "transpose", self.folder / "data.json"
        done = self.run_tool("tools/own_kernel/emulate-cc", self.folder / "tma_transpose.cu", "-o", program, "--name", "tma_transpose.cu", "--kit",
                             BUILD / "emulate/kit", "-D", "NO_FENCE", "-I", ROOT / "tests/own_kernel")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_tool(program, "--html-data", data)
        self.assertIn("\nwithout that rule, another one is broken:\nproxy-fence: ", done.stderr)
        self.assertEqual(self.run_tool(sys.executable, "-B", "tools/lib/report_page.py", data, self.page).returncode, 0)
        self.assertIn("another one is broken:</p><pre class=\"box\" tabindex=\"0\">proxy-fence: ", self.page.read_text(encoding="utf-8"))

    def test_a_step_has_a_page_with_one_shape_and_with_the_planned_ones(self):
        for words in (("128x128x192",), ()):
            with self.subTest(words=words):
                self.page.unlink(missing_ok=True)
                shown = Shown(self.step(*words))
                self.assertTrue(any("ptx::wgmma_fence();" in line for line in shown.named.values()), shown.named)
                self.assertTrue(any("steps/11_mbarrier_ring/kernel.cuh" in row for row in shown.rows))
                self.assertIn("convergence", shown.rows[-1])

    def test_committed_reports_are_what_the_commands_write(self):
        def run(words):
            program = self.folder / words[-1]
            done = self.run_tool("tools/own_kernel/emulate-cc", words[1], "-o", program, "--name", words[1], "--kit", BUILD / "emulate/kit", *words[2:])
            self.assertEqual(done.returncode, 0, done.stderr)
            return [program]

        self.assertTrue(record_reports.recorded(run) == packed_json.read(ROOT / record_reports.REPORTS), "tools/figures/record_reports.py records them anew")

    def test_a_file_that_cannot_be_written_is_refused_before_the_run(self):
        there = self.folder / "there.html"
        there.write_text("kept", encoding="utf-8")
        for command in (("tools/run", "11", "--check"), ("tools/emulate", EXAMPLE)):
            for words, sentence in ((("--html", there), "is there already"), (("--html", self.folder / "none/page.html"), "there is no folder"),
                                    (("--html",), "--html needs a file"), (("--html", self.page, "--backend", "gpu"), "for the emulator")):
                if words[-1] == "gpu" and command[0] == "tools/run":
                    continue  # which first looks for a GPU
                with self.subTest(command=command, words=words):
                    done = self.run_tool(*command, *words)
                    self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                    self.assertIn(sentence, done.stderr)
        self.assertEqual(there.read_text(encoding="utf-8"), "kept")

    def test_the_page_in_a_browser(self):
        if not chromium.PROGRAM:
            self.skipTest("no Chromium here")
        self.step("128x128x192")
        browser = chromium.Browser()
        self.addCleanup(browser.close)
        for width, colours in ((1440, "light"), (360, "dark")):
            with self.subTest(width=width, colours=colours):
                browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
                browser.open(self.page.as_uri(), width)
                # Again until it is there: a page that is still being laid out scrolls past it.
                self.assertTrue(browser.wait_for("document.querySelector('figure')?.scrollIntoView(), document.querySelector('.figure-card') !== null", 60))
                self.assertLessEqual(browser.value("document.documentElement.scrollWidth - innerWidth"), 0)
                dark = browser.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] < 128")
                self.assertEqual(dark, colours == "dark")
                self.assertEqual(browser.value("getComputedStyle(document.querySelector('.figure-card')).backgroundColor.match(/\\d+/)[0] < 128"), dark)
                self.assertTrue(browser.wait_for("document.querySelectorAll('.timeline rect.bar').length > 3"))
                before = browser.value("document.querySelector('.figure-said').textContent")
                browser.value("document.querySelector('.timeline').focus()")
                browser.press("ArrowLeft")
                self.assertNotEqual(browser.value("document.querySelector('.figure-said').textContent"), before)
                rows = browser.value("document.querySelectorAll('.events tbody tr:not([hidden])').length")
                browser.value("(one => { one.value = 'full[0]'; one.onchange(); })(document.querySelector('[aria-labelledby=events] select'))")
                self.assertLess(browser.value("document.querySelectorAll('.events tbody tr:not([hidden])').length"), rows)
                self.assertEqual(browser.said, [])
                if axe := accessibility.script():
                    self.assertEqual(accessibility.findings(browser, axe), [])
        browser.call("Emulation.setScriptExecutionDisabled", value=True)
        browser.open(self.page.as_uri(), 1440)
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
        self.assertIn("Here the run ended", browser.value("document.body.innerText"))
        self.assertGreater(browser.value("document.querySelector('figure img').naturalWidth"), 500)


if __name__ == "__main__":
    unittest.main()
