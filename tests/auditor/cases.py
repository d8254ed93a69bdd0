"""Runs that tests may spoil: a correct one, and ones decided by hand."""

from __future__ import annotations

import copy

from shoal.auditor import audit
from tests.auditor.z.naive import HOUR, Publisher, policy, pseudonym, records, table, trace_table

NAMES = ("ts", "user", "site", "country")


def stream():
    """Ten people visit a site each ten seconds, twice (two epochs), and one visits a rare site."""
    rows = [(10 * turn, f"person {turn % 10}", "a.example", f"land {turn % 2}") for turn in range(20)]
    rows += [(195, "person 3", "rare.example", "land 1")]
    rows += [(HOUR + 10 * turn, f"person {turn % 10}", "a.example", "land 0") for turn in range(20)]
    return records(rows, NAMES)


class Case:
    """A correct run that tests may spoil."""

    def __init__(self):
        self.truth = stream()
        self.promised = policy(z=5, carry=["country"])
        publisher = Publisher(z=5, window_s=HOUR, carry=("country",)).run(self.truth)
        self.release, self.trace = copy.deepcopy(publisher.released), copy.deepcopy(publisher.trace)
        self.columns = publisher.columns

    def audit(self, *, trace=True):
        shown, decisions = table(self.release, self.columns), trace_table(self.trace)
        return audit(shown, table(self.truth, NAMES), decisions if trace else None, self.promised)

    def codes(self, *, trace=True):
        return {found.code: found.rows for found in self.audit(trace=trace).violations}


def decide(rows, shown, *, z=2, promised=None, columns=("ts", "user", "site")):
    """Audit a hand-made run: `shown` maps row numbers to the value released."""
    truth = records(rows)
    release = [
        {"ts": truth[row]["ts"], "user": pseudonym(truth[row]["user"], truth[row]["ts"], HOUR), "site": value}
        for row, value in shown.items()
    ]
    verdicts = ["released" if row in shown else "suppressed" for row in range(len(rows))]
    trace = trace_table([{"row": row, "verdict": verdict} for row, verdict in enumerate(verdicts)])
    return [
        audit(table(release, columns), table(truth), trace, promised or policy(z=z)),
        audit(table(release, columns), table(truth), None, promised or policy(z=z)),
    ]
