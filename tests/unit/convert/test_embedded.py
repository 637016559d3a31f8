"""An invoice that a PDF brings along as XML is used as it is, and is read without trust."""

from __future__ import annotations

from octavo.convert.mappings.shipped_mappings import load_shipped
from octavo.convert.rules.embedded_invoice import parse_safely
from octavo.convert.rules.engine import convert
from octavo.convert.values import Conversion
from tests.support.sheets import sheet

_SUMS = "SpecifiedTradeSettlementHeaderMonetarySummation"
CROSS_INDUSTRY = f"""<?xml version="1.0"?>
<r:CrossIndustryInvoice xmlns:r="urn:r" xmlns:a="urn:a" xmlns:u="urn:u">
  <r:ExchangedDocument><a:ID>FX-9</a:ID>
    <a:IssueDateTime><u:DateTimeString format="102">20240815</u:DateTimeString></a:IssueDateTime></r:ExchangedDocument>
  <r:SupplyChainTradeTransaction>
    <a:IncludedSupplyChainTradeLineItem><a:SpecifiedTradeProduct><a:Name>Shelf</a:Name></a:SpecifiedTradeProduct>
      <a:SpecifiedLineTradeSettlement><a:SpecifiedTradeSettlementLineMonetarySummation>
        <a:LineTotalAmount>100.00</a:LineTotalAmount></a:SpecifiedTradeSettlementLineMonetarySummation>
      </a:SpecifiedLineTradeSettlement></a:IncludedSupplyChainTradeLineItem>
    <a:ApplicableHeaderTradeSettlement><a:InvoiceCurrencyCode>EUR</a:InvoiceCurrencyCode>
      <a:{_SUMS}><a:TaxBasisTotalAmount>100.00</a:TaxBasisTotalAmount><a:TaxTotalAmount>19.00</a:TaxTotalAmount>
        <a:GrandTotalAmount>119.00</a:GrandTotalAmount></a:{_SUMS}>
    </a:ApplicableHeaderTradeSettlement>
  </r:SupplyChainTradeTransaction>
</r:CrossIndustryInvoice>""".encode()
PAGE = sheet("Rechnung Nr. FX-9 vom 15. August 2024\nSumme   119,00 €")


def read(name: str, body: bytes) -> Conversion:
    return convert([PAGE], load_shipped("invoice_v1"), [(name, body)])


def test_the_attached_invoice_is_taken_as_it_is() -> None:
    found = read("factur-x.xml", CROSS_INDUSTRY)
    values = {value.path: value.value for value in found.values}
    assert found.source == "embedded"
    assert values == {
        "invoice_number": "FX-9",
        "invoice_date": "2024-08-15",
        "currency": "EUR",
        "net": "100.00",
        "tax": "19.00",
        "total": "119.00",
        "lines[1].description": "Shelf",
        "lines[1].amount": "100.00",
    }
    assert {value.confidence for value in found.values} == {1.0}


def test_its_values_are_shown_where_the_page_has_them() -> None:
    found = read("ZUGFeRD-invoice.xml", CROSS_INDUSTRY)
    quotes = {value.name: value.place.quote for value in found.values if value.place}
    assert quotes == {"invoice_number": "FX-9", "invoice_date": "15. August 2024", "total": "119,00", "currency": "€"}
    assert {value.status for value in found.values if value.place} == {"checked"}


def test_other_attachments_are_left_alone() -> None:
    assert read("notes.xml", CROSS_INDUSTRY).source == "rules"
    assert read("factur-x.xml", b"<html/>").source == "rules"
    assert read("factur-x.xml", b"<broken").source == "rules"


def test_entities_and_document_types_are_refused() -> None:
    bomb = b'<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><CrossIndustryInvoice>&b;</CrossIndustryInvoice>'
    outside = b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><CrossIndustryInvoice>&a;</CrossIndustryInvoice>'
    assert parse_safely(bomb) is None
    assert parse_safely(outside) is None
    assert read("factur-x.xml", bomb).source == "rules"
