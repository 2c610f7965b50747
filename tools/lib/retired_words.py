"""Words that this project no longer uses, and what it says instead. tools/lint --text (text_rules.py) asks for them.

Refused are pronouns of persons (a thread, warp or CTA is *it*) and coinages that had a word in the field all along. Ordinary
English is not refused: add, start, leave, hold, the sum of a series, a guard band, "taken in turn" are all fine.
"""
import re

# What is refused, as a regular expression without groups, and its replacement.
PRONOUNS = [
    (r"[Hh]e", "it, or name the thread, warp or CTA"),
    (r"[Ss]he", "it, or name the thread, warp or CTA"),
    (r"[Hh]im", "it"),
    (r"[Hh]is", "its"),
    (r"[Hh]ers?", "it, its"),
    (r"[Hh]imself|[Hh]erself", "itself"),
]
COINAGES = [
    (r"RingPosition", "PipelineState"),
    # The identifier, as in `Turns turns(...)`, `Turns<2>` or `Turns&`; not the verb at the beginning of a sentence.
    (r"Turns(?= \w+ ?[({;=]|[<&*:>`({])", "OrderedBarrier"),
    (r"WorkList", "TileScheduler"),
    (r"rest_of_tile", "peers_of"),
    (r"wgmma_hold", "wgmma_fence_operand"),
    (r"kBands", "kGrouped"),
    (r"(?:\w+_)?bands\d+(?:_\w+)?", "group and the number, as in group16: a raster group"),
    (r"[Tt]apes?", "stream-K tiles, linearised"),
    (r"[Dd]ealt", "data-parallel (tiles); handed out, spread"),
    (r"[Tt]wins?", "mutant (a broken kernel); counterpart (the emulator's header)"),
    (r"[Aa]nnounc(?:e[sd]?|ing|ements?)", "expect, expect-tx"),
    (r"--mutants(?!-)", "--inject-faults"),
]
WORDS = PRONOUNS + COINAGES
ANY = re.compile(r"(?<!\w)(?:" + "|".join(f"({word})" for word, _ in WORDS) + r")(?!\w)")

# Files that may use them: the beginning of a path, what they may use (all, pronouns, coinages, or one word), and why.
ALLOWED = [
    (r"tools/lib/retired_words\.py", "all", "the list itself"),
    (r"tests/tools/pages/test_retired_words\.py", "all", "its test"),
    (r"docs/decisions/", "coinages", "a decision says what was called what before it"),
    (r"docs/glossary\.md", "coinages", "it lists retired words with the words that replace them"),
    (r"CHANGELOG\.md", "coinages", "it says what was renamed"),
    (r"docs/results/\w+\.json", "coinages", "a record keeps what the program said when it was made"),
    (r"tests/tools/test_records\.py", "coinages", "tools/records renames the variants of old records"),
    (r"(tools/site_pages/search\.js|tests/tools/test_site\.py)", "announce", "the search knows it"),
    (r"common/harness/cli/", "--mutants", "refuses the old spelling by a sentence that names the new one"),
    (r"tests/(CMakeLists\.txt|host/|tools/)", "--mutants", "tests of that refusal"),
]


def is_allowed(path, word, kind):
    return any(re.match(place, path) and what in ("all", word, kind) for place, what, _ in ALLOWED)


def findings(path, content):
    """(line, what to say) of each retired word in the text of the file at `path`, seen from the repository's root."""
    for match in ANY.finditer(content):
        index = match.lastindex - 1
        if not is_allowed(path, match[0], "pronouns" if index < len(PRONOUNS) else "coinages"):
            line = content.count("\n", 0, match.start()) + 1
            yield line, f"'{match[0]}' is not a word of this project: {WORDS[index][1]}"
