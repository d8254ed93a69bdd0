"""Values, their labels and what each covers, against a naive twin; ontologies from tables."""

from __future__ import annotations

import gzip
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import InputError, PolicyError
from shoal.hierarchies.ontology.compile import Sketch, build_concepts
from shoal.hierarchies.ontology.ontology import Concepts, Ontology
from tests.reference import ontology as naive
from tests.reference.effort import tries

PHONES = [
    {"model": "S3", "family": "Galaxy", "brand": "Samsung", "os": "Android", "country": "Korea", "region": "Asia"},
    {"model": "Note 3", "family": "Note", "brand": "Samsung", "os": "Android", "country": "Korea", "region": "Asia"},
    {"model": "Note 8", "family": "Note", "brand": "Infinix", "os": "Android", "country": "China", "region": "Asia"},
    {"model": "5s", "family": "iPhone", "brand": "Apple", "os": "iOS", "country": "USA", "region": "America"},
    {"model": "3310", "family": None, "brand": "Nokia", "os": " ", "country": "Finland", "region": ""},
]


def phones(rows=PHONES, **changes) -> Concepts:
    given_ = {"value": "model", "is_a": ["family", "brand"], "properties": ["os", "country"]}
    given_["parents"] = {"country": ["region"]}
    ontology = Ontology.from_table(rows, **(given_ | changes))
    (concepts,) = ontology.attributes.values()
    return concepts


def test_a_table_becomes_nodes_in_a_fixed_order():
    concepts = phones(tag="sparse")
    assert (concepts.name, concepts.tag, concepts.root) == ("model", "sparse", "any model")
    assert concepts.values == ("3310", "5s", "Note 3", "Note 8", "S3")
    assert concepts.properties == ("is a", "os", "country")
    assert concepts.labels == (
        *concepts.values,
        *("Apple", "Galaxy", "Infinix", "Nokia", "Note (Infinix)", "Note (Samsung)", "Samsung", "iPhone"),
        *("Android", "iOS", "America", "Asia", "China", "Finland", "Korea", "USA", "any model"),
    )
    assert concepts.property_of.tolist() == [-1] * 5 + [0] * 8 + [1] * 2 + [2] * 6 + [0]
    assert concepts.labels_above("Note 3") == ("Note (Samsung)", "Samsung", "Korea", "Android", "Asia")
    assert concepts.labels_above("3310") == ("Nokia", "Finland")
    assert concepts.covered("Android") == ("Note 3", "Note 8", "S3")
    assert concepts.covered("S3") == ("S3",)
    assert concepts.covered("any model") == concepts.values
    assert (concepts.loss("S3"), concepts.loss("Asia"), concepts.loss("any model")) == (0.0, 0.5, 1.0)
    assert concepts.subsumes("Samsung", "S3")
    assert not concepts.subsumes("Infinix", "Note 3")
    assert concepts.node_of("Asia") == concepts.labels.index("Asia")
    assert concepts.node_of("nothing") is None


def test_unknown_labels():
    concepts = phones()
    assert not concepts.subsumes("nothing", "S3")
    assert not concepts.subsumes("Samsung", "nothing")
    assert not concepts.subsumes("any model", "Samsung")
    for ask in (concepts.covered, concepts.loss, concepts.labels_above):
        with pytest.raises(InputError, match="unknown to the attribute 'model'") as raised:
            ask("a person's secret")
        assert "secret" not in str(raised.value)
    with pytest.raises(InputError, match="not a value itself"):
        concepts.labels_above("Samsung")


def test_the_tree_of_classes():
    tree = phones().tree()
    assert tree.path("Note 3") == ("Note 3", "Note (Samsung)", "Samsung", "any model")
    assert tree.path("3310") == ("3310", "Nokia", "any model")
    assert len(tree) == 5 + 8 + 1


def test_a_value_of_two_classes_is_in_the_tree_once():
    rows = [{"v": "a", "c": "Z"}, {"v": "a", "c": "B"}, {"v": "b", "c": "B"}]
    concepts = phones(rows, value="v", is_a=["c"], properties=[], parents=None)
    assert concepts.labels_above("a") == ("Z", "B")
    assert concepts.tree().labels == ("any v", "B", "a", "b")  # Z would be a leaf without a value


def test_a_table_without_classes_has_a_flat_tree():
    assert phones(is_a=[]).tree() == shoal.Hierarchy.flat(phones().values, root="any model")


