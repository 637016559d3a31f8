"""Makes the models for text recognition that come with Octavo, from published Tesseract models. Not used at run time.

    python tools/make_ocr_models.py FOLDER src/octavo/extract/ocr/data

FOLDER has the files *.traineddata of the Debian packages tesseract-ocr-osd and tesseract-ocr-script-* (tessdata_fast),
and those of the npm packages @tesseract.js-data/<language> (4.0.0_best_int, unpacked). A model of a whole script is
mostly a list of the words of all its languages. Without the list it is a hundredth of the size and reads almost as
well, so the lists are left out, except where they help.
"""

from __future__ import annotations

import hashlib
import lzma
import struct
import sys
from pathlib import Path

# The scripts, each with the file it is made from. A plus keeps the list of words.
SOURCES = {
    "Arabic": "Arabic",
    "Armenian": "Armenian",
    "Bengali": "ben+",
    "Cyrillic": "Cyrillic",
    "Devanagari": "Devanagari",
    "Ethiopic": "Ethiopic",
    "Georgian": "Georgian",
    "Greek": "Greek+",
    "Gujarati": "Gujarati",
    "Gurmukhi": "Gurmukhi",
    "HanS": "chi_sim+",
    "HanT": "chi_tra+",
    "Hangul": "Hangul",
    "Hebrew": "Hebrew",
    "Japanese": "jpn+",
    "Kannada": "Kannada",
    "Khmer": "Khmer",
    "Lao": "Lao",
    "Latin": "Latin",
    "Malayalam": "Malayalam",
    "Myanmar": "Myanmar",
    "Sinhala": "Sinhala",
    "Tamil": "Tamil",
    "Telugu": "tel+",
    "Thai": "tha+",
    "Vietnamese": "Vietnamese",
    "osd": "osd+",
}
CONFIG, WORDS = 0, 19
OTHER_MODELS = b"tessedit_load_sublangs"


def main(source: Path, folder: Path) -> None:
    sums: list[str] = []
    for script, name in SOURCES.items():
        parts = read_parts((source / f"{name.rstrip('+')}.traineddata").read_bytes())
        if not name.endswith("+"):
            parts[WORDS] = None
        parts[CONFIG] = without_other_models(parts[CONFIG])
        packed = lzma.compress(write_parts(parts), preset=9 | lzma.PRESET_EXTREME)
        path = folder / f"{script}.traineddata.xz"
        path.write_bytes(packed)
        sums.append(f"{hashlib.sha256(packed).hexdigest()}  {path.name}\n")
    (folder / "SHA256SUMS").write_text("".join(sums))


def without_other_models(config: bytes | None) -> bytes | None:
    """Some models ask for a second one, which takes twice the time."""
    lines = [line for line in (config or b"").splitlines(keepends=True) if not line.startswith(OTHER_MODELS)]
    return b"".join(lines) or None


def read_parts(model: bytes) -> list[bytes | None]:
    """A count, the offsets of the parts (-1: missing), and the parts in any order."""
    (count,) = struct.unpack_from("<i", model)
    starts = struct.unpack_from(f"<{count}q", model, 4)
    ends = sorted([start for start in starts if start >= 0] + [len(model)])
    return [None if start < 0 else model[start : next(end for end in ends if end > start)] for start in starts]


def write_parts(parts: list[bytes | None]) -> bytes:
    place = 4 + 8 * len(parts)
    starts: list[int] = []
    for part in parts:
        starts.append(-1 if part is None else place)
        place += len(part or b"")
    return struct.pack(f"<i{len(parts)}q", len(parts), *starts) + b"".join(part or b"" for part in parts)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
