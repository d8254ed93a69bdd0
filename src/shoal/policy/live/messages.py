"""What [source] and [sink] have in common for all systems of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from shoal.methods.setting_problems import Problem
from shoal.methods.settings import AnyDuration, Duration, Name, PositiveDuration
from shoal.policy.fields import FilePlace, Section
from shoal.policy.live.secrets import REGISTRY, Address, ClientValue, Secret, client_problems, read_secrets
from shoal.policy.tables import ColumnType, SinkSection, SourceSection

Table = Mapping[str, Any]
_CLIENT: Final = "Settings of the client library, by its own names."
_SECRETS: Final = (
    'Secret settings of the client library, each as `"env:NAME"` or `"file:PATH"`; `"registry.auth"` is '
    "`user:password` for the schema registry."
)
_FORMAT: Final = "How values are written: `json`, or `avro` with a `registry` or a `schema_file`."
_OPERATION: Final = ("client", "secrets", "registry", "give_up", "lag", "idle_partition")
"""Settings of how a system is reached: they may change while a run is stopped."""


class _Connected(Section):
    """A table with settings of a client library."""

    ADDRESS: ClassVar[str]
    """The key that says where the system is."""
    LOG: ClassVar[str]
    """The key of the topics or streams."""
    RESERVED: ClassVar[Mapping[str, str]] = {}
    """Client settings that the policy has keys for, or that shoal decides, with the sentence for each."""

    format: Literal["json", "avro"] = Field("json", description=_FORMAT)
    give_up: PositiveDuration = Field(
        Duration("10min"), description="How long to keep trying while the system cannot be reached."
    )
    client: dict[str, ClientValue] = Field(default_factory=dict, description=_CLIENT)
    secrets: dict[str, Secret] = Field(default_factory=dict, description=_SECRETS)

    def settings(self, section: str) -> dict[str, Any]:
        """The settings of the client library, secrets included: for the client only, never for a message."""
        secrets = {name: one for name, one in self.secrets.items() if name != REGISTRY}
        return {**self.client, **read_secrets(secrets, section)}

    def registry_login(self, section: str) -> str | None:
        """``user:password`` for the schema registry."""
        found = {name: one for name, one in self.secrets.items() if name == REGISTRY}
        return read_secrets(found, section).get(REGISTRY)

    def plain_fields(self) -> dict[str, Any]:
        return {name: value for name, value in super().plain_fields().items() if name not in _OPERATION}

    @classmethod
    def cross_check(cls, given: Table) -> Iterator[Problem]:
        yield from client_problems(given.get("client"), given.get("secrets"), cls.RESERVED)
        if given.get("format", "json") == "json":
            for key in ("schema_file", "registry"):
                if key in given:
                    yield (key,), 'is only for format = "avro"; leave it out'
        elif given.get("format") == "avro" and ("schema_file" in given) == ("registry" in given):
            yield ("schema_file",), "give either schema_file (a file) or registry (a URL): Avro needs one of them"


class MessageSource(_Connected, SourceSection):
    """The table of a source of messages."""

    CAN_BE_SAMPLED: ClassVar[bool] = True
    """Whether messages stay in the system after they were read."""
    CAN_BE_SHARED: ClassVar[bool] = False
    """Whether several workers may share the logs, because messages are in a partition by their key."""

    kind: str
    types: dict[str, ColumnType] = Field(
        default_factory=dict,
        description="Types of columns, as for files; by default those of the first messages.",
    )
    key_column: Name | None = Field(None, description="The column that gets the key of a message, as text.")
    timestamp_column: Name | None = Field(None, description="The column that gets the broker's time of a message.")
    headers: dict[str, Name] = Field(
        default_factory=dict, description='Columns that get headers of a message: `{column = "header"}`.'
    )
    schema_file: FilePlace | None = Field(None, description="Avro: the file with the schema of all messages.")
    registry: Address | None = Field(None, description="Avro: the URL of a schema registry with Confluent's interface.")
    max_message_bytes: Annotated[int, Field(ge=1, le=2**31 - 1)] = Field(
        16 * 1024 * 1024, description="A longer message goes to the dead letters."
    )
    start: Literal["earliest", "latest"] = Field(
        "earliest", description="Where the first run starts: with the oldest message there is, or with new ones."
    )
    until: Literal["end"] | None = Field(
        None, description='`"end"`: stop at the end as it was at the start; by default a run does not end.'
    )
    lag: AnyDuration = Field(
        Duration("5s"), description="How far time that passes without messages stays behind the clock."
    )
    idle_partition: PositiveDuration = Field(
        Duration("30s"), description="How long a silent partition, stream or topic may hold the others back."
    )

    workers: Annotated[int, Field(ge=1, le=1024)] = Field(
        1,
        description="Processes that share the partitions, each started with `--worker`; more than one only with Kafka.",
    )

    @property
    def is_endless(self) -> bool:
        return self.until is None

    def plain_fields(self) -> dict[str, Any]:
        # `until` may be set while a run is stopped. A key left at its default does not count, so that older checkpoints
        # stay valid.
        fields = {**super().plain_fields(), "until": None}
        return {name: value for name, value in fields.items() if (name, value) != ("workers", 1)}

    @property
    def address(self) -> str:
        """Where the system is."""
        return str(getattr(self, self.ADDRESS))

    @property
    def logs(self) -> tuple[str, ...]:
        """The topics or streams that are read."""
        found = getattr(self, self.LOG)
        return (found,) if isinstance(found, str) else found

    @classmethod
    def cross_check(cls, given: Table) -> Iterator[Problem]:
        yield from super().cross_check(given)
        yield from _shared_problems(given, can_be_shared=cls.CAN_BE_SHARED)
        headers = given.get("headers")
        named = [given.get("key_column"), given.get("timestamp_column")]
        named += list(headers) if isinstance(headers, Mapping) else []
        for name in {name for name in named if isinstance(name, str) and named.count(name) > 1}:
            yield ("key_column",), f'the column "{name}" is named twice among key, timestamp and headers; name it once'


class MessageSink(_Connected, SinkSection):
    """The table of a sink of messages."""

    kind: str
    key: Name | None = Field(
        None, description="The published column whose text is the key of a message; never the person's."
    )
    schema_file: FilePlace | None = Field(None, description="Avro: the file that the schema is written to.")
    registry: Address | None = Field(None, description="Avro: the URL of the registry that gets the schema.")

    @property
    def address(self) -> str | None:
        """Where the system is; None: where the source is."""
        found: str | None = getattr(self, self.ADDRESS)
        return found

    @property
    def name(self) -> str:
        """The topic or stream."""
        return str(getattr(self, self.LOG))


def _shared_problems(given: Table, *, can_be_shared: bool) -> Iterator[Problem]:
    """Keys for several workers."""
    is_shared = given.get("workers", 1) != 1
    if is_shared and not can_be_shared:
        yield (
            ("workers",),
            "several workers need messages that are in a partition by their key, which only topics of Kafka are; leave "
            "it out",
        )
    for key in ("keyed_by", "partitioner"):
        if key in given and not is_shared and can_be_shared:
            yield (key,), "is for several workers; set workers, or leave it out"


def default_letters(sink: str) -> str:
    """The topic or stream of dead letters next to that of the rows."""
    return f"{sink}-dead-letters"
