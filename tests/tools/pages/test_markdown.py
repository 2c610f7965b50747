"""The pages as a reader meets them: every command is typed, every link followed, every name looked up."""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

from commands import FILES, PAGES, PLACEHOLDER, REFUSED, distinct_commands, instead
from markdown import Page
from sandbox import ROOT, SandboxTest

sys.path.insert(0, str(ROOT / "tools/lib"))
import kinds_of_numbers  # noqa: E402
import regions  # noqa: E402
from steps import sources as sources_line_of  # noqa: E402

BUILD = pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator"))


@functools.cache
def sources():
    """Everything that is no page (nor a test of the pages), as one text."""
    return "\n".join((ROOT / name).read_text(encoding="utf-8", errors="replace") for name in FILES
                     if name == "CMakePresets.json" or
                     not name.endswith((".md", ".json", ".svg")) and not name.startswith("tests/tools/"))


@functools.cache
def words_of_sources():
    return set(re.findall(r"\w+", sources()))


@functools.cache
def unindented_sources():
    return unindented("\n".join(regions.without_marks(sources().split("\n"))))


def unindented(text):
    return "\n".join(line.lstrip() for line in text.split("\n"))


@functools.cache
def basenames():
    return {pathlib.PurePath(name).name for name in FILES}


@functools.cache
def stems():
    return {name.split(".")[0] for name in basenames()}


# ---- Links and names -------------------------------------------------------------------------------------------------


