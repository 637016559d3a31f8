"""The clients: `Client` for asynchronous programs, and `SyncClient`, whose calls block."""

from __future__ import annotations

from functools import cached_property
from typing import Self

import httpx

from octavo.client.account import AccountCalls, DeliveryCalls
from octavo.client.analyses import AnalysisCalls
from octavo.client.automation import AutomationCalls
from octavo.client.calls import Blocking, LoopThread
from octavo.client.conversions import ConversionCalls
from octavo.client.documents import DocumentCalls
from octavo.client.jobs import JobCalls
from octavo.client.search import SearchCalls
from octavo.client.transport import SESSION_COOKIE, RetryPolicy, Transport, read_key
from octavo.client.uploads import UploadCalls

CONNECTIONS = 10
HINT = "Check that the server is running and that the address is correct."


class AllCalls(UploadCalls, DocumentCalls, SearchCalls, JobCalls, AccountCalls, DeliveryCalls):
    """The calls that are methods of the client itself. Analyses, conversions and automation have separate objects."""


class Client(AllCalls):
    """A client for one server. It acts for the account that the API key or the session belongs to.

    `hint` is shown to users if the server is unreachable. `http` replaces the network transport, for example to call an
    application in the same process.
    """

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        session: str | None = None,
        connections: int = CONNECTIONS,
        retry_policy: RetryPolicy | None = None,
        hint: str = HINT,
        http: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        headers = {"authorization": f"Bearer {read_key(key)}"} if key else {}
        headers |= {"cookie": f"{SESSION_COOKIE}={session}"} if session else {}
        policy = retry_policy or RetryPolicy()
        super().__init__(
            Transport(address, headers=headers, connections=connections, retry_policy=policy, hint=hint, http=http)
        )

    @property
    def address(self) -> str:
        return self._transport.address

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.__aexit__()

    @property
    def analyses(self) -> AnalysisCalls:
        """The API calls for analyses of whole documents, and for saved prompts."""
        return AnalysisCalls(self._transport)

    @property
    def automation(self) -> AutomationCalls:
        """The API calls for sources, custom fields and rules."""
        return AutomationCalls(self._transport)

    @property
    def conversions(self) -> ConversionCalls:
        """The API calls for conversions of business documents to XML, and for mappings."""
        return ConversionCalls(self._transport)


class SyncAnalysisCalls(Blocking, AnalysisCalls):
    """The calls of `AnalysisCalls` as blocking methods, for code without `async`."""


class SyncAutomationCalls(Blocking, AutomationCalls):
    """The calls of `AutomationCalls` as blocking methods, for code without `async`."""


class SyncConversionCalls(Blocking, ConversionCalls):
    """The calls of `ConversionCalls` as blocking methods, for code without `async`."""


class SyncClient(Blocking, AllCalls):
    """`Client` with blocking methods, for code without `async`. Several threads can share one instance."""

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        session: str | None = None,
        connections: int = CONNECTIONS,
        retry_policy: RetryPolicy | None = None,
        hint: str = HINT,
    ) -> None:
        self._client = Client(
            address, key=key, session=session, connections=connections, retry_policy=retry_policy, hint=hint
        )
        super().__init__(LoopThread(), self._client)

    @property
    def address(self) -> str:
        return self._client.address

    @cached_property
    def analyses(self) -> SyncAnalysisCalls:
        """The API calls for analyses of whole documents, and for saved prompts."""
        return SyncAnalysisCalls(self._loop, self._client.analyses)

    @cached_property
    def automation(self) -> SyncAutomationCalls:
        """The API calls for sources, custom fields and rules."""
        return SyncAutomationCalls(self._loop, self._client.automation)

    @cached_property
    def conversions(self) -> SyncConversionCalls:
        """The API calls for conversions of business documents to XML, and for mappings."""
        return SyncConversionCalls(self._loop, self._client.conversions)

    def close(self) -> None:
        """Close the connections. Afterwards, the client cannot be used any more."""
        self._loop.run(self._client.__aexit__())
        self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
