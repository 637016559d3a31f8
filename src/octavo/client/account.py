"""API calls for the account: its people, API keys, budgets, costs and models, webhooks and notifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

from octavo.client.calls import MOST_LISTED, Call, Calls, given
from octavo.client.transport import Repeat, Request, read_page, read_record
from octavo.core.http import Page
from octavo.records.account import (
    Access,
    AuditEntry,
    BudgetsInForce,
    DocumentBudget,
    DocumentEstimate,
    Grant,
    GrantAccess,
    Group,
    Invitation,
    KeyScope,
    KeyView,
    Me,
    Member,
    ModelServer,
    ModelsInForce,
    ModelTest,
    NewInvitation,
    NewKey,
    NewShare,
    Published,
    RemoteProvider,
    ResetLink,
    Role,
    SessionView,
    Share,
    Usage,
    UserAccount,
)
from octavo.records.deliveries import (
    ChannelName,
    DeliveryAttempt,
    EventType,
    NewSubscriber,
    Notification,
    NotificationPage,
    ReadCount,
    Subscriber,
    TestJob,
)


class AccountCalls(Calls):
    """API calls for people, keys, costs and models."""

    @Call
    async def read_settings(self) -> Published:
        """Return the version of the server, and the limits that apply to you."""
        return await self._get(Published, "/settings")

    # People --------------------------------------------------------------------------------------------------------

    @Call
    async def read_access(self) -> Access:
        return await self._get(Access, "/session")

    @Call
    async def show_me(self) -> Me:
        """Return your identity, and the accounts that you can act for."""
        return await self._get(Me, "/session")

    @Call
    async def sign_up(self, email: str, password: str) -> Me:
        """Create an account, and sign this client in to it."""
        return await self._post(Me, "/account", {"email": email, "password": password}, repeat=Repeat.NEVER)

    @Call
    async def sign_in(self, email: str, password: str, code: str | None = None) -> Me:
        """Sign in. This client then acts for the account. `code` is the second-factor code, if one is required."""
        body = given(email=email, password=password, code=code)
        return await self._post(Me, "/session", body, repeat=Repeat.NEVER)

    @Call
    async def choose_language(self, language: str | None) -> Me:
        """Choose the language of pages and emails, such as `de`. If it is None, the browser's language is used."""
        return await self._patch(Me, "/session", {"language": language})

    @Call
    async def sign_out(self) -> None:
        """End this client's session."""
        await self._delete("/session")

    @Call
    async def change_password(self, password: str, new_password: str) -> None:
        """Change your password. All other sessions end."""
        body = {"password": password, "new_password": new_password}
        await self._transport.call(Request("PUT", "/account/password", Repeat.NEVER, json=body))

    @Call
    async def switch_owner(self, owner: UUID) -> Me:
        """Act for another account that you belong to."""
        return await self._post(Me, "/session/owner", {"owner_id": str(owner)}, repeat=Repeat.SAFE)

    @Call
    async def list_members(self) -> list[Member]:
        return (await self._list(Member, "/members")).items

    @Call
    async def add_member(self, email: str, role: Role = "member", *, limited: bool = False) -> Member:
        """Make a person who already has an account on this server a member of your account.

        If `limited` is true, the member sees only the collections that you grant to them.
        """
        return await self._post(Member, "/members", {"email": email, "role": role, "limited": limited})

    @Call
    async def edit_member(self, user: UUID, role: Role | None = None, *, limited: bool | None = None) -> Member:
        """Change the role of a member, or whether they see only granted collections."""
        return await self._patch(Member, f"/members/{user}", given(role=role, limited=limited))

    @Call
    async def delete_member(self, user: UUID) -> None:
        await self._delete(f"/members/{user}")

    @Call
    async def list_groups(self) -> list[Group]:
        """List the groups of your account by name, with their members."""
        return (await self._list(Group, "/groups")).items

    @Call
    async def add_group(self, name: str) -> Group:
        return await self._post(Group, "/groups", {"name": name})

    @Call
    async def rename_group(self, group: UUID, name: str) -> Group:
        return await self._patch(Group, f"/groups/{group}", {"name": name})

    @Call
    async def delete_group(self, group: UUID) -> None:
        """Delete a group and its grants. Its members stay members of your account."""
        await self._delete(f"/groups/{group}")

    @Call
    async def add_to_group(self, group: UUID, user: UUID) -> Group:
        return await self._put(Group, f"/groups/{group}/members/{user}", {})

    @Call
    async def remove_from_group(self, group: UUID, user: UUID) -> Group:
        request = Request("DELETE", f"/groups/{group}/members/{user}", Repeat.SAFE)
        return read_record(Group, await self._transport.call(request))

    @Call
    async def list_grants(self) -> list[Grant]:
        """List the collections that limited members and groups can read or change."""
        return (await self._list(Grant, "/grants")).items

    @Call
    async def grant(
        self, collection: UUID, access: GrantAccess = "read", *, user: UUID | None = None, group: UUID | None = None
    ) -> Grant:
        """Let a limited member or a group read a collection or, with `write`, also change its documents."""
        receiver = given(user_id=str(user) if user else None, group_id=str(group) if group else None)
        body = {"collection_id": str(collection), "access": access, **receiver}
        return await self._post(Grant, "/grants", body, repeat=Repeat.SAFE)

    @Call
    async def withdraw_grant(self, grant: UUID) -> None:
        await self._delete(f"/grants/{grant}")

    @Call
    async def list_invitations(self) -> list[Invitation]:
        """List the open invitations to your account, newest first."""
        return (await self._list(Invitation, "/invitations")).items

    @Call
    async def invite(
        self, email: str, role: Role = "member", expires_in_days: int | None = None, *, limited: bool = False
    ) -> NewInvitation:
        """Invite a person to become a member. The link is returned only once.

        If `limited` is true, the member sees only the collections that you grant to them.
        """
        body = given(email=email, role=role, expires_in_days=expires_in_days, limited=limited or None)
        return await self._post(NewInvitation, "/invitations", body, repeat=Repeat.NEVER)

    @Call
    async def withdraw_invitation(self, invitation: UUID) -> None:
        await self._delete(f"/invitations/{invitation}")

    @Call
    async def list_sessions(self) -> list[SessionView]:
        """List the browsers in which you are signed in."""
        return (await self._list(SessionView, "/sessions")).items

    @Call
    async def revoke_session(self, session: UUID) -> None:
        await self._delete(f"/sessions/{session}")

    @Call
    async def make_reset_link(self, email: str, *, clear_second_factor: bool = False) -> ResetLink:
        """Create a link that lets a person set a new password (administrators only)."""
        body = {"email": email, "clear_second_factor": clear_second_factor}
        return await self._post(ResetLink, "/admin/reset-links", body, repeat=Repeat.NEVER)

    @Call
    async def list_users(self, *, cursor: str | None = None, limit: int = MOST_LISTED) -> Page[UserAccount]:
        """List all accounts of the installation (administrators only)."""
        return await self._list(UserAccount, "/admin/users", cursor=cursor, limit=limit)

    @Call
    async def set_language_of(self, email: str, language: str | None) -> None:
        """Set the language of a person's pages and emails (administrators only).

        If `language` is None, the browser's language is used.
        """
        body = {"email": email, "language": language}
        await self._transport.call(Request("PATCH", "/admin/users", Repeat.SAFE, json=body))

    # Links and audit ---------------------------------------------------------------------------------------------

    @Call
    async def list_shares(self) -> list[Share]:
        """List the links that share documents and collections, newest first."""
        return (await self._list(Share, "/shares")).items

    @Call
    async def share(
        self,
        *,
        document: UUID | None = None,
        collection: UUID | None = None,
        expires_in_days: int | None = None,
        sign_in: bool = False,
    ) -> NewShare:
        """Create a link that lets others read a document or a collection. The link is returned only once."""
        things = given(
            document_id=str(document) if document else None, collection_id=str(collection) if collection else None
        )
        body = {**things, **given(expires_in_days=expires_in_days), "sign_in": sign_in}
        return await self._post(NewShare, "/shares", body)

    @Call
    async def revoke_share(self, share: UUID) -> None:
        await self._delete(f"/shares/{share}")

    @Call
    async def list_audit(
        self,
        *,
        person: UUID | None = None,
        action: str | None = None,
        since: date | None = None,
        until: date | None = None,
        cursor: str | None = None,
        limit: int = MOST_LISTED,
    ) -> Page[AuditEntry]:
        """List the actions of people and programs in your account, newest first (owners only)."""
        wanted = given(person=person, action=action, since=since, until=until)
        return await self._list(AuditEntry, "/audit", **wanted, cursor=cursor, limit=limit)

    @Call
    async def export_audit(
        self,
        *,
        person: UUID | None = None,
        action: str | None = None,
        since: date | None = None,
        until: date | None = None,
    ) -> bytes:
        """Return the actions of people and programs in your account as CSV, newest first (owners only)."""
        return await self._read("/audit/csv", person=person, action=action, since=since, until=until)

    # Keys ----------------------------------------------------------------------------------------------------------

    @Call
    async def list_keys(self) -> Page[KeyView]:
        return await self._list(KeyView, "/keys")

    @Call
    async def make_key(self, name: str, scope: KeyScope, expires_in_days: int | None = None) -> NewKey:
        """Create an API key. It is returned only once."""
        return await self._post(NewKey, "/keys", {"name": name, "scope": scope, "expires_in_days": expires_in_days})

    @Call
    async def revoke_key(self, key: UUID) -> None:
        await self._delete(f"/keys/{key}")

    # Costs ---------------------------------------------------------------------------------------------------------

    @Call
    async def read_usage(self, month: str | None = None) -> Usage:
        """Return the cost of model calls in a month, such as `2026-11`. The default is the current month."""
        return await self._get(Usage, "/usage", month=month)

    @Call
    async def read_budgets(self) -> BudgetsInForce:
        return await self._get(BudgetsInForce, "/settings/budgets")

    @Call
    async def set_budgets(self, changes: Mapping[str, float | None]) -> BudgetsInForce:
        """Set budgets in US dollars (administrators only).

        `document` limits the cost of each document, `owner` the monthly cost of each account, and `month` the monthly
        cost of all accounts together. If a value is None, the default is restored. Budgets that are not passed stay
        unchanged.
        """
        return await self._put(BudgetsInForce, "/settings/budgets", changes)

    @Call
    async def read_document_budget(self, document: UUID) -> DocumentBudget:
        return await self._get(DocumentBudget, f"/documents/{document}/budget")

    @Call
    async def set_document_budget(self, document: UUID, usd: float | None) -> DocumentBudget:
        """Set the budget of one document in US dollars. If `usd` is None, the default is restored."""
        return await self._put(DocumentBudget, f"/documents/{document}/budget", {"usd": usd})

    @Call
    async def estimate_document(self, document: UUID, prompts: int = 1) -> DocumentEstimate:
        """Estimate the cost of model calls for a document. Nothing is spent."""
        return await self._get(DocumentEstimate, f"/documents/{document}/estimate", prompts=prompts)

    @Call
    async def estimate(self, words: int, pages: int = 0, prompts: int = 1) -> DocumentEstimate:
        """Estimate the cost of model calls for a document that has not been added yet."""
        return await self._get(DocumentEstimate, "/estimate", words=words, pages=pages, prompts=prompts)

    # Models --------------------------------------------------------------------------------------------------------

    @Call
    async def read_models(self) -> ModelsInForce:
        return await self._get(ModelsInForce, "/models")

    @Call
    async def choose_models(self, changes: Mapping[str, Any]) -> ModelsInForce:
        """Set the `order` of the providers, the models for `tasks`, and the `embedding` model (administrators only).

        A task that is set to None uses the first provider that can do it.
        """
        return await self._put(ModelsInForce, "/models", changes)

    @Call
    async def set_provider(self, provider: RemoteProvider, changes: Mapping[str, Any]) -> ModelsInForce:
        """Set the `key`, `url`, `model`, `context` or `price` of a provider (administrators only).

        If a value is None, the default is restored.
        """
        return await self._put(ModelsInForce, f"/models/{provider}", changes)

    @Call
    async def remove_provider(self, provider: RemoteProvider) -> None:
        await self._delete(f"/models/{provider}")

    @Call
    async def test_provider(self, provider: RemoteProvider, changes: Mapping[str, Any] | None = None) -> ModelTest:
        """Call the provider's model once, optionally with changed settings. The cost counts towards the budget."""
        return await self._post(ModelTest, f"/models/{provider}/test", given(**(changes or {})), repeat=Repeat.NEVER)

    @Call
    async def find_model_servers(self) -> Page[ModelServer]:
        """Look for model servers on the machine that runs Octavo."""
        return read_page(ModelServer, await self._transport.call(Request("POST", "/model-servers", Repeat.SAFE)))


