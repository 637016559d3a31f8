"""All settings in one typed table: environment variables `OCTAVO_…`, over an optional `octavo.toml`.

The reference page is made from this table, and an unknown name is refused instead of ignored.
"""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal
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
from octavo.core.languages import ANY_LANGUAGE, RECOGNISED_LANGUAGES

PREFIX = "OCTAVO_"
CONFIG_VARIABLE = "OCTAVO_CONFIG"
MEBIBYTE = 1 << 20
HOST_NAME = re.compile(r"[\w-]+(\.[\w-]+)*|[0-9a-f.]*:[0-9a-f:.]+")
HOST_AND_PORT = re.compile(r"([\w.-]+|\[[0-9a-f:.]+\]):\d{1,5}")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s*,]+")
MAIL_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
# The providers of models, and the settings without which one cannot be used.
PROVIDERS: dict[str, tuple[str, ...]] = {
    "gemini": ("gemini_key",),
    "openai": ("openai_key",),
    "anthropic": ("anthropic_key",),
    "compatible": ("compatible_url", "compatible_model"),
    "local": (),
}
MODEL_NAME = r"local|[a-z]+:[^|,=\s]+"
TASK_MODELS = re.compile(rf"[a-z_]+=({MODEL_NAME})(\|({MODEL_NAME}))*")
NAMED_PAIR = re.compile(r"[^=,\s]+=\d+(\.\d+)?/\d+(\.\d+)?")


def default_data_dir() -> Path:
    """Root's database runs under another account, which could not enter root's home."""
    if os.geteuid() == 0:
        return Path("/var/lib/octavo")
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "octavo"


def split_list(value: object) -> object:
    """A list is written with commas in the environment, and as a list in the file."""
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_list)]


