"""JSON that only programs read, packed with xz: the data of figures."""
import json
import lzma

from program import UserError


def read(path):
    """What a packed file holds."""
    try:
        return json.loads(lzma.decompress(path.read_bytes()))
    except (OSError, lzma.LZMAError, ValueError) as error:
        raise UserError(f"{path} cannot be read as packed JSON: {error}.") from None


def packed(path, new):
    """The bytes of the file `path` with `new` in it. Where nothing is new they stay as they are: another xz may write other bytes."""
    if path.is_file() and read(path) == new:
        return path.read_bytes()
    return lzma.compress(json.dumps(new, ensure_ascii=False, separators=(",", ":")).encode(), preset=9 | lzma.PRESET_EXTREME)
