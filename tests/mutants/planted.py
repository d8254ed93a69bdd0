"""Defects that the default tests must notice: one changed line each, over all families, kernels and the auditor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Mutant:
    """One line of the source, replaced."""

    file: str
    defect: str
    old: str
    new: str
    tests: tuple[str, ...]


Z: Final = ("tests/methods/z", "tests/kernels/z", "tests/kernels/test_clock.py", "tests/golden")
TUPLES: Final = ("tests/kernels/tuples", "tests/methods/tuples", "tests/golden")
SETS: Final = ("tests/kernels/sets", "tests/methods/sets", "tests/golden")
FLEXIBLE: Final = ("tests/kernels/flexible", "tests/methods/flexible", "tests/golden")

MUTANTS: Final = (
    # ---- z-anonymity
    Mutant(
        "methods/z/values.py",
        "one person too few is enough",
        "np.subtract(sizes >= rule.z, 1",
        "np.subtract(sizes >= rule.z - 1, 1",
        Z,
    ),
    Mutant(
        "kernels/z/crowd.py",
        "an event at the edge of the window is forgotten",
        "pool[np.uint64(head), 2] >= oldest_time",
        "pool[np.uint64(head), 2] > oldest_time",
        Z,
    ),
    Mutant("kernels/clock.py", "a person backs their own wrong clock", "not same_person and abs(", "abs(", Z),
    Mutant(
        "kernels/clock.py",
        "an event exactly as late as allowed is refused",
        "time < newest - lateness or",
        "time <= newest - lateness or",
        Z,
    ),
    Mutant(
        "methods/z/combiner.py",
        "an epoch that was published is opened again",
        "if time < self.epochs.closed_until:",
        "if False:",
        Z,
    ),
    Mutant(
        "methods/z/follower.py",
        "a followed z is undercut by one",
        "np.where(sizes >= z, 0, PRIVATE)",
        "np.where(sizes >= z - 1, 0, PRIVATE)",
        Z,
    ),
    Mutant(
        "methods/z/reorder_buffer.py",
        "a waiting event is decided too early",
        "first.time <= limit else None",
        "first.time <= limit + 1 else None",
        Z,
    ),
    Mutant(
        "crypto/pseudonyms.py",
        "pseudonyms never change",
        "epochs = times // self._rotation_ns",
        "epochs = times * 0",
        ("tests/crypto", *Z),
    ),
    # ---- tuples
    Mutant(
        "methods/tuples/publisher.py",
        "rows of one event stay in arrival order",
        "return decided.in_order(order[0])",
        "return decided",
        TUPLES,
    ),
    Mutant(
        "methods/tuples/publisher.py",
        "suppressed rows are published at the root",
        "if group >= 0 or self._shows_root:",
        "if True:",
        TUPLES,
    ),
    Mutant(
        "methods/tuples/decider/lanes.py",
        "lanes go back to where the last of them stopped",
        "stop = min(stops)",
        "stop = max(stops)",
        TUPLES,
    ),
    Mutant(
        "kernels/tuples/fads.py",
        "FADS clusters k - 1 people",
        "if count_keys(s, PEOPLE) < s.plan[K]:",
        "if count_keys(s, PEOPLE) < s.plan[K] - 1:",
        TUPLES,
    ),
    Mutant(
        "kernels/tuples/k_varp.py",
        "K-VARP stops merging at k - 1 people",
        "while people < s.plan[K]:",
        "while people < s.plan[K] - 1:",
        TUPLES,
    ),
    Mutant(
        "kernels/tuples/castle/castle.py",
        "CASTLE publishes a union of k - 1 people",
        "if f.tally[UNION_CROWD] < s.plan[K] or",
        "if f.tally[UNION_CROWD] < s.plan[K] - 1 or",
        TUPLES,
    ),
    Mutant(
        "kernels/tuples/least_loss/least_loss.py",
        "at the end least-loss leaves k - 1 people for a last cluster",
        "if members > 0 and people < s.plan[K]:",
        "if members > 0 and people < s.plan[K] - 1:",
        TUPLES,
    ),
    Mutant(
        "kernels/tuples/reuse.py",
        "a cluster is reused one arrival too long",
        "CREATED] > s.plan[REUSE]:",
        "CREATED] > s.plan[REUSE] + 1:",
        TUPLES,
    ),
    Mutant(
        "kernels/tuples/diversity.py",
        "l - 1 sensitive values are enough",
        "distinct_values(counts, used) < s.plan[DISTINCT]",
        "distinct_values(counts, used) < s.plan[DISTINCT] - 1",
        TUPLES,
    ),
    Mutant(
        "kernels/tuples/diversity.py",
        "closeness is not checked",
        "return s.ratios[CLOSENESS] >= 0.0 and distance_of(s, c, column) > s.ratios[CLOSENESS] + _SLACK",
        "return False",
        TUPLES,
    ),
    # ---- sets
    Mutant(
        "kernels/sets/sampling.py",
        "k - 1 people pass a sampled set",
        "if people >= draws.k or",
        "if people >= draws.k - 1 or",
        SETS,
    ),
    Mutant(
        "kernels/sets/counting.py",
        "a counted set of k - 1 people passes",
        "if walk.counts[depth, rank] < k:",
        "if walk.counts[depth, rank] < k - 1:",
        SETS,
    ),
    Mutant(
        "kernels/sets/support.py",
        "a list is searched one element too short",
        "    while low < high:\n",
        "    while low < high - 1:\n",
        SETS,
    ),
    Mutant(
        "methods/sets/search.py",
        "blocks are merged until k - 1 people",
        "while self.index.support(image, k) < k:",
        "while self.index.support(image, k) < k - 1:",
        SETS,
    ),
    # ---- flexible
    Mutant(
        "kernels/flexible/rounds.py",
        "a block of k - 1 people is open",
        "PUBLISHED] or blocks.info[block, PEOPLE] >= blocks.info[block, NEED]\n",
        "PUBLISHED] or blocks.info[block, PEOPLE] >= blocks.info[block, NEED] - 1\n",
        FLEXIBLE,
    ),
    Mutant(
        "kernels/flexible/groups.py",
        "a row joins a group that is too small",
        "groups.counts[entry] < crowds[row]:",
        "groups.counts[entry] < crowds[row] - 1:",
        FLEXIBLE,
    ),
    Mutant(
        "kernels/flexible/candidates.py",
        "a published label of k_s - 1 people passes",
        "return entry != NO_ENTRY and groups.counts[entry] >= people",
        "return entry != NO_ENTRY and groups.counts[entry] >= people - 1",
        FLEXIBLE,
    ),
    # ---- auditor
    Mutant(
        "auditor/z/crowds.py",
        "the auditor accepts z - 1 people",
        "crowd >= np.maximum(z, attribute.z)[owner]",
        "crowd >= np.maximum(z, attribute.z)[owner] - 1",
        ("tests/auditor/z",),
    ),
    Mutant(
        "auditor/z/crowds.py",
        "without a trace the auditor accepts z - 1 people",
        "(found > 0) & (found < attribute.z)",
        "(found > 0) & (found < attribute.z - 1)",
        ("tests/auditor/z",),
    ),
    Mutant(
        "auditor/tuples/classes.py",
        "the auditor accepts classes of k - 1 people",
        'notes.violation("below-k", sentence, rows=classes.marked(classes.people < promise.k))',
        'notes.violation("below-k", sentence, rows=classes.marked(classes.people < promise.k - 1))',
        ("tests/auditor/tuples",),
    ),
    Mutant(
        "auditor/tuples/clusters.py",
        "the auditor accepts clusters of k - 1 people",
        "small = clusters.people < promise.k",
        "small = clusters.people < promise.k - 1",
        ("tests/auditor/tuples",),
    ),
    Mutant(
        "auditor/tuples/clusters.py",
        "the auditor accepts one carrier too few",
        "clusters.shown & (clusters.carriers < promise.min_carriers)",
        "clusters.shown & (clusters.carriers < promise.min_carriers - 1)",
        ("tests/auditor/tuples",),
    ),
    Mutant(
        "auditor/tuples/diversity.py",
        "the auditor accepts l - 1 sensitive values",
        "there & (distinct(sets) < wanted.l)",
        "there & (distinct(sets) < wanted.l - 1)",
        ("tests/auditor/tuples",),
    ),
    Mutant(
        "auditor/tuples/diversity.py",
        "the auditor ignores entropy",
        "there & (effective(sets) < wanted.entropy_l * (1 - _ROUNDING))",
        "there & (effective(sets) < 0)",
        ("tests/auditor/tuples",),
    ),
    Mutant(
        "auditor/sets/shares.py",
        "the auditor accepts sets of k - 1 people",
        "below = supports < k",
        "below = supports < k - 1",
        ("tests/auditor/sets",),
    ),
    Mutant(
        "auditor/sets/certificate.py",
        "the auditor accepts any number of passed samples",
        "claim.passed >= needed * (1 - _ROUNDING) and",
        "",
        ("tests/auditor/sets",),
    ),
    Mutant(
        "auditor/z/pseudonyms.py",
        "the auditor overlooks raw identifiers",
        'notes.violation("raw-identifier", "A released row contains an identifier of the truth.", rows=raw)',
        "",
        ("tests/auditor/z",),
    ),
    Mutant(
        "auditor/tuples/clusters.py",
        "the auditor overlooks labels that do not cover",
        'notes.violation("not-covered", "A published value does not cover the record\'s value.", rows=wrong)',
        "",
        ("tests/auditor/flexible",),
    ),
    Mutant(
        "auditor/flexible/trace.py",
        "the auditor accepts suppressed records",
        'notes.violation("suppressed", sentence, count=int((verdict == SUPPRESSED).sum()))',
        "",
        ("tests/auditor/flexible",),
    ),
    Mutant(
        "auditor/tuples/deadlines.py",
        "the auditor overlooks records decided too late",
        'decisions.violation("late", "A record was decided after its deadline.", late, notes)',
        "pass",
        ("tests/auditor/tuples",),
    ),
    Mutant(
        "auditor/tuples/deadlines.py",
        "the auditor overlooks stale clusters",
        'decisions.violation("stale-reuse", "A row was published by a cluster too old to be reused.", stale, notes)',
        "",
        ("tests/auditor/tuples",),
    ),
    Mutant(
        "auditor/released_columns.py",
        "the auditor accepts extra columns",
        'notes.violation("extra-column", ',
        'notes.info("extra-column", ',
        ("tests/auditor",),
    ),
)
