"""Vectors of texts, by a model that comes along: all-MiniLM-L6-v2 with weights of 8 bits, 384 numbers, English only.

It reads 256 word pieces at once. Longer texts are read in windows of equal length whose vectors are added up, so that
their last sentence counts as much as their first. Windows go through the model one by one: there is nothing to pad, a
vector does not depend on which other texts are there, and memory stays what one window needs.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octavo.core.errors import Defect
from octavo.language.load_once import load_once

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

NAME = "local/all-minilm-l6-v2-int8"
DIMENSIONS = 384
LANGUAGES = frozenset({"en"})

_DATA = Path(__file__).with_name("data")
_MODEL, _TOKENIZER, _SUMS = "all-minilm-l6-v2-int8.onnx", "tokenizer.json", "SHA256SUMS"
_BEGIN, _END = 101, 102
_MOST_PIECES = 256 - 2
# What is given to the tokenizer at once, which needs a hundred times the memory of its text; cut between words.
_PART = re.compile(r".{1,10000}(?:\s|\Z)|.{1,10000}", re.DOTALL)


class Embedder:
    """Made once for a process: loading takes a tenth of a second. `threads` windows are read at the same time.

    It may be called from any thread, and leaves the interpreter to others meanwhile.
    """

    def __init__(self, threads: int = 1) -> None:
        self._session = _open_session(_read_checked(_MODEL))
        self._tokenizer = _open_tokenizer(_read_checked(_TOKENIZER))
        self._threads = threads

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """A row for each text, of length 1. A text without any word has the vector of an empty one."""
        import numpy as np

        windows = [(place, window) for place, text in enumerate(texts) for window in self.windows(text)]
        found = self._run_all([window for _, window in windows])
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for (place, window), vector in zip(windows, found, strict=True):
            vectors[place] += vector / np.linalg.norm(vector) * len(window)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def windows(self, text: str) -> Iterator[list[int]]:
        """The word pieces of a text as the model reads them: as few windows as can be, all of the same length."""
        whole = text.encode(errors="replace").decode()  # a question may hold half of a character
        parts = (part.group() for part in _PART.finditer(whole))
        pieces = [piece for part in parts for piece in self._tokenizer.encode(part, add_special_tokens=False).ids]
        count = max(ceil(len(pieces) / _MOST_PIECES), 1)
        for start, end in pairwise(len(pieces) * part // count for part in range(count + 1)):
            yield [_BEGIN, *pieces[start:end], _END]

    def _run_all(self, windows: Sequence[list[int]]) -> Iterator[np.ndarray]:
        if self._threads == 1:
            yield from map(self._run, windows)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            yield from pool.map(self._run, windows)

    def _run(self, window: list[int]) -> np.ndarray:
        import numpy as np

        return self._session.run(None, {"pieces": np.array([window], np.int64)})[0]


@load_once
def offline_embedder() -> Embedder:
    """One for all threads of a process."""
    return Embedder(threads=len(os.sched_getaffinity(0)))


@cache
def _sums() -> dict[str, str]:
    lines = (_DATA / _SUMS).read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def _read_checked(name: str) -> bytes:
    """A model that was damaged on its way gives numbers too, only other ones."""
    content = (_DATA / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != _sums()[name]:
        raise Defect(f"{name} is not the file that Octavo was shipped with. Install Octavo anew.")
    return content


def _open_session(model: bytes) -> Any:  # noqa: ANN401 - it has no types
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # else it tells its makers of every start
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # a window is too small to be divided
    options.enable_cpu_mem_arena = False  # it keeps what the longest window needed for ever, and saves no time
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _open_tokenizer(content: bytes) -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(content)
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is text
    return tokenizer
