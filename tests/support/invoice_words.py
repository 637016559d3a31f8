"""How invoices say things in several languages, as senders write it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tongue:
    """How one language says it. Where there are several ways the number decides."""

    title: tuple[str, ...]
    number: tuple[str, ...]
    day: tuple[str, ...]
    due: tuple[str, ...]
    order_day: tuple[str, ...]
    customer: tuple[str, ...]
    net: tuple[str, ...]
    tax: tuple[str, ...]
    total: tuple[str, ...]
    heads: tuple[tuple[str, str, str, str], ...]
    bill_to: tuple[str, ...]
    months: str
    currencies: tuple[tuple[str, str], ...]
    decimal: str
    group: str
    days: tuple[str, ...]
    items: tuple[str, ...]
    closing: str


EURO = (("EUR", "€"), ("EUR", "EUR"))
TONGUES = {
    "us": Tongue(
        ("INVOICE", "Invoice", "Tax Invoice", "Bill"),
        ("Invoice Number", "Invoice #", "Invoice No.", "INV NO", "Bill No", "Invoice ID", "Our invoice"),
        ("Invoice Date", "Date", "Date of Issue", "Issued", "Billing Date"),
        ("Due Date", "Payment due", "Pay by"),
        ("Order Date", "Ship Date"),
        ("Customer No.", "Account Number", "Client ID"),
        ("Subtotal", "Sub-Total", "Net"),
        ("Sales Tax", "Tax (8.25%)", "Tax"),
        ("Total", "Total Due", "Amount Due", "Balance Due", "GRAND TOTAL", "Invoice Total"),
        (("Description", "Qty", "Rate", "Amount"), ("Item", "Quantity", "Unit Price", "Total")),
        ("Bill To", "Billed To", "Customer"),
        "January February March April May June July August September October November December",
        (("USD", "$"), ("USD", "USD"), ("USD", "US$")),
        *(".", ","),
        ("{m:02}/{d:02}/{y}", "{name} {d}, {y}", "{y}-{m:02}-{d:02}", "{d} {short} {y}"),
        ("Consulting services", "Laser printer toner", "Annual license", "Oak desk 120x80", "Support hours"),
        "Thank you for your business. Questions? Call (555) 010-4477 or write to billing@example.com.",
    ),
    "gb": Tongue(
        ("INVOICE", "VAT Invoice", "Invoice"),
        ("Invoice No", "Invoice number", "Invoice ref", "Document No."),
        ("Invoice date", "Date", "Tax point", "Date of invoice"),
        ("Due date", "Payment due by"),
        ("Order date", "Delivery date"),
        ("Account no", "Customer ref"),
        ("Net total", "Subtotal", "Total excl. VAT"),
        ("VAT @ 20%", "VAT 20%", "VAT"),
        ("Total", "Total due", "Amount payable", "Total inc. VAT", "Total including VAT"),
        (("Description", "Qty", "Price", "Total"), ("Details", "Hours", "Rate", "Amount")),
        ("Invoice to", "Bill to"),
        "January February March April May June July August September October November December",
        (("GBP", "£"), ("GBP", "GBP"), ("EUR", "€")),
        *(".", ","),
        ("{d:02}/{m:02}/{y}", "{d} {name} {y}", "{d:02}-{m:02}-{y}", "{d}th {name} {y}"),
        ("Garden maintenance", "Bespoke shelving", "Hosting, yearly", "Plumbing works", "A4 paper 80g"),
        "Payment within 30 days. Registered in England 04512345. Late payments bear interest of 8 %.",
    ),
    "de": Tongue(
        ("RECHNUNG", "Rechnung"),
        ("Rechnungsnummer", "Rechnungs-Nr.", "Rechnung Nr.", "Rechnungsnr.", "Beleg-Nr."),
        ("Rechnungsdatum", "Datum", "Ausstellungsdatum", "Belegdatum"),
        ("Zahlbar bis", "Fällig am", "Zahlungsziel"),
        ("Lieferdatum", "Leistungsdatum", "Bestelldatum"),
        ("Kundennummer", "Kunden-Nr.", "Ihre Kundennummer"),
        ("Nettobetrag", "Zwischensumme", "Summe netto", "Netto"),
        ("zzgl. 19 % MwSt.", "MwSt. 19%", "USt. 19 %", "Umsatzsteuer"),
        ("Gesamtbetrag", "Rechnungsbetrag", "Summe", "Gesamt", "Zu zahlender Betrag", "Endbetrag"),
        (("Beschreibung", "Menge", "Einzelpreis", "Gesamt"), ("Bezeichnung", "Anzahl", "Preis", "Betrag")),
        ("Rechnungsempfänger", "Rechnung an"),
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        (*EURO, ("CHF", "CHF")),
        *(",", "."),
        ("{d:02}.{m:02}.{y}", "{d}. {name} {y}", "{d}.{m}.{y}", "{d:02}.{m:02}.{yy:02}"),
        ("Beratung vor Ort", "Druckerpapier A4", "Wartung der Heizung", "Regal aus Eiche", "Fahrtkosten"),
        "Bitte überweisen Sie den Betrag auf das unten genannte Konto. Vielen Dank für Ihren Auftrag.",
    ),
    "fr": Tongue(
        ("FACTURE", "Facture"),
        ("Facture n°", "N° de facture", "Numéro de facture", "Facture No", "Réf. facture"),
        ("Date de facture", "Date", "Date d'émission", "Date de facturation", "Émise le"),
        ("Date d'échéance", "Échéance", "À payer avant le"),
        ("Date de commande", "Date de livraison"),
        ("N° client", "Code client"),
        ("Total HT", "Montant HT", "Sous-total"),
        ("TVA 20%", "TVA (20,00 %)", "Montant TVA"),
        ("Total TTC", "Net à payer", "Montant TTC", "Total à payer", "TOTAL"),
        (("Désignation", "Quantité", "Prix unitaire", "Montant"), ("Description", "Qté", "PU HT", "Total HT")),
        ("Facturé à", "Client"),
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        EURO,
        *(",", " "),
        ("{d:02}/{m:02}/{y}", "{d} {name} {y}", "{d:02}.{m:02}.{y}"),
        ("Prestation de conseil", "Ramettes de papier", "Étagère en chêne", "Hébergement annuel", "Déplacement"),
        "Pas d'escompte pour paiement anticipé. En cas de retard, indemnité forfaitaire de 40 euros.",
    ),
    "nl": Tongue(
        ("FACTUUR", "Factuur"),
        ("Factuurnummer", "Factuurnr.", "Factuur nr"),
        ("Factuurdatum", "Datum"),
        ("Vervaldatum", "Te betalen voor"),
        ("Orderdatum", "Leverdatum"),
        ("Klantnummer", "Debiteurnummer"),
        ("Subtotaal", "Totaal excl. btw", "Exclusief btw"),
        ("Btw 21%", "21% btw", "BTW"),
        ("Totaal", "Totaal incl. btw", "Te betalen", "Totaalbedrag"),
        (("Omschrijving", "Aantal", "Prijs", "Bedrag"), ("Artikel", "Aantal", "Stuksprijs", "Totaal")),
        ("Factuuradres", "Factuur aan"),
        "januari februari maart april mei juni juli augustus september oktober november december",
        EURO,
        *(",", "."),
        ("{d:02}-{m:02}-{y}", "{d} {name} {y}"),
        ("Advies op locatie", "Printerpapier A4", "Eiken plank", "Hosting per jaar", "Reiskosten"),
        "Gelieve het bedrag binnen 14 dagen over te maken onder vermelding van het factuurnummer.",
    ),
    "es": Tongue(
        ("FACTURA", "Factura"),
        ("Factura nº", "Nº de factura", "Número de factura", "N.º factura"),
        ("Fecha de factura", "Fecha", "Fecha de emisión"),
        ("Fecha de vencimiento", "Vencimiento"),
        ("Fecha de pedido", "Fecha de entrega"),
        ("Nº cliente", "Código de cliente"),
        ("Base imponible", "Subtotal"),
        ("IVA 21%", "IVA (21 %)", "Cuota IVA"),
        ("Total", "Total a pagar", "Total factura", "Importe total"),
        (("Descripción", "Cantidad", "Precio", "Importe"), ("Concepto", "Uds.", "Precio unitario", "Total")),
        ("Cliente", "Facturar a"),
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        EURO,
        *(",", "."),
        ("{d:02}/{m:02}/{y}", "{d} de {name} de {y}", "{d:02}-{m:02}-{y}"),
        ("Servicios de consultoría", "Papel A4", "Estante de roble", "Alojamiento anual", "Desplazamiento"),
        "Inscrita en el Registro Mercantil de Madrid, tomo 1234, folio 56. Gracias por su confianza.",
    ),
    "it": Tongue(
        ("FATTURA", "Fattura"),
        ("Fattura n.", "Numero fattura", "Fattura nr.", "N. fattura"),
        ("Data fattura", "Data", "Data di emissione"),
        ("Scadenza", "Data di scadenza"),
        ("Data ordine", "Data di consegna"),
        ("Codice cliente", "Cliente n."),
        ("Imponibile", "Totale imponibile"),
        ("IVA 22%", "Totale IVA", "Imposta"),
        ("Totale", "Totale fattura", "Totale da pagare", "Importo totale"),
        (("Descrizione", "Quantità", "Prezzo", "Importo"), ("Articolo", "Q.tà", "Prezzo unitario", "Totale")),
        ("Spett.le", "Intestatario"),
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        EURO,
        *(",", "."),
        ("{d:02}/{m:02}/{y}", "{d} {name} {y}"),
        ("Consulenza tecnica", "Carta A4", "Mensola in rovere", "Hosting annuale", "Trasferta"),
        "Pagamento a 30 giorni data fattura. Capitale sociale 10.000,00 interamente versato.",
    ),
    "pl": Tongue(
        ("FAKTURA", "Faktura VAT"),
        ("Faktura nr", "Numer faktury", "Nr faktury"),
        ("Data wystawienia", "Data faktury"),
        ("Termin płatności",),
        ("Data sprzedaży", "Data dostawy"),
        ("Numer klienta",),
        ("Razem netto", "Wartość netto"),
        ("Kwota VAT", "VAT 23%"),
        ("Do zapłaty", "Razem brutto", "Razem do zapłaty"),
        (("Nazwa", "Ilość", "Cena", "Wartość"), ("Opis", "Ilość", "Cena netto", "Kwota")),
        ("Nabywca",),
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
        (("PLN", "zł"), ("PLN", "PLN")),
        *(",", " "),
        ("{d:02}.{m:02}.{y}", "{y}-{m:02}-{d:02}", "{d} {name} {y}"),
        ("Usługi doradcze", "Papier A4", "Półka dębowa", "Hosting roczny", "Dojazd"),
        "Dziękujemy za współpracę. Prosimy o terminową płatność.",
    ),
}
