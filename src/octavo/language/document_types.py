"""Finds the type of a document by typical words in English and, for some types, in other European languages."""

from __future__ import annotations

import re

from octavo.language.insights import DocumentType

# Source kinds that determine the type.
_BY_KIND = {
    "eml": DocumentType.EMAIL,
    "msg": DocumentType.EMAIL,
    "pptx": DocumentType.PRESENTATION,
    "odp": DocumentType.PRESENTATION,
    "xlsx": DocumentType.SPREADSHEET,
    "xlsb": DocumentType.SPREADSHEET,
    "xls": DocumentType.SPREADSHEET,
    "ods": DocumentType.SPREADSHEET,
    "csv": DocumentType.SPREADSHEET,
    "youtube": DocumentType.TRANSCRIPT,
    "vtt": DocumentType.TRANSCRIPT,
    "srt": DocumentType.TRANSCRIPT,
}
# Source kinds that suggest a type when the text gives no other.
_DEFAULT_BY_KIND = {
    "epub": DocumentType.BOOK,
    "fb2": DocumentType.BOOK,
    "mhtml": DocumentType.ARTICLE,
    "web": DocumentType.ARTICLE,
    "html": DocumentType.ARTICLE,
    "image": DocumentType.IMAGE,
    "paste": DocumentType.NOTES,
}
# The start of a line, after markup and the number of a heading.
_LINE = r"^[^\w\n]{0,10}(?:\d{1,2}[ .]{1,3})?"
# Each matching expression counts one, and three more if it matches the title.
_CUES: dict[DocumentType, tuple[str, ...]] = {
    DocumentType.INVOICE: (
        r"invoice|rechnung(?!swesen)|facture|fattura|factura|factuur",
        r"(invoice|rechnungs?|facture|factuur)\W{0,3}(no|number|nr|nummer|n°|#|date|datum)",
        r"amount due|total due|balance due|zahlbar|zu zahlen|à payer|te betalen|payment terms",
        r"\bvat\b|\bust\b|mwst|\btva\b|\biva\b|\bbtw\b|sales tax|\bgst\b",
        r"bill(ed)? to|sold by|unit price|einzelpreis|prix unitaire",
    ),
    DocumentType.RECEIPT: (
        r"receipt|quittung|kassenbon|ticket de caisse|ricevuta|recibo",
        r"cash|change due",
        r"cashier|bar gezahlt",
    ),
    DocumentType.CONTRACT: (
        r"agreement|contract|vertrag|contrat|contratto|contrato",
        r"hereinafter|hereby|whereas\b|witnesseth",
        r"the parties|party of the first|between the undersigned|vertragsparteien",
        r"governing law|termination|indemnif|liabilit",
        r"in witness whereof|signed by|shall not|force majeure",
    ),
    DocumentType.LETTER: (
        rf"{_LINE}(dear|sehr geehrte|liebe[rs]?|cher|chère|madame|monsieur|estimad[oa]|gentile|geachte) ",
        rf"{_LINE}(yours (sincerely|faithfully|truly)|sincerely|(kind|best) regards|mit freundlichen grüßen)",
        r"enclos(ed|ure)|enc\.:|re:|betreff",
    ),
    DocumentType.PAPER: (
        rf"{_LINE}abstract\b",
        rf"{_LINE}(references|bibliography)\b",
        r"et al\.|\[\d+(, ?\d+)*\]",
        r"\bdoi\b|arxiv|issn|proceedings of|journal of|university|département|institut",
        r"we (propose|present|show|introduce|study|prove)|this paper|in this article",
        rf"{_LINE}(related work|methods?|methodology|experiments?|evaluation|conclusions?)\b",
    ),
    DocumentType.REPORT: (
        r"\breport\b|bericht|rapport|relazione|informe|relatório",
        r"executive summary|key findings|findings|recommendations",
        r"fiscal year|quarter(ly)?|annual|prepared (for|by)",
    ),
    DocumentType.MANUAL: (
        r"manual|user.?s? guide|handbook|handbuch|anleitung|mode d'emploi|reference guide|specification",
        r"install(ation|ing)?|configur(e|ation)|troubleshooting|getting started",
        r"step \d|warning[:!]|caution[:!]|note:",
    ),
    DocumentType.MINUTES: (
        r"minutes of|meeting minutes|protokoll|procès-verbal|verbale",
        r"attendees|present:|apologies|anwesend|participants:",
        r"action items?|agenda|adjourned|next meeting|beschluss",
    ),
    DocumentType.RESUME: (
        r"curriculum vitae|résumé|\bresume\b|lebenslauf",
        r"work experience|professional experience|employment history|berufserfahrung",
        rf"{_LINE}(education|skills|languages|ausbildung|kenntnisse)\b[^\w\n]{{0,5}}$",
    ),
    DocumentType.POLICY: (
        r"privacy policy|terms (of|and) (service|use|conditions)|policy|richtlinie|datenschutzerklärung",
        r"effective date|this policy|personal data|you agree",
        r"must not|are required to|complian(ce|t)",
    ),
    DocumentType.STATEMENT: (
        r"(account|bank) statement|kontoauszug|relevé de compte|estratto conto",
        r"opening balance|closing balance|statement period|saldo",
        r"\biban\b|account number|transactions",
    ),
    DocumentType.FORM: (
        r"application form|antrag|formulaire",
        r"please (fill|complete|print)",
        r"_{6,}|\u2610|\[ \]",
        r"signature|unterschrift",
    ),
    DocumentType.BOOK: (
        r"\bisbn\b",
        rf"{_LINE}(chapter|kapitel|chapitre|capitolo|capítulo) \w+",
        r"all rights reserved|first published|edition",
    ),
}  # fmt: skip
_COMPILED = {kind: tuple(re.compile(cue, re.IGNORECASE | re.MULTILINE) for cue in cues) for kind, cues in _CUES.items()}
_LEAST = 3
_IN_TITLE = 3
_BOOK_WORDS = 40_000


def find_type(*, kind: str, title: str | None, head: str, words: int) -> DocumentType:
    """Find the type of a document. `head` is the beginning and end of its text, where the typical words usually are."""
    if kind in _BY_KIND:
        return _BY_KIND[kind]
    scores = {
        document_type: sum(bool(cue.search(head)) + _IN_TITLE * bool(title and cue.search(title)) for cue in cues)
        for document_type, cues in _COMPILED.items()
    }
    default = DocumentType.BOOK if words >= _BOOK_WORDS else _DEFAULT_BY_KIND.get(kind, DocumentType.OTHER)
    if kind in {"epub", "fb2"} or words >= _BOOK_WORDS:
        return default
    best = max(scores, key=lambda one: scores[one])
    return best if scores[best] >= _LEAST else default
