"""Embeds texts with the bundled model: all-MiniLM-L6-v2 with 8-bit weights, 384 dimensions, English only.

The model accepts 256 tokens. A longer text is cut into windows of equal length, and the vectors of the windows are
added, so the last sentence has the same weight as the first. Each window is embedded separately. Therefore no padding
is needed, a vector does not depend on other texts, and memory is needed for only one window at a time.
"""

from __future__ import annotations

import hashlib
import importlib
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
from octavo.language.vocabulary import load_once

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

NAME = "local/all-minilm-l6-v2-int8"
DIMENSIONS = 384
LANGUAGES = frozenset({"en"})

_DATA = Path(__file__).with_name("data")
_MODEL, _TOKENIZER, _SUMS = "all-minilm-l6-v2-int8.onnx", "tokenizer.json", "SHA256SUMS"
_BEGIN, _END = 101, 102
_MAX_TOKENS = 256 - 2
# The tokenizer needs a hundred times the memory of its text, so long texts are split between words.
_PART = re.compile(r".{1,10000}(?:\s|\Z)|.{1,10000}", re.DOTALL)


class Embedder:
    """The embedding model.

    Create one per process, because loading takes a tenth of a second. `threads` is the number of text windows that are
    embedded in parallel. The embedder can be called from any thread and releases the GIL while it runs.
    """

    def __init__(self, threads: int = 1) -> None:
        self._session = open_session(read_checked(_MODEL))
        self._tokenizer = open_tokenizer(read_checked(_TOKENIZER))
        self._threads = threads

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return one unit vector per text. A text without words gets the vector of an empty text."""
        import numpy as np

        windows = [(place, window) for place, text in enumerate(texts) for window in self.windows(text)]
        outputs = self._run_all([window for _, window in windows])
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for (place, window), vector in zip(windows, outputs, strict=True):
            vectors[place] += vector / np.linalg.norm(vector) * len(window)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def windows(self, text: str) -> Iterator[list[int]]:
        """Split the tokens of a text into windows of equal length that the model accepts, as few as possible."""
        whole = text.encode(errors="replace").decode()  # a question may contain a lone surrogate
        parts = (part.group() for part in _PART.finditer(whole))
        tokens = [token for part in parts for token in self._tokenizer.encode(part, add_special_tokens=False).ids]
        count = max(ceil(len(tokens) / _MAX_TOKENS), 1)
        for start, end in pairwise(len(tokens) * part // count for part in range(count + 1)):
            yield [_BEGIN, *tokens[start:end], _END]

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
    """Return the embedder shared by all threads of the process."""
    return Embedder(threads=len(os.sched_getaffinity(0)))


@cache
def _sums() -> dict[str, str]:
    lines = (_DATA / _SUMS).read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def read_checked(name: str) -> bytes:
    """Read a model file and verify its checksum, because a damaged model would return wrong vectors without an
    error.
    """
    content = (_DATA / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != _sums()[name]:
        raise Defect(f"{name} does not match its checksum. Reinstall Octavo.")
    return content


@load_once
def load_runtime() -> Any:  # noqa: ANN401 - it has no types
    """Import numpy and the model's runtime in one thread.

    If several threads import numpy for the first time, the import can fail. It then keeps failing until the process
    ends.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # otherwise the runtime reports every start to its vendor
    importlib.import_module("numpy")  # must come before the runtime imports parts of numpy
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    return onnxruntime


def open_session(model: bytes) -> Any:  # noqa: ANN401 - it has no types
    runtime = load_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # a window is too small to use more threads
    options.enable_cpu_mem_arena = False  # the arena would keep the memory of the longest window and save no time
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def open_tokenizer(content: bytes) -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(content)
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is ordinary text
    return tokenizer