def test_ambiguous_texts_get_their_property():
    rows = [
        {"v": "Georgia", "made": "Georgia", "sold": "Georgia", "c": "x"},
        {"v": "b", "made": "Georgia", "sold": "x", "c": "any v"},
    ]
    concepts = phones(rows, value="v", properties=["made", "sold"], is_a=["c"], parents=None)
    assert concepts.covered("Georgia") == ("Georgia",)
    assert concepts.covered("Georgia (made)") == ("Georgia", "b")
    assert concepts.covered("Georgia (sold)") == ("Georgia",)
    assert concepts.covered("x (is a)") == ("Georgia",)
    assert concepts.covered("x (sold)") == ("b",)
    assert concepts.covered("any v (is a)") == ("b",)


def test_additions_that_are_taken_get_a_number():
    rows = [{"v": "a", "p": "a"}, {"v": "a (p)", "p": "a"}, {"v": "a (p) 2", "p": "c"}]
    assert phones(rows, value="v", properties=["p"], is_a=[], parents=None).covered("a (p) 3") == ("a", "a (p)")


def test_contradicting_rows_give_both_labels_and_blanks_give_none():
    rows = [
        {"v": "a", "brand": "X"}, {"v": "a", "brand": " Y "}, {"v": "a", "brand": "X"}, {"v": "a", "brand": " "},
        {"v": None, "brand": "Z"}, {"v": " ", "brand": "Z"}, {"v": "b", "brand": None},
    ]  # fmt: skip
    concepts = phones(rows, value="v", properties=["brand"], is_a=[], parents=None)
    assert concepts.labels == ("a", "b", "X", "Y", "any v")
    assert concepts.labels_above("a") == ("X", "Y")
    assert concepts.labels_above("b") == ()


def test_equal_neighbours_in_a_chain_are_one_class():
    rows = [{"v": "a", "family": "Nothing", "brand": "Nothing"}, {"v": "b", "family": "Fold", "brand": "Nothing"}]
    concepts = phones(rows, value="v", is_a=["family", "brand"], properties=[], parents=None)
    assert concepts.labels_above("a") == ("Nothing",)
    assert concepts.covered("Nothing") == ("a", "b")


def test_the_order_of_rows_does_not_matter():
    assert phones(PHONES[::-1]) == phones()
    assert hash(phones(PHONES[::-1])) == hash(phones())
    assert phones(PHONES[1:]) != phones()


def test_every_kind_of_table_gives_the_same_ontology(tmp_path):
    table = pa.Table.from_pylist(PHONES)
    text = "\ufeffmodel,family,brand,os,country,region\n" + "".join(
        ",".join(f'"{cell or ""}"' for cell in row.values()) + "\n" for row in PHONES
    )
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    pq.write_table(table, tmp_path / "a.parquet")
    sources = [table, table.to_pandas(), tmp_path / "a.csv", str(tmp_path / "a.csv.gz"), tmp_path / "a.parquet"]
    assert all(phones(source) == phones() for source in sources)


def test_it_is_written_and_read_back():
    ontology = Ontology([phones(tag="normal")])
    assert Ontology.from_dict(ontology.to_dict()) == ontology
    assert pickle.loads(pickle.dumps(ontology)) == ontology
    assert len({ontology, Ontology.from_dict(ontology.to_dict())}) == 1
    assert repr(ontology) == "<Ontology of 'model' (5 values)>"
    assert repr(ontology.attribute("model")) == "<Concepts of 5 values and 17 labels of 'model'>"


@pytest.mark.parametrize(
    "change",
    [
        {"labels": ["a"]}, {"labels": 3}, {"values": 0}, {"values": "x"}, {"tag": "rare"}, {"name": ""},
        {"properties": ["os"]}, {"property_of": [0] * 22}, {"above": [0] * 25}, {"above": [99] * 25},
        {"above_starts": [0]}, {"tree_parents": [-1] * 22}, {"above": [[1]]}, {"above": [10**12]},
    ],
)  # fmt: skip
def test_from_dict_refuses_other_content(change):
    content = phones().to_dict() | change
    with pytest.raises(PolicyError, match="write it again"):
        Concepts.from_dict(content)


