"""People with browsers: a real installation, a real Chromium, and what a page must never do."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote, urlsplit

import httpx
import psutil
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    Response,
    Route,
    WebError,
    sync_playwright,
)
from psycopg.errors import CheckViolation

from octavo.core.types import hash_token, new_id, new_token
from octavo.database import load_queries
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.owners.accounts import NOBODYS_HASH
from octavo.owners.sessions import SESSION_SECONDS
from tests.support.chromium import ADVICE, find_chromium
from tests.support.engine import Engine
from tests.support.instance import Instance
from tests.support.processes import PATIENCE_SECONDS, wait_until

# Everything that talks to somebody else by itself is off.
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
OWNERS, ACCOUNTS = load_queries("owners"), load_queries("accounts")
SESSION_COOKIE = "octavo_session"
TERMINAL = ("completed", "failed")
OPEN_TRANSACTIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"""
STATUS_OF = "SELECT status FROM documents WHERE id = %s"
COMPARISONS = """
    SELECT count(*) FROM jobs
    WHERE document_id = %s AND kind = 'detect_connections' AND status IN ('queued', 'processing')"""
LEFT_BEHIND = """
    SELECT j.id FROM jobs j JOIN owners o ON o.id = j.owner_id JOIN sessions s ON s.owner_id = o.id
    WHERE s.token_hash = %s AND o.kind <> 'local' AND j.status IN ('queued', 'processing', 'paused')"""
