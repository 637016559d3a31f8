"""All settings, read from `OCTAVO_…` environment variables and an optional `octavo.toml`.

The reference page is generated from the `Settings` class. Unknown names are rejected, not ignored.
"""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from octavo.core.errors import BadSetting
from octavo.core.texts import ANY_LANGUAGE, RECOGNISED_LANGUAGES

PREFIX = "OCTAVO_"
CONFIG_VARIABLE = "OCTAVO_CONFIG"
MEBIBYTE = 1 << 20
HOST_NAME = re.compile(r"[\w-]+(\.[\w-]+)*|[0-9a-f.]*:[0-9a-f:.]+")
HOST_AND_PORT = re.compile(r"([\w.-]+|\[[0-9a-f:.]+\]):\d{1,5}")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s*,]+")
MAIL_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
# The model providers, and the settings that each requires.
PROVIDERS: dict[str, tuple[str, ...]] = {
    "gemini": ("gemini_key",),
    "openai": ("openai_key",),
    "anthropic": ("anthropic_key",),
    "mistral": ("mistral_key",),
    "azure": ("azure_key", "azure_url", "azure_model"),
    "vertex": ("vertex_key",),
    "bedrock": ("bedrock_key", "bedrock_model"),
    "compatible": ("compatible_url", "compatible_model"),
    "local": (),
}
MODEL_NAME = r"local|[a-z]+:[^|,=\s]+"
TASK_MODELS = re.compile(rf"[a-z_]+=({MODEL_NAME})(\|({MODEL_NAME}))*")
OFF_ON_A_NETWORK = "Unset: allowed only if OCTAVO_HOST is an address that other machines cannot reach."
NAMED_PAIR = re.compile(r"[^=,\s]+=\d+(\.\d+)?/\d+(\.\d+)?")


def default_data_dir() -> Path:
    """Return the default data folder, which is in the home folder unless the user is root.

    Root's database runs under another account, which cannot read root's home folder.
    """
    if os.geteuid() == 0:
        return Path("/var/lib/octavo")
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "octavo"


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can connect to a server that listens on this address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_for_this_machine(values: dict[str, Any]) -> bool:
    """Whether only programs on this machine can connect to the web server.

    The result is the default value of settings that should be enabled only if other machines cannot connect.
    """
    return is_loopback(values.get("host", ""))


def split_list(value: object) -> object:
    """Split a comma-separated value from the environment. Values from the settings file are already lists."""
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_list)]


def parse_listen(text: str) -> tuple[str, int]:
    """Read a host and a port, such as `127.0.0.1:8024`."""
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) >= 1 << 16:
        raise ValueError("must be a host and a port, such as 127.0.0.1:8024")
    return host.strip("[]"), int(port)