def test_other_wrong_contents():
    for content in ({}, {"attributes": 3}, {"attributes": [{}]}):
        with pytest.raises(PolicyError, match="write it again"):
            Ontology.from_dict(content)
    with pytest.raises(PolicyError, match="no attribute"):
        Ontology([])
    with pytest.raises(PolicyError, match="same name"):
        Ontology([phones(), phones(PHONES[1:])])
    with pytest.raises(PolicyError, match="has no attribute 'device'; it has 'model'"):
        Ontology([phones()]).attribute("device")
    with pytest.raises(PolicyError, match="from_table"):
        Concepts()


def test_nothing_can_be_changed():
    concepts = phones()
    with pytest.raises(AttributeError):
        concepts.name = "other"
    with pytest.raises(TypeError):
        Ontology([concepts]).attributes["x"] = concepts  # type: ignore[index]
    for array in (concepts.above, concepts.above_starts, concepts.leaf_counts, concepts.property_of):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"value": ""}, "value= must name"),
        ({"value": "nope"}, "has no column 'nope'"),
        ({"properties": ["nope"], "parents": None}, "has no column 'nope'"),
        ({"properties": "os"}, "properties must be a list"),
        ({"is_a": [3]}, "is_a must be a list"),
        ({"properties": [], "is_a": [], "parents": None}, "at least one column"),
        ({"parents": {"brand": ["region"]}}, "not among properties"),
        ({"properties": ["os", "os"], "parents": None}, "named twice"),
        ({"rows": pa.table({"model": ["a"]})}, "has no column"),
        (
            {
                "rows": pa.table({"model": [["a"]], "is a": [["x"]]}),
                "is_a": [],
                "properties": ["is a"],
                "parents": None,
            },
            "cannot be called 'is a'",
        ),
        ({"tag": "rare"}, "tag= must be"),
        ({"attribute": " "}, "attribute= must be"),
        ({"root": " "}, "root needs a label"),
        ({"root": "S3"}, "called like the root"),
    ],
)
def test_wrong_column_roles(changes, says):
    with pytest.raises(PolicyError, match=says):
        phones(**changes)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"model,os\na,b,c\n", "line 2: has more or fewer cells"),
        (b'model,os\n"a,b\n', "a quote is not closed"),
        (b"model,os\na,\xff\n", "line 2: is not UTF-8"),
        (b"\x1f\x8bbroken", "compressed file is damaged"),
        (gzip.compress(b"model,os\na,b\n", mtime=0)[:-6], "compressed file is damaged"),
        (b"", "has no column 'model'"),
        (b"model,os\n", "has no values"),
    ],
)
def test_broken_tables(tmp_path, content, says):
    path = tmp_path / "list.csv"
    path.write_bytes(content)
    with pytest.raises(PolicyError, match=says) as raised:
        Ontology.from_table(path, value="model", properties=["os"])
    assert str(raised.value).startswith("list.csv")
    assert str(tmp_path) not in str(raised.value)


