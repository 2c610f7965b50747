#!/usr/bin/env python3
"""Draws what the fields of a wgmma descriptor mean: docs/figures/descriptor.svg and docs/figures/operand_layouts.svg."""
from drawing import Drawing, figure_program
from palette import BLUE, GREEN, GRID, INK, LIGHT, ORANGE, RED, SOFT, WHITE
from shared_banks import CHUNK_BYTES, LINE_BYTES, swizzle

UNUSED = WHITE
FIELDS = [  # first bit, last bit, name, meaning, colour
    (0, 13, "address", "in units of 16 bytes", BLUE), (14, 15, "", "", None),
    (16, 29, "leading offset", "in units of 16 bytes", ORANGE), (30, 31, "", "", None),
    (32, 45, "stride", "in units of 16 bytes", GREEN), (46, 48, "", "", None),
    (49, 51, "base", "offset", SOFT), (52, 61, "", "", None), (62, 63, "swizzle", "", RED)]
EXAMPLE = 0x4000004000010040
ROWS = 16


def arrow(drawing, x1, y1, x2, y2, color):
    """Horizontal or vertical."""
    drawing.line(x1, y1, x2, y2, stroke=color, width=2)
    if x1 == x2:
        tip = 6 if y2 > y1 else -6
        drawing.polygon([(x2 - 4, y2 - tip), (x2 + 4, y2 - tip), (x2, y2)], color)
    else:
        tip = 6 if x2 > x1 else -6
        drawing.polygon([(x2 - tip, y2 - 4), (x2 - tip, y2 + 4), (x2, y2)], color)


def draw_bits():
    """The 64 bits, highest first, with an example under them."""
    left, width = 20, 15.5
    drawing = Drawing(left * 2 + 64 * width, 176, "The bits of a wgmma descriptor",
                      "Bits 0 to 13 hold the address, 16 to 29 the leading offset, 32 to 45 the stride, each in units of 16 "
                      "bytes; 49 to 51 the base offset; 62 and 63 the swizzle. The example is a 128-byte swizzled tile at "
                      "byte 0x400.")
    drawing.caption("The 64 bits of a wgmma descriptor",
                    f"Address, leading offset and stride are in units of 16 bytes. Below the fields: what {EXAMPLE:#018x} says.",
                    room=30)
    top, height = 60, 40
    for first, last, name, meaning, color in FIELDS:
        x = left + (63 - last) * width
        wide = (last - first + 1) * width
        drawing.rect(x, top, wide, height, LIGHT[color] if color else UNUSED, stroke=GRID)
        middle = x + wide / 2
        if name:
            drawing.text(middle, top + 17, name, size=12 if wide > 100 else 9, anchor="middle",
                         weight="bold" if wide > 100 else None)
            drawing.text(middle, top + 32, meaning, size=11 if wide > 100 else 10, fill=SOFT, anchor="middle")
        else:
            drawing.text(middle, top + 24, "0", size=11, fill=SOFT, anchor="middle")
        drawing.text(x + wide - 2, top - 6, str(first), size=10, fill=SOFT, anchor="end")
        if last - first > 1:
            drawing.text(x + 2, top - 6, str(last), size=10, fill=SOFT)
    values = {0: "0x0040 × 16 = byte 0x400", 16: "1: ignored", 32: "0x0040 × 16 = 1024 bytes", 49: "0", 62: "1: 128 bytes"}
    for first, last, name, _, color in FIELDS:
        if not name:
            continue
        x = left + (63 - last) * width
        wide = (last - first + 1) * width
        anchor, at = ("start", x) if first == 62 else ("middle", x + wide / 2)
        drawing.text(at, top + height + 20, values[first], size=12, fill=color if color != SOFT else INK, anchor=anchor)
    drawing.text(left, top + height + 52, "stride: from 8 rows to the next 8 · leading offset: only without a swizzle, from 8 "
                 "elements of K to the next 8", size=12, fill=SOFT)
    drawing.text(left, top + height + 70, "white: no field; must be 0", size=12, fill=SOFT)
    return drawing.svg()