class Settings(BaseSettings):
    """All settings, one field for each. The descriptions of the fields appear on the reference page."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True)

    data_dir: Annotated[Path, Field(description="Folder for all data on this machine.")] = Field(
        default_factory=default_data_dir
    )
    host: Annotated[str, Field(min_length=1, description="Address the web server listens on.")] = "127.0.0.1"
    port: Annotated[
        int, Field(ge=0, le=65535, description="Port the web server listens on; 0 chooses a free port.")
    ] = 8400
    lmtp_listen: Annotated[
        str | None,
        Field(
            description="Address on which `octavo up` receives emails from your mail server over LMTP, such as "
            "`127.0.0.1:8024`. Anybody who can connect can deliver emails. Unset: no emails are received."
        ),
    ] = None
    database_url: Annotated[
        SecretStr | None,
        Field(
            description="`postgresql://…` URL of a shared PostgreSQL server (16 or newer, with pgvector 0.8 or newer). "
            "Unset: the built-in PostgreSQL in the data folder."
        ),
    ] = None
    database_direct_url: Annotated[
        SecretStr | None,
        Field(
            description="URL of the same database without the connection pooler, if `OCTAVO_DATABASE_URL` is the URL "
            "of a pooler in transaction mode. Used for migrations, backups and index builds, and by workers to "
            "receive notifications. Unset: all of these use the pooler, and workers poll for jobs."
        ),
    ] = None
    database_connections: Annotated[
        int, Field(ge=2, le=500, description="Maximum number of database connections per process.")
    ] = 10
    prepared_statements: Annotated[
        bool,
        Field(
            description="Whether the database keeps prepared statements for each connection. Disable this behind a "
            "connection pooler in transaction mode that does not support them, such as PgBouncer before 1.21."
        ),
    ] = True
    postgres_account: Annotated[
        str | None,
        Field(
            description="System account for the built-in PostgreSQL when Octavo is started as root. "
            "Unset: the first of `octavo`, `postgres`, `nobody` that exists."
        ),
    ] = None
    storage_url: Annotated[
        str | None,
        Field(
            description="Storage for files: `s3://bucket/prefix` or `file:///folder`. "
            "Unset: the `objects` folder in the data folder."
        ),
    ] = None
    s3_endpoint: Annotated[
        str | None, Field(description="URL of an S3-compatible server other than Amazon's, such as `http://host:port`.")
    ] = None
    s3_region: Annotated[str, Field(min_length=1, description="Region of the S3 bucket.")] = "us-east-1"
    s3_access_key: Annotated[
        SecretStr | None, Field(description="S3 access key. Unset: the AWS default credential chain.")
    ] = None
    s3_secret_key: Annotated[SecretStr | None, Field(description="S3 secret key.")] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Field(description="Minimum log level."),
    ] = "info"
    log_format: Annotated[
        Literal["auto", "console", "json"],
        Field(description="Log format; `auto` is `console` on a terminal and `json` elsewhere."),
    ] = "auto"
    web: Annotated[
        int | None,
        Field(
            ge=1,
            le=64,
            description="Number of web server processes that `octavo up` starts. Unset: the number of CPUs, at most 4.",
        ),
    ] = None
    workers: Annotated[int, Field(ge=0, le=64, description="Number of worker processes that `octavo up` starts.")] = 1
    worker_slots: Annotated[
        int, Field(ge=1, le=500, description="Number of jobs that one worker process runs in parallel.")
    ] = 10
    lease_seconds: Annotated[
        float,
        Field(
            ge=1,
            description="Lease time in seconds: how long a silent worker keeps its jobs. A lease is renewed four times "
            "in this period.",
        ),
    ] = 60
    faults: Annotated[
        str,
        Field(description="For tests: named points at which a worker fails, such as `stage.commit.before@1=kill`."),
    ] = ""
    upload_bytes: Annotated[int, Field(ge=1, description="Maximum size of an added file, in bytes.")] = 200 * MEBIBYTE
    stored_bytes: Annotated[
        int, Field(ge=0, description="Storage quota per owner in bytes, including the trash; 0 means no limit.")
    ] = 0
    anonymous_stored_bytes: Annotated[
        int, Field(ge=0, description="Storage quota in bytes per visitor without an account; 0 means no limit.")
    ] = 2048 * MEBIBYTE
    concurrent_uploads: Annotated[int, Field(ge=1, description="Maximum number of open uploads per owner.")] = 500
    anonymous_concurrent_uploads: Annotated[
        int, Field(ge=1, description="Maximum number of open uploads per visitor without an account.")
    ] = 150
    free_disk_bytes: Annotated[
        int,
        Field(
            ge=0,
            description="Minimum free disk space for the data folder and the local storage, in bytes. If less is free, "
            "`/readyz` reports that this process is not ready.",
        ),
    ] = 256 * MEBIBYTE
    trash_days: Annotated[
        int, Field(ge=0, description="Number of days after which documents in the trash are deleted permanently.")
    ] = 30
    anonymous_days: Annotated[
        int,
        Field(
            ge=0,
            description="Number of days to keep a visitor's documents after the visitor's last session has ended.",
        ),
    ] = 30
    index_memory_bytes: Annotated[
        int,
        Field(
            ge=MEBIBYTE,
            description="Memory that the database server can use to build a vector index, in bytes. An index that fits "
            "into it is built several times faster.",
        ),
    ] = 512 * MEBIBYTE
    history_days: Annotated[
        int,
        Field(
            ge=0,
            description="Number of days to keep events and finished background jobs in the database. Older ones are "
            "moved to compressed files in the storage; events are moved a whole month at a time. 0 keeps them forever.",
        ),
    ] = 0
    thread_days: Annotated[
        int,
        Field(ge=0, description="Number of days to keep a thread after its last question; 0 keeps threads forever."),
    ] = 365
    sandbox_memory_bytes: Annotated[
        int, Field(ge=64 * MEBIBYTE, description="Memory limit for extracting one file, in bytes.")
    ] = 2048 * MEBIBYTE
    sandbox_cpu_seconds: Annotated[
        int,
        Field(ge=1, description="CPU time limit for extracting one file, in seconds."),
    ] = 30
    sandbox_at_once: Annotated[
        int | None,
        Field(
            ge=1,
            description="Number of files that one process extracts in parallel. Unset: twice the number of CPUs, but "
            "at most as many as fit into half of the memory.",
        ),
    ] = None
    ocr_language: Annotated[
        str,
        Field(
            description="Language of scans and images, such as `de`, `ru`, `ar` or `zh`. Only the scripts of this "
            "language are recognised. `auto` detects the script of each page."
        ),
    ] = ANY_LANGUAGE
    ocr_seconds: Annotated[
        int, Field(ge=5, le=140, description="CPU time limit for running OCR on one page, in seconds.")
    ] = 120
    ocr_pages: Annotated[
        int,
        Field(
            ge=1,
            le=64,
            description="Number of pages on which one worker process runs OCR in parallel. Each page takes one CPU and "
            "up to 300 MB of memory.",
        ),
    ] = 2
    fetch_bytes: Annotated[
        int, Field(ge=1, description="Maximum size of content fetched from a link, after decompression, in bytes.")
    ] = 50 * MEBIBYTE
    fetch_seconds: Annotated[
        float, Field(gt=0, le=500, description="Time limit for fetching one link including redirects, in seconds.")
    ] = 60
    fetch_allow: Annotated[
        Texts,
        Field(
            description="Private servers from which links can be fetched, separated by commas, such as "
            "`wiki.example.lan:80`."
        ),
    ] = ()
    youtube_url: Annotated[
        str,
        Field(description="Base URL from which video transcripts are fetched. Change it only for mirrors and tests."),
    ] = "https://www.youtube.com"
    anonymous: Annotated[
        bool,
        Field(description="Allow visitors without an account to store documents. " + OFF_ON_A_NETWORK),
    ] = Field(default_factory=is_for_this_machine)
    sign_up: Annotated[bool, Field(description="Allow anyone to create an account. " + OFF_ON_A_NETWORK)] = Field(
        default_factory=is_for_this_machine
    )
    oidc_client_id: Annotated[str | None, Field(description="Client id of Octavo at the OpenID Connect provider.")] = (
        None
    )
    oidc_client_secret: Annotated[
        SecretStr | None,
        Field(description="Client secret of Octavo at the OpenID Connect provider. Unset for a public client."),
    ] = None
    oidc_issuer: Annotated[
        str | None,
        Field(
            description="Issuer URL of an OpenID Connect provider with which people sign in, such as "
            "`https://login.example.org/realms/work`. Requires OCTAVO_OIDC_CLIENT_ID. Unset: passwords only."
        ),
    ] = None
    oidc_label: Annotated[
        str,
        Field(
            min_length=1,
            max_length=60,
            description="Text of the button for signing in with the OpenID Connect provider.",
        ),
    ] = "Sign in with single sign-on"
    oidc_scopes: Annotated[
        Texts, Field(description="Scopes to request from the OpenID Connect provider, separated by commas.")
    ] = (
        "openid",
        "email",
        "profile",
    )
    oidc_roles_claim: Annotated[
        str | None,
        Field(
            description="Claim with the groups or roles of a person, such as `groups` or `realm_access.roles`. At each "
            "sign-in, it determines the person's role in the account of this installation. Unset: claims do not "
            "determine roles."
        ),
    ] = None
    oidc_admin_values: Annotated[
        Texts,
        Field(
            description="Values of the claim in OCTAVO_OIDC_ROLES_CLAIM that make a person an administrator, "
            "separated by commas."
        ),
    ] = ()
    oidc_member_values: Annotated[
        Texts,
        Field(
            description="Values of the claim in OCTAVO_OIDC_ROLES_CLAIM that give a person the `member` role, "
            "separated by commas."
        ),
    ] = ()
    oidc_reader_values: Annotated[
        Texts,
        Field(
            description="Values of the claim in OCTAVO_OIDC_ROLES_CLAIM that give a person the `reader` role, "
            "separated by commas."
        ),
    ] = ()
    oidc_sign_up: Annotated[
        bool,
        Field(
            description="Create an account when a person signs in with the OpenID Connect provider for the first time. "
            "Disable this if the provider also serves people who must not use this installation."
        ),
    ] = True
    oidc_trust_email: Annotated[
        bool,
        Field(
            description="Accept email addresses that the OpenID Connect provider does not mark as verified. Enable "
            "this only if people cannot choose their address at the provider."
        ),
    ] = False
    oidc_session_hours: Annotated[
        int,
        Field(
            ge=1,
            le=720,
            description="Hours after which a person who signed in with the OpenID Connect provider must do so again, "
            "even if they use Octavo all the time. Changes at the provider take effect then.",
        ),
    ] = 24
    mcp: Annotated[
        bool, Field(description="Serve AI agents at `/mcp`, over the Model Context Protocol. Agents need an API key.")
    ] = True
    hosts: Annotated[
        Texts,
        Field(
            description="Additional host names of the web server, separated by commas, such as `docs.example.org`. "
            "This machine's own names, OCTAVO_HOST and the name in OCTAVO_PUBLIC_URL are always accepted."
        ),
    ] = ()
    origins: Annotated[
        Texts,
        Field(
            description="Browser extensions and sites that can call the API with a key (CORS), separated by commas, "
            "such as `chrome-extension://abc`. If set, requests with a key from any other origin are refused."
        ),
    ] = ()
    parts_most: Annotated[
        int,
        Field(
            ge=0, description="Maximum number of files per archive or email that are added as documents; 0 adds none."
        ),
    ] = 1000
    analyse_pages: Annotated[
        int,
        Field(
            ge=0,
            description="Documents with more pages than this are automatically analysed once with all active prompts, "
            "if the estimated cost is within OCTAVO_ANALYSE_BUDGET; 0 disables this.",
        ),
    ] = 300
    analyse_budget: Annotated[
        float,
        Field(
            ge=0,
            le=1e6,
            description="Largest estimated cost of an automatic analysis, in US dollars. A document that would cost "
            "more is analysed only on request. Offline analyses cost nothing.",
        ),
    ] = 1.0
    analyse_bytes: Annotated[
        int, Field(ge=1, description="Maximum size of a file that is analysed automatically, in bytes.")
    ] = 60 * MEBIBYTE
    conversion_source_days: Annotated[
        int, Field(ge=0, description="Number of days to keep the source files of conversions.")
    ] = 7
    conversion_result_days: Annotated[int, Field(ge=0, description="Number of days to keep conversion results.")] = 30
    correction_days: Annotated[
        int,
        Field(
            ge=0,
            description="Number of days to keep corrections of conversions as training samples. Corrections are "
            "kept longer than the results and are applied when the same file is converted again.",
        ),
    ] = 365
    conversion_gateway_url: Annotated[
        str | None,
        Field(description="URL of a service that converts PDFs instead of Octavo. It receives a PDF and returns XML."),
    ] = None
    conversion_gateway_seconds: Annotated[
        float, Field(gt=0, le=500, description="Timeout of the conversion service, in seconds.")
    ] = 60
    conversion_gateway_bytes: Annotated[
        int, Field(ge=1, description="Maximum size of a file sent to the conversion service, in bytes.")
    ] = 20 * MEBIBYTE
    conversion_gateway_failures: Annotated[
        int,
        Field(
            ge=1,
            description="Number of failures in a row after which requests to the conversion service are paused.",
        ),
    ] = 5
    conversion_gateway_policy: Annotated[
        Literal["wait", "fail"],
        Field(
            description="How conversions behave while requests to the conversion service are paused: `wait`, or "
            "`fail` immediately."
        ),
    ] = "wait"
    conversion_delete_after_download: Annotated[
        bool,
        Field(description="Delete a conversion's result at the first daily clean-up after its download."),
    ] = False
    requests_per_minute: Annotated[int, Field(ge=1, description="Maximum requests per minute for each owner.")] = 12_000
    requests_per_minute_anonymous: Annotated[
        int,
        Field(
            ge=1,
            description="Maximum requests per minute from one IP address by visitors without an account.",
        ),
    ] = 6000
    request_header_seconds: Annotated[
        float, Field(gt=0, le=3600, description="Time limit for receiving the headers of a request, in seconds.")
    ] = 15.0
    request_body_seconds: Annotated[
        float,
        Field(
            gt=0,
            le=3600,
            description="Seconds after which a request is refused if its body arrives at less than 256 bytes per "
            "second.",
        ),
    ] = 30.0
    mapping_checks_per_minute_anonymous: Annotated[
        int,
        Field(
            ge=1,
            description="Maximum number of mappings per minute that visitors without an account can check, add or try "
            "from one IP address.",
        ),
    ] = 20
    visitors_per_minute: Annotated[
        int,
        Field(ge=1, description="Maximum number of new visitors without an account per minute from one IP address."),
    ] = 600
    sign_ups_per_hour: Annotated[
        int, Field(ge=1, description="Maximum number of new accounts per hour from one IP address.")
    ] = 60
    sign_in_tries: Annotated[
        int,
        Field(
            ge=1,
            description="Maximum number of wrong passwords for one email address from one IP address within 15 "
            "minutes.",
        ),
    ] = 10
    sign_in_tries_address: Annotated[
        int,
        Field(
            ge=1,
            description="Maximum number of wrong passwords from one IP address within 15 minutes, for all email "
            "addresses together.",
        ),
    ] = 100
    sign_in_tries_email: Annotated[
        int,
        Field(
            ge=1,
            description="Maximum number of wrong passwords for one email address within 15 minutes, from all IP "
            "addresses together. Above this number, signing in to the account is slowed down.",
        ),
    ] = 50
    streams: Annotated[int, Field(ge=1, description="Maximum number of open event streams per owner.")] = 20
    proxies: Annotated[
        Texts,
        Field(
            description="Trusted proxies in front of the web server, separated by commas. Their forwarded headers are "
            "used to determine the client's address."
        ),
    ] = ()
    metrics_token: Annotated[
        SecretStr | None,
        Field(
            description="Token with which a monitoring system reads `/metrics` and the details of `/readyz` from "
            "another machine, sent as `Authorization: Bearer …`. Unset: only programs on this machine can read them."
        ),
    ] = None
    traces_url: Annotated[
        str | None,
        Field(
            pattern=r"^https?://",
            description="URL of an OpenTelemetry collector for traces (OTLP over HTTP), such as "
            "`http://collector:4318/v1/traces`. Needs the `octavo[tracing]` extra.",
        ),
    ] = None
    public_url: Annotated[
        str | None,
        Field(
            description="Public URL of this installation, such as `https://docs.example.org`, for the sign-in link "
            "that Octavo prints and for links in emails and chat messages."
        ),
    ] = None
    smtp_url: Annotated[
        SecretStr | None,
        Field(
            description="Mail server: `smtp://user:password@host:port`, `smtp+starttls://…` or `smtps://…`. "
            "Unset: no emails are sent."
        ),
    ] = None
    delivery_seconds: Annotated[
        float, Field(gt=0, le=45, description="Timeout for requests to webhooks and the mail server, in seconds.")
    ] = 15
    mail_from: Annotated[str, Field(description="Sender address for outgoing emails.")] = "octavo@localhost"
    admin_mail: Annotated[str | None, Field(description="Email address to notify when jobs of any owner fail.")] = None
    admin_slack: Annotated[
        SecretStr | None,
        Field(description="Slack-compatible webhook to notify when jobs of any owner fail, such as `https://…`."),
    ] = None
    gemini_key: Annotated[SecretStr | None, Field(description="API key for Google Gemini.")] = None
    gemini_url: Annotated[str, Field(description="Base URL of the Gemini API.")] = (
        "https://generativelanguage.googleapis.com"
    )
    gemini_model: Annotated[str, Field(min_length=1, description="Gemini model.")] = "gemini-2.5-flash"
    openai_key: Annotated[SecretStr | None, Field(description="API key for OpenAI.")] = None
    openai_url: Annotated[str, Field(description="Base URL of the OpenAI API.")] = "https://api.openai.com/v1"
    openai_model: Annotated[str, Field(min_length=1, description="OpenAI model.")] = "gpt-5-mini"
    anthropic_key: Annotated[SecretStr | None, Field(description="API key for Anthropic.")] = None
    anthropic_url: Annotated[str, Field(description="Base URL of the Anthropic API.")] = "https://api.anthropic.com"
    anthropic_model: Annotated[str, Field(min_length=1, description="Anthropic model.")] = "claude-haiku-4-5"
    mistral_key: Annotated[SecretStr | None, Field(description="API key for Mistral.")] = None
    mistral_url: Annotated[str, Field(description="Base URL of the Mistral API.")] = "https://api.mistral.ai/v1"
    mistral_model: Annotated[str, Field(min_length=1, description="Mistral model.")] = "mistral-small-latest"
    azure_key: Annotated[SecretStr | None, Field(description="API key of the Azure OpenAI resource.")] = None
    azure_url: Annotated[
        str | None,
        Field(description="Address of the Azure OpenAI resource, such as `https://NAME.openai.azure.com`."),
    ] = None
    azure_model: Annotated[str | None, Field(description="Name of the deployment in Azure OpenAI.")] = None
    azure_version: Annotated[
        str, Field(pattern=r"^[0-9a-z-]+$", description="API version (`api-version`) of Azure OpenAI.")
    ] = "2024-10-21"
    vertex_key: Annotated[
        SecretStr | None, Field(description="Content of the JSON key file of a Google Cloud service account.")
    ] = None
    vertex_url: Annotated[
        str,
        Field(
            description="Base URL of the OpenAI-compatible API of Google Vertex AI. `{project}` becomes the project of "
            "the service account. Change `global` and the host to use a region."
        ),
    ] = "https://aiplatform.googleapis.com/v1/projects/{project}/locations/global/endpoints/openapi"
    vertex_model: Annotated[str, Field(min_length=1, description="Vertex AI model, with its publisher.")] = (
        "google/gemini-2.5-flash"
    )
    bedrock_key: Annotated[
        SecretStr | None,
        Field(
            description="Access key for Amazon Bedrock: `ACCESS_KEY:SECRET_KEY`, or with a session token "
            "`ACCESS_KEY:SECRET_KEY:SESSION_TOKEN`."
        ),
    ] = None
    bedrock_url: Annotated[str, Field(description="Base URL of Amazon Bedrock, with the region in it.")] = (
        "https://bedrock-runtime.us-east-1.amazonaws.com"
    )
    bedrock_region: Annotated[
        str,
        Field(
            pattern=r"^[a-z0-9-]+$", description="AWS region for signatures, if OCTAVO_BEDROCK_URL does not name it."
        ),
    ] = "us-east-1"
    bedrock_model: Annotated[
        str | None, Field(description="Id of the model or inference profile in Amazon Bedrock.")
    ] = None
    compatible_key: Annotated[
        SecretStr | None, Field(description="API key for the OpenAI-compatible server, if it requires one.")
    ] = None
    compatible_url: Annotated[
        str | None,
        Field(
            description="Base URL of an OpenAI-compatible server, such as Ollama (`http://localhost:11434/v1`) or "
            "vLLM, for the `compatible` provider."
        ),
    ] = None
    compatible_model: Annotated[str | None, Field(description="Model to use on the OpenAI-compatible server.")] = None
    compatible_context: Annotated[
        int,
        Field(
            ge=2048,
            le=100_000_000,
            description="Context size of the model on the OpenAI-compatible server, in tokens, for the prompt and the "
            "answer together. Long documents are divided so that each request fits. Ollama uses a small context "
            "unless `OLLAMA_CONTEXT_LENGTH` is set, and cuts longer prompts without an error.",
        ),
    ] = 100_000
    secret_key: Annotated[
        SecretStr | None,
        Field(
            min_length=32,
            description="Secret of at least 32 characters that encrypts the API keys saved on the Models page. Use the "
            "same secret on all machines. Required to save API keys if OCTAVO_DATABASE_URL is set. Unset: a key file "
            "in the data folder.",
        ),
    ] = None
    providers: Annotated[
        Texts,
        Field(
            description="Model providers in order of preference, separated by commas: `gemini`, `openai`, `anthropic`, "
            "`mistral`, `azure`, `vertex`, `bedrock`, `compatible` and `local`, which runs offline, "
            "needs no key and costs nothing. If one fails, the next one is used."
        ),
    ] = ("local",)
    task_models: Annotated[
        Texts,
        Field(
            description="Models for individual tasks: `task=model` entries, separated by commas. Several models for "
            "one task are separated by `|` and tried in this order, such as "
            "`classify_image=openai:gpt-5|gemini:gemini-2.5-pro`."
        ),
    ] = ()
    embedding_model: Annotated[
        str | None,
        Field(
            description="Embedding model, such as `openai:text-embedding-3-small` or `local`. "
            "Unset: the embedding model of the first provider in OCTAVO_PROVIDERS that has one."
        ),
    ] = None
    prices: Annotated[
        Texts,
        Field(
            description="Prices of models, in US dollars per million input and output tokens, separated by commas, "
            "such as `gpt-9=1.25/10`. Models on the OpenAI-compatible server need a price unless the server runs on "
            "this machine: `0/0` if they are free. A model without a known price is not called."
        ),
    ] = ()
    prices_file: Annotated[
        Path | None,
        Field(
            description="JSON file with newer prices than the built-in ones, written by `tools/make_prices.py`. It is "
            "read again when it changes."
        ),
    ] = None
    provider_limits: Annotated[
        Texts,
        Field(
            description="Maximum requests and tokens per minute for each model provider, such as "
            "`gemini=1000/1000000`, separated by commas. The limits apply to all workers together. Rate limits that a "
            "provider reports are always respected."
        ),
    ] = ()
    document_budget: Annotated[
        float,
        Field(
            ge=0,
            le=1e6,
            description="Model budget per document, in US dollars. The default should be enough to summarise and tag "
            "1,000 pages and run five prompts on them with the default Gemini model. This setting, "
            "OCTAVO_OWNER_BUDGET and OCTAVO_MONTH_BUDGET are defaults: `octavo budgets` and the web pages can change "
            "budgets without a restart.",
        ),
    ] = 3.0
    owner_budget: Annotated[
        float, Field(ge=0, le=1e6, description="Monthly model budget for each owner, in US dollars.")
    ] = 20.0
    month_budget: Annotated[
        float, Field(ge=0, le=1e6, description="Monthly model budget for all owners together, in US dollars.")
    ] = 100.0
    anonymous_models: Annotated[
        bool,
        Field(description="Allow sending visitors' documents to model providers other than `local`."),
    ] = False
    server: Annotated[
        str | None,
        Field(
            description="Server that commands such as `octavo add` use: a URL, the name of a profile (see `octavo "
            "login`), or `local` for this machine. Unset: the profile of the last `octavo login`, if there is one, "
            "otherwise this machine."
        ),
    ] = None
    key: Annotated[
        SecretStr | None, Field(description="API key for OCTAVO_SERVER, created on that server with `octavo keys add`.")
    ] = None

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return Path(os.path.abspath(value.expanduser()))  # noqa: PTH100 - keeps symbolic links

    @field_validator("lmtp_listen")
    @classmethod
    def _host_and_port(cls, value: str | None) -> str | None:
        if value:
            parse_listen(value)
        return value or None

    @field_validator("database_url", "database_direct_url")
    @classmethod
    def _postgres_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value and urlsplit(value.get_secret_value()).scheme not in {"postgresql", "postgres"}:
            raise ValueError("must look like postgresql://user:password@host/database")
        return value

    @field_validator("storage_url")
    @classmethod
    def _storage_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if (parts.scheme == "s3" and parts.netloc) or (parts.scheme == "file" and parts.path.startswith("/")):
            return value
        raise ValueError("must look like s3://bucket/prefix or file:///folder")

    @field_validator("s3_endpoint")
    @classmethod
    def _endpoint(cls, value: str | None) -> str | None:
        if value and not (urlsplit(value).scheme in {"http", "https"} and urlsplit(value).netloc):
            raise ValueError("must look like http://host:port")
        return value

    @field_validator("hosts")
    @classmethod
    def _host_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(name.lower() for name in value)
        if not all(HOST_NAME.fullmatch(name) for name in names):
            raise ValueError("must be host names without a scheme or port, such as docs.example.org")
        return names

    @field_validator("fetch_allow")
    @classmethod
    def _hosts_with_ports(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        pairs = tuple(pair.lower() for pair in value)
        if not all(HOST_AND_PORT.fullmatch(pair) for pair in pairs):
            raise ValueError("must be hosts with ports, such as wiki.example.lan:80")
        return pairs

    @field_validator("youtube_url")
    @classmethod
    def _youtube_address(cls, value: str) -> str:
        if not ORIGIN.fullmatch(value.rstrip("/")) or urlsplit(value).scheme not in {"http", "https"}:
            raise ValueError("must look like https://host:port")
        return value.rstrip("/")

    @field_validator("ocr_language")
    @classmethod
    def _language(cls, value: str) -> str:
        code = value.lower()
        if code != ANY_LANGUAGE and code not in RECOGNISED_LANGUAGES:
            raise ValueError(f"must be {ANY_LANGUAGE} or one of {', '.join(sorted(RECOGNISED_LANGUAGES))}")
        return code

    @field_validator("origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        origins = tuple(origin.lower().rstrip("/") for origin in value)
        if not all(ORIGIN.fullmatch(origin) for origin in origins):
            raise ValueError("must look like chrome-extension://id or https://host:port")
        return origins

    @field_validator("public_url")
    @classmethod
    def _public_url(cls, value: str | None) -> str | None:
        if value and not (urlsplit(value).scheme in {"http", "https"} and urlsplit(value).netloc):
            raise ValueError("must look like https://docs.example.org")
        return value.rstrip("/") if value else None

    @field_validator("oidc_issuer")
    @classmethod
    def _oidc_issuer(cls, value: str | None, info: ValidationInfo) -> str | None:
        if not value:
            return None
        parts = urlsplit(value)
        secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        if not secure or not parts.netloc or parts.query or parts.fragment:
            raise ValueError("must look like https://login.example.org")
        if not info.data.get("oidc_client_id"):
            raise ValueError("requires OCTAVO_OIDC_CLIENT_ID")
        return value

    @field_validator("oidc_scopes")
    @classmethod
    def _oidc_scopes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return value if "openid" in value else ("openid", *value)

    @field_validator("smtp_url")
    @classmethod
    def _smtp_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not _is_mail_server(value.get_secret_value()):
            raise ValueError("must look like smtp://user:password@host:port, smtp+starttls://… or smtps://…")
        return value

    @field_validator("mail_from", "admin_mail")
    @classmethod
    def _mail_address(cls, value: str | None) -> str | None:
        if value is not None and not MAIL_ADDRESS.fullmatch(value):
            raise ValueError("must look like name@example.org")
        return value

    @field_validator("admin_mail")
    @classmethod
    def _require_mail_server(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and info.data.get("smtp_url") is None:
            raise ValueError("requires a mail server in OCTAVO_SMTP_URL")
        return value

    @field_validator("admin_slack")
    @classmethod
    def _slack_address(cls, value: SecretStr | None) -> SecretStr | None:
        if value and urlsplit(value.get_secret_value()).scheme not in {"http", "https"}:
            raise ValueError("must look like https://host/path")
        return value

    @field_validator(
        *("gemini_url", "openai_url", "anthropic_url", "mistral_url", "azure_url", "vertex_url", "bedrock_url"),
        "compatible_url",
    )
    @classmethod
    def _provider_address(cls, value: str | None) -> str | None:
        if value and not (urlsplit(value).scheme in {"http", "https"} and urlsplit(value).netloc):
            raise ValueError("must look like https://host:port/path")
        return value.rstrip("/") if value else None

    @field_validator("providers")
    @classmethod
    def _require_provider_settings(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for name in value:
            if name not in PROVIDERS:
                raise ValueError(f"unknown provider {name}; use {', '.join(PROVIDERS)}")
            for need in PROVIDERS[name]:
                if not info.data.get(need):
                    raise ValueError(f"{name} requires {variable_name(need)}")
        return value

    @field_validator("task_models")
    @classmethod
    def _models_of_tasks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(TASK_MODELS.fullmatch(one) for one in value):
            raise ValueError("must look like classify_image=openai:gpt-5|local")
        return value

    @field_validator("prices", "provider_limits")
    @classmethod
    def _pairs_of_numbers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(NAMED_PAIR.fullmatch(one) for one in value):
            raise ValueError("must look like name=1.5/10")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Define where settings are read from.

        If a setting is defined several times, arguments win over the environment, and the environment over the file.
        """
        del dotenv_settings, file_secret_settings
        file = Path(os.environ.get(CONFIG_VARIABLE) or "octavo.toml")
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, toml_file=file)


