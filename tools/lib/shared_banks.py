"""The model of shared memory that the figures and tables use: banks, wavefronts, and three layouts of a tile.

The same rules as common/gemm/tile/swizzle.h and the emulator's counters; tests/tools/pages/test_figures.py compares the swizzle with
the C++ one.
"""
BANKS = 32
BANK_BYTES = 4
LINE_BYTES = BANKS * BANK_BYTES  # what all banks hold at one row address
CHUNK_BYTES = 16  # what one lane of a 16-byte access, or one row of ldmatrix, takes
LANES = 32


def swizzle(offset, span):
    """Where byte `offset` of a tile with rows of `span` bytes goes: as gemm::swizzle<span>."""
    return offset ^ ((offset >> 7) % (span // CHUNK_BYTES) << 4)


def place(layout, row_bytes, row, chunk):
    """The byte offset of 16-byte chunk `chunk` of row `row` in a tile whose rows hold row_bytes bytes."""
    if layout == "padded":
        return row * (row_bytes + CHUNK_BYTES) + chunk * CHUNK_BYTES
    offset = row * row_bytes + chunk * CHUNK_BYTES
    return swizzle(offset, row_bytes) if layout == "swizzled" else offset


def tile_bytes(layout, row_bytes, rows):
    return rows * (row_bytes + (CHUNK_BYTES if layout == "padded" else 0))


def wavefronts(offsets, bytes_per_lane):
    """What one instruction of a warp costs: lanes are served in groups that can fill all banks once, and a group takes
    one wavefront for every different word that its busiest bank must deliver."""
    lanes_in_group = LINE_BYTES // bytes_per_lane
    total = 0
    for first in range(0, len(offsets), lanes_in_group):
        words = {}
        for offset in offsets[first:first + lanes_in_group]:
            for byte in range(0, bytes_per_lane, BANK_BYTES):
                word = (offset + byte) // BANK_BYTES
                words.setdefault(word % BANKS, set()).add(word)
        total += max(len(bank) for bank in words.values())
    return total


def ldmatrix_x4(layout, row_bytes):
    """The rows that ldmatrix.x4 reads in step 04: lane l names row l % 16, chunk l / 16."""
    return [place(layout, row_bytes, lane % 16, lane // 16) for lane in range(LANES)]


def copy_row_store(layout, row_bytes):
    """The 16-byte stores of a warp that copies a tile: neighbouring lanes take neighbouring chunks of a row."""
    chunks = row_bytes // CHUNK_BYTES
    return [place(layout, row_bytes, lane // chunks, lane % chunks) for lane in range(LANES)]
