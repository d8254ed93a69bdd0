"""`shoal compare`: the same input under several settings, and which to take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from shoal.cli.evidence.attack import Names, split_names
from shoal.errors import OutputError, PolicyError


def compare(  # noqa: PLR0913
    policy: Path,
    *,
    methods: Names = None,
    k: Names = None,
    vary: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=True, negative="")] = None,
    max_risk: float = 0.05,
    workload: Path | None = None,
    peers: Names = None,
    peers_python: str | None = None,
    targets: int = 500,
    seed: int = 1,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Publish the policy's input once for every setting; compare loss, utility, attacks, suppression and delay.

    Releases are written to a temporary folder and removed; nothing that the policy names as output is written. The
    choice is the setting with the smallest error of counts among those that keep their promise at an acceptable risk.
    Exit code 0 when the settings could be compared, 1 when a run fails, 2 when the policy or a setting is wrong.

    Examples:

        shoal compare policy.toml --methods least-loss,fads,k-varp --k 5,10,50

        shoal compare policy.toml --k 5,10 --workload counts.toml --peers anjana,pycanon --peers-python peers/bin/python

        shoal compare policy.toml --set z=5,10,20 window=1h,24h -o compare.html --json

    Parameters
    ----------
    policy
        A policy that reads files.
    methods
        Methods of the same family, separated by spaces or commas; by default the policy's.
    k
        Values of k, separated by spaces or commas.
    vary
        Values of other keys of [anonymize]: key=value,value.
    max_risk
        The largest acceptable chance to find a person, by the upper end of its interval.
    workload
        The counts that matter, in a TOML or JSON file: their error decides, in place of random counts.
    peers
        Other packages, separated by spaces or commas: anjana (its k-anonymity of the same input as a row for every k),
        pycanon (k and l of every release by its checks, next to shoal's).
    peers_python
        The interpreter that has these packages; by default the one that runs shoal.
    targets
        How many people are attacked in every release.
    seed
        The seed of the draw.
    out
        Write a page with the table and a picture to this file (.html).
    as_json
        Print the comparison as JSON.
    quiet
        Print no progress on standard error.
    """
    import orjson

    from shoal.cli.output.render import say_written, warn_of_key, watch_steps
    from shoal.crypto.safe_open import write_file
    from shoal.pipeline.compare import compare_settings

    if not 0 < max_risk <= 1:
        raise PolicyError("max-risk: must be a share above 0, up to 1")
    varied = {**({"k": [_value(one) for one in split_names(k) or ()]} if k else {}), **_varied(vary or [])}
    warn_of_key()
    with watch_steps("comparing", quiet=quiet) as progress:
        found = compare_settings(
            policy, methods=split_names(methods) or (), varied=varied, targets=targets, seed=seed, max_risk=max_risk,
            workload=workload, peers=split_names(peers) or (), peers_python=peers_python, progress=progress,
        )  # fmt: skip
    if out is not None:
        try:
            write_file(out, found.html(), private=True)
        except OSError as error:
            raise OutputError(f"{out}: cannot be written ({error.strerror}); choose another file with --out") from None
        say_written("page", out, quiet=quiet)
    print(orjson.dumps(found.to_dict(), option=orjson.OPT_INDENT_2).decode() if as_json else found.text())
    return 0


def _varied(given: list[str]) -> dict[str, list[Any]]:
    found = {}
    for one in given:
        key, equals, values = one.partition("=")
        if not equals or not key or not values:
            raise PolicyError(f"--set {one}: write key=value,value")
        found[key] = [_value(value) for value in values.split(",") if value]
    return found


def _value(text: str) -> Any:
    """Read a value as TOML would: a number, true or false; any other text as it is."""
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
