#!/usr/bin/env python3
"""Draws why a wait needs one bit of a barrier's phase: docs/figures/phase_wheel.svg."""
from drawing import Drawing, figure_program
from palette import GREEN, INK, PARITY, PURPLE, RED, SOFT, WHITE

FIGURE = "docs/figures/phase_wheel.svg"
WANTED = 0  # the phase that the thread waits for
PHASES = 4
RADIUS = 58


def passes(current, wanted):
    """What a wait for the parity of phase `wanted` does while phase `current` of the barrier is the current one."""
    return current % 2 != wanted % 2


def right(current, wanted):
    """Whether that is the right answer: a wait should pass exactly when the phase is complete."""
    return passes(current, wanted) == (current > wanted)


VERDICTS = {0: ("right", GREEN, "phase 0 is not complete"), 1: ("right", GREEN, "phase 0 is complete"),
            2: ("wrong", RED, "phase 0 is over"), 3: ("by luck", RED, "to the wait 3 looks like 1")}


def draw_wheel(drawing, x, y, current):
    """One barrier: its phases clockwise from the top, the current one under the hand, and the thread at the one it waits for."""
    turn = 360 / PHASES
    for phase in range(PHASES):
        drawing.wedge(x, y, RADIUS, turn * (phase - 0.5), turn * (phase + 0.5), PARITY[phase % 2], stroke=SOFT, stroke_width=1)
    drawing.wedge(x, y, RADIUS, turn * (current - 0.5), turn * (current + 0.5), PARITY[current % 2], stroke=INK, stroke_width=2.5)
    for phase in range(PHASES):
        step_x, step_y = ((0, -1), (1, 0), (0, 1), (-1, 0))[phase]
        drawing.text(x + 43 * step_x, y + 43 * step_y + 5, str(phase), size=15, anchor="middle", weight="bold" if phase == current else None)
        if phase == current:
            drawing.arrow(x, y, x + 31 * step_x, y + 31 * step_y, width=2.5)
    drawing.circle(x, y, 4, INK)
    drawing.polygon([(x, y - RADIUS - 2), (x - 7, y - RADIUS - 14), (x + 7, y - RADIUS - 14)], PURPLE)


def draw():
    drawing = Drawing(760, 410, "Why one bit of a barrier's phase is enough",
                      "Four times the same barrier, in phases 0 to 3, and a thread that waits for phase 0 by its parity. In phase 0 it waits and in phase 1 "
                      "it passes, which is right. In phase 2 it waits although phase 0 is over.")
    drawing.caption("Why one bit is enough: the phases of a barrier",
                    f"A thread waits for phase {WANTED}, so it names parity {WANTED % 2}. The wait passes when the current phase (the hand) has the other parity. "
                    "One phase later that is right. Two phases later it is wrong.", room=64)
    column = 720 / PHASES
    for current in range(PHASES):
        x, y = 20 + column * (current + 0.5), 186
        drawing.text(x, 102, f"wait for phase {WANTED}", size=12, fill=PURPLE, anchor="middle")
        draw_wheel(drawing, x, y, current)
        word, color, reason = VERDICTS[current]
        drawing.text(x, 270, f"current phase {current}: parity {current % 2}", size=12, anchor="middle")
        drawing.rect(x - 66, 279, 132, 24, WHITE, stroke=color, stroke_width=1.5, rx=4)
        drawing.text(x, 296, f"{'passes' if passes(current, WANTED) else 'waits'}: {word}", size=12, fill=color, anchor="middle", weight="bold")
        drawing.text(x, 321, reason, size=12, fill=SOFT, anchor="middle")
    drawing.line(20 + 2 * column, 92, 20 + 2 * column, 326, stroke=SOFT, dashes="4 4")
    lines = ["Left of the dashed line the thread is at most one phase behind the barrier. In a ring it always is: full[s] completes",
             "another phase only after stage s has been loaded again, and that only after this consumer has passed its wait, has",
             "read the stage and has arrived at empty[s]. A thread that skips waits has no such promise: it may wait for ever."]
    for index, words in enumerate(lines):
        drawing.text(20, 352 + 18 * index, words, size=12)
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
