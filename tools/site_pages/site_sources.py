"""A page of a source: each line with an anchor, and of a kernel what is new in it and which instructions a line became."""
import html
import pathlib

import repository
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound


def lines(file):
    """The lines of a file as HTML."""
    text = (repository.ROOT / file).read_text(encoding="utf-8")
    try:
        lexer = get_lexer_for_filename(file.replace(".cuh", ".h"), stripnl=False)
    except ClassNotFound:
        lexer = TextLexer(stripnl=False)
    return highlight(text, lexer, HtmlFormatter(nowrap=True)).removesuffix("\n").split("\n")


def folder(place):
    """The names in a folder, those that have a place in the site as links to it."""
    names = sorted(f"{path.name}/" if path.is_dir() else path.name for path in (repository.ROOT / place).iterdir() if path.name[0] not in "._")
    return f"<h1>{place}</h1>\n<p>The files of this folder:</p>\n<ul>" + "".join(f"<li><code>{name}</code></li>" for name in names) + "</ul>\n"


def about(file, step):
    """What stands above a kernel: where its chapter is, which lines are new, and the switch to the machine code."""
    base, new = repository.new_lines(step)
    said = [f'<a href="index.html">The chapter</a>']
    if (repository.ROOT / f"steps/{step}/sass.txt").exists():
        said.append('<a href="sass.txt.html">all of the main loop\'s machine code</a>')
    if base:
        before = repository.href(file, f"steps/{base}/kernel.cuh")
        said.append(f'a bar marks the {len(new)} lines of code that <a href="{before}">step {base[:2]}</a> does not have')
    text = f"<p>{' · '.join(said)}</p>\n"
    if found := repository.machine_code(step):
        text += (f'<p>{len(found)} lines have a <span class="source-mark">SASS</span> that opens: their instructions in the main loop. '
                 '<button class="md-button sass-switch" type="button" hidden>Open all</button></p>\n')
    return text


def instructions(rows):
    return (f'<details class="sass"><summary title="{len(rows)} instructions of the main loop">SASS</summary>'
            f"<pre><code>{html.escape(chr(10).join(rows))}</code></pre></details>")


def render(file):
    """The HTML of a source's page, or of a folder's."""
    if (repository.ROOT / file).is_dir():
        return folder(file)
    path = pathlib.PurePosixPath(file)
    step = path.parent.name if path.match("steps/*/kernel.cuh") else None
    new = repository.new_lines(step)[1] if step else ()
    machine_code = repository.machine_code(step) if step else {}
    shown = [f'<h1 class="source-name">{html.escape(file)}</h1>\n', about(file, step) if step else "", '<div class="source highlight">\n']
    for number, line in enumerate(lines(file), 1):
        shown.append(f'<div class="line{" new" if number in new else ""}" id="L{number}"><a href="#L{number}">{number}</a>'
                     f"<code>{line}</code>{instructions(machine_code[number]) if number in machine_code else ''}</div>\n")
    return "".join(shown) + "</div>\n"