def link_problems(name, page):
    for number, target in page.links():
        if re.match(r"https?://|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        if path and not file.exists():
            yield f"{name}:{number}: the link {target} leads nowhere"
        elif anchor:
            linked = page if not path else Page(file.read_text(encoding="utf-8"))
            if anchor not in linked.anchors():
                yield f"{name}:{number}: the link {target} names a heading that is not there"


GENERATED = {"sweep.json", "compile_commands.json"}
FOLDERS = "common|steps|docs|tools|tests|cmake"


def name_problems(name, page):
    """Paths, files, functions and the emulator's rules in backticks must exist."""
    for number, text in page.quoted():
        if PLACEHOLDER.search(text) or " " in text and not text.startswith(("common/", "steps/", "docs/", "tests/")):
            continue
        word = re.sub(r":\d+$", "", text.split(" ")[0])
        if re.fullmatch(rf"({FOLDERS})/[\w./*-]+", word):
            if not any(ROOT.glob(word.rstrip("/"))) and not any(((ROOT / name).parent).glob(word.rstrip("/"))):
                yield f"{name}:{number}: there is no {word}"
        elif re.fullmatch(r"[\w.-]+\.(cuh|cu|h|cpp|py|json|md|txt|mutant|svg|cmake)", word):
            if word not in basenames() | GENERATED:
                yield f"{name}:{number}: no file is named {word}"
        elif re.fullmatch(r"s\d\d_\w+", word):
            if not any(ROOT.glob(f"tests/mutants/{word[:3]}/**/{word[4:]}.mutant")):
                yield f"{name}:{number}: there is no mutant {word}"
        elif re.fullmatch(r"[a-z]+(-[a-z]+)+", text):
            if text not in sources():
                yield f"{name}:{number}: no rule or preset is called {text}"
        elif re.fullmatch(r"[a-z_][\w:]*_\w+(<[\w, ]*>)?(\(.*\))?", text):
            function = re.sub(r"[<(].*", "", text).split("::")[-1]
            if function not in stems() and function not in words_of_sources():
                yield f"{name}:{number}: nothing is called {function}"


# ---- Messages --------------------------------------------------------------------------------------------------------


@functools.cache
def message_pieces():
    """The strings of the C++ sources, neighbouring literals joined, taken apart at {}."""
    literal = r'"(?:[^"\\\n]|\\.)*"'
    pieces = set()
    for name in FILES:
        if name.endswith((".cpp", ".cu", ".h", ".cuh")) and not name.startswith("tests/"):
            text = (ROOT / name).read_text(encoding="utf-8")
            for literals in re.finditer(rf"{literal}(?:\s*{literal})*", text):
                joined = "".join(part[1:-1] for part in re.findall(literal, literals[0]))
                pieces.update(piece for piece in re.split(r"\{[^{}]*\}", joined) if len(piece) >= 6)
    return pieces


def is_said(text):
    """True if most of it is made of the programs' strings; numbers and names come from elsewhere."""
    covered = set()
    for piece in message_pieces():
        at = text.find(piece)
        if at >= 0:
            covered.update(range(at, at + len(piece)))
    return len(covered) > 0.5 * len(text)


def message_problems(name, page):
    """An error or a note that a block quotes is one that a program can print."""
    for number, line in page.lines():
        said = re.match(r"(?:error|note): (.*)", line)
        if said and not is_said(said[1]):
            yield f"{name}:{number}: no program says: {said[1]}"


def diagram_problems(name, page):
    """In a sequence diagram a semicolon ends the statement: the rest of the message would be taken for another."""
    for language, block in page.blocks:
        if language == "mermaid":
            for number, line in block:
                if ";" in line:
                    yield f"{name}:{number}: a semicolon in a diagram ends the statement: {line.strip()}"


def excerpt_problems(name, page):
    """C++ in a chapter is quoted from the sources, line for line; the indentation of all lines may be less."""
    if re.fullmatch(r"steps/\w+/README\.md", name):
        for language, block in page.blocks:
            text = "\n".join(line for _, line in block)
            if language == "cpp" and unindented(text) not in unindented_sources():
                yield f"{name}:{block[0][0]}: no source has these lines: {block[0][1].strip()} ..."


# ---- Chapters --------------------------------------------------------------------------------------------------------

CHAPTER = re.compile(r"steps/\w+/README\.md")


@functools.cache
def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def beginning_problems(name, page):
    """Below the title a chapter leads to its neighbours and to its whole kernel, and says what it is about before it begins."""
    if CHAPTER.fullmatch(name):
        beginning = text_of(name).split("\n## ")[0]
        folder = (ROOT / name).parent
        sources_line = sources_line_of((folder / "kernel.cuh").read_text(encoding="utf-8"), (folder / "sass.txt").exists())
        if sources_line not in beginning.split("\n"):
            yield f"{name} does not lead to its code above its first section: {sources_line}"
        paragraphs = [text for text in beginning.split("\n\n")[1:] if not text.startswith("[")]
        if len(" ".join(paragraphs).split()) < 8:
            yield f"{name} does not say what it is about above its first section"


def code_problems(name, page):
    """The lines of the kernel that are the idea are pulled from the sources; from step 02 on, beside those that they replace."""
    if CHAPTER.fullmatch(name):
        text = text_of(name)
        shown = [line for language, block in page.blocks if language in ("cpp", "diff") for _, line in block
                 if not line.startswith("-")]
        if len(shown) < 10:
            yield f"{name} shows {len(shown)} lines of code, fewer than 10"
        if not name.startswith("steps/01") and "```diff" not in text:
            yield f"{name} does not show what its code replaces"
        if text.count("```cpp") != len(re.findall(r"<!-- code: .*-->\n\n```cpp", text)):
            yield f"{name} has C++ that no generator pulled from the sources"


PAGE_WITH_NUMBERS = re.compile(r"docs/([\w-]+/)*[\w-]+\.md|README\.md|steps/\w+/README\.md")


def number_problems(name, page):
    """A measured quantity has an origin: a record, arithmetic, a source beside it, or on pages of the lab a note."""
    if PAGE_WITH_NUMBERS.fullmatch(name) and name != "docs/style.md":  # which quotes sentences that are wrong
        text = text_of(name)
        for line, found in kinds_of_numbers.unmarked(name, text):
            yield f"{name}:{line}: '{found}' has no origin: no record, no arithmetic, no source"
        for line, problem in kinds_of_numbers.source_problems(name, text):
            yield f"{name}:{line}: {problem}"


LAB_SECTIONS = ["Predicted", "Measured", "Answer", "Left open"]


def lab_problems(name, page):
    """A page of the lab is a question, a prediction, a measurement, an answer, and what was left open."""
    if kinds_of_numbers.LAB.fullmatch(name) and not name.endswith("/README.md"):
        text = text_of(name)
        if not text.split("\n")[0].endswith("?"):
            yield f"{name}: its title is no question"
        headings = re.findall(r"(?m)^## (.*)$", text.replace("## Predicted and measured\n", "## Predicted\n## Measured\n"))
        found = [heading for heading in headings if heading in LAB_SECTIONS]
        if found != LAB_SECTIONS:
            yield f"{name}: its sections are {', '.join(found)}, not {', '.join(LAB_SECTIONS)}"


# ---- Commands --------------------------------------------------------------------------------------------------------


class Reader:
    """Types commands in a copy of the repository, on the emulator, with the programs of an existing build."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.bin = BUILD / "bin"
        repository = sandbox.repository
        shutil.rmtree(repository / "steps")
        (repository / "steps").symlink_to(ROOT / "steps")
        shutil.copytree(ROOT / "docs", repository / "docs")  # commands write there
        build = repository / "build/emulator"
        build.mkdir(parents=True)
        (build / "build.ninja").touch()
        (build / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={repository}\n")
        (build / "bin").symlink_to(self.bin)
        # What would be built is there; a target that does not exist is an error as it would be.
        sandbox.fake("cmake", f"""[ "$1" = --version ] && {{ echo cmake version 3.25.1; exit; }}
            shift 3
            for target in "$@"; do [ -x "{self.bin}/$target" ] || {{ echo "unknown target $target"; exit 1; }}; done""")
        sandbox.fake("ninja", "")
        sandbox.fake("c++", "")

    @functools.cache
    def ask(self, command):
        """The same, of a command that answers the same every time and changes nothing."""
        return self.type(command)

    def type(self, command):
        """The completed process."""
        words = shlex.split(command)
        program = self.sandbox.repository / words[0]
        return subprocess.run([str(program), *words[1:]], cwd=self.sandbox.repository, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=280,
                              env={"PATH": str(self.sandbox.bin), "HOME": str(self.sandbox.folder),
                                   "TMPDIR": str(self.sandbox.folder), "GEMM_STEPS_SYSTEM_CUDA": "/nowhere"})


def build_problem(command):
    """"" or what is wrong with a call of cmake: its preset, its folder or its target."""
    presets = {preset["name"] for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
    words = shlex.split(command)
    if "--preset" in words and words[words.index("--preset") + 1] not in presets:
        return "there is no such preset"
    if "--build" in words and words[words.index("--build") + 1].removeprefix("build/") not in presets:
        return "no preset builds there"
    if "--target" in words:
        target = words[words.index("--target") + 1]
        folders = [ROOT / "tools" / target, ROOT / "tools" / f"{target}_program"]
        is_custom = any(re.search(rf"add_custom_target\(\s*{target}\s", (ROOT / name).read_text(encoding="utf-8"))
                        for name in ("cmake/GemmSteps.cmake", "tools/own_kernel/CMakeLists.txt"))
        if not (ROOT / "steps" / target / "kernel.cuh").exists() and not any(folder.is_dir() for folder in folders) and not is_custom:
            return f"there is no target {target}"
    return ""


class CommandTest(SandboxTest):
    def setUp(self):
        super().setUp()
        if not (BUILD / "bin/compare").exists():
            self.skipTest(f"{BUILD} holds no programs")
        self.reader = Reader(self)

    def help_problem(self, command):
        """"" or which of the command's flags neither its own --help nor a step's knows."""
        words = shlex.split(command)
        flags = [word.split("=")[0] for word in words[1:] if word.startswith("--")]
        done = self.reader.ask(f"{words[0]} --help")
        if done.returncode != 0:
            return f"--help fails: {done.stderr}"
        known = done.stdout + (self.reader.ask("tools/run 01 --help").stdout if flags else "")
        unknown = [flag for flag in flags if flag not in ("--", "--help") and not re.search(rf"{flag}\b", known)]
        return f"--help does not know {unknown}" if unknown else self.sass_problem(words)

    def sass_problem(self, words):
        """"" or why tools/sass would not find the step or its variant."""
        if words[0] != "tools/sass":
            return ""
        steps = [word for word in words[1:] if re.match(r"\d\d", word) and words[words.index(word) - 1] != "--variant"]
        for step in steps:
            number, _, variant = step.partition(":")
            if "--variant" in words:
                variant = words[words.index("--variant") + 1]
            done = self.reader.ask(f"tools/run {number} --budget" + (f" --variant {variant}" if variant else ""))
            if done.returncode != 0:
                return done.stderr
        return ""

    def problem(self, command):
        """"" or what a reader who types this command meets instead of what the page promises."""
        return "; ".join(filter(None, map(self.problem_of_part, command.split(" && "))))

    def problem_of_part(self, command):
        try:
            how, what = instead(command)
        except ValueError as error:
            return f"no shell understands it: {error}"
        if how == "elsewhere":
            return ""
        if how == "exists":
            return "" if (ROOT / what).exists() else f"there is no {what}"
        if how == "build":
            return build_problem(command)
        if how == "predict":
            what, rest = what
            timed = self.reader.ask(f"tools/run 01 --time {rest.replace('--time', '').replace('--check', '')}")
            if "--time needs a GPU" not in timed.stderr:
                return timed.stderr.strip()
        tool = shlex.split(what)[0]
        if (ROOT / tool).is_dir() and tool == what:
            return ""  # a folder, named in the text
        if not (ROOT / tool).is_file() or not os.access(ROOT / tool, os.X_OK):
            return f"there is no {tool}"
        if how == "help":
            return self.help_problem(what)
        done = (self.reader.ask if "--help" in what or "--budget" in what else self.reader.type)(what)
        if command in REFUSED:
            refused = done.returncode != 0 and REFUSED[command] in done.stdout + done.stderr
            return "" if refused else "it is not refused, or with other words"
        said = (done.stderr or done.stdout).strip()[-1200:]
        return "" if done.returncode == 0 else f"status {done.returncode}: {said}"


class Commands(CommandTest):
    """Every command of the pages, typed on a machine without a GPU."""

    def check(self, wanted):
        commands = [(command, place) for command, place in distinct_commands().items() if wanted(place)]
        self.assertGreater(len(commands), 10)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            problems = list(pool.map(lambda item: self.problem(item[0]), commands))
        self.assertEqual([], [f"{place}: {command}: {problem}" for (command, place), problem in zip(commands, problems)
                              if problem])

    def test_commands_of_the_first_pages_and_parts_one_and_two(self):
        self.check(lambda place: re.match(r"[A-Z]|steps/0[1-7]", place))

    def test_commands_of_help_texts(self):
        self.check(lambda place: re.match(r"tools/|common/harness", place))

    def test_commands_of_part_three(self):
        self.check(lambda place: re.match(r"steps/(08|09|1)", place))

    def test_commands_of_the_docs(self):
        self.check(lambda place: place.startswith("docs/"))

    def test_flags_alone_in_backticks_are_known(self):
        helps = "".join(self.reader.type(command).stdout for command in [
            "tools/run 01 --help", "tools/run 60 --help", "tools/compare 01 --help", "tools/sass --help", "tools/sweep 8192 --help",
            "tools/test --help", "tools/run --help", "tools/emulate --help"] + [
                f"tools/play {path.stem.removeprefix('play_')} --help"
                for path in (ROOT / "tools/playground").glob("play_*.cpp")])
        scripts = [*(ROOT / "tools").glob("**/*.py"), ROOT / "tests/tools/pages/walk_gpu.py"]
        helps += "".join(path.read_text(encoding="utf-8") for path in scripts)
        problems = [f"{name}:{number}: {text}" for name, page in PAGES.items() for number, text in page.quoted()
                    if text.startswith("--") for flag in re.findall(r"--[\w-]+", text)
                    if flag != "--help" and not re.search(rf"{flag}\b", helps)]
        self.assertEqual([], problems)

    def test_what_tools_run_says_of_the_machine_is_quoted_right(self):
        quoted = {line for _, line in PAGES["docs/surprises.md"].lines() if " on the emulator: " in line}
        said = set()
        for answer, step in ((None, "01_naive"), ("exit 9", "01_naive"), ("echo Tesla T4, 7.5", "01_naive"),
                             ("echo NVIDIA H200, 9.0", "01_naive"), ("echo NVIDIA B200, 10.0", "08_wgmma")):
            if answer:
                self.fake("nvidia-smi", answer)
            if step == "08_wgmma":
                self.fake("nvcc", "echo '#$ TOP=.'")
            done = self.shell(f"find_cuda; choose_backend auto {step}; echo {step} on the $backend: $reason")
            said.add(done.stdout.strip())
        self.assertEqual(quoted, said)


class Pages(unittest.TestCase):
    """Links, names and quoted messages of all pages."""

    def check(self, problems):
        self.assertEqual([], [problem for name, page in PAGES.items() for problem in problems(name, page)])

    def test_all_links_lead_somewhere(self):
        self.check(link_problems)

    def test_all_names_exist(self):
        self.check(name_problems)

    def test_quoted_messages_are_said_by_some_program(self):
        self.check(message_problems)

    def test_places_in_quoted_sanitizer_reports_are_where_the_function_is(self):
        quoted = [match.groups() for name in PAGES
                  for match in re.finditer(r" at gemm::ptx::(\w+)\(.* in (\S+):(\d+)$", (ROOT / name).read_text(encoding="utf-8"), re.M)]
        self.assertTrue(quoted)
        for function, file, number in quoted:
            lines = (ROOT / "common/ptx" / file).read_text(encoding="utf-8").split("\n")[:int(number)]
            defined = [match[1] for line in lines if (match := re.match(r"__device__ .* (\w+)\(", line))]
            self.assertEqual(defined[-1], function)
            self.assertIn("asm", lines[-1])

    def test_diagrams_have_no_semicolons(self):
        self.check(diagram_problems)

    def test_excerpts_stand_in_the_sources(self):
        self.check(excerpt_problems)

    def test_chapters_begin_with_what_they_are_about(self):
        self.check(beginning_problems)

    def test_chapters_show_the_code_that_is_the_idea(self):
        self.check(code_problems)

    def test_every_measured_number_has_an_origin(self):
        self.check(number_problems)

    def test_pages_of_the_lab_are_experiments(self):
        self.check(lab_problems)

    def test_chapters_lead_to_their_neighbours(self):
        chapters = sorted(name for name in PAGES if re.fullmatch(r"steps/\w+/README\.md", name))
        missing = [f"{chapter} has no link to {other}" for one, two in zip(chapters, chapters[1:])
                   for chapter, other in ((one, two), (two, one))
                   if f"../{other.removeprefix('steps/')}" not in {target for _, target in PAGES[chapter].links()}]
        self.assertEqual([], missing)

    def test_every_chapter_is_on_the_map_of_the_first_page(self):
        linked = {target for _, target in PAGES["README.md"].links()}
        self.assertEqual(set(), {name for name in PAGES if CHAPTER.fullmatch(name)} - linked)

    def test_every_page_of_the_docs_is_in_their_index(self):
        linked = {target for _, target in PAGES["docs/README.md"].links()}
        pages = {name.removeprefix("docs/") for name in PAGES if re.fullmatch(r"docs/(decisions/|emulator/)?[\w-]+\.md", name)} - {"README.md"}
        self.assertEqual(set(), pages - linked)

    def test_every_page_of_the_lab_is_in_its_index(self):
        linked = {target for _, target in PAGES["docs/lab/README.md"].links()}
        pages = {name.removeprefix("docs/lab/") for name in PAGES if name.startswith("docs/lab/")} - {"README.md"}
        self.assertEqual(set(), pages - linked)
        self.assertIn("lab/README.md", {target for _, target in PAGES["docs/README.md"].links()})


class Extraction(CommandTest):
    """The checks themselves find what is wrong."""

    PAGE = Page("# A page: `x`, y!\n\nType `tools/run\n01 --check` or `tools/run NN`.\n\n```\n$ tools/run 02 --list\n"
                "tools/run prints this\n```\n\n```\ntools/run 03   # a comment\nnothing\n```\n\n"
                "```mermaid\ntools/run\n```\n"
                "[a](#a-page-x-y) [b](#b) [c](nowhere.md) `[d](d)` ![e](figures/none.svg)\n")

    def test_commands_are_taken_from_blocks_and_backticks(self):
        self.assertEqual([command for _, command in self.PAGE.commands()],
                         ["tools/run 02 --list", "tools/run 03", "tools/run 01 --check", "tools/run NN"])

    def test_broken_links_are_found(self):
        problems = list(link_problems("docs/made-up.md", self.PAGE))
        self.assertEqual(len(problems), 3, problems)
        for part, problem in zip(("#b names a heading", "nowhere.md leads", "none.svg leads"), problems):
            self.assertIn(part, problem)

    def test_wrong_names_are_found(self):
        page = Page("`common/gemm/pipeline/ring.cuh` `common/gemm/rings.cuh` `ring.cuh` `rings.cuh` `s14_ring_restarts` "
                    "`s14_ring_rests` `wgmma_fence` `wgmma_fences` `ptx::mbarrier_init(a, b)` `steps/*/sass.txt` "
                    "`steps/*/sasses.txt` "
                    "`docs/results/NAME.json` `load-overwrites` `load-overrides`")
        self.assertEqual([problem.split(" ")[-1] for problem in name_problems("docs/x.md", page)],
                         ["common/gemm/rings.cuh", "rings.cuh", "s14_ring_rests", "wgmma_fences", "steps/*/sasses.txt",
                          "load-overrides"])

    def test_messages_that_nobody_says_are_found(self):
        page = Page("```\nerror: no NVIDIA GPU was found (CUDA_VISIBLE_DEVICES is '')\n"
                    "error: no such thing was found\n```")
        self.assertEqual(list(message_problems("x.md", page)), ["x.md:3: no program says: no such thing was found"])

    def test_semicolons_in_diagrams_are_found(self):
        page = Page("```mermaid\nA->>B: wait; go\nB->>A: done\n```\n`a; b`\n")
        self.assertEqual(list(diagram_problems("x.md", page)),
                         ["x.md:2: a semicolon in a diagram ends the statement: A->>B: wait; go"])

    def test_excerpts_that_differ_are_found(self):
        page = Page("```cpp\nstruct WorkQueue {\n```\n```cpp\nstruct WorkQueue {  // as it was\n```\n")
        self.assertEqual(["steps/01_naive/README.md:5: no source has these lines: struct WorkQueue {  // as it was ..."],
                         list(excerpt_problems("steps/01_naive/README.md", page)))
        self.assertEqual([], list(excerpt_problems("docs/proxies.md", page)))

    # Text as pages had it: measured, and typed.
    TYPED = ("# A page\n\nA launch took 27.1 instead of 28.5 µs at 2048³ (no record). B arrives at 4.3 TB/s, and the clock was 1980 MHz.\n"
             "It is at 0.73 of cuBLASLt, 13 % faster, and draws 690 W.\n\n| tried | gained |\n|---|---|\n| this | 3 µs |\n\n"
             "```\n5 ms in a block\n```\n`6 ms in quotes` [a](7ms.md) a 128x256 tile, 50 MB, 12 clocks, 5 Warps, 2 msgs\n"
             "<!-- table: contestants record=x.json -->\n\n| 8 µs |\n\n<!-- /table -->\n"
             "It has <!-- number: part3_h200 11 tflops -->700<!-- /number --> TFLOP/s in "
             "<!-- number: derived 2*3 µs -->6 µs<!-- /number -->.\n")

    def test_numbers_without_an_origin_are_found(self):
        found = ["28.5 µs", "4.3 TB/s", "1980 MHz", "0.73 of cuBLASLt", "13 % faster", "690 W", "3 µs"]
        for name in ("steps/21_fitted_tiles/README.md", "docs/proxies.md", "docs/lab/x.md", "docs/decisions/x.md"):
            self.assertEqual([text for _, text in kinds_of_numbers.unmarked(name, self.TYPED)], found, name)
        self.assertEqual([line for line, _ in kinds_of_numbers.unmarked("docs/proxies.md", self.TYPED)], [3, 3, 3, 4, 4, 4, 8])

    # A table as a page had it: typed, with the units in its headings.
    COLUMNS = ("| kernel | to the SMs (TB/s) | share of the plateau (9.2) | tile | predicted (µs) | median (µs) |\n| --- | ---: | ---: | --- | ---: | --- |\n"
               "| 12, 128x192_stages3 | 8.96 | 104 % | 128 × 192 | 3.5 | <!-- number: part3_h200 12 median -->240<!-- /number --> |\n"
               "| 22_peak | **8.68** | 109 % | 128 × 256 | 3.5 | ~1598 |\n\n"
               "| kernel | energy per tile, mJ | 16 ms |\n| --- | ---: | --- |\n| predicted | 5 | 6 |\n| measured | 5 | 128x256 |\n")

    def test_numbers_below_a_unit_are_found(self):
        self.assertEqual([(3, "8.96 (to the SMs (TB/s))"), (4, "**8.68 (to the SMs (TB/s))"), (4, "~1598 (median (µs))"), (6, "16 ms"),
                          (9, "5 (energy per tile, mJ)")], list(kinds_of_numbers.unmarked("docs/x.md", self.COLUMNS)))
        note = '<!-- noted: date=2026-11-25 card="NVIDIA H200" commit=1c4bcfbd command="tools/run 22" -->\n<!-- /noted -->\n'
        self.assertEqual([], list(kinds_of_numbers.unmarked("docs/lab/x.md", f"# A\n\n{note}\n{self.COLUMNS}")))
        generated = f"<!-- table: rates record=x.json -->\n\n{self.COLUMNS}\n<!-- /table -->\n"
        self.assertEqual([], list(kinds_of_numbers.unmarked("docs/x.md", generated)))

    def test_shares_and_factors_are_left_to_a_person(self):
        self.assertEqual([], list(kinds_of_numbers.undecided("docs/x.md", "e4m3 × e4m3, e5m2 × e4m3, a 4 × 4 grid")))
        text = "It is 12 % longer, 1.3 times as fast, 3× as long, a 4 × 4 grid; <!-- number: derived 1*2 % -->2 %<!-- /number -->."
        self.assertEqual([], list(kinds_of_numbers.unmarked("docs/x.md", text)))
        self.assertEqual([found for _, found in kinds_of_numbers.undecided("docs/x.md", text)], ["12 %", "1.3 times", "3×"])

    def test_a_note_covers_its_section_and_only_in_the_lab(self):
        note = '<!-- noted: date=2026-11-25 card="NVIDIA H200" commit=1c4bcfbd command="tools/run 22" -->\n<!-- /noted -->\n'
        text = f"# A\n\n1 µs\n\n## B\n\n2 µs\n\n{note}\n3 µs\n\n### C\n\n4 µs\n\n## D\n\n5 µs\n"
        self.assertEqual([found for _, found in kinds_of_numbers.unmarked("docs/lab/x.md", text)], ["1 µs", "2 µs", "5 µs"])
        self.assertEqual(len(list(kinds_of_numbers.unmarked("docs/x.md", text))), 5)
        self.assertEqual([], list(kinds_of_numbers.unmarked("docs/lab/x.md", f"# A\n\n1 µs\n\n{note}\n## B\n\n2 µs\n")))

    def test_sources_that_are_not_beside_a_number_are_found(self):
        mark = "<!-- number: source -->{}<!-- /number -->"
        for text, problem in {
                mark.format("4.48 TB/s") + " is much.\n\n[too late](memory-hierarchy.md)": "has no link to its source after it",
                "[before](memory-hierarchy.md) " + mark.format("4.48 TB/s"): "has no link to its source after it",
                mark.format("4.49 TB/s") + " ([not there](memory-hierarchy.md))": "is not on a page that the sentence links",
                "* " + mark.format("4.48 TB/s") + "\n* [the next item](memory-hierarchy.md)": "has no link to its source after it",
                mark.format("3.35 µs") + " ([no such file](no_choice.h))": "is not on a page that the sentence links"}.items():
            self.assertEqual([problem in found for _, found in kinds_of_numbers.source_problems("docs/x.md", text)], [True], text)
        for text in (mark.format("4.48 TB/s") + " ([there](memory-hierarchy.md))", mark.format("[4.48 TB/s](memory-hierarchy.md#a)"),
                     mark.format("4.9 TB/s") + " ([elsewhere](https://example.com))", mark.format("3.35 µs") + " ([code](../steps/22_peak/choice.h))"):
            self.assertEqual([], list(kinds_of_numbers.source_problems("docs/x.md", text)), text)

    def test_wrong_commands_are_found(self):
        for command, part in {
                "tools/run 99": "there is no step '99'",
                "tools/runs 01": "there is no tools/runs",
                "tools/lint --txt": "--txt",
                "tools/run 01 --chekc": "--chekc",
                "tools/run 04 --variant swizled --budget": "swizled",
                "tools/run 04 4096x4096x4095 --time": "4095",
                "tools/run 01 '": "no shell understands it",
                "tools/compare 01 02:33 4096": "33",
                "tools/play mbarier": "did you mean mbarrier",
                "tools/play mbarrier init": "init",
                "tools/sass 03 --unfolded": "--unfolded",
                "tools/sass 03:65": "65",
                "tools/sweep 8192 --tiel 256x128x64": "--tiel",
                "tools/tables.py --chek": "--chek",
                "tools/test --built-all": "--built-all",
                "build/gpu/bin/11_mbarrier_rings": "there is no step",
                "cmake --preset gpus": "preset",
                "cmake --build build/gpu --target rooflines": "rooflines",
        }.items():
            self.assertIn(part, self.problem(command), command)
        for command in ("tools/run 1 --list", "tools/run 03 4096 --time --variant all", "compute-sanitizer x",
                        "tools/run NN", "cmake --preset gpu && cmake --build build/gpu --target roofline", *REFUSED):
            self.assertEqual("", self.problem(command), command)