class Settings(BaseSettings):
    """One field for each setting; the description is its entry in the reference page."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True)

    data_dir: Annotated[Path, Field(description="Folder for everything Octavo keeps on this machine.")] = Field(
        default_factory=default_data_dir
    )
    host: Annotated[str, Field(min_length=1, description="Address the web server listens on.")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="Port the web server listens on; 0 takes any free one.")] = (
        8400
    )
    database_url: Annotated[
        SecretStr | None,
        Field(
            description="`postgresql://…` of a shared PostgreSQL (16 or newer, with pgvector 0.8 or newer). "
            "Unset: a PostgreSQL that came with the installation, in the data folder."
        ),
    ] = None
    database_connections: Annotated[
        int, Field(ge=2, le=500, description="Most connections that one process opens to the database.")
    ] = 10
    postgres_account: Annotated[
        str | None,
        Field(
            description="Account that the built-in PostgreSQL runs under when Octavo is started by root. "
            "Unset: the first of `octavo`, `postgres`, `nobody` that exists."
        ),
    ] = None
    storage_url: Annotated[
        str | None,
        Field(
            description="Where documents are kept: `s3://bucket/prefix` or `file:///folder`. "
            "Unset: the folder `objects` in the data folder."
        ),
    ] = None
    s3_endpoint: Annotated[
        str | None, Field(description="Address of an S3 server other than Amazon's, as `http://host:port`.")
    ] = None
    s3_region: Annotated[str, Field(min_length=1, description="Region of the S3 bucket.")] = "us-east-1"
    s3_access_key: Annotated[
        SecretStr | None, Field(description="S3 access key. Unset: found as Amazon's own tools find it.")
    ] = None
    s3_secret_key: Annotated[SecretStr | None, Field(description="S3 secret key that belongs to it.")] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Field(description="Least important log lines that are written."),
    ] = "info"
    log_format: Annotated[
        Literal["auto", "console", "json"],
        Field(description="Form of log lines; `auto` is `console` on a terminal and `json` elsewhere."),
    ] = "auto"
    workers: Annotated[int, Field(ge=0, le=64, description="Worker processes that `octavo up` starts.")] = 1
    worker_slots: Annotated[int, Field(ge=1, le=500, description="Jobs that one worker process runs at once.")] = 10
    lease_seconds: Annotated[
        float,
        Field(
            ge=1, description="How long a job stays with a worker that is not heard of; renewed four times as often."
        ),
    ] = 60
    faults: Annotated[
        str, Field(description="For tests: named points at which a worker dies, as `stage.commit.before@1=kill`.")
    ] = ""
    upload_bytes: Annotated[int, Field(ge=1, description="Largest file that may be added, in bytes.")] = 200 * MEBIBYTE
    stored_bytes: Annotated[
        int, Field(ge=0, description="Most bytes of files that one owner may keep, in the trash too; 0 is no limit.")
    ] = 0
    anonymous_stored_bytes: Annotated[int, Field(ge=0, description="The same for a visitor without an account.")] = (
        2048 * MEBIBYTE
    )
    concurrent_uploads: Annotated[int, Field(ge=1, description="Uploads that one owner may have open at once.")] = 500
    anonymous_concurrent_uploads: Annotated[
        int, Field(ge=1, description="The same for a visitor without an account.")
    ] = 150
    trash_days: Annotated[
        int, Field(ge=0, description="Days after which what is in the trash is deleted for good.")
    ] = 30
    sandbox_memory_bytes: Annotated[
        int, Field(ge=64 * MEBIBYTE, description="Most memory that reading one file may take.")
    ] = 2048 * MEBIBYTE
    sandbox_cpu_seconds: Annotated[
        int,
        Field(ge=1, description="Processor seconds that reading one file may take."),
    ] = 30
    sandbox_at_once: Annotated[
        int | None,
        Field(
            ge=1,
            description="Files that one process reads at once. Unset: twice as many as there are processors, and no "
            "more than half of the memory can hold.",
        ),
    ] = None
    ocr_language: Annotated[
        str,
        Field(
            description="Language of scans and pictures, as `de`, `zh` or `ja`: letters that it does not have are left "
            "out. `auto` reads Latin letters, Chinese and Japanese side by side; other scripts are not read."
        ),
    ] = ANY_LANGUAGE
    ocr_seconds: Annotated[
        int, Field(ge=5, le=140, description="Processor seconds that recognising the text of one page may take.")
    ] = 120
    ocr_pages: Annotated[
        int,
        Field(
            ge=1,
            le=64,
            description="Pages whose text one worker process recognises at once; each takes a processor and half a GB "
            "of memory, long pictures twice as much.",
        ),
    ] = 2
    fetch_bytes: Annotated[
        int, Field(ge=1, description="Most bytes that are fetched for one link, after unpacking.")
    ] = 50 * MEBIBYTE
    fetch_seconds: Annotated[
        float, Field(gt=0, le=500, description="How long fetching one link may take, with all its redirects.")
    ] = 60
    fetch_allow: Annotated[
        Texts,
        Field(
            description="Servers that may be fetched from although they are not on the public internet, as "
            "`wiki.example.lan:80`, with commas between them."
        ),
    ] = ()
    youtube_url: Annotated[
        str,
        Field(description="Where transcripts are asked for; another one than YouTube's own is for mirrors and tests."),
    ] = "https://www.youtube.com"
    anonymous: Annotated[bool, Field(description="Whether visitors without an account may keep documents.")] = True
    sign_up: Annotated[bool, Field(description="Whether anybody may make an account for themselves.")] = True
    hosts: Annotated[
        Texts,
        Field(
            description="Further names under which the web server answers, with commas between them, as "
            "`docs.example.org`. Those of this machine itself and OCTAVO_HOST are always answered."
        ),
    ] = ()
    origins: Annotated[
        Texts,
        Field(
            description="Browser extensions and other sites that may call the API with a key, with commas between "
            "them, as `chrome-extension://abc`."
        ),
    ] = ()
    analyse_pages: Annotated[
        int,
        Field(
            ge=0,
            description="Documents with more pages than this are analysed with all active prompts without being asked "
            "for, once; 0: none are.",
        ),
    ] = 0
    analyse_bytes: Annotated[
        int, Field(ge=1, description="Largest file that is analysed without being asked for, in bytes.")
    ] = 60 * MEBIBYTE
    conversion_source_days: Annotated[int, Field(ge=0, description="Days that the source of a conversion is kept.")] = 7
    conversion_result_days: Annotated[int, Field(ge=0, description="Days that the result of a conversion is kept.")] = (
        30
    )
    conversion_gateway_url: Annotated[
        str | None,
        Field(description="Service that converts instead of Octavo; it gets the PDF and answers the mapping's XML."),
    ] = None
    conversion_gateway_seconds: Annotated[
        float, Field(gt=0, le=500, description="Seconds that the conversion service has to answer.")
    ] = 60
    conversion_gateway_bytes: Annotated[
        int, Field(ge=1, description="Largest file that the conversion service takes, in bytes.")
    ] = 20 * MEBIBYTE
    conversion_delete_after_download: Annotated[
        bool,
        Field(description="Whether the result of a conversion goes with the daily sweep after its first download."),
    ] = False
    requests_per_minute: Annotated[
        int, Field(ge=1, description="Requests of one owner that one web process answers in a minute.")
    ] = 12_000
    requests_per_minute_anonymous: Annotated[
        int,
        Field(ge=1, description="Requests from one address without an account that one web process answers a minute."),
    ] = 6000
    proxies: Annotated[
        Texts,
        Field(
            description="Addresses of proxies in front of the web server, separated by commas: what they say about who "
            "asks is believed."
        ),
    ] = ()
    public_url: Annotated[
        str | None,
        Field(description="Address under which people reach this installation, for links in mail and chats."),
    ] = None
    smtp_url: Annotated[
        SecretStr | None,
        Field(
            description="Server that mail is handed to: `smtp://user:password@host:port`, `smtp+starttls://…` or "
            "`smtps://…`. Unset: no mail is sent."
        ),
    ] = None
    delivery_seconds: Annotated[
        float, Field(gt=0, le=45, description="Seconds that a webhook's receiver or a mail server has to answer.")
    ] = 15
    mail_from: Annotated[str, Field(description="Address that mail comes from.")] = "octavo@localhost"
    admin_mail: Annotated[
        str | None, Field(description="Mail address that hears of everybody's failures and dead letters.")
    ] = None
    admin_slack: Annotated[
        SecretStr | None, Field(description="Slack-compatible webhook that hears of the same, as `https://…`.")
    ] = None
    gemini_key: Annotated[SecretStr | None, Field(description="Key for Google's Gemini models.")] = None
    gemini_url: Annotated[str, Field(description="Where Gemini is asked.")] = (
        "https://generativelanguage.googleapis.com"
    )
    gemini_model: Annotated[str, Field(min_length=1, description="Gemini model that is asked.")] = "gemini-2.5-flash"
    openai_key: Annotated[SecretStr | None, Field(description="Key for OpenAI's models.")] = None
    openai_url: Annotated[str, Field(description="Where OpenAI is asked.")] = "https://api.openai.com/v1"
    openai_model: Annotated[str, Field(min_length=1, description="OpenAI model that is asked.")] = "gpt-5-mini"
    anthropic_key: Annotated[SecretStr | None, Field(description="Key for Anthropic's models.")] = None
    anthropic_url: Annotated[str, Field(description="Where Anthropic is asked.")] = "https://api.anthropic.com"
    anthropic_model: Annotated[str, Field(min_length=1, description="Anthropic model that is asked.")] = (
        "claude-haiku-4-5"
    )
    compatible_key: Annotated[SecretStr | None, Field(description="Key for the server below, if it wants one.")] = None
    compatible_url: Annotated[
        str | None,
        Field(
            description="A server that speaks OpenAI's language, as Ollama (`http://localhost:11434/v1`) or vLLM do; "
            "the provider `compatible`."
        ),
    ] = None
    compatible_model: Annotated[str | None, Field(description="Model that is asked there.")] = None
    providers: Annotated[
        Texts,
        Field(
            description="Who describes documents, the first one first, with commas between them: `gemini`, `openai`, "
            "`anthropic`, `compatible` and `local`, which runs here, needs no key and costs nothing. The next one is "
            "asked when one cannot answer."
        ),
    ] = ("local",)
    task_models: Annotated[
        Texts,
        Field(
            description="Other models for single tasks, as `classify_image=openai:gpt-5|gemini:gemini-2.5-pro`, with "
            "commas between tasks."
        ),
    ] = ()
    embedding_model: Annotated[
        str | None,
        Field(
            description="Model that makes vectors, as `openai:text-embedding-3-small` or `local`. "
            "Unset: that of the first of OCTAVO_PROVIDERS that has one."
        ),
    ] = None
    prices: Annotated[
        Texts,
        Field(
            description="US dollars for a million tokens, read and written, of models that Octavo does not know, as "
            "`gpt-9=1.25/10`, with commas between them."
        ),
    ] = ()
    provider_limits: Annotated[
        Texts,
        Field(
            description="Most requests and tokens in a minute of all workers together, as `gemini=1000/1000000`, with "
            "commas between providers. What a provider itself refuses is waited for anyway."
        ),
    ] = ()
    document_budget: Annotated[
        float,
        Field(
            ge=0,
            le=1e6,
            description="Most US dollars that models may cost for one document. Meant to be enough for 1,000 "
            "pages that are described and asked five prompts by the usual model of Gemini. This and the next two hold "
            "until somebody sets others, with `octavo budgets` or in the browser, without a restart.",
        ),
    ] = 3.0
    owner_budget: Annotated[
        float, Field(ge=0, le=1e6, description="Most US dollars that models may cost for one owner in a month.")
    ] = 20.0
    month_budget: Annotated[
        float, Field(ge=0, le=1e6, description="Most US dollars that models may cost for all owners in a month.")
    ] = 100.0
    anonymous_models: Annotated[
        bool, Field(description="Whether documents of visitors without an account go to others than `local`.")
    ] = False
    server: Annotated[
        str | None,
        Field(
            description="Server that commands about documents use, as `https://docs.example.org`. "
            "Unset: this machine's."
        ),
    ] = None
    key: Annotated[
        SecretStr | None, Field(description="API key for that server, as `octavo keys add` made it there.")
    ] = None

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return Path(os.path.abspath(value.expanduser()))  # noqa: PTH100 - links stay as they were given

    @field_validator("database_url")
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
            raise ValueError("must be names without scheme and port, such as docs.example.org")
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
    def _has_a_mail_server(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and info.data.get("smtp_url") is None:
            raise ValueError("needs a mail server too, in OCTAVO_SMTP_URL")
        return value

    @field_validator("admin_slack")
    @classmethod
    def _slack_address(cls, value: SecretStr | None) -> SecretStr | None:
        if value and urlsplit(value.get_secret_value()).scheme not in {"http", "https"}:
            raise ValueError("must look like https://host/path")
        return value

    @field_validator("gemini_url", "openai_url", "anthropic_url", "compatible_url")
    @classmethod
    def _provider_address(cls, value: str | None) -> str | None:
        if value and not (urlsplit(value).scheme in {"http", "https"} and urlsplit(value).netloc):
            raise ValueError("must look like https://host:port/path")
        return value.rstrip("/") if value else None

    @field_validator("providers")
    @classmethod
    def _have_what_they_need(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for name in value:
            if name not in PROVIDERS:
                raise ValueError(f"there is no {name}; there are {', '.join(PROVIDERS)}")
            for need in PROVIDERS[name]:
                if not info.data.get(need):
                    raise ValueError(f"{name} needs {variable_name(need)} too")
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
        """What was passed, then the environment, then the file."""
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
    """The environment variable of a field of the table."""
    return PREFIX + field.upper()


def load_settings() -> Settings:
    """Read the settings once, at the edge of a process; everything below gets plain values."""
    _refuse_unknown_variables()
    _refuse_missing_file()
    try:
        return Settings()
    except ValidationError as error:
        raise BadSetting(_explain(error)) from None
    except ValueError as error:  # a file that is no TOML
        raise BadSetting(f"octavo.toml cannot be read: {error}") from None


def _refuse_unknown_variables() -> None:
    known = {variable_name(field) for field in Settings.model_fields} | {CONFIG_VARIABLE}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            raise BadSetting(f"There is no setting {name}. {_advise(name, known)}")


def _advise(name: str, known: set[str]) -> str:
    by_bare_name = {one.removeprefix(PREFIX): one for one in known}
    near = get_close_matches(name.removeprefix(PREFIX), by_bare_name, n=1)
    return f"Did you mean {by_bare_name[near[0]]}?" if near else "`octavo settings` lists all."


def _refuse_missing_file() -> None:
    file = os.environ.get(CONFIG_VARIABLE)
    if file and not Path(file).is_file():
        raise BadSetting(f"{CONFIG_VARIABLE} names {file}, which is not a file.")


def _explain(error: ValidationError) -> str:
    lines: list[str] = []
    for problem in error.errors():
        field = str(problem["loc"][0]) if problem["loc"] else ""
        if problem["type"] == "extra_forbidden":
            advice = _advise(field, set(Settings.model_fields))
            lines.append(f"There is no setting {field} in octavo.toml. {advice}")
        else:
            lines.append(f"{variable_name(field)}: {problem['msg'].removeprefix('Value error, ')}.")
    return " ".join(lines)
