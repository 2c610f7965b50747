"""Plain rules for the text files of the repository: ends of lines and files, that Python parses, retired words, and three habits of style.

Usage: text_rules.py FILE...    prints what it finds as FILE:LINE: RULE, and fails if there was anything
"""
import program  # first, for Ctrl-C
import ast
import os
import re
import sys

import retired_words

CONFLICT = re.compile(rb"^(<<<<<<<|>>>>>>>) ")
# Two blanks end a line of a Markdown file on purpose; anywhere else blanks at the end are an accident.
BLANKS = re.compile(rb"[ \t]$")
BLANKS_MARKDOWN = re.compile(rb"([^ ] | {3,}|\t)$")


# Three habits of these pages that docs/style.md has pairs for. Rows of tables are left out: many are generated.
PER = re.compile(r"(?m)^(?!\|).*?\b((?:\d[\d.,]*|one|two|three|four|eight) (?:bytes?|FLOP|registers?|CTAs?|tiles?|threads?|operations?|instructions?|"
                 r"clocks?|loads|stores|outputs?) an? (?:clock|SM|CTA|thread|warp|warpgroup|block|tile|k-tile|launch|layer|group|stage|row))\b")
SPACE = re.compile(r"\b((?:behind|in front of) (?:the|a|an|its|each|every|this|that) (?:fence|wait|arrival|release|acquire|exit|launch|store|load)s?)\b")
HEADLESS = re.compile(r"(?m)^ *[^ /].*?//[/<]* (of .*)$")
NUMBER = re.compile(r"(?<=\S)\n(<!-- number:)")  # Markdown takes a comment at the beginning of a line for HTML


def style_findings(path, text):
    """(line, what to say) of what a machine can see of the style of a page, or of a comment of a lesson."""
    if path.endswith(".md") and path != "docs/style.md":
        text = re.sub(r"(?ms)^```.*?^```$", lambda block: "\n" * block[0].count("\n"), text)  # messages are quoted as they are
        for found in PER.finditer(text):
            yield text.count("\n", 0, found.start(1)) + 1, f"'{found[1]}': a rate has 'per' (docs/style.md)"
        for found in SPACE.finditer(text):
            yield text.count("\n", 0, found.start(1)) + 1, f"'{found[1]}': events come before and after each other (docs/style.md)"
        for found in NUMBER.finditer(text):
            yield text.count("\n", 0, found.start(1)) + 1, "a line that begins with the mark of a number ends its paragraph: put it on the line before"
    if path.startswith("steps/") and path.endswith((".cuh", ".h")):
        for found in HEADLESS.finditer(text):
            yield text.count("\n", 0, found.start(1)) + 1, f"'{found[1]}': 'of' lacks its noun (docs/style.md)"


def findings(path):
    with open(path, "rb") as file:
        content = file.read()
    if not content or b"\0" in content:
        return
    if not content.endswith(b"\n"):
        yield "no newline at the end"
    blanks = BLANKS_MARKDOWN if path.endswith(".md") else BLANKS
    for number, line in enumerate(content.splitlines(), 1):
        if blanks.search(line):
            yield f"{number}: trailing blank"
        if CONFLICT.match(line):
            yield f"{number}: a conflict marker: {line.decode(errors='replace')}"
    if b"\r" in content:
        yield f"{content[:content.index(bytes([13]))].count(bytes([10])) + 1}: carriage return"
    if content.startswith(b"#!") and not os.access(path, os.X_OK):
        yield "a script that is not executable"
    if path.endswith(".py"):
        try:
            ast.parse(content, path)
        except SyntaxError as error:
            yield f"{error.lineno}: not Python: {error.msg}"
    text = content.decode(errors="replace")
    for number, finding in (*retired_words.findings(path, text), *style_findings(path, text)):
        yield f"{number}: {finding}"


def main():
    found = 0
    for path in sys.argv[1:]:
        for finding in findings(path):
            separator = "" if finding[0].isdigit() else " "
            print(f"{path}:{separator}{finding}")
            found = 1
    return found


if __name__ == "__main__":
    sys.exit(program.run("tools/lint", main))
