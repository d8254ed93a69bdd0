"""What to do about a finding: what its check declares, else this table, which goes once every check declares it."""

from __future__ import annotations

from typing import Final

from shoal.auditor.checks import CHECKS

_STOP: Final = "Do not publish this release. "
_WRONG_TOOL: Final = (
    _STOP + "The program that made it broke its policy: run it again with shoal, and report the bug if it stays."
)
_SAME_POLICY: Final = (
    "Check that policy, release, input and trace belong to the same run. If they do, do not publish the release, and "
    "report the bug."
)
_TRACE: Final = (
    "The trace contradicts the release or the input: check that all three are of the same run and complete. If they "
    "are, the run did not do what it wrote down; do not publish the release."
)
_COARSER: Final = _STOP + "Publish fewer or coarser quasi-identifiers, and run it again."
_BLOCKS: Final = _STOP + "Blocks, hierarchy and release must be of one run: make them again, and keep them together."
_PSEUDONYMS: Final = (
    _STOP + "Make pseudonyms with a secret key and a new one for each epoch, as shoal does, never from the identifier."
)
_TARGET: Final = "z followed the stream in another way than the policy allows. " + _WRONG_TOOL

ADVICE: Final[dict[str, str]] = {
    # columns and values
    "unreadable-row": "Write the release again: a row that nobody can read cannot be checked.",
    "unreadable": "Write the release again: a row that nobody can read cannot be checked.",
    "unreadable-value": "Write the release again in the format that shoal writes: ranges as [low, high], or labels.",
    "unknown-label": "Audit with the hierarchy or the blocks of this run; a label that it lacks cannot be judged.",
    "spelling": "Spell equal values in one way: another spelling can mark a person. Write the file again.",
    "too-fine": "Publish times no finer than a microsecond.",
    "bad-range": _WRONG_TOOL,
    "out-of-domain": "Check low and high of the policy; a range that leaves them tells more than was promised.",
    "off-grid": _WRONG_TOOL,
    "not-a-cell": _WRONG_TOOL,
    "root-label": "Allow it with root = true, or let the record wait for more people.",
    "whole-domain": "Allow it with root = true, or let the record wait for more people.",
    "empty-row": "Drop rows without any value: they say only that somebody was active then.",
    "label-twice": _WRONG_TOOL,
    # people
    "identifier-in-column": "Look at the column: who is named in it can be found. Do not carry it, or clean it first.",
    "bad-pseudonym": _PSEUDONYMS,
    "disguised-identifier": _PSEUDONYMS,
    "weak-pseudonym": _PSEUDONYMS,
    "pseudonym-across-epochs": _PSEUDONYMS,
    "pseudonym-split": _PSEUDONYMS,
    "pseudonym-shared": _PSEUDONYMS,
    # the promise
    "below-z": _STOP + "A value that few people had can point to them: run it again with this policy, or a larger z.",
    "set-below-k": _STOP + "A rare combination of common values can point to a person: run it again with combine.",
    "z-lowered": _WRONG_TOOL,
    "z-within-epoch": _TARGET,
    "z-too-early": _TARGET,
    "z-missing": "Keep the trace of the run as it was written: without its z nothing shows what was promised.",
    "stands-out": _TARGET,
    "target-missed": "Not a promise: choose a larger p, a longer window or a coarser column to raise the share.",
    "below-k": _STOP + "Rows of so few people can be told whose they are: run it again, with coarser or fewer columns.",
    "above-max-share": _COARSER,
    "one-person-share": "Cap it with max_share, or raise k: most of what such a class shows is about one person.",
    "below-k-in-history": _STOP + "Who watches the stream saw fewer than k people when the row came: run it again.",
    "group-below-k": _WRONG_TOOL,
    "k-lowered": _WRONG_TOOL,
    "below-k-s": _STOP + "Who also knows a rare column finds fewer than K_s people: run it again.",
    "k-s-lowered": _WRONG_TOOL,
    "sparse-differs": _SAME_POLICY,
    "below-l": _STOP + "Too few sensitive values are possible in a class: raise k or publish coarser rows.",
    "below-entropy-l": _STOP + "One sensitive value is too likely in a class: raise k or publish coarser rows.",
    "above-t": _STOP + "A class tells more of the sensitive value than all rows do: raise k or publish coarser rows.",
    "no-known-value": "Nothing to do: these classes show no sensitive value at all.",
    "below-recursive-l": _STOP + "One sensitive value is too frequent in a class: generalize or remove these rows.",
    "above-alpha": _STOP + "One sensitive value is too frequent in a class: generalize or remove these rows.",
    "above-beta": _STOP + "A class makes a sensitive value much likelier: generalize or remove these rows.",
    "below-k-knowing-m": _STOP + "Who knows m values finds fewer than k rows: generalize or remove these rows.",
    "outside-presence": _STOP + "A class shows who is in the table: publish coarser rows, or a smaller sample.",
    "not-in-population": "Give the population that the table was taken from, spelt and generalized in the same way.",
    "few-carriers": _WRONG_TOOL,
    "itemset-below-k": _STOP + "Who knows these items of a person finds fewer than k records: run it again.",
    "sigma-broken": _STOP + "Too many sets of items are shared by fewer than k records: run it again, with a larger k.",
    "too-general": "Nobody is at risk: the release could show more.",
    "held-back": "Nobody is at risk: the release could show more.",
    "hidden-without-need": "Nobody is at risk: the release could show more.",
    # the release against the truth
    "not-in-truth": _SAME_POLICY,
    "more-often-than-truth": _SAME_POLICY,
    "wrong-time": _SAME_POLICY,
    "wrong-carry": _SAME_POLICY,
    "wrong-label": _SAME_POLICY,
    "wrong-value": _SAME_POLICY,
    "wrong-sensitive": _SAME_POLICY,
    "not-covered": _SAME_POLICY,
    "wrong-nulls": "Rows show or hide missing values in another way than missing allows; check that key of the policy.",
    "filled-cells": "Tell users of the data, or set missing = \"own\": these cells are guesses, not records.",
    "root-row": _WRONG_TOOL,
    "not-the-image": _SAME_POLICY,
    "record-missing": _SAME_POLICY,
    "record-added": _SAME_POLICY,
    "in-input-order": "Shuffle the rows: whoever knows the order of the input knows whose row is whose.",
    "not-an-antichain": _BLOCKS,
    "item-in-two-blocks": _BLOCKS,
    "item-without-label": _BLOCKS,
    "label-of-no-item": _BLOCKS,
    "unknown-item": "Add the item to the hierarchy, or remove it from the input: it was not published.",
    "foreign-item": _BLOCKS,
    "blocks-differ": _BLOCKS,
    "not-contiguous": _BLOCKS,
    "no-rows": "Audit with the input (--truth), or check the path: an empty file proves nothing.",
    "certificate-differs": "Do not rely on the certificate: make the release again and keep its files together.",
    # the trace
    "trace-row": _TRACE,
    "trace-verdict": _TRACE,
    "trace-group": _TRACE,
    "trace-level": _TRACE,
    "trace-delay": _TRACE,
    "trace-event": _TRACE,
    "trace-broken": _TRACE,
    "undecided": _TRACE,
    "suppressed": _TRACE,
    "decided-twice": _TRACE,
    "release-count": "Give the whole release and its whole trace: they do not have the same number of rows.",
    "lost": _TRACE,
    "pending": "Nothing to do: these records are published or suppressed when the run goes on.",
    "trace-ends-early": "Give the whole trace of the run, or the input that it had read by then.",
    "unusable-accepted": _TRACE,
    "dead-without-cause": "Usable records were refused: compare the formats of the policy with the input.",
    "unchecked-promise": "Give complete and undamaged files of one run (input and trace), then audit again.",
    "wrong-carriers": _TRACE,
    "wrong-reference": _TRACE,
    # time and clusters
    "decision-order": _WRONG_TOOL,
    "late-accepted": _WRONG_TOOL,
    "late": "Nobody is at risk, but users got rows later than promised: give the run more time or a faster machine.",
    "late-by-event-time": "Correct if the clock of the run moved on without records; else it decides too late.",
    "clock-unclear": "Some rows could be judged only roughly: keep the trace of the run as it was written.",
    "group-differs": _WRONG_TOOL,
    "split-cluster": _WRONG_TOOL,
    "in-arrival-order": "Shuffle the rows of a cluster: their order shows who arrived first.",
    "reused-in-groups": _WRONG_TOOL,
    "reuse-before-formation": _WRONG_TOOL,
    "stale-reuse": _WRONG_TOOL,
}  # fmt: skip
"""By code; for those whose check does not declare what to do."""


def family_of(method: str) -> str:
    """The family of a method; of a plain table, table."""
    from shoal.auditor.audit import METHODS

    return METHODS.get(method, method)


def advice_of(code: str, method: str) -> str:
    """Say what to do about a finding on a release of a method: as its family declares it, else as others do."""
    declared = [check for (known, _), check in CHECKS.items() if known == code and check.advice]
    own = [check.advice for check in declared if family_of(method) in check.families]
    in_table = [ADVICE[code]] if code in ADVICE else []
    return next(iter([*own, *in_table, *(check.advice for check in declared)]), "")
