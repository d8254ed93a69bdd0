"""`shoal run`: anonymize a stream with a policy."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from shoal.observe.counts import RunSummary

_INTERRUPTED: Final = 130


def run(  # noqa: PLR0913 - one for each option
    policy: Path,
    *,
    checkpoint: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
    take_over: Annotated[bool, Parameter(negative="")] = False,
    log: Literal["text", "json"] = "text",
    metrics: str | None = None,
    upgrade: Annotated[bool, Parameter(negative="")] = False,
    worker: int | None = None,
    engine: Literal["here", "spark"] = "here",
    master: str | None = None,
    shards: int | None = None,
    follow: Annotated[bool, Parameter(negative="")] = False,
    once: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Anonymize a stream with a policy.

    Released rows go to the policy's sink; the dead letters next to it list why rows were refused. Exit code 0 on
    success, 1 when the run failed or the input broke off, 2 when the policy is wrong, 3 when the whole input was read
    and nothing was released or more than half of it was refused. A run on a live system goes on
    until it gets SIGTERM or Ctrl-C: it writes a last checkpoint and ends with 0; started again, it continues there. A
    second signal ends it at once, and loses nothing either.

    The policy's method decides what is promised; `shoal methods` lists all methods with what they are for, and
    `shoal init` writes a policy for a file. The summary also reports what was lost.

    Examples:

        shoal run policy.toml

        shoal run policy.toml --checkpoint state/     (killed and started again, it resumes)

        shoal run policy.toml --json > summary.json

        shoal doctor people.toml && shoal run people.toml --quiet

        shoal run live.toml --metrics 9464 --log json 2>> shoal.log

        shoal run shared.toml --worker 2     (one of several processes that share a topic of Kafka)

        shoal run people.toml --engine spark --master local[4]

        shoal run visits.toml --engine spark --follow     (files that keep coming, with a [checkpoint])

    Parameters
    ----------
    policy
        The policy file (TOML).
    checkpoint
        Folder for state, so that a killed run can be started again with the same command.
    as_json
        Print the summary as JSON on standard output.
    quiet
        No progress.
    take_over
        Continue although another process uses the checkpoints, because it is stuck or on a machine that is gone. It
        stops at its next commit if it is not.
    log
        How events of the run are written on standard error: as sentences, or as JSON objects, one per line.
    metrics
        A port, or a host and a port, where a server answers /metrics (for Prometheus), /healthz and /readyz while the
        run lasts. A port alone is open to this machine only. Counts and sizes, never a value.
    upgrade
        Continue a stopped run with a changed [stream] or [anonymize], or with another key (SHOAL_OLD_KEY_FILE names the
        old one). State is kept if it fits; otherwise what is pending is decided under the old promise first.
    worker
        Which of the [source] workers this process is, from 0. Each reads partitions of its own, and has checkpoints in
        a folder of its own below that of the policy.
    engine
        Where records are decided: here, or on the executors of Spark.
    master
        With --engine spark: the cluster, such as spark://host:7077, yarn or local[4]; by default that of spark-submit.
    shards
        With --engine spark: into how many parts records are divided at most, 16 by default; for methods on rows, what
        is published depends on it. Give some for each core. A stream keeps the number it began with.
    follow
        With --engine spark and a checkpoint: wait for more files and decide them as they come, until it is stopped.
    once
        With --engine spark and a checkpoint: decide what is there and stop. What is pending stays pending, and the
        next start continues.
    """
    from shoal.cli.engine import check_engine, check_run_options
    from shoal.cli.output.render import print_summary, watch
    from shoal.pipeline import Pipeline
    from shoal.pipeline.stopping import Stop, on_signals

    check_engine(engine, master, shards)
    check_run_options(engine, follow=follow, once=once, upgrade=upgrade, worker=worker)
    if engine == "spark":
        run_on = _spark_run(policy, master, shards, checkpoint, follow=follow, once=once, take_over=take_over, log=log)
        with watch(quiet=quiet, log=log, metrics=metrics) as observer:
            summary: RunSummary = run_on(observer).execute()
        print_summary(summary, as_json=as_json, is_piped=False)
        return summary.exit_code
    pipeline = Pipeline.from_policy(policy, checkpoint=checkpoint, worker=worker)
    stop = Stop()
    runner: Any = pipeline
    try:
        signals = on_signals(stop, as_json=log == "json") if pipeline.policy.source.is_endless else nullcontext()
        with watch(quiet=quiet, log=log, metrics=metrics) as observer, signals:
            if pipeline.policy.source.kind == "http":
                runner = _listening(pipeline)
            else:
                for warning in pipeline.policy.warnings:
                    observer.warn(warning)
            summary = runner.run(observer, stop=stop, take_over=take_over, upgrade=upgrade)
    except KeyboardInterrupt:
        print(f"shoal: interrupted; {_what_next(pipeline.policy)}", file=sys.stderr)
        return _INTERRUPTED
    print_summary(summary, as_json=as_json, is_piped=_is_piped(pipeline.policy))
    return summary.exit_code


def _listening(pipeline: Any) -> Any:
    """The pipeline behind a web server that accepts records; says where, on standard error."""
    from shoal.serve.host import RunHost

    host = RunHost(pipeline, with_page=False)
    for sentence in host.warnings:
        print(f"shoal: warning: {sentence}", file=sys.stderr)
    print(f"shoal: send records to {host.events_address}, with the bearer token {host.token}", file=sys.stderr)
    return host


def _spark_run(
    policy: Path, master: str | None, shards: int | None, checkpoint: Path | None, *, log: str, **stream: Any
) -> Any:
    """Makes the run on Spark for an observer: micro-batches if there is a checkpoint, else all files as one batch."""
    from shoal.errors import PolicyError
    from shoal.policy import load_policy
    from shoal.policy.live.messages import MessageSource

    loaded = load_policy(policy, checkpoint=checkpoint)
    where = {"master": master} if shards is None else {"master": master, "shards": shards}
    if shards is not None and not loaded.anonymize.IS_STREAM:
        raise PolicyError("--shards: sets are divided by people, not into shards; leave it out")
    is_stream = loaded.checkpoint is not None or isinstance(loaded.source, MessageSource)
    if not is_stream:
        from shoal.spark.run import SparkRun

        for name in ("follow", "once"):
            if stream[name]:
                raise PolicyError(f"--{name}: needs a folder for the state; add [checkpoint] to the policy")

    def run_on(observer: Any) -> Any:
        for warning in loaded.warnings:
            observer.warn(warning)
        if not is_stream:
            return SparkRun(loaded, observer, **where)
        from shoal.spark.streams.run import SparkStream

        return SparkStream(loaded, observer, **where, as_json=log == "json", **stream)

    return run_on


def _what_next(policy: Any) -> str:
    if policy.checkpoint is not None:
        return "start the same command again, it resumes from the last checkpoint"
    if not policy.anonymize.IS_STREAM:
        return "nothing was published; the next run starts over"
    left = [str(path) for path in _unfinished(policy) if path.exists()]
    if not left:
        return "nothing was written"
    return f"not finished: {', '.join(left)}; the next run replaces them (with --checkpoint it would resume)"


def _unfinished(policy: Any) -> list[Path]:
    """Where a run writes before it is finished; dead letters are written in place."""
    places = (policy.sink.place, policy.trace and policy.trace.path)
    working = [place.working for place in places if place is not None and not place.is_standard]
    letters = policy.dead_letters.file
    return [*working, letters.path] if letters is not None else working


def _is_piped(policy: Any) -> bool:
    place = policy.sink.place
    return place is not None and place.is_standard
