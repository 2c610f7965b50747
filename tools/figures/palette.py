"""The colours of all figures, in one place: after Okabe and Ito, darker so that they can be read as text, and told apart by
colour-blind readers (tests/tools/pages/test_figures.py simulates both kinds)."""

# Dark ink on a warm light ground of its own, so that a figure reads the same on a light and on a dark page.
GROUND, INK, SOFT, GRID, WHITE = "#faf8f4", "#22262e", "#666d79", "#e2ddd3", "#ffffff"
GREEN, BLUE, ORANGE, RED, PURPLE = "#00825f", "#0067a5", "#c77d00", "#a3260f", "#662255"
# The same as a ground for ink, and one step darker for what alternates with it.
LIGHT = {GREEN: "#cfe9df", BLUE: "#cfe2f3", ORANGE: "#f8e4bd", RED: "#f3d4c4", PURPLE: "#d9bcd2", SOFT: "#ece8e0"}
DARK = {GREEN: "#004836", ORANGE: "#7a4c00"}

# What a role or an engine does. A pale bar is a wait, in the colour of what is waited for: copies, multiplications, a turn, a store, C.
ACTIVITY = {"copy": ORANGE, "issue": ORANGE, "multiply": GREEN, "epilogue": BLUE, "store": BLUE, "pass partials": RED,
            "wait full": LIGHT[ORANGE], "wait empty": LIGHT[GREEN], "wait order": LIGHT[PURPLE], "wait store": LIGHT[BLUE],
            "wait source": LIGHT[RED]}
# A phase of an mbarrier, by its parity.
PARITY = [LIGHT[BLUE], LIGHT[ORANGE]]
# Things that are only told apart, such as the CTAs of a cluster or the 16-byte chunks of a row.
CATEGORIES = [BLUE, ORANGE, GREEN, RED]
CHUNKS = [LIGHT[BLUE], LIGHT[GREEN], LIGHT[ORANGE], LIGHT[RED], LIGHT[PURPLE], "#d8ebeb", "#eeecd2", "#e6e2dd"]
WAVES = ["#e3ad55", LIGHT[BLUE], LIGHT[GREEN]]  # the first wave of tiles, the second, the third
# From slow to fast.
SCALE = ["#f4ecd8", GREEN, "#003c2c"]
# The lines of plots: what is compared with.
CUBLASLT, CEILING = ORANGE, RED