# Webhooks and notifications -------------------------------------------------------------------------------------------


class DeliveryCalls(Calls):
    """API calls for recipients of events, and for notifications."""

    @Call
    async def list_webhooks(self) -> list[Subscriber]:
        """List the recipients of events, oldest first."""
        return (await self._list(Subscriber, "/webhooks")).items

    @Call
    async def add_webhook(
        self, address: str, events: Sequence[EventType] | None = None, *, channel: ChannelName = "webhook"
    ) -> NewSubscriber:
        """Add a recipient: a URL or, for the `mail` channel, an email address. The secret is returned only once.

        If `events` is None, the recipient gets a default selection of events.
        """
        chosen = list(events) if events is not None else None
        return await self._post(NewSubscriber, "/webhooks", given(channel=channel, address=address, events=chosen))

    @Call
    async def show_webhook(self, webhook: UUID) -> Subscriber:
        return await self._get(Subscriber, f"/webhooks/{webhook}")

    @Call
    async def edit_webhook(self, webhook: UUID, changes: Mapping[str, object]) -> Subscriber:
        """Change the `address` or the `events` of a recipient, or pause it with `active` set to False."""
        return await self._patch(Subscriber, f"/webhooks/{webhook}", changes)

    @Call
    async def delete_webhook(self, webhook: UUID) -> None:
        await self._delete(f"/webhooks/{webhook}")

    @Call
    async def rotate_webhook(self, webhook: UUID) -> NewSubscriber:
        """Replace the secret of a webhook. Deliveries are signed with both secrets for a day."""
        return await self._post(NewSubscriber, f"/webhooks/{webhook}/rotate")

    @Call
    async def test_webhook(self, webhook: UUID) -> UUID:
        """Send a test event. Returns the id of the job that sends it."""
        return (await self._post(TestJob, f"/webhooks/{webhook}/test")).job_id

    @Call
    async def list_deliveries(
        self, webhook: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[DeliveryAttempt]:
        """List the attempts to send events to a recipient, newest first."""
        return await self._list(DeliveryAttempt, f"/webhooks/{webhook}/deliveries", cursor=cursor, limit=limit)

    @Call
    async def replay_delivery(self, webhook: UUID, delivery: UUID) -> UUID:
        """Send an event to a recipient again. Returns the id of the job that sends it."""
        return (await self._post(TestJob, f"/webhooks/{webhook}/deliveries/{delivery}/replay")).job_id

    # Notifications -------------------------------------------------------------------------------------------------

    @Call
    async def list_notifications(
        self, *, unread: bool = False, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> NotificationPage:
        """List notifications, newest first. If `unread` is true, list only unread ones."""
        return await self._get(NotificationPage, "/notifications", unread=unread or None, cursor=cursor, limit=limit)

    @Call
    async def mark_all_read(self) -> int:
        """Mark all notifications as read. Returns how many were unread."""
        return (await self._post(ReadCount, "/notifications/read", repeat=Repeat.SAFE)).marked

    @Call
    async def mark_read(self, notification: UUID) -> Notification:
        return await self._post(Notification, f"/notifications/{notification}/read", repeat=Repeat.SAFE)

    @Call
    async def resolve_notification(self, notification: UUID) -> Notification:
        """Mark an error as resolved."""
        return await self._post(Notification, f"/notifications/{notification}/resolve", repeat=Repeat.SAFE)
