"""Texts get vectors that mean what the original model means, whole texts count, and neighbours change nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import Defect
from octavo.language import DIMENSIONS, Embedder, embedding
from tests.support.tree import ROOT

BRIDGE = "The harbour bridge opened in 2019 and carries forty thousand vehicles every day."
SAME_BRIDGE = "Since 2019 about forty thousand cars and trucks cross the new bridge daily."
BREAD = "Feed the sourdough starter with flour and water and let the dough rest overnight."
UNSAFE = "Engineers do not consider the bridge safe."
# Similarities of these four by the weights as they were published, before they were rounded to 8 bits.
PUBLISHED = [
    [1.0, 0.7239, -0.0128, 0.2540],
    [0.7239, 1.0, -0.0438, 0.3237],
    [-0.0128, -0.0438, 1.0, -0.0603],
    [0.2540, 0.3237, -0.0603, 1.0],
]
LONG = " ".join(f"Sentence {number} tells that the weather in the mountains was mild." for number in range(60))


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder()


def test_the_recorded_hashes_are_those_of_the_files() -> None:
    data = Path(embedding.__file__).with_name("data")
    names = ("all-minilm-l6-v2-int8.onnx", "tokenizer.json", "octavo-small-int8.onnx")
    sums = [f"{hashlib.sha256((data / name).read_bytes()).hexdigest()}  {name}" for name in names]
    assert (data / "SHA256SUMS").read_text().splitlines() == sums


def test_a_damaged_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Path(embedding.__file__).with_name("data")
    for file in data.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer.json").write_bytes((data / "tokenizer.json").read_bytes()[:-1] + b" ")
    monkeypatch.setattr(embedding, "_DATA", tmp_path)
    with pytest.raises(Defect, match=r"tokenizer\.json"):
        Embedder()


def test_similarities_are_those_of_the_published_model(embedder: Embedder) -> None:
    vectors = embedder.embed([BRIDGE, SAME_BRIDGE, BREAD, UNSAFE])
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, DIMENSIONS)
    assert np.allclose(vectors @ vectors.T, PUBLISHED, atol=0.03)


@pytest.mark.parametrize(
    "text", ["", " \n", "a", "\x00", "\ud800", "🙂" * 3, "x" * 10_000, "吾輩は猫である。" * 200, LONG]
)
def test_every_text_has_a_vector_of_length_one(embedder: Embedder, text: str) -> None:
    assert np.linalg.norm(embedder.embed([text])) == pytest.approx(1, abs=1e-5)


def test_no_texts_have_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, DIMENSIONS)


def test_a_vector_depends_on_its_text_alone(embedder: Embedder) -> None:
    alone = np.concatenate([embedder.embed([text]) for text in (BRIDGE, LONG, BREAD)])
    assert np.array_equal(embedder.embed([BRIDGE, LONG, BREAD]), alone)
    assert np.array_equal(Embedder(threads=2).embed([BRIDGE, LONG, BREAD]), alone)


def test_the_last_sentence_of_a_long_text_counts(embedder: Embedder) -> None:
    plain, ending, bread = embedder.embed([LONG, f"{LONG} {BREAD}", BREAD])
    assert ending @ bread > plain @ bread + 0.05


def test_windows_hold_every_piece_once_and_none_is_much_shorter(embedder: Embedder) -> None:
    text = LONG * 4  # more than the tokenizer is given at once
    windows = list(embedder.windows(text))
    by_word = [piece for word in text.split() for window in embedder.windows(word) for piece in window[1:-1]]
    assert [piece for window in windows for piece in window[1:-1]] == by_word
    assert max(map(len, windows)) <= 256
    assert max(map(len, windows)) - min(map(len, windows)) <= 1


def test_marks_of_the_model_in_a_text_are_text(embedder: Embedder) -> None:
    (window,) = embedder.windows("[CLS] hello [SEP] [PAD] [MASK]")
    assert {101, 102, 0, 103}.isdisjoint(window[1:-1])


@pytest.fixture(scope="module")
def reference() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer.from_buffer(embedding.read_checked("tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return tokenizer


def assert_same(text: str, reference: tokenizers.Tokenizer) -> None:
    expected = reference.encode(text, add_special_tokens=False)
    tokenizer = embedding.open_tokenizer(embedding.read_checked("tokenizer.json"))
    assert tokenizer.encode(text) == expected.ids
    assert tokenizer.encode_places(text) == (expected.ids, expected.offsets)


def test_tokens_of_our_documentation_are_those_of_the_reference(reference: tokenizers.Tokenizer) -> None:
    for file in (ROOT / "docs").rglob("*.md"):
        assert_same(file.read_text(), reference)


# The tables of the reference are from an older version of Unicode, so characters of newer versions differ.
@given(
    st.text(
        st.characters(codec="utf-8", max_codepoint=0x5FF)
        | st.sampled_from("ǆΣς≠ﬁﬀ①Ⅷ吾輩は猫である。\uff21\u3000\u200b\ufeff🙂가각ậ")
    )
)
def test_tokens_of_any_text_are_those_of_the_reference(reference: tokenizers.Tokenizer, text: str) -> None:
    assert_same(text, reference)


@pytest.mark.parametrize(
    "text", ["a" * 100, "b" * 101, "Straße", "naïve cafe\u0301s", "\x0b\x0c\x1c\x85", "don't", "C++ & A/B"]
)
def test_tokens_of_unusual_words_are_those_of_the_reference(reference: tokenizers.Tokenizer, text: str) -> None:
    assert_same(text, reference)
