"""tools/site: its pages against the Markdown and the kernels, its search, its server, and its pages in headless Chromium.

Each test looks at the same site, which is built where it is missing or old. Without the generator, which 'tools/site' installs, all
are skipped: a test installs nothing.
"""
import functools
import html
import html.parser
import http.server
import json
import pathlib
import re
import socket
import subprocess
import sys
import threading
import unittest
import urllib.parse

import accessibility
import chromium
from markdown import Page
from sandbox import ROOT

SITE = ROOT / "build/site"
sys.path.insert(0, str(ROOT / "tools/site_pages"))
import repository  # noqa: E402 (the path comes first)


def tool(*arguments):
    return subprocess.run([sys.executable, "-B", ROOT / "tools/site", *arguments], capture_output=True, text=True, check=False)


@functools.cache
def built():
    """Builds the site; "" or why it could not be built."""
    return tool().stderr


def read(place):
    return (SITE / place).read_text(encoding="utf-8")


def text_of(code):
    return html.unescape(re.sub(r"<[^>]*>", "", code))


class References(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name == "id":
                self.anchors.add(value)


class SiteTest(unittest.TestCase):
    def setUp(self):  # not setUpClass, whose skips would count as passed
        if not (ROOT / ".toolchain/site/requirements.txt").exists():
            self.skipTest("the generator is not installed; tools/site does it")
        self.assertEqual(built(), "")


class Content(SiteTest):
    """What the site says is what the repository says."""

    def test_every_page_is_there_with_its_headings_and_their_anchors(self):
        self.assertGreater(len(repository.pages()), 250)
        for page in repository.pages():
            text = (ROOT / page).read_text(encoding="utf-8")
            shown = read(repository.address(page))
            self.assertLessEqual(Page(text).anchors(), set(re.findall(r'<h\d id="([^"]*)"', shown)), page)
            tables = re.findall(r"(?m)^ *\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?$", Page(text).prose)
            self.assertEqual(len(tables), shown.count("<table>"), page)

    def test_every_link_leads_somewhere(self):
        pages = {path: References(path.read_text(encoding="utf-8")) for path in SITE.glob("**/*.html") if path.name != "404.html"}
        missing = []
        for path, page in pages.items():
            for link in page.links:
                address, _, anchor = link.partition("#")
                if re.match("[a-z]+:|//", link):
                    continue
                target = (path.parent / urllib.parse.unquote(address)).resolve() if address else path
                if not target.is_file() or anchor and target in pages and anchor not in pages[target].anchors:
                    missing.append(f"{path.relative_to(SITE)}: {link}")
        self.assertEqual(missing, [])

    def test_a_kernel_is_shown_line_for_line_with_what_is_new(self):
        for step in repository.steps():
            shown = read(f"steps/{step}/kernel.cuh.html")
            lines = re.findall(r'<div class="line( new)?" id="L(\d+)"><a href="#L\d+">\d+</a><code>(.*?)</code>', shown)
            text = (ROOT / f"steps/{step}/kernel.cuh").read_text(encoding="utf-8").removesuffix("\n").split("\n")
            self.assertEqual([text_of(line) for _, _, line in lines], text, step)
            self.assertEqual([int(number) for _, number, _ in lines], list(range(1, len(text) + 1)))
            self.assertEqual({int(number) for new, number, _ in lines if new}, set(repository.new_lines(step)[1]), step)
        said = subprocess.run([ROOT / "tools/diff-steps"], capture_output=True, text=True, check=True).stdout
        counts = dict(re.findall(r"(?m)^(\d\d_\w+) +\d+ +(\d+) +\d+", said))
        self.assertEqual(counts, {step: str(len(new)) for step in repository.steps() for base, new in [repository.new_lines(step)] if base})

    def test_instructions_are_those_of_the_listing_and_at_the_lines_that_it_quotes(self):
        """In step 11, whose ring releases a stage with one arrival."""
        found = repository.machine_code("11_mbarrier_ring")
        kernel = (ROOT / "steps/11_mbarrier_ring/kernel.cuh").read_text(encoding="utf-8").split("\n")
        release = next(number for number, line in enumerate(kernel, 1) if "if (releases)" in line)
        self.assertTrue(any("SYNCS.ARRIVE" in row for row in found[release]), found[release])
        shown = read("steps/11_mbarrier_ring/kernel.cuh.html")
        at = re.search(rf'id="L{release}".*?<details class="sass">.*?<code>(.*?)</code>', shown, re.DOTALL)[1]
        self.assertEqual(html.unescape(at).split("\n"), found[release])
        listing = (ROOT / "steps/11_mbarrier_ring/sass.txt").read_text(encoding="utf-8")
        self.assertTrue(all(row in listing for rows in found.values() for row in rows))

    def test_excerpts_lead_to_their_lines(self):
        counted = 0
        for page in repository.pages():
            text = (ROOT / page).read_text(encoding="utf-8")
            wanted = []
            for excerpt in repository.EXCERPT.findall(re.sub(r"(?ms)^```.*?^```$", "", text)):
                for _, file, region in repository.places(excerpt):
                    lines = (ROOT / file).read_text(encoding="utf-8").split("\n")
                    first = next(number for number, line in enumerate(lines, 1) if line.strip() == f"// ANCHOR: {region}") + 1
                    wanted.append((repository.href(page, file), str(first)))
            shown = read(repository.address(page))
            found = [link for below in re.findall(r'<p class="origin">(.*?)</p>', shown) for link in re.findall(r'href="(.*?)#L(\d+)"', below)]
            self.assertEqual(found, wanted, page)
            counted += len(wanted)
        self.assertGreater(counted, 150)

    def test_commands_that_write_a_report_as_a_page_lead_to_it(self):
        for page, root, names in (("docs/emulator/debugging-a-hang", "../..", ("hang", "race")), ("docs/start", "..", ("race",))):
            shown = re.findall(r'href="(\S+/reports/\w+\.html)"', read(f"{page}.html"))
            self.assertEqual(shown, [f"{root}/reports/{name}.html" for name in names])
        for name, rule, part in (("hang", "deadlock", "wait(&shared.empty"), ("race", "load-overwrites", "load(shared, fill.stage")):
            text = read(f"reports/{name}.html")
            self.assertIn(f"<h1>{rule}</h1>", text)
            self.assertTrue(any(part in html.unescape(line) for line in re.findall('<div class="line named[^/]*/span>[^<]*', text)), name)

    def test_the_index_of_the_search(self):
        index = json.loads(read("search.json"))["items"]
        for words, place in (("expect-tx", "docs/mbarriers.html"), ("EVT", "docs/from-here.html")):
            self.assertIn(place, {item["location"].split("#")[0] for item in index if words in item["title"] + item["text"]})
        self.assertEqual([item["location"] for item in index if "/exercises/" in item["location"] or ".cuh" in item["location"]], [])
        anchors = {page: References(read(page)).anchors for page in {item["location"].split("#")[0] for item in index}}
        self.assertEqual([place for place in (item["location"] for item in index) if "#" in place and place.split("#")[1] not in anchors[place.split("#")[0]]], [])
        self.assertIn(("docs/glossary.html#term-wave", "wave"), [(item["location"], item["title"]) for item in index])
        self.assertEqual([item["location"] for item in index if re.search("<t[rdh]|flowchart LR|&quot;|all steps", item["text"])], [])
        self.assertEqual(json.loads(read("search.js").removeprefix("var __index = ").rstrip(";\n")), json.loads(read("search.json")))

    def test_the_readers_way(self):
        """Part, previous and next of a chapter."""
        shown = read("steps/11_mbarrier_ring/index.html")
        for direction, step in (("prev", "10_tma_double_buffer"), ("next", "12_warp_specialized")):
            self.assertIn(f'<link rel="{direction}" href="../{step}/index.html">', shown)
        self.assertIn("III · Hopper", re.search(r'(?s)<nav class="md-path".*?</nav>', shown)[0])
        listed = re.findall(r'href="\.\./(\d\d_\w+)/index\.html" class="md-nav__link"', shown)
        self.assertEqual([step for at, step in enumerate(listed) if step not in listed[:at]], [step for step in repository.steps() if step[:2] != "11"])
        for step in repository.steps():  # the head of a chapter and its foot lead to the same pages
            shown = read(f"steps/{step}/index.html")
            head = re.search(r'(?s)<h1.*?<p>(.*?)</p>', shown)[1]
            for direction, arrow in (("prev", "←"), ("next", "→")):
                foot = re.search(f'<link rel="{direction}" href="([^"]*)"', shown)[1]
                self.assertEqual([link for link, text in re.findall('<a href="([^"]*)">([^<]*)</a>', head) if arrow in text], [foot], step)

    def test_decisions_are_listed_by_their_titles(self):
        for place in ("docs/from-here.html", "docs/decisions/002-exact-verification.html"):
            listed = [text_of(text).strip() for text in re.findall(r'(?s)class="md-nav__link">(.*?)</a>', read(place))]
            self.assertEqual([title for title in listed if re.fullmatch(r"\d{3}", title)], [], place)
        self.assertIn("007: A mutant is a patch to the current kernel", listed)


class Refusals(unittest.TestCase):
    """Bad input: one sentence, and nothing is built."""

    def refused(self, *arguments):
        done = tool(*arguments)
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (2, "", 1), done.stderr)
        return done.stderr

    def test_a_busy_port(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = str(other.getsockname()[1])
            self.assertIn(f"port {port} of 127.0.0.1 cannot be used (Address already in use)", self.refused("--serve", "--port", port))

    def test_what_is_no_port(self):
        self.assertIn("'80000' is not a port", self.refused("--serve", "--port", "80000"))
        self.assertIn("--port is for --serve", self.refused("--port", "8001"))
        self.assertIn("unrecognized arguments: build", self.refused("build"))


class Printed(SiteTest):
    """--pdf."""

    def test_without_chromium_one_sentence_says_so(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools/site", "--pdf"], capture_output=True, text=True, check=False, env={"PATH": "/nonexistent"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("--pdf needs Chromium", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_long_the_core_is_printed_with_its_chapters_as_an_outline(self):
        if not chromium.PROGRAM:
            self.skipTest("no Chromium here")
        done = tool("--pdf")
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = (SITE / "gemm-steps-core.pdf").read_bytes()
        self.assertTrue(printed.startswith(b"%PDF"))
        self.assertGreater(len(re.findall(rb"/Type /Page\b", printed)), 100)
        self.assertIn(b"/Outlines", printed)
        self.assertGreater(printed.count(b"/Dest"), 100)
        core = [step for step in repository.steps() if step[:2] <= "18"]
        self.assertEqual([step[:2] for step in core], [f"{number:02}" for number in range(1, 19)])
        self.assertFalse((SITE / "gemm-steps-core.html").exists())


class BrowserTest(SiteTest):
    """A browser, and the roots of the site over the net and as files."""

    ROOTS = "[...document.body.children].filter(one => one.shadowRoot).map(one => one.shadowRoot)"

    def setUp(self):
        super().setUp()
        if not chromium.PROGRAM:
            self.skipTest("no Chromium here")
        handler = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=SITE))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.roots = (f"http://127.0.0.1:{server.server_port}", pathlib.Path(SITE).as_uri())
        self.browser = chromium.Browser()
        self.addCleanup(self.browser.close)

    def type(self, words):
        """Opens the search and types."""
        for _ in range(10):  # the button does nothing until the index has come
            self.browser.value("document.querySelector('.md-search__button').click()")
            if self.browser.wait_for(f"{self.ROOTS}.some(one => one.querySelector('dialog[open] input'))", seconds=2):
                break
        self.browser.call("Input.insertText", text=words)

    def found(self, words):
        """Where the first results of the search lead."""
        self.type(words)
        return self.browser.wait_for(f"{self.ROOTS}.flatMap(one => [...one.querySelectorAll('a[href]')].map(link => link.href)).join(' ')")


