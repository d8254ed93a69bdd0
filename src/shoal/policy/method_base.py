"""What the pipeline asks the [anonymize] table of every method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from shoal.methods.settings import Settings
from shoal.policy.fields import Section
from shoal.policy.tables import ColumnType, StreamSection

KeyPath = tuple[str, ...]
Table = Mapping[str, Any]
NO_TIME: Final = "is missing; name the column that says when"


class MethodSection(Section):
    """The table of a method. The class methods read it as written, right or wrong."""

    METHOD: ClassVar[str]
    SETTINGS: ClassVar[type[Settings]]
    """The parameters of the method itself, without what a policy file adds."""
    ADVICE: ClassVar[str]
    """What to change when hardly anything can be published."""
    PUBLISHES_PSEUDONYMS: ClassVar[bool] = False
    """Whether the person column is published, holding a pseudonym."""
    PUBLISHES_TIME: ClassVar[bool] = False
    """Whether the time column is always published, so that it can have no other role."""
    SORTS_ROWS: ClassVar[bool] = False
    """Whether rows may wait to be sorted by time before they are decided."""
    NEEDS_PERSON: ClassVar[bool] = True
    """Whether a column must name the person; otherwise each row may be one person."""
    IS_STREAM: ClassVar[bool] = True
    """Whether rows are decided as they come, so that a run can go on from a checkpoint."""

    @property
    def advice(self) -> str:
        """What to change, or to know, when hardly anything can be published."""
        return self.ADVICE

    @classmethod
    @abstractmethod
    def named_columns(cls, table: Table) -> list[tuple[KeyPath, str]]:
        """Columns the table gives a role to, each with the path of its key."""

    @classmethod
    @abstractmethod
    def hierarchy_tables(cls, table: Table) -> dict[KeyPath, Any]:
        """Descriptions of hierarchies by the path of their key."""

    @classmethod
    @abstractmethod
    def stream_problems(cls, table: Table, stream: Table) -> list[tuple[str, KeyPath, str]]:
        """What cannot be combined with [stream], as (section, path of the key, sentence)."""

    @classmethod
    def file_problems(cls, source: Table, sink: Table, *, has_person: bool) -> list[tuple[str, KeyPath, str]]:
        """What cannot be combined with [source] and [sink], as (section, path of the key, sentence)."""
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
    def beside_sink(cls) -> tuple[str, ...]:
        """Endings of the files that are written next to the sink, with the release."""
        return ()

    @abstractmethod
    def hierarchy_keys(self) -> dict[str, KeyPath]:
        """Columns that are generalized, with the path of the key of their hierarchy."""

    @abstractmethod
    def parameters(self, stream: StreamSection, hierarchies: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments of the anonymizer; the secret comes from elsewhere."""

    @property
    @abstractmethod
    def runs_on_time(self) -> bool:
        """Whether anything is decided by the time column."""

    @property
    def delay_unit(self) -> str:
        """What delays are counted in."""
        return "seconds" if self.runs_on_time else "arrivals"

    def list_columns(self) -> tuple[str, ...]:
        """Columns that may hold lists."""
        return ()

    def column_types(self) -> dict[str, ColumnType]:
        """Types of columns in text files where [source] types does not name them and text would not do."""
        return {}
