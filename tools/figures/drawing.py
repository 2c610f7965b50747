"""Hand-written SVG: shapes with absolute coordinates, the same text for the same drawing, no library needed. A figure script
imports this first, which lets it find what is in tools/lib."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import program  # first, for Ctrl-C
import argparse
import itertools
import math
import re
import textwrap
from xml.sax.saxutils import escape

from palette import GROUND, INK, SOFT, WHITE
from program import UserError
from records import ROOT, nearest, write_whole

FONT = "system-ui, 'DejaVu Sans', Verdana, sans-serif"


def number(value, decimals=2):
    """At most so many decimals, without trailing zeros."""
    text = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


TEXT = re.compile(r'<text (x="[^"]*" y="[^"]*") ?([^>]*)>(.*)</text>')


def grouped(elements):
    """Neighbouring texts of one look, in a group that says it once: half the bytes, where a figure has hundreds of numbers."""
    for look, run in itertools.groupby(elements, lambda element: found[2] if (found := TEXT.fullmatch(element)) else None):
        texts = list(run)
        if look is None or "transform" in look or len(texts) < 3:
            yield from texts
            continue
        yield f"<g {look}>"
        for place, _, words in (TEXT.fullmatch(text).groups() for text in texts):
            yield f"<text {place}>{words}</text>"
        yield "</g>"


class Drawing:
    """Elements in the order in which they are added; x to the right, y down, both in pixels. A drawing of thousands of
    elements does with one decimal."""

    def __init__(self, width, height, title, description, decimals=2):
        self.decimals = decimals
        self.width, self.height = width, height
        self.head = f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>"
        self.elements = []
        self.down = 0  # how much lower everything lies than its y says

    def number(self, value):
        return number(value, self.decimals)

    def element(self, name, content="", **attributes):
        words = [f'{key.rstrip("_").replace("_", "-")}="{self.number(value) if isinstance(value, (int, float)) else value}"'
                 for key, value in attributes.items() if value is not None]
        inner = f">{content}</{name}>" if content else "/>"
        self.elements.append(f"<{name} {' '.join(words)}{inner}")

    def rect(self, x, y, width, height, fill, stroke=None, stroke_width=None, rx=None, dashes=None):
        self.element("rect", x=x, y=y + self.down, width=width, height=height, fill=fill, stroke=stroke, stroke_width=stroke_width,
                     rx=rx, stroke_dasharray=dashes)

    def bars(self, boxes, color):
        """Many rectangles (x, y, width, height), those of one height as one path of thick lines, which takes a fifth of the bytes."""
        for high in dict.fromkeys(height for _, _, _, height in boxes):
            path = "".join(f"M{self.number(x)} {self.number(y + self.down + high / 2)}h{self.number(width)}"
                           for x, y, width, height in boxes if height == high)
            self.element("path", d=path, stroke=color, stroke_width=high)

    def line(self, x1, y1, x2, y2, stroke=INK, width=1.0, dashes=None):
        self.element("line", x1=x1, y1=y1 + self.down, x2=x2, y2=y2 + self.down, stroke=stroke, stroke_width=width, stroke_dasharray=dashes)

    def points(self, points):
        return " ".join(f"{self.number(x)},{self.number(y + self.down)}" for x, y in points)

    def polyline(self, points, stroke, width=2.0, dashes=None):
        self.element("polyline", points=self.points(points), fill="none", stroke=stroke, stroke_width=width, stroke_dasharray=dashes)

    def polygon(self, points, fill):
        self.element("polygon", points=self.points(points), fill=fill)

    def arrow(self, x1, y1, x2, y2, stroke=INK, width=1.5, dashes=None):
        """A line with a head at (x2, y2); it is horizontal or vertical."""
        size = 3 + 2 * width
        step_x, step_y = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
        back_x, back_y = x2 - size * step_x, y2 - size * step_y
        self.line(x1, y1, back_x, back_y, stroke=stroke, width=width, dashes=dashes)
        self.polygon([(x2, y2), (back_x + step_y * size / 2, back_y + step_x * size / 2),
                      (back_x - step_y * size / 2, back_y - step_x * size / 2)], stroke)

    def circle(self, x, y, radius, fill, stroke=None):
        self.element("circle", cx=x, cy=y + self.down, r=radius, fill=fill, stroke=stroke)

    def wedge(self, x, y, radius, begin, end, fill, stroke=None, stroke_width=None):
        """A piece of a disc about (x, y), clockwise between two angles in degrees, of which 0 is at the top."""
        corners = [(x + radius * math.sin(math.radians(angle)), y + self.down - radius * math.cos(math.radians(angle))) for angle in (begin, end)]
        (x1, y1), (x2, y2) = [tuple(self.number(value) for value in corner) for corner in corners]
        path = f"M{self.number(x)} {self.number(y + self.down)}L{x1} {y1}A{self.number(radius)} {self.number(radius)} 0 {int(end - begin > 180)} 1 {x2} {y2}z"
        self.element("path", d=path, fill=fill, stroke=stroke, stroke_width=stroke_width, stroke_linejoin="round")

    def box(self, x, y, width, height, color, lines, fill=WHITE):
        """A thing with a name, in bold, and what is said of it."""
        self.rect(x, y, width, height, fill, stroke=color, stroke_width=1.5, rx=5)
        begin = y + height / 2 - 8.5 * (len(lines) - 1) + 4
        for index, words in enumerate(lines):
            self.text(x + width / 2, begin + 17 * index, words, size=12 if index else 13, fill=SOFT if index else INK, anchor="middle",
                      weight=None if index else "bold")

    def text(self, x, y, words, size=12, fill=INK, anchor="start", weight=None, rotate=None):
        """`y` is the baseline; rotated about (x, y), in degrees."""
        y += self.down
        turn = f"rotate({self.number(rotate)} {self.number(x)} {self.number(y)})" if rotate else None
        self.element("text", escape(words), x=x, y=y, font_size=size, fill=fill,
                     text_anchor=None if anchor == "start" else anchor, font_weight=weight, transform=turn)

    def caption(self, title, sentence, left=20, room=None):
        """The head of every figure: what it is, and what to see in it, in as many lines as that takes. Returns where it ends.
        What follows was laid out for a head of `room` pixels, and moves down by what is lacking."""
        self.text(left, 26, title, size=14, weight="bold")
        y = 28
        for line in textwrap.wrap(sentence, int((self.width - left - 20) / 6.35)):
            y += 18
            self.text(left, y, line, size=12, fill=SOFT)
        if room is not None:
            self.down = y - room
            self.height += self.down
        return y

    def svg(self):
        width, height = self.number(self.width), self.number(self.height)
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" font-family="{FONT}">',
            self.head,
            f'<rect width="{width}" height="{height}" fill="{GROUND}"/>',
            *grouped(self.elements),
            "</svg>", ""])


USAGE = """
Usage: {} [--check]