STORED = "local_storage,indexeddb,cache_storage,service_workers"
DESKTOP, PHONE = (1440, 900), (390, 844)
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
# Asking for animations applies the styles first. A page that is not drawn never ends them, so nothing waits for that.
COLOURS_ARE_THERE = """() => {
  for (const one of document.getAnimations()) if (one instanceof CSSTransition) one.finish();
}"""
# A refusal is also an error in the console, but who listens to that may miss what happens while a page is loaded.
REPORT_REFUSALS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`CSP refused ${event.violatedDirective} ${event.blockedURI || event.sample}`));
"""


# The browser -------------------------------------------------------------------------------------------------------


class Stage:
    """One Chromium for all tests of this process.

    Playwright keeps an event loop that counts as running between its calls, and then nobody else in this thread can run
    one. So it is shown only while a browser test runs.
    """

    def __init__(self) -> None:
        found = find_chromium()
        if found is None:
            raise RuntimeError(ADVICE)
        self._playwright: Playwright = sync_playwright().start()
        self._loop = asyncio._get_running_loop()
        try:
            self.browser: Browser = self._playwright.chromium.launch(
                executable_path=found.path, args=[*QUIET, *found.arguments]
            )
        except BaseException:
            self._playwright.stop()
            raise
        self._windows = Windows(self.browser)
        asyncio._set_running_loop(None)

    @contextmanager
    def shown(self) -> Generator[Windows]:
        asyncio._set_running_loop(self._loop)
        try:
            yield self._windows
        finally:
            asyncio._set_running_loop(None)

    def end(self) -> None:
        with self.shown():
            self.browser.close()
            self._playwright.stop()


@dataclass(eq=False)  # without slots: playwright leaves notes on whose methods it calls
class Window:
    """A page in a profile of its own. `is_changed` if a test did something to it that cannot be undone."""

    key: tuple[object, ...]
    context: BrowserContext
    page: Page
    is_changed: bool = False

    def empty(self, address: str) -> None:
        """Leave nothing of who used it: no cookie, stored value, permission, route, other page or pointer."""
        for other in self.context.pages:
            if other is not self.page:
                other.close()
        self.page.unroute_all()
        self.page.goto("/healthz")  # without scripts; for an empty page, Chromium would start another process
        self.page.mouse.move(-1, -1)
        self.context.clear_cookies()
        self.context.clear_permissions()
        session: Any = self.context.new_cdp_session(self.page)
        session.send("Storage.clearDataForOrigin", {"origin": address, "storageTypes": STORED})
        session.detach()


class Windows:
    """Windows of one browser. One that a test has used is emptied and given to the next that needs one like it.

    Opening one takes a third of a second of processor time, and its pages would load every script and style again.
    """

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self._free: list[Window] = []

    def take(self, address: str, size: tuple[int, int], scheme: str, **options: Any) -> Window:  # noqa: ANN401
        key = (address, *sorted(options.items()))
        # The one used last: its files are in memory.
        window = next((one for one in reversed(self._free) if one.key == key), None)
        if window:
            self._free.remove(window)
        else:
            window = self._open(key, address, **options)
        window.page.set_viewport_size({"width": size[0], "height": size[1]})
        window.page.emulate_media(color_scheme=cast("Any", scheme))
        return window

    def _open(self, key: tuple[object, ...], address: str, **options: Any) -> Window:  # noqa: ANN401
        context = self.browser.new_context(base_url=address, reduced_motion="reduce", **options)
        context.set_default_timeout(PATIENCE_SECONDS * 1000)
        context.add_init_script(REPORT_REFUSALS)
        return Window(key, context, context.new_page())

    def give_back(self, window: Window, address: str) -> None:
        if window.is_changed or window.page.is_closed():
            window.context.close()
            return
        window.empty(address)
        self._free.append(window)


# The installation --------------------------------------------------------------------------------------------------


class Place:
    """A running installation that the browsers of a session share; everybody has an owner of their own."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.address = instance.address
        self._admin: str | None = None
        self._engine: Engine | None = None

    @property
    def database(self) -> Engine:
        """For states that nothing real brings about."""
        if self._engine is None:
            self._engine = Engine(EmbeddedPostgres(DataFolder(self.instance.data)).connection_info())
        return self._engine

    def client(self, session: str | None = None) -> httpx.Client:
        cookies = {SESSION_COOKIE: session} if session else None
        return httpx.Client(base_url=self.address, cookies=cookies, timeout=PATIENCE_SECONDS, trust_env=False)

    def sign_up(self, email: str | None = None) -> str:
        """Somebody new, kept as the product keeps people, but without the slow hashing; answers the session."""
        owner, person, secret = new_id(), new_id(), new_token()
        execute = self.database.connection.execute
        execute(OWNERS.insert_owner, {"id": owner, "kind": "user"})
        account = {"email": email or f"{person.hex}@example.org", "password_hash": NOBODYS_HASH}
        execute(ACCOUNTS.insert_user, {"id": person, "owner": owner, **account})
        session = {"session_hash": hash_token(secret), "seconds": SESSION_SECONDS, "fixed": False}
        execute(OWNERS.insert_session, {"owner": owner, "user": person, **session})
        return secret

    def admin(self) -> str:
        """The session of who owns this machine; the link works once."""
        if self._admin is None:
            with self.client() as client:
                token = self.instance.sign_in_link().partition("token=")[2]
                client.post("/sign-in", data={"token": token})
                self._admin = client.cookies[SESSION_COOKIE]
        return self._admin

    @contextmanager
    def workers_held(self) -> Generator[None]:
        """What is in line stays there, and what is being worked on stays as it is."""
        named = self.instance.process_ids()
        pids = [pid for name, pid in named.items() if name.startswith("worker") and pid]
        assert pids, named
        family = [one for pid in pids for one in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]]
        _signal(family, signal.SIGSTOP)
        # Somebody who is held inside a transaction would hold back everybody's events with it.
        while self.database.one(OPEN_TRANSACTIONS):
            _signal(family, signal.SIGCONT)
            time.sleep(0.02)
            _signal(family, signal.SIGSTOP)
            time.sleep(0.05)
        try:
            yield
        finally:
            _signal(family, signal.SIGCONT)

    def drop_work(self, session: str) -> None:
        """What is still in line for somebody who is gone would only take time from whoever comes next."""
        for row in self.database.rows(LEFT_BEHIND, hash_token(session)):
            with suppress(CheckViolation):  # it ended by itself
                self.database.cancel(row["id"])

    def end(self) -> None:
        if self._engine:
            self._engine.connection.close()


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for one in processes:
        with suppress(ProcessLookupError):  # one that ended meanwhile
            os.kill(one.pid, number)


# Somebody with a browser -------------------------------------------------------------------------------------------


@dataclass  # without slots: playwright leaves notes on whose methods it calls
class Watch:
    """What pages did that they must not do."""

    address: str
    wrong: list[str] = field(default_factory=list[str])
    expected: list[str] = field(default_factory=list[str])
    requests: list[Request] = field(default_factory=list[Request])

    context: BrowserContext | None = None

    def begin(self, context: BrowserContext) -> None:
        """Watch all pages of a profile, also those that are opened later."""
        self.context = context
        context.on("console", self._hear)
        context.on("weberror", self._fail)
        context.on("request", self._send)

    def end(self) -> None:
        assert self.context
        self.context.remove_listener("console", self._hear)
        self.context.remove_listener("weberror", self._fail)
        self.context.remove_listener("request", self._send)

    def expect(self, *parts: str) -> None:
        """Words of complaints that belong to the test."""
        self.expected += parts

    def check(self) -> None:
        left = [one for one in self.wrong if not any(part in one for part in self.expected)]
        assert left == [], "\n".join(left)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.wrong.append(f"console: {message.text} {message.location.get('url', '')}")

    def _fail(self, failure: WebError) -> None:
        self.wrong.append(f"script: {failure.error.message} {failure.error.stack or ''}")

    def _send(self, request: Request) -> None:
        self.requests.append(request)
        scheme = urlsplit(request.url).scheme
        if scheme not in {"data", "blob"} and not request.url.startswith(f"{self.address}/"):
            self.wrong.append(f"outside: {request.url}")