class InChromium(BrowserTest):
    """Some pages of each kind, over the net and as files, on a telephone and on a desk."""

    PLACES = ("index.html", "docs/start.html", "steps/11_mbarrier_ring/index.html", "steps/11_mbarrier_ring/kernel.cuh.html", "docs/results.html",
              "steps/08_wgmma/sass.txt.html", "reports/hang.html", "reports/race.html")

    def shown(self):
        """What the first three results say, of whose excerpts three lines can be seen."""
        return self.browser.value(f"{self.ROOTS}.flatMap(one => [...one.querySelectorAll('a[href] .p')].slice(0, 3).map(one => one.textContent.slice(0, 280))).join(' | ')")

    def test_pages_load_in_silence_and_fit(self):
        for root in self.roots:
            for place in self.PLACES:
                for width in (360, 1440):
                    with self.subTest(place=place, width=width, root=root[:4]):
                        self.browser.open(f"{root}/{place}", width)
                        self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth - innerWidth"), 0)
                        self.assertEqual(self.browser.said, [])

    def test_a_page_that_is_not_there_leads_to_the_course(self):
        """At any depth, and where the site is not the root of its server."""

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def send_error(self, code, *_):
                self.send_response(code)
                self.end_headers()
                self.wfile.write((SITE / "404.html").read_bytes())

        for folder, root in ((SITE, ""), (SITE.parent, "/site")):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)
            for place in ("none.html", "steps/none/none.html"):
                with self.subTest(root=root, place=place):
                    self.browser.open(f"http://127.0.0.1:{server.server_port}{root}/{place}")
                    self.assertEqual(self.browser.wait_for("document.querySelector('#ways:not([hidden]) a')?.pathname"), f"{root}/index.html")

    def test_search_diagrams_and_machine_code(self):
        for root in self.roots:
            with self.subTest(root=root[:4]):
                self.browser.open(f"{root}/steps/11_mbarrier_ring/index.html")
                self.assertIsNone(self.browser.value("document.querySelector('div.mermaid')"))
                self.browser.value("document.querySelector('pre.mermaid').scrollIntoView()")
                self.assertTrue(self.browser.wait_for("document.querySelector('div.mermaid')?.offsetHeight > 100"))
                self.assertIn("mbarrier", self.found("expect-tx"))
                self.browser.open(f"{root}/index.html")
                self.assertIn("from-here", self.found("EVT"))
                self.browser.open(f"{root}/steps/11_mbarrier_ring/kernel.cuh.html#L40")
                self.browser.value("document.querySelector('.sass-switch').click()")
                self.assertGreater(self.browser.value("document.querySelectorAll('details.sass[open]').length"), 5)
                self.assertEqual(self.browser.said, [])

    def test_what_explains_comes_first(self):
        """Where one of the first three results must lead; sentences have words that no page has."""
        for words, place in (("setmaxnreg", "docs/roles-and-registers.html"), ("proxy fence", "docs/proxies.html"),
                             ("give registers away", "docs/roles-and-registers.html"), ("announce bytes", "docs/mbarriers.html"),
                             ("add C in the epilogue", "steps/30_source_tile/index.html"), ("how Stream-K adds partial sums", "steps/18_stream_k/index.html"),
                             ("how many registers does the producer give up", "docs/roles-and-registers.html"),
                             ("tensor memory", "docs/cheat-sheets/blackwell-beside-hopper.html#tensor-memory"),
                             ("consumer starts with wrong phase", "docs/mbarriers.html#what-a-wrong-first-phase-does"),
                             ("what does multicast save", "docs/clusters.html#what-multicast-saves"), ("cost of a cluster", "docs/clusters.html#what-multicast-saves"),
                             ("GELU fused", "steps/31_visitors/index.html#the-"), ("what is a wave", "docs/glossary.html#term-wave"),
                             ("nvfp4 scale layout", "steps/78_nvfp4/index.html#where-an-element-and-a-scale-lie"), ("hide launch latency", "steps/51_dependent_launch/"),
                             ("transpose operand B", "steps/40_layouts/index.html"), ("deadlok in stream-k", "steps/18_stream_k/index.html#why-there-is-no-deadlock"),
                             ("nvfp4 scale factors tensor memory", "docs/block-scales.html#in-tensor-memory"),
                             ("cluster multicast faster", "steps/16_cluster_multicast/index.html#where-it-pays-and-where-it-loses")):
            with self.subTest(words=words):
                self.browser.open(f"{self.roots[0]}/docs/start.html")
                links = self.found(words).split()
                self.assertIn(place, " ".join(links[:3]))
                self.assertNotIn("retired-words", " ".join(links))
                pages = [link.partition("#")[0].partition("?")[0] for link in links[:6]]
                self.assertLessEqual(max(map(pages.count, pages)), 2)

    def test_an_excerpt_begins_with_the_answer(self):
        for words, answer in (("expect tx too small", "too few bytes are expected"), ("why power of zeros", "Zeros flip no bits"), ("what is a wave", "The CTAs that the GPU runs at one time"),
                              ("results differ between runs", "two runs gave results with different bits"), ("transpose operand B", "tnspA and tnspB"), ("kernel registers spills", "registers, spills, shared memory"),
                              ("stream-K partial sums fixup", "last work tile does the fix-up"), ("cluster multicast faster", "clusters are faster than")):
            with self.subTest(words=words):
                self.browser.open(f"{self.roots[0]}/docs/start.html")
                self.found(words)
                self.assertIn(answer, self.shown())

    def test_there_are_no_results_only_when_the_search_has_answered(self):
        self.browser.call("Page.addScriptToEvaluateOnNewDocument", source="const set = Object.getOwnPropertyDescriptor(Worker.prototype, 'onmessage').set;"
                          "Object.defineProperty(Worker.prototype, 'onmessage', {set(read) {"
                          "set.call(this, read && (said => setTimeout(read, said.data.type === 3 ? 5000 : 0, said))); }});")
        said = f"{self.ROOTS}.map(one => one.querySelector('[role=status]')?.textContent || '').join('')"
        for words, answer in (("wave", "results"), ("qqqqq", "No results")):
            with self.subTest(words=words):
                self.browser.open(f"{self.roots[0]}/docs/start.html?{words}")
                self.type(words)
                self.assertTrue(self.browser.wait_for(f"{said} === 'Searching…'"))
                self.assertTrue(self.browser.wait_for(f"{said}.endsWith('{answer}')"))

    def test_the_index_is_fetched_when_the_search_is_opened(self):
        fetched = "performance.getEntriesByType('resource').filter(one => one.name.endsWith('search.json')).length"
        control_k = {"key": "k", "windowsVirtualKeyCode": 75, "modifiers": 2}
        for act in (lambda: self.browser.click("document.querySelector('.md-search__button')"),
                    lambda: self.browser.call("Input.dispatchKeyEvent", type="keyDown", **control_k)):
            self.browser.open(f"{self.roots[0]}/docs/start.html")
            self.assertEqual(self.browser.value(fetched), 0)
            act()
            self.assertTrue(self.browser.wait_for("[...document.body.children].some(one => one.shadowRoot?.querySelector('dialog[open] input'))"))
            self.assertEqual(self.browser.value(fetched), 1)
            self.assertEqual(self.browser.said, [])

    def test_a_table_of_eight_columns_fits(self):
        self.browser.open(f"{self.roots[0]}/docs/clusters.html#what-multicast-saves-and-what-a-cluster-costs")
        self.assertLessEqual(self.browser.value("(table => table.scrollWidth - table.parentElement.parentElement.clientWidth)"
                                                "([...document.querySelectorAll('table')].find(one => one.textContent.includes('with 31')))"), 0)

    def test_a_table_with_long_names_of_files_fits(self):
        self.browser.open(f"{self.roots[0]}/docs/from-here.html#tile-schedulers")
        widths = self.browser.value("(table => [table.scrollWidth - table.parentElement.clientWidth, ...[...table.rows[1].cells].map(cell => cell.offsetWidth)])"
                                    "([...document.querySelectorAll('table')].find(one => one.textContent.includes('StreamKScheduler')))")
        self.assertLessEqual(widths[0], 0)
        self.assertGreater(widths[3], widths[4])  # what is different, and the names of files

    def test_pages_have_their_text_without_javascript(self):
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        for place, words in (("steps/11_mbarrier_ring/index.html", "participant S as stage s"), ("steps/11_mbarrier_ring/kernel.cuh.html", "mbarrier_ring_kernel")):
            for width in (360, 1440):
                self.browser.open(f"{self.roots[1]}/{place}", width)
                node = self.browser.call("DOM.getDocument")["root"]["nodeId"]
                article = self.browser.call("DOM.querySelector", nodeId=node, selector="article")["nodeId"]
                self.assertIn(words, text_of(self.browser.call("DOM.getOuterHTML", nodeId=article)["outerHTML"]))
                size = self.browser.call("Page.getLayoutMetrics")["cssContentSize"]["width"]
                self.assertLessEqual(size, width)


