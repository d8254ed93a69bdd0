"""`shoal demo`: anonymize a synthetic day of web visits, audit the release and draw a picture."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from shoal.cli.output.program import how_to_call, program
from shoal.errors import RunError

_POLICY: Final = """\
[stream]
person = "user"
time = "ts"
carry = ["device"]

[source]
kind = "csv"
path = "visits.csv"

[anonymize]
method = "z-anonymity"
attribute = "site"
z = {z}
window = "1h"
lateness = "{minutes}min"

[sink]
kind = "parquet"
path = "released.parquet"

[trace]
path = "trace.parquet"
"""
_MINUTES_LATE: Final = 5


def demo(
    *,
    out: Path = Path("demo-out"),
    people: int = 3000,
    events: int = 400_000,
    z: int = 20,
    seed: int = 7,
    live: Annotated[bool, Parameter(negative="")] = False,
    rate: int = 1000,
    port: int | None = None,
    open_page: Annotated[bool, Parameter(name="--open", negative="")] = False,
) -> int:
    """Generate a day of web visits, anonymize it, audit the release and draw a picture; or show a live stream.

    Examples:

        shoal demo

        shoal demo --live     (until Ctrl-C, on a page whose address is printed)

        shoal demo --people 10000 --events 1000000 --z 50

    Parameters
    ----------
    out
        Folder for all files.
    people
        How many people visit sites.
    events
        How many visits they make.
    z
        How many people must have visited a site within the hour.
    seed
        Seed of the random numbers: another seed gives another day.
    live
        Send the visits to a run of their own, again and again, and show it on the live page.
    rate
        With --live: visits a second.
    port
        With --live: where the page is; 8765 by default, 0 takes a free one.
    open_page
        With --live: open the page in a browser.
    """
    if live:
        return _show_live(out, people, events, z=z, seed=seed, rate=rate, port=port, open_page=open_page)
    from shoal.auditor import audit
    from shoal.cli.output.render import say_compiling, watch
    from shoal.cli.output.summary_text import summary_lines
    from shoal.crypto.safe_open import write_file
    from shoal.encode.sealed import read_trace
    from shoal.pipeline import Pipeline
    from shoal.pipeline.warmup import must_compile
    from shoal.sinks.durable import output_error
    from shoal.testing.visits import make_visits, write_visits_csv

    print(f"generating a day of {events:,} visits by {people:,} people …")
    visits = make_visits(people=people, events=events, seed=seed)
    with output_error(out):
        out.mkdir(parents=True, exist_ok=True)
        planted = write_visits_csv(out / "visits.csv", visits, allowed_lateness_ns=_MINUTES_LATE * 60 * 10**9)
        write_file(out / "policy.toml", _POLICY.format(z=z, minutes=_MINUTES_LATE))
    print(
        f"  among them {sum(planted.broken.values()):,} broken rows and {planted.late:,} late ones, "
        f"{planted.too_late:,} of them later than the {_MINUTES_LATE} minutes that the policy allows"
    )
    print("anonymizing …", flush=True)
    if must_compile("z-anonymity"):
        say_compiling()
    pipeline = Pipeline.from_policy(out / "policy.toml")
    with watch(quiet=True) as observer:
        summary = pipeline.run(observer)
    print("auditing the release with independent code …\n")
    begun = time.perf_counter()
    trace = read_trace(out / "trace.parquet")
    report = audit(out / "released.parquet", truth=out / "visits.csv", trace=trace, policy=out / "policy.toml")
    audited = time.perf_counter() - begun
    try:
        _draw(pipeline, out, trace, z)
        picture = str(out / "day.png")
    except RunError as error:  # the result matters more than its picture
        picture = f"none: {error}"
    print("\n".join([*summary_lines(summary)[:-2], *_verdict(report, audited), *_places(out, picture)]))
    return summary.exit_code if report.ok else 1


def _show_live(
    out: Path, people: int, events: int, *, z: int, seed: int, rate: int, port: int | None, open_page: bool
) -> int:
    from shoal.cli.output.render import print_summary, watch
    from shoal.crypto.safe_open import write_file
    from shoal.pipeline import Pipeline
    from shoal.pipeline.stopping import Stop, on_signals
    from shoal.serve.demo import POLICY, VisitSender
    from shoal.serve.host import RunHost
    from shoal.sinks.durable import output_error

    folder = out / "live"
    with output_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / "policy.toml", POLICY.format(z=z))
    host = RunHost(Pipeline.from_policy(folder / "policy.toml"), port=port)
    sender = VisitSender(host.events_address, str(host.token), people=people, events=events, seed=seed, rate=rate)
    print(f"the page is at {host.address}")
    print(f"{rate:,} visits a second go to {host.events_address}; Ctrl-C ends it", flush=True)
    if open_page:
        import webbrowser

        webbrowser.open(host.address)
    stop = Stop()
    with watch(quiet=True) as observer, on_signals(stop), sender.sending():
        summary = host.run(observer, stop=stop)
    print_summary(summary, as_json=False, is_piped=False)
    return 0


def _verdict(report: Any, seconds: float) -> list[str]:
    metrics, verdict = report.metrics, report.verdict
    lines = [
        f"audit          {verdict.sentence} ({seconds:.1f} s)",
        f"people         {metrics['people']:,}, "
        f"of whom {metrics['people_never_released_share']:.1%} have no released row",
    ]
    unique = metrics["epochs"]["shares"]["1 (unique)"]["shown"] if verdict.smallest else None
    if unique is not None:
        lines += [
            f"               {unique:.1%} of those shown in an hour have a released set no one else has:",
            "               z hides rare sites, not rare combinations. To hide these too, add to [anonymize]:",
            '                   combine = "k"',
            "                   k = 2           # rows then wait for the end of their hour",
        ]
    return lines


def _places(out: Path, picture: str) -> list[str]:
    return [
        f"dead letters   {out / 'released.parquet.dead.jsonl'}  (why rows were refused)",
        f"picture        {picture}",
        f"policy         {out / 'policy.toml'}   ({program()} run {out / 'policy.toml'})",
        f"next           {program()} report {out / 'released.parquet'} --policy {out / 'policy.toml'}",
        f"live page      {program()} demo --live   (such visits as a stream, with the promise and what-if on a page)",
        *how_to_call(),
    ]


def _draw(pipeline: Any, out: Path, trace: Any, z: int) -> None:
    import numpy as np

    from shoal.figures.z_day import draw_day
    from shoal.methods.arrow_input import with_gaps
    from shoal.pipeline.wiring import make_decoder, make_files
    from shoal.times import column_ns

    policy = pipeline.policy
    assert policy.stream.time is not None
    with make_decoder(policy, make_files(policy)[0], (policy.stream.time,)) as decoder:
        columns = [column_ns(with_gaps(decoded.batch, decoded.places).column(0)) for decoded in decoder.batches()]
    times, usable = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    rows = trace.column("row").to_numpy()
    shown = usable[rows]
    verdicts = np.asarray(trace.column("verdict").to_pylist())
    draw_day(
        out / "day.png", times=times[rows][shown], verdicts=verdicts[shown],
        timeless=int(np.count_nonzero(~shown)), title=f"Web visits under z-anonymity, z = {z} people an hour",
    )  # fmt: skip
