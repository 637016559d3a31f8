"""Writes the catalogues of the pages' languages: collects all texts, and keeps the translations that exist.

    make catalogues

Texts are marked in three ways. Templates use `_("…")` and `{% trans %}`. Python uses `_("…")`, `mark("…")`,
`Texts({…})` and `count_of(number, "noun")`; the docstring of an error is its title. Scripts use `t("…")` and
`plural("…", "…", number)`.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

from babel.messages import Catalog
from babel.messages.extract import extract_javascript
from babel.messages.plurals import get_plural
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

from octavo.core.texts import ENGLISH, FOLDER, LANGUAGES

SOURCE = Path(__file__).parents[1] / "src" / "octavo"
WEB = SOURCE / "web"
LOCALE = FOLDER
# Their texts are not shown on pages.
OTHER_PACKAGES = frozenset({"bulk", "cli", "mcp"})
HEADER = "# The texts of Octavo's pages. Written by `make catalogues`; see CONTRIBUTING.md, “Add a text or a language”."
TEMPLATE_KEYWORDS = {"_": None, "gettext": None, "ngettext": (1, 2)}
SCRIPT_KEYWORDS = {"t": None, "plural": (1, 2)}

MARKS = re.compile(r"octavo\.core\.texts|count_of\(|^ +code = |\((?:OctavoError|BadInput|Defect)\)", re.MULTILINE)

Text = str | tuple[str, str]
Found = tuple[str, Text]


@cache
def collect() -> Catalog:
    """Return all texts, with the files in which they are."""
    catalogue = Catalog(project="Octavo", charset="utf-8", header_comment=HEADER, fuzzy=False)
    places: dict[Text, set[str]] = {}
    for file, text in (*template_texts(), *python_texts(), *script_texts()):
        places.setdefault(text, set()).add(file)
    plural = {text[0] for text in places if isinstance(text, tuple)}
    for text in sorted(places, key=lambda one: (min(places[one]), one if isinstance(one, str) else one[0])):
        if text not in plural:
            flags = ["python-format"] if "%(" in str(text) or "%s" in str(text) or "%d" in str(text) else []
            catalogue.add(text, locations=[(file, 0) for file in sorted(places[text])], flags=flags)
    return catalogue


def template_texts() -> Iterator[Found]:
    for path in sorted(WEB.rglob("*.html")):
        for _, function, text, _ in babel_extract(
            BytesIO(path.read_bytes()), list(TEMPLATE_KEYWORDS), [], {"trimmed": "true", "silent": "false"}
        ):
            yield from as_found(path, text, is_plural=function == "ngettext")


@cache
def script_texts() -> list[Found]:
    return list(_script_texts())


def _script_texts() -> Iterator[Found]:
    for path in sorted(WEB.rglob("*.js")):
        if LOCALE in path.parents:
            continue
        for _, function, text, _ in extract_javascript(BytesIO(path.read_bytes()), SCRIPT_KEYWORDS, [], {"jsx": False}):
            yield from as_found(path, text, is_plural=function == "plural")


def python_texts() -> Iterator[Found]:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] not in OTHER_PACKAGES:
            for text in texts_of(syntax_of(path)):
                yield name_of(path), text


@cache
def syntax_of(path: Path) -> ast.Module:
    """Return the syntax of a file, or nothing of a file without texts, because parsing takes a while."""
    source = path.read_text()
    return ast.parse(source if MARKS.search(source) else "")


def texts_of(module: ast.Module) -> Iterator[Text]:
    """Return the marked texts of a Python module, and the titles of its errors."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and (name := called(node.func)):
            yield from marked(name, node.args)
        elif isinstance(node, ast.ClassDef) and is_error(node) and (title := ast.get_docstring(node)):
            yield title.splitlines()[0]


def called(function: ast.expr) -> str | None:
    """Return the name of a function that is called, also with types, as in `Texts[GrantAccess](…)`."""
    named = function.value if isinstance(function, ast.Subscript) else function
    return named.id if isinstance(named, ast.Name) else None


