"""What the pipeline needs of the [anonymize] table of every method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from shoal.methods.settings import Settings
from shoal.policy.fields import Section
from shoal.policy.tables import ColumnType, StreamSection

KeyPath = tuple[str, ...]
Table = Mapping[str, Any]
NO_TIME: Final = "is missing; name the column of times"


class MethodSection(Section):
    """The table of a method. Class methods read the table as written, before it is checked."""

    METHOD: ClassVar[str]
    SETTINGS: ClassVar[type[Settings]]
    """The parameters of the method itself, without what a policy file adds."""
    ADVICE: ClassVar[str]
    """What to change when hardly anything can be published."""
    PUBLISHES_PSEUDONYMS: ClassVar[bool] = False
    """Whether the person column is published, holding a pseudonym."""
    PUBLISHES_TIME: ClassVar[bool] = False
    """Whether the time column is always published; then it can have no other role."""
    SORTS_ROWS: ClassVar[bool] = False
    """Whether rows may wait to be sorted by time before they are decided."""
    NEEDS_PERSON: ClassVar[bool] = True
    """Whether a column must name the person; otherwise each row may be one person."""
    COMPILES: ClassVar[bool] = True
    """Whether the method has compiled kernels, which take a while on the first run."""
    IS_STREAM: ClassVar[bool] = True
    """Whether rows are decided as they arrive, so that a run can resume from a checkpoint."""
    KEEPS_MOST: ClassVar[bool] = True
    """Whether most rows are expected to be released, so that it is worth a warning if half of them are not."""

    @property
    def advice(self) -> str:
        """What to change, or to know, when hardly anything can be published."""
        return self.ADVICE

    @property
    def withheld(self) -> str:
        """Why rows are not published."""
        return "too few people have similar values"

    @classmethod
    @abstractmethod
    def named_columns(cls, table: Table) -> list[tuple[KeyPath, str]]:
        """Columns that the table names, each with the path of its key."""

    @classmethod
    @abstractmethod
    def hierarchy_tables(cls, table: Table) -> dict[KeyPath, Any]:
        """Descriptions of hierarchies by the path of their key."""

    @classmethod
    @abstractmethod
    def stream_problems(cls, table: Table, stream: Table) -> list[tuple[str, KeyPath, str]]:
        """Conflicts with [stream], as (section, path of the key, sentence)."""

    @classmethod
    def file_problems(cls, source: Table, sink: Table, *, has_person: bool) -> list[tuple[str, KeyPath, str]]:
        """Conflicts with [source] and [sink], as (section, path of the key, sentence)."""
        written = {"source": source, "sink": sink}
        return [
            (name, ("separator",), "is only for methods on sets; leave it out")
            for name, section in written.items()
            if "separator" in section
        ]

    @classmethod
    def input_files(cls, table: Table) -> dict[KeyPath, Any]:
        """Files the method reads besides its hierarchies, by the path of their key."""
        return {}

    @classmethod
    def next_to_sink(cls) -> tuple[str, ...]:
        """Endings of the files that are written next to the sink, with the release."""
        return ()

    @abstractmethod
    def hierarchy_keys(self) -> dict[str, KeyPath]:
        """Columns that are generalized, with the path of the key of their hierarchy."""

    @abstractmethod
    def parameters(self, stream: StreamSection, hierarchies: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments of the method, without the key."""

    @property
    @abstractmethod
    def runs_on_time(self) -> bool:
        """Whether decisions depend on the time column."""

    @property
    def counts_arrivals(self) -> bool:
        """Whether rows wait for a number of arrivals: on a silent stream they would wait forever."""
        return False

    @property
    def delay_unit(self) -> str:
        """The unit of delays."""
        return "seconds" if self.runs_on_time else "arrivals"

    def list_columns(self) -> tuple[str, ...]:
        """Columns that may hold lists."""
        return ()

    def column_types(self) -> dict[str, ColumnType]:
        """Types of columns in text files that cannot be text, unless [source] types declares them."""
        return {}
