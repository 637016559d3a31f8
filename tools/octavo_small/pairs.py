# ruff: noqa: E501, PLR2004, S311
"""Makes all pairs of sentences that octavo-small is trained, calibrated and measured with.

    python -m octavo_small.pairs DATA CRANFIELD OUT [--share 0.01]

DATA holds the public files that README.md lists; OUT receives one .jsonl.xz per set.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

import numpy as np
from octavo_small import contracts
from octavo_small.edits import Editor
from octavo_small.forms import FormMaker
from octavo_small.sources import (
    CALIBRATION,
    CONTRADICTS,
    ENTAILS,
    NEUTRAL,
    NOT_CONTRADICTION,
    TRAINING,
    UNLABELLED,
    VALIDATION,
    Pair,
    clean,
    part_of,
    read_abstracts,
    read_antonyms,
    read_captions,
    read_labelled,
    read_lines,
    read_news,
    read_paragraphs,
    read_speeches,
    split_sentences,
    write_pairs,
)
from sklearn.feature_extraction.text import TfidfVectorizer

SEED = 7
_CLAIMS = frozenset({"fever", "fever-dev", "fm2"})
# WordNet does not know these, or not as opposites.
_MORE_ANTONYMS_TEXT = """
increased/decreased increases/decreases rose/fell higher/lower highest/lowest largest/smallest
larger/smaller more/fewer before/after north/south northern/southern east/west eastern/western
oldest/youngest older/younger won/lost winning/losing men/women opened/closed accepted/rejected
allowed/forbidden supported/opposed supports/opposes above/below began/ended starting/ending
approved/rejected included/excluded includes/excludes gained/lost earlier/later always/never all/none
rising/falling improved/worsened longer/shorter faster/slower cheaper/dearer won/lost arrived/left
permitted/prohibited mandatory/optional required/optional sitting/standing running/walking indoors/outdoors
"""
_MORE_ANTONYMS = _MORE_ANTONYMS_TEXT.split()


def new_vectorizer() -> TfidfVectorizer:
    word = r"\b\w[\w-]+\b"
    return TfidfVectorizer(sublinear_tf=True, min_df=2, max_df=0.1, token_pattern=word, dtype=np.float32)


def document_pairs(documents: dict[str, list[str]], per_document: int, source: str, label: int) -> list[Pair]:
    """Pair sentences of different paragraphs of one document that share rare words: presumed neutral."""
    sentences = {name: _sentences_of(paragraphs) for name, paragraphs in documents.items()}
    texts = [sentence for found in sentences.values() for _, sentence in found]
    vectorizer = new_vectorizer()
    vectorizer.fit(texts)
    pairs: list[Pair] = []
    for found in sentences.values():
        if len(found) > 3:
            pairs += [Pair(a, b, label, source) for a, b in _near_in_document(found, vectorizer, per_document)]
    return pairs


def _sentences_of(paragraphs: list[str]) -> list[tuple[int, str]]:
    found = [(place, sentence) for place, text in enumerate(paragraphs) for sentence in split_sentences(text)]
    return list({sentence: (place, sentence) for place, sentence in found}.values())


def _near_in_document(found: list[tuple[int, str]], vectorizer: TfidfVectorizer, most: int) -> list[tuple[str, str]]:
    vectors = vectorizer.transform([sentence for _, sentence in found])
    likeness = np.triu((vectors @ vectors.T).toarray(), 1)
    place = np.array([paragraph for paragraph, _ in found])
    likeness[(place[:, None] == place[None, :]) | (likeness > 0.85)] = 0
    order = np.argsort(-likeness, axis=None)[:most]
    rows, columns = np.unravel_index(order, likeness.shape)
    return [(found[i][1], found[j][1]) for i, j in zip(rows, columns, strict=True) if likeness[i, j] > 0.08]


def near_pairs(texts: list[str], neighbours: int, rng: Random, most: int, bound: float = 0.85) -> list[tuple[int, int]]:
    """Return places of texts that share rare words, at random."""
    vectorizer = new_vectorizer()
    vectors = vectorizer.fit_transform(texts)
    found: list[tuple[int, int]] = []
    for start in range(0, len(texts), 500):
        block = (vectors[start : start + 500] @ vectors.T).toarray()
        block[block > bound] = 0
        block[np.arange(block.shape[0]), start + np.arange(block.shape[0])] = 0
        best = np.argpartition(-block, neighbours, axis=1)[:, :neighbours]
        found += [(start + row, int(column)) for row in range(block.shape[0]) for column in best[row] if block[row, column] > 0.1]  # fmt: skip
    rng.shuffle(found)
    return found[:most]


class PairMaker:
    """Makes the training pairs from the training part of the sources."""

    def __init__(self, data: Path, share: float) -> None:
        self.rng = Random(SEED)
        self.share = share
        self.labelled = read_labelled(data)
        self.captions = read_captions(data)
        training = self.labelled[TRAINING]
        self.claims = [pair for pair in training if pair.source in _CLAIMS]
        self.evidence = sorted({pair.a for pair in self.claims if 40 < len(pair.a) < 330})
        self.lists = sorted({pair.a for pair in training if pair.source == "conj" and len(pair.a) < 330})
        self.true_claims = sorted({pair.b for pair in self.claims if pair.label == ENTAILS})
        self.false_claims = sorted({pair.b for pair in self.claims if pair.label == CONTRADICTS})
        self.wiki = _part(read_paragraphs(data, "newwiki"), TRAINING, validation=12, calibration=12)
        self.policies = _part(read_paragraphs(data, "policy"), TRAINING, validation=12, calibration=12)
        self.speeches = _part(read_speeches(data), TRAINING)
        self.prose = {
            "evidence": self.evidence,
            "lists": self.lists,
            "wiki": _all_sentences(self.wiki),
            "policy": _all_sentences(self.policies),
            "speech": _all_sentences(self.speeches),
        }
        self.all_prose = [sentence for sentences in self.prose.values() for sentence in sentences]
        self.editor = Editor(self.rng, _antonyms(data))
        self.editor.learn_names([*self.all_prose, *self.true_claims])
        words = sorted({word for text in self.evidence[:4000] for word in re.findall(r"\b[a-z]{5,11}\b", text)})
        self.forms = FormMaker(self.rng, self.editor, words, self.all_prose)

    def count(self, number: int) -> int:
        return max(20, int(number * self.share))

    def some(self, items: list[str], number: int) -> list[str]:
        return self.rng.sample(items, min(len(items), self.count(number)))

    def made(self) -> list[Pair]:
        """Pairs whose label follows from how they were made."""
        pairs = [*self._contract_pairs(), *self._claim_edits(), *self._prose_edits()]
        for _ in range(self.count(8000)):
            pairs += self.forms.fact_pairs()
        for _ in range(self.count(3500)):
            pairs += self.forms.choice_pairs()
        pairs += [self.forms.form_pair() for _ in range(self.count(16000))]
        for sentence in self.some(self.all_prose, 9000):
            pairs += self.forms.news_pairs(sentence)
        return pairs

    def neutral(self) -> list[Pair]:
        """Pairs of true sentences about the same thing."""
        pairs = document_pairs(self.speeches, self.count(260), "near-speech", NOT_CONTRADICTION)
        pairs += document_pairs(self.policies, self.count(60), "near-policy", NOT_CONTRADICTION)
        pairs += document_pairs(self.wiki, self.count(250), "near-wiki", NOT_CONTRADICTION)
        near = (
            ("near-evidence", self.evidence, 26000),
            ("near-claims", self.true_claims, 12000),
            ("near-lists", self.lists, 6000),
            ("near-speeches", self.some(self.prose["speech"], 15000), 12000),
        )
        for source, texts, most in near:
            places = near_pairs(texts, 3, self.rng, self.count(most))
            pairs += [Pair(texts[i], texts[j], NOT_CONTRADICTION, source) for i, j in places]
        return pairs

    def unlabelled(self) -> list[Pair]:
        """Pairs that only the teacher labels."""
        return [
            *self._claims_against_evidence(),
            *self._caption_pairs(),
            *self._name_edits(),
            *self._contract_crosses(),
        ]

    def _contract_pairs(self) -> Iterator[Pair]:
        yield from contracts.claim_pairs()
        for pair in self.labelled[TRAINING]:
            if pair.source == "contract":
                yield from contracts.reword(pair, self.rng)

    def _claim_edits(self) -> Iterator[Pair]:
        """Edit claims that are true of their evidence."""
        true = [pair for pair in self.claims if pair.label == ENTAILS]
        for pair in self.rng.sample(true, self.count(len(true))):
            for _ in range(3):
                edit = self.editor.contradict(pair.b, pair.a)
                if edit is None:
                    continue
                changed, kind = edit
                yield Pair(pair.a, changed, CONTRADICTS, f"claim-{kind}")
                if self.rng.random() < 0.4:
                    yield Pair(pair.b, changed, CONTRADICTS, f"claims-{kind}")
                if other := self.editor.change_subject(changed):
                    yield Pair(pair.a, other, NEUTRAL, f"claim-subject-{kind}")

    def _prose_edits(self) -> Iterator[Pair]:
        """Edit sentences of prose: one change contradicts, a change and another subject or year does not."""
        rounds = {"evidence": 2, "lists": 1, "wiki": 3, "policy": 3, "speech": 2}
        for source, sentences in self.prose.items():
            for sentence in self.some(sentences, len(sentences)) * rounds[source]:
                yield from self._edit(sentence, source)

    def _edit(self, sentence: str, source: str) -> Iterator[Pair]:
        rng = self.rng
        short = self.editor.shorten(sentence) if rng.random() < 0.5 else None
        if short and rng.random() < 0.4:
            yield Pair(sentence, short, ENTAILS, f"{source}-short")
        if rng.random() < 0.12 and (same := self.editor.restate(sentence)):
            yield Pair(*rng.sample([sentence, same], 2), ENTAILS, f"{source}-restated")
        edit = self.editor.contradict(short or sentence)
        if edit is None:
            return
        changed, kind = edit
        yield Pair(*rng.sample([sentence, changed], 2), CONTRADICTS, f"{source}-{kind}")
        for change in (self.editor.change_subject, self.editor.change_period, self.editor.change_numbered_name):
            is_two_years = change == self.editor.change_period and changed[:12] != sentence[:12]
            if (other := change(changed)) and not is_two_years:
                yield Pair(*rng.sample([sentence, other], 2), NEUTRAL, f"{source}-{change.__name__}")
                return

    def _claims_against_evidence(self) -> Iterator[Pair]:
        claims = [*self.some(self.false_claims, 7000), *self.some(self.true_claims, 4000)]
        texts = [*self.some(self.evidence, 9000), *claims]
        first_claim = len(texts) - len(claims)
        for i, j in near_pairs(texts, 6, self.rng, self.count(70000), bound=2):
            if (i >= first_claim) or (j >= first_claim):
                a, b = (i, j) if i < first_claim else (j, i)
                yield Pair(texts[a], texts[b], UNLABELLED, "claims-near")

    def _caption_pairs(self) -> Iterator[Pair]:
        captions = self.captions[: self.count(len(self.captions))]
        yield from captions
        for pair in captions:
            if edit := self.editor.contradict(pair.b):
                yield Pair(pair.b, edit[0], UNLABELLED, "captions-edited")
            if edit := self.editor.contradict(pair.a):
                yield Pair(pair.a, edit[0], UNLABELLED, "captions-edited")
        texts = sorted({pair.b for pair in captions})
        for i, j in near_pairs(texts, 4, self.rng, self.count(20000)):
            yield Pair(texts[i], texts[j], UNLABELLED, "captions-near")

    def _name_edits(self) -> Iterator[Pair]:
        for sentence in self.some(self.all_prose, 30000):
            if changed := self.editor.change_any_name(sentence):
                short = self.editor.shorten(changed) if self.rng.random() < 0.5 else None
                yield Pair(sentence, short or changed, UNLABELLED, "names")

    def _contract_crosses(self) -> Iterator[Pair]:
        evidence = sorted({pair.a for pair in self.labelled[TRAINING] if pair.source == "contract"})
        claims = [text for both in contracts.CLAIMS.values() for wordings in both for text in wordings]
        claims += sorted({pair.b for pair in self.labelled[TRAINING] if pair.source == "contract"})
        for text in evidence:
            for claim in self.rng.sample(claims, 10):
                yield Pair(text, claim, UNLABELLED, "contract-cross")
        policies = self.some(self.prose["policy"], 6000)
        for i, j in near_pairs(policies, 3, self.rng, self.count(8000)):
            yield Pair(policies[i], policies[j], UNLABELLED, "policy-cross")


def _antonyms(data: Path) -> dict[str, list[str]]:
    antonyms = read_antonyms(data)
    for one, other in (entry.split("/") for entry in _MORE_ANTONYMS):
        antonyms.setdefault(one, []).append(other)
        antonyms.setdefault(other, []).append(one)
    return antonyms


def _part(
    documents: dict[str, list[str]], part: str, validation: int = 8, calibration: int = 8
) -> dict[str, list[str]]:
    return {name: texts for name, texts in documents.items() if part_of(name, validation, calibration) == part}


def _all_sentences(documents: dict[str, list[str]]) -> list[str]:
    return sorted({sentence for texts in documents.values() for text in texts for sentence in split_sentences(text)})


def wiki_neutral(data: Path) -> dict[str, list[Pair]]:
    """Cut the presumed neutral pairs of Wikipedia by article, as the questions about the same articles are cut."""
    articles: dict[str, str] = {}
    for name, paragraphs in read_paragraphs(data, "newwiki").items():
        for text in paragraphs:
            articles |= dict.fromkeys(split_sentences(text, 10, 2000), name)
    parts: dict[str, list[Pair]] = {TRAINING: [], CALIBRATION: [], VALIDATION: []}
    for row in read_lines(data / "train-neutral-wiki.jsonl.xz"):
        pair = Pair(clean(row["a"]), clean(row["b"]), NOT_CONTRADICTION, "wiki")
        article = articles.get(row["a"]) or articles.get(row["b"])
        if article is not None:
            parts[part_of(article, 12, 12)].append(pair)
    return parts


def measured_neutral(data: Path, cranfield: Path) -> dict[str, list[Pair]]:
    """Presumed neutral pairs of seven kinds of text, for the threshold and for false alarms. None of them is trained."""
    wiki = wiki_neutral(data)
    kinds = {
        "speeches": (read_speeches(data), 250, 8, 8),
        "policies": (read_paragraphs(data, "policy"), 250, 12, 12),
        "news": (read_news(data), 40, 50, 50),
        "papers": (read_abstracts(cranfield), 60, 50, 50),
        "forum": (read_paragraphs(data, "reddit"), 0, 50, 50),
        "reviews": (read_paragraphs(data, "amazon"), 0, 50, 50),
    }
    rng = Random(SEED)
    parts: dict[str, list[Pair]] = {CALIBRATION: wiki[CALIBRATION], VALIDATION: wiki[VALIDATION]}
    for kind, (documents, most, validation, calibration) in kinds.items():
        for part in (CALIBRATION, VALIDATION):
            chosen = _part(documents, part, validation, calibration)
            if most == 0:  # single paragraphs: ten of them make a document
                texts = [text for paragraphs in chosen.values() for text in paragraphs]
                chosen, most_here = {str(i): texts[i : i + 10] for i in range(0, len(texts), 10)}, 60
            else:
                most_here = most
            pairs = document_pairs(chosen, most_here, kind, NOT_CONTRADICTION)
            parts[part] += rng.sample(pairs, min(len(pairs), 3000))
    return parts


def without_copies(pairs: Iterable[Pair]) -> list[Pair]:
    return list({(pair.a, pair.b): pair for pair in pairs if pair.a and pair.b}.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("cranfield", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    maker = PairMaker(options.data, options.share)
    neutral = measured_neutral(options.data, options.cranfield)
    sets = {
        "labelled": maker.labelled[TRAINING],
        "made": maker.made(),
        "neutral": [*maker.neutral(), *wiki_neutral(options.data)[TRAINING]],
        "unlabelled": maker.unlabelled(),
        "calibration": [*maker.labelled[CALIBRATION], *neutral[CALIBRATION]],
        "validation": [*maker.labelled[VALIDATION], *neutral[VALIDATION]],
    }
    for name, pairs in sets.items():
        kept = without_copies(pairs)
        maker.rng.shuffle(kept)
        write_pairs(options.out / f"{name}.jsonl.xz", kept)
        print(name, len(kept), Counter(pair.source for pair in kept).most_common(60))
        print(name, Counter(pair.label for pair in kept))


if __name__ == "__main__":
    main()
