"""How long a page takes to read."""
import re

WORDS_A_MINUTE = 160  # of prose about code
LINES_A_MINUTE = 20   # of code
MINUTES_A_PICTURE = 0.5  # a table, a diagram, a figure

BLOCK = re.compile(r"(?ms)^\s*(```|~~~)(\w*)\n(.*?)^\s*\1\s*$")
TABLE = re.compile(r"(?m)(?:^\|.*\n)+")


def parts(text):
    """(words of prose, lines of code, tables and diagrams and figures) of a page in Markdown."""
    text = re.sub(r"(?s)<!--.*?-->", "", text)
    code = [(language, body) for _, language, body in BLOCK.findall(text)]
    prose = BLOCK.sub("", text)
    tables = len(TABLE.findall(prose + "\n"))
    prose = TABLE.sub("", prose + "\n")
    figures = len(re.findall(r"!\[", prose)) + sum(language == "mermaid" for language, _ in code)
    prose = re.sub(r"\]\([^)]*\)", "]", prose)  # where a link leads is not read
    words = [word for word in prose.split() if re.search(r"\w", word)]
    return len(words), sum(body.count("\n") for language, body in code if language != "mermaid"), tables + figures


def minutes(text):
    words, lines, pictures = parts(text)
    return words / WORDS_A_MINUTE + lines / LINES_A_MINUTE + pictures * MINUTES_A_PICTURE
