"""The measured plans of step 22 in docs/results, packed: as text they would be 7 MB.

A kept file is text in bzip2. Its first part has the lines of the plans, in their order: comments as they were, a shape once, before its plans,
and the plans without their times. Behind a line that says so come the times alone. Apart from each other, the two parts take 40 %
less than lines that have everything.
"""
import bz2

from program import UserError

SHAPE = "shape "
TIMES = "# microseconds of the lines above"


def packed(text):
    """The bytes of a kept file, for lines of "M N K plan... microseconds" and comments."""
    lines, times, shape = [], [], None
    for line in text.splitlines():
        if line.startswith("#"):
            lines.append(line)
            shape = None  # a set may begin with the shape that the one before ended with
            continue
        *words, time = line.split()
        if words[:3] != shape:
            shape = words[:3]
            lines.append(SHAPE + " ".join(shape))
        lines.append(" ".join(words[3:]))
        times.append(time)
    return bz2.compress("\n".join([*lines, TIMES, *times, ""]).encode())


def unpacked(path):
    """The text that was packed into this file."""
    data = path.read_bytes()
    try:
        head, _, tail = bz2.decompress(data).decode().partition(f"\n{TIMES}\n")
    except (OSError, ValueError) as error:
        raise UserError(f"{path} has no packed plans, as docs/results/plans_h200.txt.bz2 has: {error}.") from None
    times, lines, shape = iter(tail.split()), [], ""
    for line in head.splitlines():
        if line.startswith("#"):
            lines.append(line)
        elif line.startswith(SHAPE):
            shape = line[len(SHAPE):]
        else:
            lines.append(f"{shape} {line} {next(times)}")
    return "\n".join(lines) + "\n"
