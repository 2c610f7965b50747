"""What a Markdown page asks its reader to type, to open and to look up."""
import re

FENCE = re.compile(r"^\s*(```|~~~)\s*(\w*)")
CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")


class Page:
    """A page taken apart: prose with the fenced blocks blanked out, and the blocks as lists of (line number, line)."""

    def __init__(self, text):
        self.blocks, prose, fence, block = [], [], None, None
        for number, line in enumerate(text.split("\n"), 1):
            mark = FENCE.match(line)
            if mark and fence in (None, mark[1]):
                fence = None if fence else mark[1]
                if fence:
                    block = (mark[2], [])
                    self.blocks.append(block)
                prose.append("")
            elif fence:
                block[1].append((number, line))
                prose.append("")
            else:
                prose.append(line)
        self.prose = "\n".join(prose)

    def quoted(self):
        """(line number, text) of everything in backticks outside of blocks; a line break in it is a blank."""
        for found in CODE.finditer(self.prose):
            if "\n\n" not in found[1]:
                yield self.prose.count("\n", 0, found.start()) + 1, " ".join(found[1].split())

    def lines(self):
        """(line number, line) of all blocks but diagrams."""
        for language, block in self.blocks:
            if language != "mermaid":
                yield from block

    def commands(self):
        """(line number, command) of what looks like one: in a block with prompts the lines behind them, in others the
        lines that begin with a program; in backticks what begins with a program and has more than its name."""
        for language, block in self.blocks:
            if language == "mermaid":
                continue
            prompt = any(line.startswith("$ ") for _, line in block)
            for number, line in block:
                if prompt and not line.startswith("$ "):
                    continue
                line = re.sub(r"\s+#.*", "", line.removeprefix("$ ")).strip()
                if prompt or PROGRAM.match(line):
                    yield number, line
        for number, text in self.quoted():
            if PROGRAM.match(text) and not re.fullmatch(r"\S+\.\w+|\S+/", text):
                yield number, text

    def links(self):
        """(line number, target) of links and images."""
        plain = CODE.sub(lambda found: " " * len(found[0]), self.prose)
        for found in LINK.finditer(plain):
            yield plain.count("\n", 0, found.start()) + 1, found[1]

    def anchors(self):
        """The names that links to the page's headings have on GitHub."""
        found = set()
        for line in self.prose.split("\n"):
            if heading := HEADING.match(line):
                text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[2]).replace("`", "")
                name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
                number = 0
                while (name if number == 0 else f"{name}-{number}") in found:
                    number += 1
                found.add(name if number == 0 else f"{name}-{number}")
        return found


# What a command begins with, variables in front of it included.
PROGRAM = re.compile(r"^(?:[A-Z_0-9]+=\S+ )*(?:tools/[\w.]+|build/[\w./-]+|\.ci/\w+|cmake|ctest|git|apt-get|nvidia-smi|"
                     r"compute-sanitizer|ncu|nvcc|cuobjdump|nvdisasm)(?= |$)")