def _is_mail_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"smtp", "smtp+starttls", "smtps"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def variable_name(field: str) -> str:
    """Return the name of the environment variable for a setting."""
    return PREFIX + field.upper()


def load_settings() -> Settings:
    """Read the settings. Called once when a process starts; other code gets the values as arguments."""
    _refuse_unknown_variables()
    _refuse_missing_file()
    try:
        return Settings()
    except ValidationError as error:
        raise BadSetting(_explain(error)) from None
    except ValueError as error:  # the file is not TOML
        raise BadSetting(f"octavo.toml cannot be read: {error}") from None


def _refuse_unknown_variables() -> None:
    known = {variable_name(field) for field in Settings.model_fields} | {CONFIG_VARIABLE}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            raise BadSetting(f"Unknown setting {name}. {_advise(name, known)}")


def _advise(name: str, known: set[str]) -> str:
    by_bare_name = {one.removeprefix(PREFIX): one for one in known}
    near = get_close_matches(name.removeprefix(PREFIX), by_bare_name, n=1)
    return f"Did you mean {by_bare_name[near[0]]}?" if near else "`octavo settings` lists all settings."


def _refuse_missing_file() -> None:
    file = os.environ.get(CONFIG_VARIABLE)
    if file and not Path(file).is_file():
        raise BadSetting(f"{CONFIG_VARIABLE} points to {file}, which is not a file.")


def _explain(error: ValidationError) -> str:
    lines: list[str] = []
    for problem in error.errors():
        field = str(problem["loc"][0]) if problem["loc"] else ""
        if problem["type"] == "extra_forbidden":
            advice = _advise(field, set(Settings.model_fields))
            lines.append(f"Unknown setting {field} in octavo.toml. {advice}")
        elif problem["type"] != "default_factory_not_called":  # only follows from another error
            lines.append(f"{variable_name(field)}: {problem['msg'].removeprefix('Value error, ')}.")
    return " ".join(lines)
