"""Presets, containers, hooks, the hosted workflows, templates, the editor's settings, decisions, the changelog and releases.

What can be checked without their programs is checked always; linters are asked where they are installed. Nobody has run the
workflow and the containers on a hosted service yet.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from commands import FILES
from markdown import Page
from sandbox import ROOT
from test_markdown import link_problems, name_problems

WORKFLOW = ".github/workflows/ci.yml"
RELEASE = ".github/workflows/release.yml"
SITE = ".github/workflows/site.yml"


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


class Presets(unittest.TestCase):
    """CMakePresets.json."""

    def setUp(self):
        self.presets = json.loads(read("CMakePresets.json"))

    def names(self, kind):
        return {preset["name"] for preset in self.presets[f"{kind}Presets"]}

    def test_workflows_are_made_of_presets_that_exist(self):
        self.assertGreaterEqual(self.presets["version"], 6)  # the first with workflows
        self.assertLessEqual({"gpu", "emulator"}, self.names("workflow"))
        for workflow in self.presets["workflowPresets"]:
            self.assertEqual([step["type"] for step in workflow["steps"]], ["configure", "build", "test"])
            for step in workflow["steps"]:
                self.assertIn(step["name"], self.names(step["type"]), workflow["name"])

    def test_cmake_knows_the_workflows(self):
        cmake = shutil.which("cmake")
        if not cmake:
            self.skipTest("no cmake here")
        done = subprocess.run([cmake, "--workflow", "--list-presets"], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in self.names("workflow"):
            self.assertIn(f'"{name}"', done.stdout)


class Containers(unittest.TestCase):
    """Dockerfile, .dockerignore, .devcontainer."""

    def test_the_build_is_the_first_command_of_the_readme(self):
        first = next(line for _, line in Page(read("README.md")).lines() if line.startswith("tools/")).split("#")[0].strip()
        runs = re.findall(r"(?m)^RUN (.*)$", read("Dockerfile"))
        self.assertEqual(runs[-1], first)
        self.assertIn("git", runs[0] + read("Dockerfile"))

    def test_it_is_one_of_the_distributions_of_the_readme(self):
        base = re.search(r"(?m)^ARG BASE=(.*)$", read("Dockerfile"))[1]
        self.assertEqual(base, "debian:12")
        self.assertIn("On Debian 12 or Ubuntu 24.04", read("README.md"))

    def test_nothing_that_was_built_goes_into_the_image(self):
        ignored = set(re.findall(r"(?m)^[^#\n].*$", read(".dockerignore")))
        for line in read(".gitignore").splitlines():
            if re.fullmatch(r"/[\w.]+/", line):
                self.assertIn(line.strip("/"), ignored)

    def test_the_development_container_builds_that_file(self):
        container = json.loads(read(".devcontainer/devcontainer.json"))
        folder = ROOT / ".devcontainer"
        self.assertEqual((folder / container["build"]["dockerfile"]).resolve(), ROOT / "Dockerfile")
        self.assertEqual((folder / container["build"]["context"]).resolve(), ROOT)
        presets = {preset["name"] for preset in json.loads(read("CMakePresets.json"))["configurePresets"]}
        for command in container["postCreateCommand"].split(" && "):
            tool, *rest = command.split()
            if tool == "cmake":
                self.assertIn(rest[1], presets)
            else:
                self.assertTrue(os.access(ROOT / tool, os.X_OK), tool)


class Workflow(unittest.TestCase):
    """The hosted workflow and the hooks."""

    def test_it_runs_everything_on_both_distributions(self):
        text = read(WORKFLOW)
        self.assertIn('image: ["debian:12", "ubuntu:24.04"]', text)
        self.assertRegex(text, r"(?m)^ +run: \.ci/run$")
        self.assertIn("container: ${{ matrix.image }}", text)
        self.assertIn("run: docker build .", text)

    def test_hooks_are_the_quick_checks(self):
        text = read(".pre-commit-config.yaml")
        self.assertEqual(re.findall(r"(?m)^ +entry: (.*)$", text), ["tools/lint --text", "tools/format --check"])
        for tool in ("tools/lint", "tools/format"):
            self.assertTrue(os.access(ROOT / tool, os.X_OK))

    def test_it_is_said_that_nobody_has_run_them(self):
        for name in (WORKFLOW, RELEASE, SITE, "Dockerfile", "CONTRIBUTING.md"):
            self.assertRegex(read(name), r"(?:n[o']t|nobody)[\w\s#]+on\s+(?:the|a)\s+hosted\s+service")


class Templates(unittest.TestCase):
    """What the hosting service shows to those who write an issue or a pull request, and whom it asks."""

    def test_issue_templates_have_a_name_and_say_what_they_are_for(self):
        paths = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.md"))
        self.assertGreaterEqual(len(paths), 3)
        for path in paths:
            head = re.match(r"---\n(.*?)\n---\n\n", path.read_text(encoding="utf-8"), re.DOTALL)
            self.assertIsNotNone(head, path.name)
            fields = dict(line.split(": ", 1) for line in head[1].splitlines())
            self.assertLessEqual({"name", "about"}, set(fields), path.name)
            self.assertTrue(fields["name"] and fields["about"], path.name)
        self.assertIn("Times of a card", "".join(path.read_text(encoding="utf-8") for path in paths))

    def test_their_links_paths_and_commands_exist(self):
        for path in [*sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.md")), ROOT / ".github/PULL_REQUEST_TEMPLATE.md", ROOT / "SECURITY.md"]:
            name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
            page = Page(text)
            self.assertEqual([*link_problems(name, page), *name_problems(name, page)], [])
            for file in re.findall(r"(?:docs/)?[\w-]+\.md|tools/\w+(?:-\w+)?", text):
                self.assertTrue((ROOT / file).exists(), f"{name}: {file}")

    def test_owners_own_what_is_there(self):
        lines = [line.split() for line in read(".github/CODEOWNERS").splitlines() if line and not line.startswith("#")]
        self.assertEqual(lines[0][0], "*")
        for pattern, *owners in lines:
            self.assertTrue(owners and all(owner.startswith("@") for owner in owners), pattern)
            self.assertTrue(pattern == "*" or (ROOT / pattern.strip("/")).exists(), pattern)

    def test_the_citation_has_the_licence_and_the_authors_of_the_licence(self):
        text, licence = read("CITATION.cff"), read("LICENSE")
        self.assertTrue(licence.startswith("MIT License") and "\nlicense: MIT\n" in text)
        self.assertIn(re.search(r"Copyright \(c\) \d+ (.*)", licence)[1], text)


class Releases(unittest.TestCase):
    """tools/release_notes.py, and the workflow that calls it."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-test."))
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(ROOT / "tools/lib", self.root / "tools/lib", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "tools/release_notes.py", self.root / "tools")
        self.write("# Changelog\n\n## Unreleased\n\n### Added\n\n- new\n\n## 2026-11-21\n\n### Fixed\n\n- [a](docs/a.md#x), [b](https://b.c), [d](#e)\n\n"
                   "## 2026-11-20\n")

    def write(self, text):
        (self.root / "CHANGELOG.md").write_text(text, encoding="utf-8")

    def notes(self, *arguments):
        return subprocess.run([sys.executable, "-B", "tools/release_notes.py", *arguments], cwd=self.root, capture_output=True, text=True, check=False)

    def test_notes_are_the_section_of_the_tag(self):
        self.assertEqual(self.notes("v2026-11-21").stdout, "### Fixed\n\n- [a](docs/a.md#x), [b](https://b.c), [d](#e)\n")
        self.assertEqual(self.notes("v2026-11-21", "--links", "https://h/r/blob/v1/").stdout,
                         "### Fixed\n\n- [a](https://h/r/blob/v1/docs/a.md#x), [b](https://b.c), [d](#e)\n")

    def test_a_tag_without_a_section_is_refused(self):
        for tag, part in (("v2026-11-22", "did you mean 'v2026-11-21'?"), ("2026-11-21", "its tag is 'v2026-11-21'"),
                          ("vUnreleased", "no section for the tag 'vUnreleased'"), ("v2026-11-20", "'2026-11-20' of CHANGELOG.md is empty")):
            done = self.notes(tag)
            self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (2, "", 1), done.stderr)
            self.assertIn(part, done.stderr)
        self.write("# Changelog\n\n## Unreleased\n")
        self.assertIn("it has none of a release yet", self.notes("v1").stderr)

    def test_the_workflow_calls_it_for_tags_alone(self):
        text = read(RELEASE)
        self.assertRegex(text, r'(?m)^on:\n  push:\n    tags: \["v\*"\]\n\npermissions:\n  contents: write$')
        self.assertIn('tools/release_notes.py "$GITHUB_REF_NAME" --links ', text)
        self.assertTrue(os.access(ROOT / "tools/release_notes.py", os.X_OK))

    def test_every_section_of_the_changelog_can_be_released(self):
        shutil.copy(ROOT / "CHANGELOG.md", self.root)
        days = re.findall(r"(?m)^## (\d.*)$", read("CHANGELOG.md"))
        self.assertTrue(days)
        for day in days:
            self.assertIn("\n- ", self.notes(f"v{day}").stdout)


