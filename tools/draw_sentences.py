"""Draw docstrings and user-facing sentences at random, for somebody to read.

    .venv/bin/python -m tools.draw_sentences --seed 7 --count 100

The same seed draws the same sentences from the same tree. Docstrings come from all modules, classes and functions;
user-facing sentences from pages, scripts, command help, error titles, settings and the docs, each once.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.make_catalogues import script_texts, template_texts

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "octavo"
FEWEST_WORDS = 4
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings() -> Iterator[str]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
                yield f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')}\n    {' '.join(text.split())}"


def user_texts() -> Iterator[str]:
    yield from _texts_of_pages()
    yield from _texts_of_messages()
    yield from _texts_of_docs()


def _texts_of_pages() -> Iterator[str]:
    """The texts of pages and scripts that are translated."""
    for file, text in (*template_texts(), *script_texts()):
        variants = [text] if isinstance(text, str) else list(text)
        yield from _sentences(ROOT / file, [re.sub(r"<[^>]*>", "", variant) for variant in variants])


def _texts_of_messages() -> Iterator[str]:
    """Error titles, settings, help and everything else in Python that begins like a sentence and is not a docstring."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        first = {
            id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, DOCUMENTED) and _has_docstring(node)
        }
        texts = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in first
        ]
        yield from _sentences(path, [text for text in texts if text[:1].isupper()])


def _has_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return bool(node.body) and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)


def _texts_of_docs() -> Iterator[str]:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for path in pages:
        skipped = r"```.*?```|^ {4}[^\n]*$|^\|[^\n]*$|^#[^\n]*$"  # code, tables and headings
        text = re.sub(skipped, "\n\n", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        paragraphs = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n|(?:^|\n)\s*(?:-|\d+\.) ", text)]
        yield from _sentences(path, [one for paragraph in paragraphs for one in re.split(r"(?<=[.!?]) +", paragraph)])


def _sentences(path: Path, found: list[str] | list[tuple[str, ...]]) -> Iterator[str]:
    for each in found:
        text = " ".join(("".join(each) if isinstance(each, tuple) else each).split())
        if len(text.split()) >= FEWEST_WORDS and re.search(r"[a-z]{3}", text) and "SELECT" not in text:
            yield f"{path.relative_to(ROOT)}\n    {text}"


def _once(texts: Iterator[str]) -> list[str]:
    """Keep each sentence once, wherever else it is written."""
    return list({text.split("\n")[1]: text for text in texts}.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    chance = random.Random(options.seed)  # noqa: S311 - for sampling
    for name, texts in (("Docstrings", list(docstrings())), ("User-facing sentences", _once(user_texts()))):
        drawn = chance.sample(texts, min(options.count, len(texts)))
        sys.stdout.write(f"# {name}: {options.count} of {len(texts)}\n\n")
        sys.stdout.write("".join(f"{number}. {text}\n" for number, text in enumerate(drawn, 1)) + "\n")


if __name__ == "__main__":
    main()
