"""For how long collections keep their documents, set on a page and by the API."""

from __future__ import annotations

from tests.api.rooms.conftest import guest, is_page, went_to, words
from tests.support.visitors import House

HERE = "/settings/retention"


async def test_a_collection_gets_its_days_on_the_page_and_in_the_api(house: House) -> None:
    browser = await guest(house)
    is_page(empty := await browser.get(HERE))
    assert "No collections yet" in words(empty)
    assert "30 days" in words(empty)
    (made,) = (await browser.post("/api/v1/collections", json={"name": "Mail"})).json()["items"]
    assert made["keep_days"] is None
    address = f"{HERE}/{made['id']}"
    went_to(await browser.post(address, data={"days": "90"}), f"{HERE}?said=retention")
    (found,) = (await browser.get("/api/v1/collections")).json()["items"]
    assert found["keep_days"] == 90
    assert 'value="90"' in (await browser.get(HERE)).text
    for wrong in ("0", "many", "99999"):
        is_page(answer := await browser.post(address, data={"days": wrong}), 422)
        assert "Enter a number of days" in words(answer)
    api = f"/api/v1/collections/{made['id']}"
    assert (await browser.patch(api, json={"name": "Post"})).status_code == 204
    (found,) = (await browser.get("/api/v1/collections")).json()["items"]
    assert (found["name"], found["keep_days"]) == ("Post", 90)
    assert (await browser.patch(api, json={"keep_days": None})).status_code == 204
    assert (await browser.get("/api/v1/collections")).json()["items"][0]["keep_days"] is None
    assert (await (await guest(house)).post(address, data={"days": "1"})).status_code == 404
