"""What the site takes from the repository: its pages, the files that they link to, and what is known of a kernel's lines."""
import functools
import pathlib
import posixpath
import re
import subprocess
import tempfile

from regions import MARK
from steps import ROOT, builds_on, steps

# These get a page with a line anchor for each line; what else pages link to is copied as it is.
SOURCES = {".cuh", ".cu", ".h", ".cpp", ".py", ".txt", ".cmake", ".sh", ""}


@functools.cache
def pages():
    """The Markdown of the repository, as paths from the root."""
    found = [*ROOT.glob("*.md"), *(path for folder in ("docs", "steps", "common") for path in ROOT.glob(f"{folder}/**/*.md"))]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def address(target):
    """Where the site has a file or folder of the repository, both as paths from the root."""
    path = pathlib.PurePosixPath(target)
    if (ROOT / target).is_dir():
        return f"{target}/index.html"
    if path.name == "README.md":
        return str(path.with_name("index.html"))
    if path.suffix == ".md":
        return str(path.with_suffix(".html"))
    return target + ".html" if path.suffix in SOURCES else target


EXCERPT = re.compile(r"<!-- (?:code|diff): (.*?) -->")


def places(excerpt):
    """(what to call it, the file, the region) of each source that the mark of an excerpt names."""
    for source, region in re.findall(r"(\S+)#(\w+)", excerpt):
        if "/" in source:
            yield pathlib.PurePosixPath(source).name, source, region
        else:
            yield f"step {source}'s kernel", next(ROOT.glob(f"steps/{source}_*/kernel.cuh")).relative_to(ROOT).as_posix(), region


def linked(page, link):
    """What a relative link on a page leads to, from the root, and its anchor with the hash; None for what is elsewhere."""
    path, hash_mark, anchor = link.partition("#")
    if re.match(r"[a-z]+:|//", link) or not path:
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    return (target, hash_mark + anchor) if (ROOT / target).exists() else None


def href(page, target):
    """A link from a page to a file of the repository, in the site."""
    return posixpath.relpath(address(target), posixpath.dirname(page) or ".")


@functools.cache
def lines_of_region(file, region):
    """The first and the last line of a region of a source, without its marks."""
    found = []
    for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").split("\n"), 1):
        if (mark := MARK.match(line)) and mark[2] == region:
            found.append(number)
    return found[0] + 1, found[1] - 1


def _code(kernel):
    """The lines of code of a kernel as tools/diff-steps compares them, and the number of each in the file."""
    kept = []
    for number, line in enumerate(kernel.read_text(encoding="utf-8").split("\n"), 1):
        line = re.sub(r"step_\d\d", "step_NN", re.sub("//.*", "", line))
        if line := " ".join(line.split()):
            kept.append((number, line))
    return [number for number, _ in kept], "".join(f"{line}\n" for _, line in kept)


@functools.cache
def new_lines(step):
    """The step that this one builds on, and the numbers of the lines that it does not have."""
    base = builds_on(step)
    numbers, code = _code(ROOT / f"steps/{step}/kernel.cuh")
    if base is None:
        return None, frozenset()
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as before:
        before.write(_code(ROOT / f"steps/{base}/kernel.cuh")[1])
        before.flush()
        done = subprocess.run(["diff", "--unchanged-line-format=", "--old-line-format=", "--new-line-format=%dn ", before.name, "-"],
                              input=code, capture_output=True, text=True, check=False)
    return base, frozenset(numbers[int(number) - 1] for number in done.stdout.split())


@functools.cache
def machine_code(step):
    """{line of the kernel: its instructions}, from the listing of the main loop, which names lines by their text."""
    listing = ROOT / f"steps/{step}/sass.txt"
    if not listing.exists():
        return {}
    text = listing.read_text(encoding="utf-8")
    kernel = [line.strip() for line in (ROOT / f"steps/{step}/kernel.cuh").read_text(encoding="utf-8").split("\n")]
    named = {}  # the text of a line: the letters for it, in the order of the lines
    for letter, quoted in re.findall(r"(?m)^  ([a-z]+)  kernel\.cuh  (.*)$", text):
        named.setdefault(quoted, []).append(letter)
    line_of = {}
    for quoted, letters in named.items():
        begin = quoted.removesuffix("~")
        places = [number for number, line in enumerate(kernel, 1) if line == begin or quoted != begin and line.startswith(begin)]
        if len(places) == len(letters):  # otherwise nobody knows which of them is meant
            line_of.update(zip(letters, places))
    found = {}
    for row, letter in re.findall(r"(?m)^ *([0-9a-f]+  .*?) +([a-z]+)$", text.partition("\n   at  wait")[2]):
        if letter in line_of:
            found.setdefault(line_of[letter], []).append(row.rstrip())
    return found
