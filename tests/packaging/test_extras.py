"""Without an extra, the feature that needs it fails with one sentence that names the extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import shoal
from tests.forked import start

ROOT = Path(__file__).parents[2]
SCRIPT = """
import contextlib, io, json, sys
hidden, commands = json.loads(sys.argv[1])
assert hidden not in sys.modules, "imported before it is needed"
sys.modules[hidden] = None
from shoal.cli.app import main
ended = []
for command in commands:
    sys.argv = ["shoal", *command]
    with contextlib.redirect_stderr(io.StringIO()) as shown:
        try:
            main()
        except SystemExit as end:
            ended.append((end.code, shown.getvalue()))
print(json.dumps(ended))
"""
STREAM = '[stream]\nperson = "u"\n[source]\nkind = "csv"\npath = "in.csv"\n'
SINK = '[sink]\nkind = "csv"\npath = "out.csv"\n'
ONTOLOGY = f"""{STREAM}[anonymize]
method = "flexible-k"
k = 2
[anonymize.quasi.device]
kind = "ontology"
ontology = {{ kind = "rdf", path = "devices.ttl" }}
{SINK}"""
PLACES = f"""{STREAM}[anonymize]
method = "k^m"
item = "place"
k = 2
m = 1
[anonymize.generalize]
places = "places.csv"
{SINK}"""

LIVE = """[stream]
person = "u"
time = "t"
[source]
kind = "{kind}"
{keys}
[anonymize]
method = "z-anonymity"
attribute = "device"
z = 2
window = "1h"
[sink]
kind = "csv"
path = "out.csv"
[checkpoint]
path = "state"
"""
SYSTEMS = {
    "confluent_kafka": ("kafka", 'brokers = "b:1"\ntopics = ["a"]'),
    "redis": ("redis", 'streams = ["a"]'),
    "nats": ("nats", 'stream = "a"'),
    "rstream": ("rabbitmq", 'streams = ["a"]'),
    "paho": ("mqtt", 'topics = ["a"]'),
}
CONNECT = """
import sys
from shoal.errors import RunError
from shoal.pipeline.live.wiring import make_live_source
from shoal.policy import load_policy
for module, kind in zip(sys.argv[1::2], sys.argv[2::2]):
    sys.modules[module] = None
    try:
        make_live_source(load_policy(f"{kind}.toml")).open(("u", "t", "device"), None)
    except RunError as error:
        print(error)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in.csv").write_text("u,device,place\na,x,p\nb,x,p\nc,y,q\n")
    (tmp_path / "devices.ttl").write_text("@prefix : <urn:x#> .\n")
    (tmp_path / "places.csv").write_text("name,lon,lat\np,1,1\nq,2,2\nr,1,2\n")
    (tmp_path / "ontology.toml").write_text(ONTOLOGY)
    (tmp_path / "places.toml").write_text(PLACES)
    for kind, keys in SYSTEMS.values():
        (tmp_path / f"{kind}.toml").write_text(LIVE.format(kind=kind, keys=keys))
    (tmp_path / "http.toml").write_text(LIVE.format(kind="http", keys=""))
    avro = 'streams = ["a"]\nformat = "avro"\nregistry = "http://localhost:1"'
    (tmp_path / "avro.toml").write_text(LIVE.format(kind="redis", keys=avro))
    return tmp_path


def run_without(module, commands, cwd):
    """Call the command line in a process in which a module cannot be imported: exit codes and sentences."""
    with start(json.dumps([module, [line.split() for line in commands]]), script=SCRIPT, cwd=cwd) as process:
        written, errors = process.communicate()
    assert process.returncode == 0, errors
    return json.loads(written.splitlines()[-1])


@pytest.mark.parametrize(
    ("module", "extra", "commands"),
    [
        (
            "rdflib",
            "ontology",
            [
                "ontology check devices.ttl",
                "run ontology.toml",
                "audit in.csv --policy ontology.toml",
                "reproduce flexible --quick",
            ],
        ),
        ("shapely", "places", ["run places.toml", "reproduce km --quick"]),
        ("matplotlib", "figures", ["reproduce z --quick"]),
        ("pyspark", "spark", ["run places.toml --engine spark"]),
        ("redis", "redis", ["run redis.toml"]),
        ("fastavro", "avro", ["run avro.toml"]),
        ("starlette", "serve", ["serve redis.toml", "run http.toml"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_sentence_names_the_extra(module, extra, commands, folder):
    ended = run_without(module, commands, folder)
    assert len(ended) == len(commands)
    for (code, shown), command in zip(ended, commands, strict=True):
        assert code == 1, command
        assert len(shown.splitlines()) == 1, command
        assert f"pip install '.[{extra}]' in a clone" in shown, command


def test_every_system_names_its_extra(folder):
    ready = {module: kind for module, (kind, _) in SYSTEMS.items() if find_spec(f"shoal.pipeline.live.{kind}")}
    words = [word for pair in ready.items() for word in pair]
    with start(*words, script=CONNECT, cwd=folder) as process:
        written, errors = process.communicate()
    lines = written.decode().splitlines()
    assert len(lines) == len(ready), errors
    for line, kind in zip(lines, ready.values(), strict=True):
        assert f"pip install '.[{kind}]' in a clone" in line


def test_importing_every_public_name_needs_no_extra():
    hidden = "sys.modules.update(dict.fromkeys(['rdflib', 'shapely', 'matplotlib', 'psycopg']))"
    names = [name for name in shoal.__all__ if name != "Places"]
    script = f"import sys; {hidden}; import shoal; [getattr(shoal, name) for name in {names}]"
    env = {**os.environ, "PYTHONPATH": str(Path(shoal.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
