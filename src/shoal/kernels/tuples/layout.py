"""The arrays that the kernels of tuple streams work on, and names for their rows and columns.

Every quasi-identifier is a number here. A numeric value is scaled to its domain; a categorical one is the rank of its
leaf in the tree's own order, in which the leaves below a node are one run and the lowest common ancestor of many leaves
is that of the first and the last. So a cluster's hull is a lowest and a highest number for either kind. NaN is missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from shoal.kernels.bundles import bundle


@bundle
class Stream(NamedTuple):
    """All of a stream's state, and scratch memory."""

    plan: Any
    """Settings that are whole numbers."""
    ratios: Any
    """Settings that are not."""
    tally: Any
    """Counters and positions."""
    sums: Any
    """Losses so far."""
    attr_f: Any
    attr_i: Any
    """Attributes: a row a property, a column an attribute."""
    tree_f: Any
    tree_i: Any
    """Trees, one after another; attr_i says where each begins."""
    pending_f: Any
    pending_i: Any
    """Pending tuples in order of arrival, with gaps where tuples were decided: a row a property, a column a tuple."""
    tables: Any
    slots: Any
    """Numbers of the people and of the patterns of attributes of pending tuples."""
    pool_f: Any
    pool_i: Any
    """Clusters that may be reused, a ring in order of formation: a row a cluster; the last row is the draft."""
    joined: Any
    """Rows published as clusters of the pool, where a person's share of a cluster is capped: a row of this array each,
    with the place of the cluster since BASE and the key of the person."""
    class_f: Any
    """Sensitive values of each cluster, and their reference."""
    sens_f: Any
    sens_i: Any
    recent: Any
    """Sensitive values: what is declared of them, and those of the last arrivals."""
    out_i: Any
    group_f: Any
    group_i: Any
    group_r: Any
    """Decisions, and the generalizations they refer to: a row each."""


@bundle
class Arrivals(NamedTuple):
    """Usable rows of a batch in order of arrival."""

    values: Any
    raws: Any
    masks: Any
    persons: Any
    rows: Any
    times: Any
    lanes: Any
    sensitive: Any


# ---- plan and ratios
(
    K, TIMED, DEADLINE, REUSE, MISSING_MODE, MIN_CARRIERS, IN_GROUPS, DISTINCT, REFERENCE, IS_DIVERSE, IS_PARTED,
    SAME_PATTERN, SKIP_MERGED, METHOD, LANES,
    CANDIDATES, NEAR, OPTION, EXCHANGES,
) = range(19)  # fmt: skip
PLAN = 19
FADS, K_VARP, IOT, VARIED, LEAST_LOSS, CASTLE = range(6)
COVERED, HIDDEN, PAPER, OWN = range(4)
ENTROPY, CLOSENESS, ALPHA, PENALTY, RATIO, PRICE, AGE, FLOOR, MAX_SHARE, EXCHANGED_FROM, STALENESS = range(11)
RATIOS = 11

# ---- tally and sums
(
    NOW, NUMBER, GROUPS, HEAD, TAIL, LIVE, INCOMPLETE, POOL_HEAD, POOL_SIZE, OUT_ROWS, OUT_GROUPS, FULL, AT, STAMP,
    FORMED, MERGED, REUSED, RELEASED, SUPPRESSED, LONGEST, DELAYS, REF_NEXT, REF_SIZE, LATES, ENDING,
    PASSING, UNTIL, LANE, MAY_STOP, STUCK, LATE_PART, FREE_PEOPLE, FREE_PARTS, JOINED, BASE,
    STAGE, THEN, UP_TO, NEXT, FILLED, RARE, VARIED_AT_END,
) = range(42)  # fmt: skip
TALLY = 42
LOSS, LOSS_ALL, COST, TYPICAL = range(4)
TYPICAL_OF = 4
"""From here on one for each attribute."""

# ---- attributes and trees
WEIGHT, LOW, HIGH, STEP, UNIT, LOW_UNITS, STEP_UNITS = range(7)
"""Point n of a grid is (LOW_UNITS + n * STEP_UNITS) / UNIT: whole numbers and one division, so the nearest float."""
KIND, LEAVES, PAIRS_AT, LOSS_AT, FIRST_AT, LAST_AT, LEAF_AT, MEETS_AT = range(8)
NUMERIC, CATEGORICAL = 0, 1
SMALL_TREE = 512
"""Trees with up to this many leaves have a table of all pairs of leaves."""

# ---- pending tuples: what stays with a tuple first, then scratch; masks and sensitive values follow
PERSON, ROW, ARRIVED, PART, ALIVE, LATE = range(6)
KEPT = 6
ELIGIBLE, ALLOWED, HEAP_AT, MEMBER, STAMPED, NEAREST, CHAIN, CHAIN_HEAD, PART_LIKE, PART_SIZE = range(6, 16)
TRIAL = PART_LIKE  # where patterns do not matter
MASKS = 16
DISTANCE, MASS, HEAP_KEY, PART_KEY, COST_OF, SPARE, LATER = range(7)
VALUES = 7

# ---- numbers of people (0) and patterns (1)
PEOPLE, PATTERNS = 0, 1
COUNT, FREE = 0, 1
KEYS = 2

# ---- clusters; three blocks of columns, one column an attribute each: see `block`
CREATED, GROUP, UNIFORM, SIZE = range(4)
FIELDS = 4
C_LOW, C_HIGH, C_LOSS = range(3)
C_NODE, C_SHOWN, C_CARRIERS = range(3)

# ---- rows of clusters, where shares are capped; two scratch columns of pool_i count them, see `reuse`
J_CLUSTER = 0
J_KEYS = 1

# ---- sensitive values
RECENT_COUNT, DECLARED, ORDER, GAIN = range(4)
USED, IS_ORDERED, MISSING = range(3)
SENSITIVE = 3
CLASS_COUNT, CLASS_REFERENCE = 0, 1

# ---- decisions
O_ROW, O_VERDICT, O_GROUP, O_DELAY, O_AT = range(5)
OUT_MASKS = 5
G_NUMBER, G_REUSED = 0, 1
G_FIELDS = 2
IS_RELEASED, IS_SUPPRESSED = 0, 1
NO_GROUP = -1
