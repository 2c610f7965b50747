"""Every kernel leaves the offset of an element to gemm::offset(), which computes it in 64 bits."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
POINTER = r"\b(?:gemm\s*\.\s*[abd]|matrix)\b"


def without_calls(text):
    """The expression without what stands inside calls of offset()."""
    while (at := re.search(r"\boffset\(", text)) is not None:
        depth, end = 0, len(text)
        for i in range(at.end() - 1, len(text)):
            depth += {"(": 1, ")": -1}.get(text[i], 0)
            if depth == 0:
                end = i + 1
                break
        text = text[:at.start()] + "OFFSET" + text[end:]
    return text


def problems(text):
    """Lines where a product, and not offset(), says which element of a matrix is meant."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        code = without_calls(line.split("//")[0])
        if re.search(POINTER + r"\s*(?:\+|\[)[^,;]*[\w)]\s*\*\s*[\w(]", code):
            found.append(number)
    return found


class Offsets(unittest.TestCase):
    def test_products_are_found(self):
        self.assertEqual(problems("ptx::ld_global(gemm.a + row * k + column);\n"
                                  "gemm.d[row * n];\n"
                                  "gemm.d + offset(row, column * 2, n);  // not gemm.d + row * n\n"
                                  "matrix + offset(row + 8 * i, 0, k) + first;\n"
                                  "matrix + first * (k + 1);\n"), [1, 2, 5])

    def test_no_kernel_multiplies_in_32_bits(self):
        seen = 0
        for folder in ("steps", "common/gemm"):
            for path in sorted((ROOT / folder).rglob("*.cuh")):
                text = path.read_text(encoding="utf-8")
                seen += len(re.findall(POINTER + r"\s*\+", text))
                self.assertEqual(problems(text), [], f"{path.relative_to(ROOT)}: use offset(row, column, columns)")
        self.assertGreater(seen, 5)