class Program:
    """Somebody by the API alone."""

    def __init__(self, place: Place, session: str | None) -> None:
        self.place = place
        self.api = place.client(session)

    def end(self) -> None:
        if session := self.api.cookies.get(SESSION_COOKIE):
            self.place.drop_work(session)
        self.api.close()

    def ask(self, method: str, path: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - as httpx takes it
        answer = self.api.request(method, f"/api/v1{path}", **more)
        assert answer.is_success, f"{answer.status_code} {answer.text}"
        return cast("dict[str, Any]", answer.json()) if answer.content else {}

    def upload(self, filename: str, content: bytes | str, **fields: str) -> str:
        """Add a file; answers the document's id."""
        body = content.encode() if isinstance(content, str) else content
        headers = {"x-upload-filename": quote(filename), "content-type": "application/octet-stream"}
        return str(self.ask("POST", "/documents", content=body, headers=headers, params=fields)["document_id"])

    def document(self, document: str) -> dict[str, Any]:
        return self.ask("GET", f"/documents/{document}")

    def documents(self) -> list[dict[str, Any]]:
        return self.ask("GET", "/documents", params={"limit": 200})["items"]

    def wait_for(self, document: str, *statuses: str, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Until it is in one of these states; without any, until it is done, well or badly.

        The database is asked: a request takes ten times the processor time, and there are many.
        """
        wanted = statuses or TERMINAL
        wait_until(
            lambda: self.place.database.one(STATUS_OF, document) in wanted,
            f"document {document} is {' or '.join(wanted)}",
            seconds=seconds,
        )
        return self.document(document)

    def wait_for_all(self, documents: Iterable[str], seconds: float = PATIENCE_SECONDS) -> None:
        for document in documents:
            self.wait_for(document, seconds=seconds)

    def add(self, filename: str, content: bytes | str, **fields: str) -> str:
        """Upload, and wait until it is done, also the comparison that follows: pages show its events, too."""
        document = self.upload(filename, content, **fields)
        self.wait_for(document)
        running = self.place.database.one
        wait_until(lambda: not running(COMPARISONS, document), f"document {document} is compared")
        return document


class Visitor(Program):
    """A browser with a fresh profile, the API of the same owner, and a watch over both."""

    def __init__(self, place: Place, windows: Windows, session: str | None = None, **options: Any) -> None:  # noqa: ANN401
        super().__init__(place, session)
        self.watch = Watch(place.address)
        self._windows = windows
        size, scheme = options.pop("size", DESKTOP), options.pop("scheme", "light")
        scripts = options.pop("scripts", True)
        self._window = windows.take(place.address, size, scheme, java_script_enabled=scripts, **options)
        self.context, self.page = self._window.context, self._window.page
        self.watch.begin(self.context)
        if session:
            self.context.add_cookies([{"name": SESSION_COOKIE, "value": session, "url": place.address}])
        self._others: list[Visitor] = []

    def run_first(self, script: str) -> None:
        """Run a script before those of each page. No other test gets this window, because this cannot be undone."""
        self._window.is_changed = True
        self.context.add_init_script(script)

    def stop_clock(self) -> None:
        """Let time pass on pages only when the test says so. No other test gets this window."""
        self._window.is_changed = True
        self.page.clock.install()

    @property
    def session(self) -> str:
        """The cookie; somebody who came without one got it with the first page."""
        for cookie in self.context.cookies(self.place.address):
            if cookie.get("name") == SESSION_COOKIE:
                return cookie.get("value", "")
        raise AssertionError("this browser has no session yet")

    def open(self, path: str) -> Page:
        answer = self.page.goto(path)
        assert answer is not None
        assert answer.ok, f"{path}: {answer.status}"
        self._act_for_page()
        return self.page

    def goto(self, path: str) -> Response:
        """Whatever the answer is."""
        answer = self.page.goto(path)
        assert answer is not None
        return answer

    def _act_for_page(self) -> None:
        if SESSION_COOKIE not in self.api.cookies:
            self.api.cookies.set(SESSION_COOKIE, self.session)

    def twin(self, **options: Any) -> Visitor:  # noqa: ANN401 - as for a context
        """Another browser of the same owner."""
        other = Visitor(self.place, self._windows, self.session, **options)
        self._others.append(other)
        return other

    def end(self) -> None:
        for other in self._others:
            other.end()
        self._windows.give_back(self._window, self.place.address)
        self.watch.end()
        super().end()
        self.watch.check()


# What holds on every page ------------------------------------------------------------------------------------------


def check_axe(page: Page, part: str | None = None, *, dark_too: bool = False) -> None:
    """No violation of WCAG A and AA that can be found without a person.

    With a `part`, only there: for what opens on a page whose rest has been checked.
    """
    page.wait_for_load_state()
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)  # by the debugger, which the page's policy does not bind
    with _all_in_sight(page):
        _run_axe(page, part, {"type": "tag", "values": AXE_RULES})
        if dark_too:  # where only colours differ
            page.emulate_media(color_scheme="dark")
            page.evaluate(COLOURS_ARE_THERE)
            _run_axe(page, part, {"type": "rule", "values": COLOUR_RULES})
            page.emulate_media(color_scheme="light")
            page.evaluate(COLOURS_ARE_THERE)


@contextmanager
def _all_in_sight(page: Page) -> Generator[None]:
    """What happens to lie under a fixed bar would count as covered."""
    size = page.viewport_size or {"width": DESKTOP[0], "height": DESKTOP[1]}
    whole = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": size["width"], "height": max(size["height"], int(whole) + 100)})
    yield
    page.set_viewport_size(size)


def _run_axe(page: Page, part: str | None, rules: dict[str, Any]) -> None:
    options = {"runOnly": rules, "resultTypes": ["violations"]}
    found: list[Mapping[str, Any]] = page.evaluate(
        "([part, options]) => axe.run(part ?? document, options).then((results) => results.violations)", [part, options]
    )
    said = [f"{one['id']}: {one['help']}\n    {node['html']}\n    {node['failureSummary']}"
            for one in found for node in one["nodes"]]  # fmt: skip
    assert not found, f"{page.url}\n" + "\n".join(said)


def no_sideways_scroll(page: Page) -> None:
    wide: list[str] = page.evaluate(
        """() => document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
          [...document.body.querySelectorAll("*")]
            .filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
            .map((one) => one.outerHTML.slice(0, 120)).slice(0, 8)"""
    )
    assert wide == [], f"{page.url} is wider than the window: {wide}"


def picture(page: Page, name: str) -> None:
    """Save a picture of the page in the folder that SCREENSHOTS names, for people who want to see it."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


@contextmanager
def slow_line(page: Page, bytes_per_second: int) -> Generator[None]:
    """What is sent meanwhile goes no faster than this."""
    session: Any = page.context.new_cdp_session(page)
    speed = {"downloadThroughput": -1, "uploadThroughput": bytes_per_second}
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", {"offline": False, "latency": 0, **speed})
    yield
    session.detach()


def come_back(page: Page) -> bool:
    """Somebody comes back to the window and looks for a moment; what just happened may be told a little later."""
    page.evaluate("dispatchEvent(new Event('focus'))")
    page.wait_for_timeout(250)
    return True


def until(page: Page, condition: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> float:
    """Wait while the page goes on living; answers how long it took."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > seconds:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        page.wait_for_timeout(20)
    return time.monotonic() - begun


class Late:
    """The first answer from an address, held back until the test lets it go on."""

    def __init__(self, page: Page, address: str, *, answered: bool = True) -> None:
        self.page = page
        self._answered = answered
        self._go: Callable[[], None] | None = None
        self._route: Route | None = None
        page.route(address, self._hold, times=1)
        self._until_in_force()

    def _until_in_force(self) -> None:
        """A page learns a moment later that its requests are looked at, and one that it sends before is not held."""
        looked: list[str] = []

        def look(route: Route) -> None:
            looked.append(route.request.url)
            route.fulfill(status=204)

        self.page.route("**/healthz?held", look)
        while not looked:
            self.page.evaluate("fetch('/healthz?held').then((answer) => answer.status)")
        self.page.unroute("**/healthz?held")

    def _hold(self, route: Route) -> None:
        self._route = route
        if self._answered:  # by what the server knew when it was asked
            answer = route.fetch()
            self._go = lambda: route.fulfill(response=answer)
        else:
            self._go = route.continue_

    def wait(self) -> None:
        until(self.page, lambda: self._go, "it is asked for")

    def arrive(self) -> None:
        assert self._go
        self._go()

    def arrive_empty(self) -> None:
        """As if nothing had been there when it was asked for."""
        assert self._route
        self._route.fulfill(status=200, content_type="text/html", body="")