def marked(function: str, arguments: list[ast.expr]) -> Iterator[Text]:
    strings = [one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else None for one in arguments]
    if function in {"_", "gettext", "mark"} and strings and strings[0] is not None:
        yield strings[0]
    elif function == "ngettext" and strings[0] and strings[1]:
        yield strings[0], strings[1]
    elif function == "count_of" and strings[1]:
        yield f"%(number)s {strings[1]}", f"%(number)s {strings[2] if strings[2:] else strings[1] + 's'}"
    elif function == "Texts" and arguments and isinstance(arguments[0], ast.Dict):
        for value in arguments[0].values:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value


def is_error(node: ast.ClassDef) -> bool:
    """Whether a class is an error with a title for people: it has a code, or its name says it."""
    names = {one.id for one in node.bases if isinstance(one, ast.Name)}
    codes = any(isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "") == "code" for one in node.body)
    return node.name == "OctavoError" or codes or bool(names & {"OctavoError", "BadInput", "Defect"})


@cache
def error_titles() -> set[str]:
    """Return the titles of errors. Scripts show them after a request that failed."""
    return {
        title.splitlines()[0]
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(syntax_of(path))
        if isinstance(node, ast.ClassDef) and is_error(node) and (title := ast.get_docstring(node))
    }


def as_found(path: Path, text: str | Iterable[str | None] | None, *, is_plural: bool) -> Iterator[Found]:
    """Return a text that was found in a file. Calls with a variable have no text."""
    parts = [one for one in ([text] if isinstance(text, str) else text or ()) if isinstance(one, str) and one]
    if parts:
        yield name_of(path), (parts[0], parts[1]) if is_plural else parts[0]


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE.parents[1]).as_posix()


def file_of(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "octavo.po"


def read(language: str) -> Catalog:
    with file_of(language).open("rb") as file:
        return read_po(file, locale=language)


def po_of(language: str, texts: Catalog) -> bytes:
    """Return the catalogue of a language with the texts of today. Texts that are no longer used are left out."""
    catalogue = read(language) if file_of(language).exists() else Catalog(locale=language)
    catalogue.update(texts, no_fuzzy_matching=True)
    catalogue.header_comment = HEADER
    for name in ("project", "version"):
        setattr(catalogue, name, getattr(texts, name))
    target = BytesIO()
    write_po(
        target,
        catalogue,
        width=120,
        omit_header=False,
        include_previous=False,
        ignore_obsolete=True,
        include_lineno=False,
    )
    lines = target.getvalue().decode().splitlines()
    changing = ('"POT-Creation-Date', '"PO-Revision-Date', '"Generated-By', '"Last-Translator', '"Report-Msgid')
    return "\n".join([*(line for line in lines if not line.startswith(changing)), ""]).encode()


def script_of(language: str, catalogue: Catalog) -> str:
    """Return the script that hands the texts of scripts, and the titles of errors, to the scripts of a page."""
    wanted = {text if isinstance(text, str) else text[0] for _, text in script_texts()} | error_titles()
    texts = {
        key: one.string if isinstance(one.string, str) else list(one.string)
        for one in catalogue
        if one.id and one.string and (key := one.id if isinstance(one.id, str) else one.id[0]) in wanted
    }
    form, words = get_plural(language).plural_expr, json.dumps(texts, ensure_ascii=False, indent=2)
    plural = f"(/** @type {{number}} */ n) => Number({form})" if "n" in form else f"() => {form}"
    head = "// Written by `make catalogues` from the catalogue.\n"
    return f"{head}Object.assign(globalThis, {{ octavoTexts: {{ plural: {plural}, texts: {words} }} }});\n"


def main(*, check: bool) -> int:
    texts = collect()
    stale: list[str] = []
    for language in sorted(LANGUAGES.keys() - {ENGLISH}):
        po = po_of(language, texts)
        script = script_of(language, read_po(BytesIO(po), locale=language)).encode()
        for path, content in ((file_of(language), po), (LOCALE / f"{language}.js", script)):
            if check and (not path.exists() or path.read_bytes() != content):
                stale.append(name_of(path))
            elif not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    if stale:
        print("Run `make catalogues`: " + ", ".join(stale))
    return len(stale)


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
