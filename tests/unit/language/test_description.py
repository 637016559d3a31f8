"""Everything that is told of a document is in it, within the limits, and the same whenever it is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.language import describe
from octavo.language.insights import (
    ChunkInsight,
    ChunkText,
    DocumentFacts,
    DocumentInsight,
    DocumentSource,
    DocumentType,
    Emotion,
)

PLANTS = """Photosynthesis is the process by which green plants turn sunlight into chemical energy. Chlorophyll in the
leaves absorbs light, and the plant takes in carbon dioxide through its leaves. Photosynthesis releases oxygen as a
by-product. Without photosynthesis there would be no oxygen for animals to breathe."""
SOLAR = """A solar cell turns sunlight into electric energy. Solar cells are made of silicon, which absorbs light and
sets electrons free. The efficiency of solar cells has doubled since 1990. Researchers compare solar cells with
photosynthesis, which is far less efficient in using sunlight."""
REFERENCES = "Smith, A. Light and leaves. Miller, B. Silicon. Jones, C. Energy of the sun, volume 3, pages 12 to 40."
SOURCE = DocumentSource(
    [
        ChunkText(f"# Energy from the sun\n\n{PLANTS}", ("Energy from the sun",)),
        ChunkText(f"## Solar cells\n\n{SOLAR}", ("Energy from the sun", "Solar cells")),
        ChunkText(f"## References\n\n{REFERENCES}", ("Energy from the sun", "References")),
    ],
    kind="markdown",
    filename="sun.md",
)


def words(text: str) -> str:
    return " ".join(text.lower().split())


def test_a_document_is_described() -> None:
    facts = DocumentFacts("Energy from the sun", "Ada Lovelace", "2024-03", DocumentType.ARTICLE)
    document = describe(SOURCE, facts).document
    assert (document.title, document.author, document.date) == ("Energy from the sun", "Ada Lovelace", "2024-03")
    assert document.language == "en"
    assert document.type is DocumentType.ARTICLE
    assert {"photosynthesis", "solar cell"} <= set(document.tags)
    assert "sunlight" in document.summary


def test_a_summary_of_a_transcript_has_no_times_and_speakers() -> None:
    said = "[00:00:04] Ada Lee: The old dams on the moor hold back the water of the bog for almost a whole day."
    document = describe(DocumentSource([ChunkText(said)], kind="text", filename="talk.txt")).document
    assert document.summary == "The old dams on the moor hold back the water of the bog for almost a whole day."


def test_each_chunk_is_described_in_its_own_words() -> None:
    plants, solar, _ = describe(SOURCE).chunks
    assert plants.concepts[0].text.lower() == "photosynthesis"
    assert solar.concepts[0].text.lower() == "solar cell"
    for chunk, passage in zip((plants, solar), SOURCE.chunks, strict=False):
        content = words(passage.content)
        assert 2 <= len(chunk.themes) <= 3
        assert 5 <= len(chunk.concepts) <= 10
        assert all(words(concept.text) in content for concept in chunk.concepts)
        assert chunk.concepts[0].importance == 1
        assert words(chunk.summary.split(". ")[0]) in content
        assert chunk.tone.primary_emotion is not Emotion.UNKNOWN


def test_references_matter_less_than_text() -> None:
    plants, solar, references = (chunk.importance for chunk in describe(SOURCE).chunks)
    assert references < 0.3 < min(plants, solar)


def test_what_it_makes_is_labelled_and_repeatable() -> None:
    assert describe(SOURCE).made_by == "local"
    assert describe(SOURCE) == describe(SOURCE)


def test_a_language_that_it_does_not_know_is_not_guessed_at() -> None:
    text = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で泣いていた。"
    description = describe(DocumentSource([ChunkText(text, ("吾輩は猫である", "一"))], known_tags=("harbour", "猫")))
    (chunk,) = description.chunks
    assert description.document.language == "ja"
    assert description.document.tags == []
    assert chunk.concepts == []
    assert chunk.themes == ["一", "吾輩は猫である"]  # the document's own headings
    assert chunk.tone.polarity == 0
    assert chunk.tone.primary_emotion is Emotion.UNKNOWN
    assert chunk.summary.split()[0] in text


@pytest.mark.parametrize(
    ("text", "concept"),
    [
        (
            "Der Vertrag regelt die Miete. Die Miete ist am Monatsanfang fällig, und der Mieter zahlt die Miete.",
            "Miete",
        ),
        ("Le traité protège la forêt. La forêt est grande, et le traité interdit de couper la forêt.", "forêt"),
        ("El puente cruza el río. El río es ancho, y el puente sobre el río es viejo y muy largo.", "río"),
        ("De brug gaat over de rivier. De rivier is breed, en de brug over de rivier is oud en lang.", "rivier"),
    ],
)
def test_concepts_of_neighbouring_languages(text: str, concept: str) -> None:
    (chunk,) = describe(DocumentSource([ChunkText(text)])).chunks
    assert concept in {one.text for one in chunk.concepts[:2]}


@pytest.mark.parametrize(
    "text", ["", "4711", "| 1 | 2 |\n|---|---|\n| 3 | 4 |", "```\ncode\n```", "!!! ???", "A", "\x00"]
)
def test_a_passage_that_says_nothing_is_described_as_such(text: str) -> None:
    (chunk,) = describe(DocumentSource([ChunkText(text)])).chunks
    assert len(chunk.concepts) <= 1
    assert 0 <= chunk.importance <= 1


def test_a_document_without_text_is_described_as_such() -> None:
    description = describe(DocumentSource([], kind="image", filename="IMG_1.jpg"))
    assert description.chunks == []
    assert description.document == DocumentInsight(
        title=None, author=None, summary="", date=None, language=None, type=DocumentType.OTHER, tags=[]
    )


anything = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200)
marked = st.text(alphabet=st.sampled_from("ab A.B!?\n#*_|-`[]()<>1$\u201c\u3002é\u0130ß"), max_size=200)
sources = st.builds(
    DocumentSource,
    st.lists(st.builds(ChunkText, anything | marked, st.lists(anything, max_size=2).map(tuple)), max_size=4),
    kind=st.sampled_from(["pdf", "epub", "image"]),
    title=st.none() | anything,
    author=st.none() | anything,
    language=st.none() | anything,
)


@settings(deadline=None)
@given(sources)
def test_whatever_a_document_holds_the_limits_hold(source: DocumentSource) -> None:
    description = describe(source)
    assert len(description.chunks) == len(source.chunks)
    DocumentInsight.model_validate(description.document.model_dump())
    for chunk in description.chunks:
        ChunkInsight.model_validate(chunk.model_dump())


def tags_of(text: str, title: str) -> list[str]:
    chunks = [ChunkText(text, (title,))]
    return describe(DocumentSource(chunks, title=title), DocumentFacts(title)).document.tags


def test_a_tag_is_not_the_end_of_a_longer_name() -> None:
    text = "The 5-level paging of the processor maps memory. With 5-level paging, the kernel grows. " * 4
    assert "level paging" not in tags_of(text, "5-level paging")


def test_verbs_adjectives_and_words_of_every_document_are_not_tags() -> None:
    text = (
        "Attach the glacier survey. It was attached before. Its ice is measurable. It stays measurable. A comment "
        "on the glacier is a comment. The main objective of the glacier survey is the main objective. "
        "Attaching it helps. "
    )
    assert set(tags_of(text * 4, "Glacier survey with comments")) <= {"glacier", "survey", "glacier survey"}
    assert tags_of(text * 4, "Glacier survey with comments")


def test_a_tag_is_not_the_beginning_of_a_longer_name() -> None:
    text = "The free stream mach number of the glacier model grows. A free stream mach number is measured. " * 4
    assert not {"free stream mach", "stream mach"} & set(tags_of(text, "Glacier model"))


def test_placeholder_text_has_no_tags() -> None:
    text = "Lorem ipsum glacier survey. The glacier survey has a glacier map. " * 4
    assert tags_of(text, "Glacier survey") == []
    assert tags_of(text.replace("Lorem ipsum ", ""), "Glacier survey")


def test_a_single_common_word_is_not_a_tag() -> None:
    text = "The flow is measured behind the wedge. This flow has an effect, and the effect of the flow is large. " * 4
    assert not {"flow", "effect"} & set(tags_of(text, "The effect of flow on a wedge"))
