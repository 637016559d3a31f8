"""What the how-to page about conversions shows is right."""

from __future__ import annotations

import re
from pathlib import Path

from octavo.convert.mappings.shipped_mappings import mapping_from_text, shipped_names
from octavo.convert.rules.engine import convert
from octavo.core.settings import Settings, variable_name
from tests.support.sheets import sheet

PAGE = (Path(__file__).parents[3] / "docs/how-to/conversions.md").read_text()
FORM = """
Member number: 4711        Member since: 1 May 2020
Phone: 555 0199
Fee per year      120.00
Discount           20.00
To pay            100.00
"""


def test_the_mapping_on_the_page_finds_what_it_says() -> None:
    found = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found
    conversion = convert([sheet(FORM)], mapping_from_text(found[1], "membership_v1.yaml"))
    assert {value.name: value.value for value in conversion.values} == {
        "member": "4711",
        "joined": "2020-05-01",
        "fee": "120.00",
        "discount": "20.00",
        "total": "100.00",
    }
    assert [check.holds for check in conversion.checks] == [True]


def test_mappings_and_settings_on_the_page_exist() -> None:
    assert {name for name in shipped_names() if name in PAGE} == set(shipped_names())
    known = {variable_name(name) for name in Settings.model_fields}
    assert set(re.findall(r"OCTAVO_[A-Z_]+", PAGE)) <= known