class Accessible(BrowserTest):
    """What axe-core finds serious or critical, on a page of each kind; where the Python package axe-playwright-python brings it."""

    KINDS = ("index.html", "docs/results.html", "docs/mbarriers.html", "docs/descriptors.html", "steps/11_mbarrier_ring/index.html",
             "steps/11_mbarrier_ring/kernel.cuh.html", "404.html")
    VIEWS = ((360, "dark"), (1440, "light"), (1440, "dark"))

    def setUp(self):
        super().setUp()
        self.axe = accessibility.script()
        if not self.axe:
            self.skipTest("axe-core is not here; the Python package axe-playwright-python brings it")

    def look(self, place, width, colours):
        self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
        self.browser.open(f"{self.roots[0]}/{place}", width)
        self.browser.value("document.querySelectorAll('figure[data-figure]').forEach(one => one.scrollIntoView())")
        self.browser.wait_for("[...document.querySelectorAll('figure[data-figure]')].every(one => one.dataset.ready !== undefined)")

    def test_pages(self):
        for width, colours in self.VIEWS:
            for place in self.KINDS:
                with self.subTest(place=place, width=width, colours=colours):
                    self.look(place, width, colours)
                    self.assertEqual(accessibility.findings(self.browser, self.axe), [])

    def test_the_search_while_it_is_open(self):
        for width, colours in self.VIEWS:
            with self.subTest(width=width, colours=colours):
                self.look("docs/start.html", width, colours)
                self.assertIn("mbarrier", self.found("expect-tx"))
                # The theme's arrow keys scroll its results.
                self.assertEqual([one for one in accessibility.findings(self.browser, self.axe) if not one.startswith("scrollable-region")], [])

    def test_the_emulator_in_a_page(self):
        found = [f"{step.relative_to(SITE)}" for step in sorted(SITE.glob("steps/*/index.html")) if 'class="emulator"' in step.read_text(encoding="utf-8")]
        place = next((one for one in found if one.startswith("steps/11_")), found[0] if found else None)
        if not place:
            self.skipTest("the site was built without the emulator; tools/site --emulator builds it")
        for width, colours in self.VIEWS:
            with self.subTest(width=width, colours=colours):
                self.look(place, width, colours)
                self.browser.value("document.querySelector('.emulator button').click()")
                self.assertTrue(self.browser.wait_for("document.querySelector('.emulator form')", seconds=180))
                # The last kernel is a broken one, whose report and source are shown.
                self.browser.value("(one => { one.value = [...one.options].pop().value; one.dispatchEvent(new Event('change')); })(document.querySelector('.emulator select'))")
                self.browser.value("document.querySelector('.emulator form').requestSubmit()")
                self.assertTrue(self.browser.wait_for("!document.querySelector('.emulator [type=submit]').disabled", seconds=180))
                self.assertEqual(accessibility.findings(self.browser, self.axe), [])
                self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth - innerWidth"), 0)


if __name__ == "__main__":
    unittest.main()
