"""The process around flexible k-anonymity: nothing is dropped, rows that cannot be published yet stay pending."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.sanitize.scene import Died, Scene, lines
from tests.sanitize.test_process import STEPS

FIRST, SECOND = lines(30, 300, 1), lines(40, 300, 2, first=300)


def test_what_is_read_is_published_or_pending(make_scene):
    scene = make_scene(flexible=True)
    scene.write("in-1.csv", FIRST)
    first = scene.run()
    assert first.status["suppressed"] == first.status["dead"] == 0
    assert first.published + first.status["pending"] == 300
    assert first.published > 0
    assert first.status["pending"] > 0
    assert first.status["audit"] == "passed"
    early = scene.published().to_pylist()
    scene.write("in-2.csv", SECOND)
    second = scene.run()
    assert first.published + second.published + second.status["pending"] == 600
    assert second.status["audit"] == "passed"
    serials = scene.serials()
    assert len(set(serials)) == len(serials)
    later = scene.published().to_pylist()
    assert all(row in later for row in early)  # what was published stays as it was
    assert set(serials) & set(range(300)) > {row["serial"] for row in early}  # some of the pending found their crowd


def test_a_first_run_in_which_all_rows_stay_pending(make_scene):
    scene = make_scene(flexible=True)
    scene.write("in-1.csv", FIRST[:2])
    first = scene.run()
    assert (first.published, first.status["pending"]) == (0, 2)
    assert first.status["audit"] == "not audited: nothing is published yet"
    scene.write("in-2.csv", FIRST[2:])
    assert scene.run().status["audit"] == "passed"


@pytest.mark.parametrize("step", STEPS)
def test_stopped_anywhere_and_started_again(tmp_path, make_scene, step):
    scene = make_scene(flexible=True)
    scene.write("in-1.csv", FIRST)
    scene.write("in-2.csv", SECOND)
    with pytest.raises(Died):
        scene.run(step)
    with suppress(Died):
        scene.run(step, 2)
    done = scene.run()
    if not NEVER_STOPPED:
        NEVER_STOPPED.append(never_stopped(tmp_path / "quiet", make_scene))
    published, pending, rows = NEVER_STOPPED[0]
    assert done.status["external"]["published"] == published
    assert done.status["pending"] == pending
    assert done.status["audit"] == "passed"
    assert by_serial(scene) == rows


NEVER_STOPPED = []
"""The result of a run that is not stopped, for all tests."""


def never_stopped(folder, make_scene):
    folder.mkdir()
    scene = make_scene(folder=folder, flexible=True)
    scene.write("in-1.csv", FIRST)
    scene.write("in-2.csv", SECOND)
    done = scene.run()
    return done.published, done.status["pending"], by_serial(scene)


def by_serial(scene):
    return sorted(scene.published().to_pylist(), key=lambda row: row["serial"])


def test_all_records_pending_until_enough_people_come(make_scene):
    scene = make_scene(flexible=True, k=6)
    scene.write("in-1.csv", lines(3, 20, 1))
    first = scene.run(now=1e9)
    assert (first.published, first.status["pending"]) == (0, 20)
    assert first.status["audit"] == "not audited: nothing is published yet"
    assert scene.sanitizer().clear(now=2e9) == 1
    scene.write("in-2.csv", lines(40, 400, 2, first=100))
    last = scene.run(now=2e9)
    assert last.published + last.status["pending"] == 420
    assert last.status["audit"] == "passed"


def test_nothing_but_sparse_columns(scene):
    text = Scene(scene.folder, flexible=True).policy.read_text()
    start, end = (text.index(f"[anonymize.quasi.{name}]") for name in ("time", "device"))
    scene.policy.write_text(text[:start] + text[end:])
    scene.write("in-1.csv", lines(30, 100, 1))
    summary = scene.run()
    assert summary.published + summary.status["pending"] == 100
    assert len(scene.internal().is_real) == 300


def test_unknown_devices_are_published_as_unknown(scene, tmp_path):
    """Every fifth record: nothing is refused, all are published or pending, and the process's own audit passes."""
    scene = type(scene)(tmp_path, flexible=True)
    rows = [line.replace("model", "toaster") if number % 5 == 0 else line for number, line in enumerate(FIRST[:200])]
    scene.write("in-1.csv", rows)
    summary = scene.run()
    assert (summary.dead, summary.published + summary.status["pending"]) == (0, 200)
    assert summary.status["audit"] == "passed"
    labels = scene.published().column("device").to_pylist()
    assert "unknown" in labels
    assert not any(label is not None and "toaster" in label for label in labels)


def test_an_unknown_device_is_a_dead_letter_where_the_policy_refuses_it(scene, tmp_path):
    scene = type(scene)(tmp_path, flexible=True)
    text = scene.policy.read_text()
    scene.policy.write_text(text.replace('method = "flexible-k"\n', 'method = "flexible-k"\nunknown = "refuse"\n'))
    scene.write(
        "in-1.csv", [*FIRST[:100], FIRST[100].replace("model", "toaster"), FIRST[101].replace(",hill,", ",moon,")]
    )
    summary = scene.run()
    letters = (tmp_path / "pii.sealed.dead.jsonl").read_text()
    assert '"row":101' in letters
    assert "toaster" not in letters
    assert summary.published + summary.status["pending"] + summary.dead == 102