--check draws nothing and fails when a committed figure is not what this script draws.
"""


def figure_program(file, description, figures, record=None, measure=None, names=()):
    """Runs the command line of a figure script, which ends with it: [--check]. figures() maps files to functions that return
    their text. With `names` some of them can be picked; then there are --record and --measure as well, which call `record` and
    `measure` first, and all three get the names."""
    script = f"tools/figures/{pathlib.Path(file).name}"
    if not names:
        description = f"{description.strip()}\n{USAGE.format(script)}"
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS, prog=script)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--check", action="store_true")
    if names:
        group.add_argument("--record", action="store_true")
        group.add_argument("--measure", action="store_true")
        parser.add_argument("names", nargs="*")

    def main():
        arguments = parser.parse_args()
        first = names and (record if arguments.record else measure if arguments.measure else None)
        return _draw(script, figures, first, arguments.check, names, arguments.names if names else [])

    sys.exit(program.run(script, main))


def _draw(script, figures, first, check, names, picked):
    for name in picked:
        if name not in names:
            raise UserError(f"there is no figure '{name}'; {nearest(name, list(names))}")
    picked = [picked or list(names)] if names else []
    if first:
        first(*picked)
    texts = {name: draw() for name, draw in figures(*picked).items()}
    return write_or_compare(script, texts, check)


def write_or_compare(script, texts, check):
    """Writes the files that are not what they should be, or names them; returns the exit status."""
    status = 0
    for name, text in texts.items():
        path = ROOT / name
        content = text if isinstance(text, bytes) else text.encode()
        same = path.is_file() and path.read_bytes() == content
        if same:
            continue
        if check:
            print(f"{name}: is not what {script} draws; run {script}.", file=sys.stderr)
            status = 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
            print(f"wrote {name}")
    return status