def draw_layouts():
    """Sixteen rows of an operand in shared memory, 128-byte swizzled and without a swizzle."""
    cell, line = 54, 21
    left = 150
    chunks = LINE_BYTES // CHUNK_BYTES
    top_first = 112
    second = top_first + ROWS * line + 76
    height = second + 4 * line + 28
    drawing = Drawing(left + chunks * cell + 200, height, "Operands of wgmma in shared memory",
                      "A K-major operand of 16 rows. With the 128-byte swizzle a row is a line of 128 bytes, the stride "
                      "leads to the next 8 rows, and stepping along K adds 32 bytes to the address. Without a swizzle "
                      "blocks of 8 rows by 16 bytes are contiguous, the leading offset leads to the next block along K, the "
                      "stride to the next 8 rows.")
    drawing.caption("Where one wgmma finds its operand in shared memory",
                    "Coloured: 16 rows of K = 16. The swizzle spreads them over all banks. A cell is 16 bytes, row.unit of the tile; unit u "
                    "holds k = 8u to 8u + 7.", room=48)

    drawing.text(left, top_first - 34, "128-byte swizzle, second step along K: address = tile + 32", size=12, weight="bold")
    held = {swizzle(offset, 128): (offset // LINE_BYTES, offset % LINE_BYTES // CHUNK_BYTES)
            for offset in range(0, ROWS * LINE_BYTES, CHUNK_BYTES)}
    for offset, (row, unit) in sorted(held.items()):
        x = left + offset % LINE_BYTES // CHUNK_BYTES * cell
        y = top_first + offset // LINE_BYTES * line
        read = unit in (2, 3)
        drawing.rect(x, y, cell, line, LIGHT[BLUE] if read else UNUSED, stroke=GRID)
        drawing.text(x + cell / 2, y + 15, f"{row}.{unit}", size=11, anchor="middle", fill=INK if read else SOFT,
                     weight="bold" if read else None)
    for row in (0, 1, 8):
        drawing.text(left - 10, top_first + row * line + 15, f"byte {row * LINE_BYTES}", size=11, fill=SOFT, anchor="end")
    # The address: the place of unit 2 of row 0, which no swizzle moves.
    arrow(drawing, left + 2 * cell + 8, top_first - 24, left + 2 * cell + 8, top_first - 3, BLUE)
    drawing.text(left + 2 * cell + 20, top_first - 10, "address; the XOR comes after the addition", size=12, fill=BLUE)
    x = left + chunks * cell + 18
    arrow(drawing, x, top_first + line / 2, x, top_first + 8.5 * line, GREEN)
    drawing.text(x + 10, top_first + 4.5 * line, "stride: 1024 bytes,", size=12, fill=GREEN)
    drawing.text(x + 10, top_first + 4.5 * line + 16, "8 rows of 128", size=12, fill=GREEN)

    drawing.text(left, second - 34, "no swizzle: contiguous blocks of 8 rows × 16 bytes", size=12, weight="bold")
    # Two lines of 128 bytes for each group of 8 rows: block along K 0, block along K 1.
    blocks = [(0, 0, 0), (1, 0, 1), (2, 8, 0), (3, 8, 1)]
    for place, first_row, unit in blocks:
        y = second + place * line + (8 if place > 1 else 0)
        for row in range(8):
            drawing.rect(left + row * cell, y, cell, line, LIGHT[BLUE] if unit == 0 else LIGHT[ORANGE], stroke=GRID)
            drawing.text(left + row * cell + cell / 2, y + 15, f"{first_row + row}.{unit}", size=11, anchor="middle",
                         weight="bold")
        drawing.text(left - 10, y + 15, f"byte {place * LINE_BYTES}", size=11, fill=SOFT, anchor="end")
    x = left + chunks * cell + 18
    arrow(drawing, x, second + line / 2, x, second + 1.5 * line, ORANGE)
    drawing.text(x + 10, second + line + 4, "leading offset: 128", size=12, fill=ORANGE)
    far = x + 140
    arrow(drawing, far, second + line / 2, far, second + 2.5 * line + 8, GREEN)
    drawing.text(x + 10, second + 2.5 * line + 12, "stride: 256", size=12, fill=GREEN)
    arrow(drawing, left + 8, second - 24, left + 8, second - 4, BLUE)
    drawing.text(left + 18, second - 12, "address", size=12, fill=BLUE)
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {
        "docs/figures/descriptor.svg": draw_bits,
        "docs/figures/operand_layouts.svg": draw_layouts,
    })
