"""Embeds texts with the bundled model: all-MiniLM-L6-v2 with 8-bit weights, 384 dimensions, English only.

The model accepts 256 tokens. A longer text is cut into windows of equal length, and the vectors of the windows are
added, so the last sentence has the same weight as the first. Each window is embedded separately. Therefore no padding
is needed, a vector does not depend on other texts, and memory is needed for only one window at a time.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category, normalize

from octavo.core.errors import Defect
from octavo.language.vocabulary import load_once

if TYPE_CHECKING:
    import numpy as np

NAME = "local/all-minilm-l6-v2-int8"
DIMENSIONS = 384
LANGUAGES = frozenset({"en"})

_DATA = Path(__file__).with_name("data")
_MODEL, _TOKENIZER, _SUMS = "all-minilm-l6-v2-int8.onnx", "tokenizer.json", "SHA256SUMS"
_BEGIN, _END = 101, 102
_MAX_TOKENS = 256 - 2
# Each ideograph is a separate word. These ranges are part of the definition of the vocabulary.
_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


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
        """Split the tokens of a text into as few windows of equal length as possible that fit into the model."""
        whole = text.encode(errors="replace").decode()  # a question may contain a lone surrogate
        tokens = self._tokenizer.encode(whole)
        count = max(ceil(len(tokens) / _MAX_TOKENS), 1)
        for start, end in pairwise(len(tokens) * part // count for part in range(count + 1)):
            yield [_BEGIN, *tokens[start:end], _END]

    def _run_all(self, windows: Sequence[list[int]]) -> Iterator[np.ndarray]:
        if self._threads == 1 or len(windows) == 1:
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
    """Read a model file and verify its checksum. A damaged model would not fail; it would return wrong vectors."""
    content = (_DATA / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != _sums()[name]:
        raise Defect(f"{name} does not match its checksum. Reinstall Octavo.")
    return content


@load_once
def load_runtime() -> Any:  # noqa: ANN401 - it has no types
    """Import numpy and the ONNX runtime, in only one thread at a time.

    If several threads import numpy for the first time at the same moment, the import can fail. It then keeps failing
    until the process ends.
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


@cache
def open_tokenizer(content: bytes) -> Tokenizer:
    return Tokenizer(json.loads(content)["model"])


class _Normalised(dict[int, str]):
    """Maps each character to its normalised form: lower case and without accents.

    A character that is always a separate token, such as punctuation or a Chinese character, is surrounded by spaces.
    """

    def __missing__(self, number: int) -> str:
        self[number] = form = _normalise(chr(number))
        return form


class Tokenizer:
    """Splits text into the word pieces that the models read (tokens of BERT's uncased WordPiece vocabulary).

    The `tokenizers` package is not used, because it requires a client that downloads models.
    """

    def __init__(self, model: dict[str, Any]) -> None:
        self._vocabulary: dict[str, int] = model["vocab"]
        self._longest = max(map(len, self._vocabulary))
        self._unknown = self._vocabulary[model["unk_token"]]
        self._most_letters: int = model["max_input_chars_per_word"]
        self._forms = _Normalised()
        self._pieces = lru_cache(maxsize=30_000)(self._split)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text."""
        words = text.translate(self._forms).split()
        return [token for word in words for token, _ in self._pieces(word)]

    def encode_places(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the token ids of a text, and the start and end offsets of each token."""
        letters = [(letter, place) for place, one in enumerate(text) for letter in self._forms[ord(one)]]
        tokens: list[int] = []
        places: list[tuple[int, int]] = []
        first = 0
        for word in "".join(letter for letter, _ in letters).split(" "):
            for token, length in self._pieces(word) if word else ():
                tokens.append(token)
                places.append((letters[first][1], letters[first + length - 1][1] + 1))
                first += length
            first += 1
        return tokens, places

    def _split(self, word: str) -> tuple[tuple[int, int], ...]:
        """Split a word into tokens, always taking the longest known piece. Returns the token ids with their lengths."""
        found: list[tuple[int, int]] = []
        start = 0
        while start < len(word) <= self._most_letters:
            ends = range(min(len(word), start + self._longest), start, -1)
            mark = "##" if start else ""
            end = next((end for end in ends if mark + word[start:end] in self._vocabulary), start)
            if end == start:
                break
            found.append((self._vocabulary[mark + word[start:end]], end - start))
            start = end
        return tuple(found) if start == len(word) else ((self._unknown, len(word)),)


def _normalise(letter: str) -> str:
    if letter in "\t\n\r" or category(letter)[0] == "Z":
        return " "
    if letter == "\ufffd" or category(letter) in {"Cc", "Cf", "Co"}:
        return ""
    forms = (one.lower() for one in normalize("NFD", letter) if category(one) != "Mn")
    return "".join(f" {one} " if _is_word(one) or _is_ideograph(letter) else one for one in forms)


def _is_word(letter: str) -> bool:
    """Whether a character is always a separate token. This applies to all punctuation and to all ASCII symbols."""
    return category(letter)[0] == "P" or (letter.isascii() and not letter.isalnum())


def _is_ideograph(letter: str) -> bool:
    return any(first <= ord(letter) <= last for first, last in _IDEOGRAPHS)