def test_other_broken_sources(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no")
    for source in (tmp_path / "missing.csv", tmp_path / "missing.parquet", tmp_path / "a.parquet", 3, [3]):
        with pytest.raises(PolicyError):
            Ontology.from_table(source, value="model", properties=["os"])
    with pytest.raises(PolicyError, match="cells that are text"):
        Ontology.from_table(pa.table({"v": [[{"a": 1}]], "p": ["x"]}), value="v", properties=["p"])
    with pytest.raises(PolicyError, match="half a character"):
        Ontology.from_table([{"v": "\ud800", "p": "x"}], value="v", properties=["p"])


def test_a_cycle_is_named():
    sketch = Sketch(
        name="d", tag=None, root="r", texts={"v": "v", "a": "A", "b": "B"}, values=["v"],
        parents={"v": ["a"], "a": ["b"], "b": ["a"]},
    )  # fmt: skip
    with pytest.raises(PolicyError, match="'A' → 'B' → 'A'"):
        build_concepts(sketch)
    around = {str(number): [str((number + 1) % 20)] for number in range(20)}
    with pytest.raises(PolicyError, match="→ …; remove"):
        build_concepts(Sketch("d", None, "r", {key: key for key in around}, ["0"], around))


def test_a_long_chain_needs_no_deep_stack():
    chain = {f"{number:05}": [f"{number + 1:05}"] for number in range(3000)}
    texts = {f"{number:05}": f"{number:05}" for number in range(3001)}
    concepts = build_concepts(Sketch("d", None, "r", texts, ["00000"], chain))
    assert len(concepts.labels_above("00000")) == 3000
    assert concepts.loss("r") == 0.0  # one value: nothing can be lost


# ---- against the naive twin


@st.composite
def sketches(draw) -> Sketch:
    classes = [f"c{number}" for number in range(draw(st.integers(0, 8)))]
    objects = [f"o{number}" for number in range(draw(st.integers(0, 6)))]
    values = [f"v{number}" for number in range(draw(st.integers(1, 12)))]
    few = draw(st.booleans())  # few texts: many things of one name

    def some(of, most=3):
        return draw(st.lists(st.sampled_from(of), max_size=most, unique=True)) if of else []

    parents = {key: some(classes[place + 1 :]) for place, key in enumerate(classes)}
    parents |= {key: some(classes) for key in values}
    wider = {key: some(objects[place + 1 :]) for place, key in enumerate(objects)}
    names = [f"p{number}" for number in range(draw(st.integers(0, 3)))]
    statements = {name: {key: some(objects, 2) for key in some([*values, *classes], 8)} for name in names}
    texts = {
        key: draw(st.sampled_from(["x", "y", "z", "x (is a)", "x (p0)", "y (x)"])) if few else key
        for key in (*values, *classes, *objects)
    }
    return Sketch("d", None, "root", texts, draw(st.permutations(values)), parents, names, statements, wider)


@tries(150)
@given(sketches())
def test_arrays_equal_naive_sets(sketch):
    concepts = build_concepts(sketch)
    above = {}
    for key in sketch.values:
        above.setdefault(sketch.texts[key], set()).update(naive.nodes_above(sketch, key))
    assert concepts.values == tuple(sorted(above))
    assert len(set(concepts.labels)) == len(concepts.labels)
    count, inner = len(above), concepts.labels[len(above) : -1]
    covers = {}
    for value, nodes in above.items():
        for node in nodes:
            covers.setdefault(node, set()).add(value)
    # every label is one (property, thing): compare what they cover as multisets, by property and first text
    found = sorted((concepts.properties[concepts.property_of[count + place]], sorted(concepts.covered(label)))
                   for place, label in enumerate(inner))  # fmt: skip
    assert found == sorted((kind, sorted(values)) for (kind, _), values in covers.items())
    for value, nodes in above.items():
        assert len(concepts.labels_above(value)) == len(nodes)
    if all(text == key for key, text in sketch.texts.items()):
        uses = [thing for _, thing in covers]
        for (kind, thing), values in covers.items():
            label = thing if uses.count(thing) == 1 else f"{thing} ({kind})"
            assert set(concepts.covered(label)) == values


@tries(100)
@given(sketches())
def test_order_counts_and_tree(sketch):
    concepts = build_concepts(sketch)
    count, nodes = len(concepts.values), len(concepts.labels)
    assert concepts.leaf_counts.tolist() == [len(concepts.covered(label)) for label in concepts.labels]
    assert list(concepts.labels[count:-1]) == [
        label for _, label in sorted(zip(concepts.property_of[count:-1], concepts.labels[count:-1], strict=True))
    ]
    for leaf in range(count):
        run = concepts.above[concepts.above_starts[leaf] : concepts.above_starts[leaf + 1]].tolist()
        keys = [(concepts.leaf_counts[node], concepts.property_of[node], concepts.labels[node]) for node in run]
        assert keys == sorted(keys)
        assert all(count <= node < nodes - 1 for node in run)
    tree = concepts.tree()
    leaves = {label for node, label in enumerate(tree.labels) if node not in tree.parents}
    assert leaves == set(concepts.values)
    for value in concepts.values:
        assert all(concepts.subsumes(label, value) for label in tree.path(value))
    assert Concepts.from_dict(concepts.to_dict()) == concepts


def test_a_long_list_of_devices():
    chooser = np.random.default_rng(5)
    brands = chooser.zipf(1.3, 20_000) % 900
    rows = [
        {"device": f"d{number % 18_000}", "family": f"f{number % 7000}", "brand": f"b{brand}", "os": f"os{brand % 7}"}
        for number, brand in enumerate(brands.tolist())
    ]
    ontology = Ontology.from_table(rows, value="device", is_a=["family", "brand"], properties=["os"], tag="sparse")
    concepts = ontology.attribute("device")
    assert len(concepts.values) == 18_000
    by_brand = {}
    for row in rows:
        by_brand.setdefault(row["brand"], set()).add(row["device"])
    assert all(set(concepts.covered(brand)) == values for brand, values in list(by_brand.items())[:50])


def test_it_is_public():
    assert shoal.Ontology is Ontology
