"""The known word that a misspelt one is most like. As a program, for tools/lib/common.sh: nearest.py WORD KNOWN..."""
import program  # noqa: F401 (first, for Ctrl-C)
import difflib
import sys


def nearest_word(word, known):
    """"" when nothing is known."""
    matches = difflib.get_close_matches(word, known, n=1, cutoff=0)
    return matches[0] if matches else ""


if __name__ == "__main__":
    print(nearest_word(sys.argv[1], sys.argv[2:]))
