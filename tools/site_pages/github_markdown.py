"""An extension for Zensical that makes a page of its Markdown as GitHub does, and a page of a source with its lines.

Zensical's own Markdown has other rules for lists, anchors and HTML. markdown-it-py follows CommonMark and GitHub's additions to it,
so that pages need no second form. What the site adds is computed here: links to the site's places, links from excerpts to their
lines, links to exercises, and links to the pages that commands write.
"""
import html
import re

import living_figures
import report_examples
import repository
import site_sources
from latex2mathml.converter import convert as mathml
from markdown.extensions import Extension
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound


def formula(text, options):
    return mathml(text, display="block" if options["display_mode"] else "inline")


def parser():
    markdown = MarkdownIt("gfm-like", {"html": True}).use(footnote_plugin).use(dollarmath_plugin, renderer=formula, allow_digits=False)
    markdown.linkify.set({"fuzzy_link": False, "fuzzy_email": False})
    return markdown


MARKDOWN = parser()


def fence(tokens, at, options, environment):
    """A block of code, with its colours; a diagram is drawn in the page, and a formula is MathML."""
    language, text = tokens[at].info.split(" ")[0], tokens[at].content
    if language == "mermaid":
        return f'<pre class="mermaid"><code>{html.escape(text)}</code></pre>\n'
    if language == "math":
        return f"<p>{formula(text, {'display_mode': True})}</p>\n"
    try:
        coloured = highlight(text, get_lexer_by_name(language or "text", stripnl=False), HtmlFormatter(nowrap=True))
    except ClassNotFound:
        coloured = html.escape(text)
    return f'<div class="highlight"><pre><code>{coloured}</code></pre></div>\n' + tokens[at].meta.get("below", "")


def text(tokens, at, options, environment):
    """Text; a line may break after an underscore of a link, so that long names of files do not widen their column."""
    shown = escapeHtml(tokens[at].content)
    return shown.replace("_", "_<wbr>") if at > 0 and tokens[at - 1].type == "link_open" else shown


MARKDOWN.renderer.rules["fence"] = fence
MARKDOWN.renderer.rules["text"] = text


def link_excerpts(page, tokens):
    """Below each excerpt, where its lines are."""
    origins = []
    for token in tokens:
        if token.type == "html_block" and (mark := repository.EXCERPT.search(token.content)):
            origins = list(repository.places(mark[1]))
        elif token.type == "fence" and origins:
            shown = []
            for name, file, region in origins:
                first, last = repository.lines_of_region(file, region)
                shown.append(f'<a href="{repository.href(page, file)}#L{first}">{name}, lines {first} to {last}</a>')
            token.meta["below"] = f'<p class="origin">{" → ".join(shown)}</p>\n'
            origins = []


def exercise_of(text):
    found = re.fullmatch(r"tools/exercise (\d\d) (\w+)", text)
    path = found and next(repository.ROOT.glob(f"steps/{found[1]}_*/exercises/{found[2]}.md"), None)
    return path and path.relative_to(repository.ROOT).as_posix()


def link_inline(page, tokens):
    """Links and images lead to the site's places; a command that hands out an exercise leads to its page."""
    for token in tokens:
        children, inside = [], 0
        for child in token.children or []:
            inside += child.nesting if child.type in ("link_open", "link_close") else 0
            if child.type == "link_open" and (found := repository.linked(page, child.attrs["href"])):
                child.attrs["href"] = repository.href(page, found[0]) + found[1]
            if child.type == "code_inline" and not inside and (exercise := exercise_of(child.content)):
                opening = child.copy(type="html_inline", content=f'<a href="{repository.href(page, exercise)}">')
                children += [opening, child, child.copy(type="html_inline", content="</a>")]
            else:
                children.append(child)
        if token.children is not None:
            token.children = children


def text_of(token):
    return "".join(child.content for child in token.children if child.type in ("text", "code_inline"))


def name_headings(tokens):
    """Gives headings GitHub's anchors, and returns the page's table of contents as Python-Markdown has it."""
    names, root = set(), {"level": 0, "children": []}
    path = [root]
    for at, token in enumerate(tokens):
        if token.type != "heading_open":
            continue
        title = text_of(tokens[at + 1])
        base = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        name, number = base, 0
        while name in names:
            number += 1
            name = f"{base}-{number}"
        names.add(name)
        token.attrs["id"] = name
        inner = MARKDOWN.renderer.renderInline(tokens[at + 1].children, MARKDOWN.options, {})
        permalink = tokens[at + 1].children[0].copy(type="html_inline", content=f'<a class="headerlink" href="#{name}" title="Permanent link">¶</a>')
        tokens[at + 1].children.append(permalink)
        item = {"level": int(token.tag[1]), "id": name, "name": html.escape(title), "html": inner, "data-toc-label": "", "children": []}
        while path[-1]["level"] >= item["level"]:
            path.pop()
        path[-1]["children"].append(item)
        path.append(item)
    return root["children"]


def name_terms(tokens):
    """Gives the rows of the glossary anchors."""
    for row, cell in zip(tokens, tokens[2:]):
        if row.type == "tr_open" and cell.type == "inline" and cell.content.startswith("**"):
            row.attrs["id"] = f"term-{re.sub(r'[^a-z0-9]+', '-', text_of(cell).lower()).strip('-')}"


def render(page, text):
    """The page's HTML, and its table of contents."""
    tokens = MARKDOWN.parse(text)
    link_excerpts(page, tokens)
    living_figures.mark(page, tokens)
    report_examples.link(page, tokens)
    link_inline(page, tokens)
    contents = name_headings(tokens)
    if page == "docs/glossary.md":
        name_terms(tokens)
    return MARKDOWN.renderer.render(tokens, MARKDOWN.options, {}), contents


class GitHubMarkdown(Extension):
    """Takes the place of Python-Markdown's conversion."""

    def extendMarkdown(self, md):
        page = md.preprocessors["rendering_context"].page.path

        def convert(text):
            if page in repository.pages():
                done, md.toc_tokens = render(page, text)
            else:
                done, md.toc_tokens = site_sources.render(page.removesuffix("/index.md").removesuffix(".md")), []
            return done

        md.convert = convert


def makeExtension(**settings):
    return GitHubMarkdown(**settings)