class Bytes(unittest.TestCase):
    """How much a clone has to fetch."""

    BYTES_PER_STEP = 340_500  # 16 MB at 47 steps: the tree grows with what it teaches, and with nothing else

    def test_all_files_together_are_at_most_340_kilobytes_per_step(self):
        sizes = sorted(((ROOT / name).stat().st_size, name) for name in FILES)
        self.assertGreater(len(sizes), 1000)
        steps = len(list((ROOT / "steps").glob("[0-9][0-9]_*/README.md")))
        self.assertLessEqual(sum(size for size, _ in sizes), steps * self.BYTES_PER_STEP, f"the largest are {sizes[-10:]}")


class Linters(unittest.TestCase):
    """Each says yes, or is not here. They are: actionlint, check-jsonschema, yamllint, hadolint, pre-commit."""

    def ask(self, program, *arguments):
        found = shutil.which(program) or shutil.which(ROOT / ".venv/bin" / program)
        if not found:
            self.skipTest(f"no {program} here")
        done = subprocess.run([found, *arguments], cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_actionlint_takes_the_workflow(self):
        self.ask("actionlint", WORKFLOW, RELEASE, SITE)

    def test_check_jsonschema_takes_the_workflow(self):
        self.ask("check-jsonschema", "--builtin-schema", "vendor.github-workflows", WORKFLOW, RELEASE, SITE)

    def test_check_jsonschema_takes_the_schemas_of_records(self):
        self.ask("check-jsonschema", "--check-metaschema", *sorted(map(str, (ROOT / "docs/schemas").glob("*.json"))))

    def test_check_jsonschema_takes_the_records(self):
        self.ask("check-jsonschema", "--schemafile", "docs/schemas/record.schema.json",
                 *sorted(map(str, (ROOT / "docs/results").glob("*.json"))))

    def test_yamllint_takes_all_yaml(self):
        rules = "{extends: default, rules: {line-length: {max: 130}, document-start: disable, truthy: {check-keys: false}}}"
        self.ask("yamllint", "-d", rules, WORKFLOW, RELEASE, SITE, ".github/ISSUE_TEMPLATE/config.yml", "CITATION.cff", ".pre-commit-config.yaml",
                 ".clangd")

    def test_check_jsonschema_takes_the_citation_and_the_issues_settings(self):
        for schema, path in (("citation-file-format", "CITATION.cff"), ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml")):
            self.ask("check-jsonschema", "--builtin-schema", f"vendor.{schema}", path)

    def test_hadolint_takes_the_dockerfile(self):
        self.ask("hadolint", "Dockerfile")

    def test_pre_commit_takes_its_hooks(self):
        self.ask("pre-commit", "validate-config")


class Editor(unittest.TestCase):
    """clangd reads both backends without a complaint of the compiler."""

    def complaints(self, name):
        clangd = shutil.which("clangd")
        if not clangd:
            self.skipTest("no clangd here")
        if not (ROOT / "build/emulator/compile_commands.json").exists():
            self.skipTest("the emulator is not configured")
        done = subprocess.run([clangd, f"--check={ROOT / name}", "--check-lines=1-1", "--enable-config"], cwd=ROOT, capture_output=True,
                              text=True, check=False, timeout=250)
        self.assertIn("All checks completed", done.stderr)
        # E[time] [name_of_the_complaint] Line 5: ...; those of clang-tidy have names with hyphens.
        return re.findall(r"(?m)^E\[[\d:.]+\] \[\w+\] .*$", done.stderr)

    def test_the_emulators_side(self):
        for name in ("steps/11_mbarrier_ring/kernel.cuh", "common/emulator/include/ptx/tma.cuh", "common/emulator/async/tma.cpp",
                     "common/harness/verify/inputs.h"):
            self.assertEqual(self.complaints(name), [], name)

    def test_the_gpus_side(self):
        for name in ("common/ptx/tma.cuh", "common/ptx/wgmma.cuh"):
            self.assertEqual(self.complaints(name), [], name)


class Decisions(unittest.TestCase):
    """docs/decisions, and what of them can be looked up."""

    def test_each_is_one_page_with_its_three_parts(self):
        pages = sorted((ROOT / "docs/decisions").glob("*.md"))
        self.assertGreaterEqual(len(pages), 10)
        self.assertEqual([page.name[:3] for page in pages], [f"{number:03}" for number in range(1, len(pages) + 1)])
        for page in pages:
            text = page.read_text(encoding="utf-8")
            self.assertRegex(text, rf"\A# {page.name[:3]}: \S", page.name)
            self.assertEqual(re.findall(r"(?m)^## (.*)$", text), ["Context", "Decision", "What it costs"], page.name)
            self.assertLess(len(text.splitlines()), 50, page.name)

    def test_kernels_have_no_conditions_macros_or_assembly(self):
        files = [*ROOT.glob("steps/*/*.cuh"), *ROOT.glob("common/gemm/*/*")]
        self.assertGreater(len(files), 30)
        for path in files:
            found = re.search(r"(?m)^\s*#\s*(?:if|ifdef|ifndef|define)\b.*$|\basm\s*(?:volatile)?\s*\(", path.read_text(encoding="utf-8"))
            self.assertIsNone(found, f"{path.relative_to(ROOT)}: {found and found[0]}")

    def test_both_backends_have_the_same_headers(self):
        """Those that kernels include: every ptx/NAME.cuh of a kernel is in both folders."""
        used = {name for path in [*ROOT.glob("steps/*/*.cuh"), *ROOT.glob("common/gemm/*/*")]
                for name in re.findall(r'#include "ptx/([\w.]+)"', path.read_text(encoding="utf-8"))}
        self.assertGreater(len(used), 10)
        for name in used:
            here = [folder for folder in ("common/ptx", "common/emulator/include/ptx") if (ROOT / folder / name).exists()]
            self.assertGreaterEqual(len(here), 2 if name.endswith(".cuh") else 1, f"{name} is in {here}")


class Changelog(unittest.TestCase):
    """CHANGELOG.md."""

    def test_it_begins_with_what_is_unreleased_and_has_known_sections(self):
        headings = re.findall(r"(?m)^(##+) (.*)$", read("CHANGELOG.md"))
        self.assertEqual(headings[0], ("##", "Unreleased"))
        days = [title for mark, title in headings[1:] if mark == "##"]
        self.assertEqual(days, sorted(days, reverse=True))
        self.assertLessEqual({title for mark, title in headings if mark == "###"},
                             {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"})

    def test_its_links_and_names_exist(self):
        page = Page(read("CHANGELOG.md"))
        self.assertEqual([*link_problems("CHANGELOG.md", page), *name_problems("CHANGELOG.md", page)], [])
