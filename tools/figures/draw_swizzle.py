#!/usr/bin/env python3
"""Draws how tiles lie in the banks of shared memory: docs/figures/banks.svg and docs/figures/swizzles.svg."""
from drawing import Drawing, figure_program
from palette import CHUNKS, GREEN, GRID, INK, ORANGE, RED, SOFT, WHITE
from shared_banks import BANKS, CHUNK_BYTES, LINE_BYTES, place, swizzle, wavefronts

# One light colour for each of the eight 16-byte chunks of a row, so that a permutation can be followed by eye.
GROUPS = LINE_BYTES // CHUNK_BYTES  # groups of four banks
MATRIX_ROWS = 8


def cell(drawing, x, y, width, height, label, fill, strong):
    drawing.rect(x, y, width, height, ORANGE if strong else fill, stroke=GRID)
    if label:
        drawing.text(x + width / 2, y + height / 2 + 4, label, size=11, fill=WHITE if strong else INK,
                     anchor="middle", weight="bold" if strong else None)


def draw_banks():
    """A [rows][64] bf16 tile in three layouts, and where the rows of one 8 x 8 matrix of ldmatrix land."""
    left, group_width, line_height = 96, 84, 22
    panels = [("plain", "Plain: rows of 128 bytes"), ("padded", "Padded: 16 unused bytes after each row"),
              ("swizzled", "Swizzled: chunk c of row r stored at place c xor (r mod 8)")]
    height = 40 + sum(102 + line_height * (9 if layout == "padded" else 8) for layout, _ in panels)
    drawing = Drawing(left + GROUPS * group_width + 24, height, "A tile in the 32 banks of shared memory",
                      "Eight rows of 64 bf16 in plain, padded and 128-byte swizzled layout. One 8 by 8 matrix of ldmatrix "
                      "reads chunk 0 of all eight rows: one group of four banks in the plain layout, all groups in the "
                      "others.")
    drawing.caption("A tile in the 32 banks of shared memory",
                    "Orange: the eight 16-byte rows that one 8 × 8 matrix of ldmatrix reads (k = 0 to 7). Plain rows put them all in banks 0 "
                    "to 3; padding or a swizzle gives each its own banks.", room=34)
    top = 40
    for layout, title in panels:
        chunks = {}  # (line, group) -> (row, chunk), None for padding
        for row in range(MATRIX_ROWS):
            for chunk in range(GROUPS + (layout == "padded")):
                offset = place(layout, LINE_BYTES, row, chunk)
                chunks[offset // LINE_BYTES, offset % LINE_BYTES // CHUNK_BYTES] = (
                    (row, chunk) if chunk < GROUPS else None)
        lines = max(line for line, _ in chunks) + 1
        read = [place(layout, LINE_BYTES, row, 0) for row in range(MATRIX_ROWS)]
        drawing.text(left, top + 26, title, size=13, weight="bold")
        for group in range(GROUPS):
            first = group * BANKS // GROUPS
            drawing.text(left + (group + 0.5) * group_width, top + 46, f"banks {first}–{first + 3}", size=11, fill=SOFT,
                         anchor="middle")
        y = top + 54
        for line in range(lines):
            drawing.text(left - 8, y + line * line_height + 15, f"byte {line * LINE_BYTES}", size=11, fill=SOFT,
                         anchor="end")
            for group in range(GROUPS):
                x = left + group * group_width
                if (line, group) not in chunks:
                    continue
                held = chunks[line, group]
                if held is None:
                    cell(drawing, x, y + line * line_height, group_width, line_height, "unused", WHITE, False)
                    continue
                row, chunk = held
                cell(drawing, x, y + line * line_height, group_width, line_height, f"row {row}  c{chunk}",
                     CHUNKS[chunk], chunk == 0)
        y += lines * line_height
        counts = [sum(offset % LINE_BYTES // CHUNK_BYTES == group for offset in read) for group in range(GROUPS)]
        drawing.text(left - 8, y + 18, "rows here", size=11, fill=SOFT, anchor="end")
        for group, count in enumerate(counts):
            drawing.text(left + (group + 0.5) * group_width, y + 18, str(count), size=12, anchor="middle",
                         weight="bold" if count > 1 else None, fill=RED if count > 1 else INK)
        cost = wavefronts(read, CHUNK_BYTES)
        drawing.text(left, y + 38, f"{cost} wavefronts: an {cost}-way bank conflict" if cost > 1 else
                     "1 wavefront: no conflict", size=12, fill=RED if cost > 1 else GREEN, weight="bold")
        top = y + 48
    return drawing.svg()


def draw_swizzles():
    """One period of the three swizzles: which chunk of which row lies where."""
    left, width, line_height = 96, 64, 26
    modes = [(128, "128-byte swizzle: address bits 4–6 ^= bits 7–9"), (64, "64-byte swizzle: address bits 4–5 ^= bits 7–8"),
             (32, "32-byte swizzle: address bit 4 ^= bit 7")]
    height = 44 + sum(78 + line_height * 8 * span // LINE_BYTES for span, _ in modes)
    drawing = Drawing(left + GROUPS * width + 24, height, "The 128-, 64- and 32-byte swizzles",
                      "For each swizzle one period of the pattern; a cell is 16 bytes and names the row and the chunk of "
                      "the tile that it holds. Chunk 0 of eight consecutive rows lies in eight different groups of banks "
                      "in each of them.")
    drawing.caption("The 128-, 64- and 32-byte swizzles",
                    "A cell is 16 bytes, row.chunk of the tile. Orange: chunk 0 of rows 0 to 7, in eight different groups of four banks.",
                    room=34)
    top = 40
    for span, title in modes:
        held = {}
        for offset in range(0, 8 * span, CHUNK_BYTES):
            held[swizzle(offset, span)] = (offset // span, offset % span // CHUNK_BYTES)
        drawing.text(left, top + 26, title, size=13, weight="bold")
        drawing.text(left, top + 44, f"rows of {span} bytes ({span // 2} bf16), repeats every {8 * span} bytes", size=11,
                     fill=SOFT)
        y = top + 52
        for offset, (row, chunk) in sorted(held.items()):
            line, group = offset // LINE_BYTES, offset % LINE_BYTES // CHUNK_BYTES
            cell(drawing, left + group * width, y + line * line_height, width, line_height, f"{row}.{chunk}",
                 CHUNKS[chunk], chunk == 0)
        for line in range(8 * span // LINE_BYTES):
            drawing.text(left - 8, y + line * line_height + 17, f"byte {line * LINE_BYTES}", size=11, fill=SOFT,
                         anchor="end")
        # Rows that share a line of all banks are divided by a stronger line.
        for edge in range(span, LINE_BYTES, span):
            x = left + edge / CHUNK_BYTES * width
            drawing.line(x, y, x, y + 8 * span / LINE_BYTES * line_height, width=1.6)
        top = y + 8 * span // LINE_BYTES * line_height + 26
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {
        "docs/figures/banks.svg": draw_banks,
        "docs/figures/swizzles.svg": draw_swizzles,
    })
