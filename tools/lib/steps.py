"""What the kernels say about the steps: which there are, and which one each builds on."""
import re

from records import ROOT


def steps():
    """The folders in steps/ that have a kernel, in order."""
    return [kernel.parent.name for kernel in sorted(ROOT.glob("steps/[0-9][0-9]_*/kernel.cuh"))]


def builds_on(step):
    """The step that `step` continues: the one that its kernel.cuh names, or the one before it; None for the first, and for
    what is not a step."""
    known = steps()
    if step not in known:
        return None
    named = re.search(r'\.builds_on = "([^"]*)"', (ROOT / "steps" / step / "kernel.cuh").read_text(encoding="utf-8"))
    before = known[:known.index(step)]
    return named[1] if named else before[-1] if before else None
