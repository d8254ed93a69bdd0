"""What the flexible anonymizer is and holds: its parameters, columns, rows that wait, and state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.crypto.snapshots import State, open_state, seal_state
from shoal.errors import CheckpointError, InputError
from shoal.hierarchies.ontology.ontology import Concepts
from shoal.kernels.flexible.rounds import form_groups
from shoal.methods.arrow_input import as_bytes, is_carriable, plain_type, require_same, select
from shoal.methods.base import DEAD, RELEASED, SUPPRESSED, Guarantee, Refusal, StreamMethod
from shoal.methods.carried_columns import KeptColumns
from shoal.methods.flexible.axes import GridAxis, is_moment_type
from shoal.methods.flexible.calibration import Frozen, freeze
from shoal.methods.flexible.reading import ValueReader, are_unknown
from shoal.methods.flexible.rounds import Grouping, as_share
from shoal.methods.flexible.settings import FlexibleSettings, settings_of
from shoal.methods.flexible.waiting import WaitingRows
from shoal.methods.quasi_readers import NumericReader, Reader
from shoal.methods.refusals import explain, tuple_reasons
from shoal.methods.schema_arrays import Leaves
from shoal.methods.text_keys import is_text_like, key_words
from shoal.schema import Numeric, Quasi

_VERDICT: Final = pa.dictionary(pa.int8(), pa.string())
_REASON: Final = pa.dictionary(pa.int16(), pa.string())
_TRACE: Final = pa.schema(
    [
        ("row", pa.int64()), ("verdict", _VERDICT), ("reason", _REASON), ("group", pa.int64()),
        ("delay", pa.int64()), ("k", pa.int64()), ("k_s", pa.int64()),
    ]
)  # fmt: skip
Ints = npt.NDArray[np.int64]


class FlexibleStream(StreamMethod):
    """The state of a flexible anonymizer and the questions about it; deciding is added by the classes on top."""

    method: ClassVar[str] = "flexible-k"
    _settings: FlexibleSettings
    kernel: ClassVar[Any] = staticmethod(form_groups)

    def _begin(self, settings: FlexibleSettings, secret: Secret) -> None:
        self._settings = settings
        self._secret = secret
        self._person_key = key_words(secret.subkey("table of people"))
        self._seed = key_words(secret.subkey("table of groups"))
        self._order_key = key_words(secret.subkey("order of rows"))
        quasi = settings.schema.quasi
        self._unknown_key = key_words(secret.subkey("unknown values"))
        self._readers: list[Reader] = [self._reader(role) for role in quasi]
        self._reasons = tuple_reasons(settings.schema)
        self._reason_names = pa.array(self._reasons, type=pa.string())
        self._counts = dict.fromkeys((*self._reasons, "clamped", RELEASED), 0)
        self._unknown_codes = settings.unknown_codes()
        self._unknown = {quasi[a].name: 0 for a in self._unknown_codes}
        """By column: accepted records whose value is not listed."""
        self._lost = 0
        self._seen = 0
        self._came = 0
        self._waiting = WaitingRows(len(quasi))
        self._crowd_tables = {a: self._crowd_table(role.name) for a, role in enumerate(quasi)
                              if role.name in settings.density}  # fmt: skip
        self._grouping: Grouping | None = None
        self._input_schema: pa.Schema | None = None
        self._take_types(self._assumed_schema())

    def _reader(self, role: Quasi) -> Reader:
        if isinstance(role, Numeric):
            return NumericReader(role)
        key = self._unknown_key if self._settings.accepts_unknown(role.name) else None
        return ValueReader(role.name, self._settings.values_of(role.name), key)

    def _crowd_table(self, column: str) -> Ints:
        """The k of each value of a column by the nearest label above it; the last one is for no value."""
        table, k = self._settings.density[column], self._settings.k
        if column in self._settings.concepts:
            concepts = self._settings.concepts_of(column)
            found = [_nearest_crowd(concepts, value, table, k) for value in concepts.values]
        else:
            tree = self._settings.tree_of(column)
            found = [next((table[label] for label in tree.path(value) if label in table), k)
                     for value in Leaves(tree).ranks]  # fmt: skip
        return np.array([*found, k], dtype=np.int64)

    def _count_unknown(self, codes: Ints) -> None:
        for a, code in self._unknown_codes.items():
            self._unknown[self._readers[a].name] += int(np.count_nonzero(are_unknown(codes[a]) | (codes[a] == code)))

    # ---- what it is

    @property
    def columns(self) -> tuple[str, ...]:
        return self._settings.schema.columns

    @property
    def input_schema(self) -> pa.Schema:
        return self._input_schema or self._assumed_schema()

    @property
    def output_schema(self) -> pa.Schema:
        return self._output_schema

    @property
    def trace_schema(self) -> pa.Schema:
        return _TRACE

    @property
    def settings(self) -> FlexibleSettings:
        """The parameters, checked."""
        return self._settings

    @property
    def frozen(self) -> Frozen | None:
        """Which columns are sparse and what that asks for; None until that is known."""
        return self._grouping.frozen if self._grouping else None

    @property
    def guarantee(self) -> Guarantee:
        frozen = self.frozen.describe() if self.frozen else {}
        return Guarantee(
            method=self.method,
            statement=self._promise(),
            parameters={**self._settings.describe(), "frozen": frozen},
            max_delay_ns=None,
            max_pending=None,
            keeps_pending=True,
        )

    def _promise(self) -> str:
        k, frozen = self._settings.k, self.frozen
        crowd = f"at least {k} different people"
        if self._settings.density:
            crowd += " (or what its density class asks for)"
        whole = f"every published combination of normal quasi-identifiers is shared by {crowd}"
        if frozen is not None and not frozen.sparse:
            return whole
        fewer = "fewer, as sparse as the values are" if frozen is None else str(frozen.k_s[k])
        return f"{whole}, and together with the label of the sparse ones by at least {fewer}; nothing is suppressed"

    @property
    def pending(self) -> int:
        return len(self._waiting)

    @property
    def counts(self) -> dict[str, int]:
        """Records pushed so far by what became of them: released, dead (and dead by reason), held (pending)."""
        dead = {reason: self._counts[reason] for reason in self._reasons if self._counts[reason]}
        return {
            "pushed": self._seen, RELEASED: self._counts[RELEASED], SUPPRESSED: 0, DEAD: sum(dead.values()),
            "pending": self.pending, **dead,
        }  # fmt: skip

    @property
    def metrics(self) -> dict[str, float]:
        """How the stream went so far.

        ``loss`` is the average over released rows of the share of the leaves (or of the domain) a label covers
        besides the value itself, weighted over the attributes, and 1 for the label of unknown values; ``pending`` rows
        wait, ``unknown_<column>`` accepted records had a value that is not listed.
        """
        found = {"loss": as_share(self._lost, self._counts[RELEASED]), "pending": float(self.pending),
                 "clamped": float(self._counts["clamped"])}  # fmt: skip
        found |= {f"unknown_{name}": float(count) for name, count in self._unknown.items() if count}
        if self.frozen is not None:
            found["k_s"] = float(self.frozen.k_s[self._settings.k])
            found |= {f"sparse_share_{name}": self.frozen.shares[name] for name in self.frozen.sparse}
        return found

    @property
    def state_bytes(self) -> int:
        """Bytes of the tables."""
        return (self._grouping.table.nbytes if self._grouping else 0) + self._waiting.nbytes

    def take_changes(self) -> list[Any]:
        return []

    def explain(self, reason: str) -> Refusal:
        found = explain(reason, self._settings.schema)
        if reason.partition(":")[2] in self._settings.concepts:
            return Refusal(found.column, "not in the ontology; `shoal ontology check` proposes the nearest values")
        return found

    # ---- types

    def bind(self, schema: pa.Schema) -> None:
        fields = select(schema, self.columns)
        self._check_types(fields)
        if self._input_schema is None:
            self._input_schema = pa.schema([(field.name, plain_type(field.type)) for field in fields])
            self._take_types(self._input_schema)

    def _check_types(self, fields: pa.Schema) -> None:
        if self._input_schema is not None:
            require_same(self._input_schema, fields)
        schema = self._settings.schema
        if not is_text_like(fields.field(schema.person).type):
            raise InputError(f"column {schema.person!r}: cannot name people; give text or whole numbers")
        for reader in self._readers:
            reader.check_type(plain_type(fields.field(reader.name).type))
        for name in (*schema.sensitive, *schema.carry):
            if not is_carriable(fields.field(name).type):
                raise InputError(f"column {name!r}: {fields.field(name).type} cannot be passed on; give a plain type")

    def _assumed_schema(self) -> pa.Schema:
        types = {reader.name: pa.float64() for reader in self._readers if isinstance(reader, NumericReader)}
        return pa.schema([(name, types.get(name, pa.string())) for name in self.columns])

    def _take_types(self, schema: pa.Schema) -> None:
        roles = self._settings.schema
        kept = pa.schema([(name, schema.field(name).type) for name in (*roles.sensitive, *roles.carry)])
        shown = [(reader.name, reader.output_type(schema.field(reader.name).type)) for reader in self._readers]
        self._output_schema = pa.schema([*shown, *kept])
        self._grids = {
            a: GridAxis(role, is_moment=is_moment_type(schema.field(role.name).type), with_root=True)
            for a, role in enumerate(roles.quasi)
            if isinstance(role, Numeric)
        }
        self._kept = KeptColumns(kept)

    # ---- what is found out once

    def _freeze(self) -> None:
        """Look at the rows that wait, which are all that came so far, and stay with what is found."""
        waiting = self._waiting
        self._take_frozen(freeze(self._settings, waiting.codes, waiting.people(), waiting.crowds))

    def _take_frozen(self, frozen: Frozen) -> None:
        given = (self._settings, frozen, self.input_schema, self._seed)
        self._grouping = Grouping(*given, density=self._crowd_tables)

    # ---- state

    def snapshot(self) -> bytes:
        header = {
            "method": self.method, "settings": self._settings.describe(), "seen": self._seen, "came": self._came,
            "lost": self._lost, "counts": self._counts, "unknown": self._unknown,
            "is_bound": self._input_schema is not None,
            "frozen": self.frozen.describe() if self.frozen else None,
        }  # fmt: skip
        arrays: dict[str, npt.NDArray[Any]] = {
            "schema": as_bytes(self.input_schema.serialize()),
            "kept": as_bytes(self._kept.forget_all_but(self._waiting.rows).serialize()),
        }
        parts = {"waiting": self._waiting.dump()}
        if self._grouping is not None:
            parts["groups"] = self._grouping.dump()
        arrays |= {f"{part}.{name}": array for part, found in parts.items() for name, array in found.items()}
        return seal_state(self._secret, header, arrays)

    def restore(self, state: bytes) -> Self:
        opened = open_state(self._secret, state)
        header = opened.header
        if header["method"] != self.method or header["settings"] != _plain(self._settings.describe()):
            raise CheckpointError("the snapshot is of another method or of other parameters")
        self._load(opened)
        return self

    @classmethod
    def from_state(cls, state: State, secret: Secret) -> Self:
        """The anonymizer whose opened snapshot this is."""
        made = cls.__new__(cls)
        made._begin(settings_of(state.header["settings"]), secret)  # noqa: SLF001 - it is one of us
        made._load(state)  # noqa: SLF001
        return made

    def _load(self, state: State) -> None:
        header = state.header
        schema = pa.ipc.read_schema(pa.py_buffer(state.arrays["schema"]))
        self._input_schema = schema if header["is_bound"] else None
        self._seen, self._came, self._lost = header["seen"], header["came"], header["lost"]
        self._counts, self._unknown = dict(header["counts"]), dict(header["unknown"])
        for reader in self._readers:
            reader.check_type(schema.field(reader.name).type)
        self._take_types(schema)
        self._waiting.load(_part(state, "waiting"))
        self._grouping = None
        if header["frozen"]:
            self._load_groups(state)
        kept = pa.ipc.read_record_batch(pa.py_buffer(state.arrays["kept"]), self._kept.schema)
        self._kept.add(self._waiting.rows, kept)

    def _load_groups(self, state: State) -> None:
        self._take_frozen(Frozen.of(state.header["frozen"]))
        assert self._grouping is not None
        self._grouping.load(_part(state, "groups"))


def _nearest_crowd(concepts: Concepts, value: str, table: Mapping[str, int], otherwise: int) -> int:
    """The k by the label with fewest values above a value, which may be in several classes; of such the largest k."""
    if value in table:
        return table[value]
    asked = [(int(concepts.leaf_counts[concepts.node_of(label)]), -table[label])
             for label in concepts.labels_above(value) if label in table]  # fmt: skip
    return -min(asked)[1] if asked else table.get(concepts.root, otherwise)


def _part(state: State, part: str) -> dict[str, npt.NDArray[Any]]:
    prefix = f"{part}."
    return {name.removeprefix(prefix): array for name, array in state.arrays.items() if name.startswith(prefix)}


def _plain(content: dict[str, Any]) -> Any:
    """As it comes back from a snapshot."""
    return json.loads(json.dumps(content))
