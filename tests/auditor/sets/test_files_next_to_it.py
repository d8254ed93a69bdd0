"""The files beside a release of sets: its certificate and its blocks, honest and forged."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from shoal.auditor import audit
from shoal.errors import InputError, PolicyError
from tests.auditor.sets.naive import NO_CERTIFICATE, Case, policy, unchecked


def codes(report):
    return {found.code for found in report.violations}


def put(path, rows):
    path.write_text("".join(json.dumps({"items": sorted(row)}) + "\n" for row in rows))
    return path


def put_beside(path, ending, content):
    path.with_name(path.name + ending).write_text(content if isinstance(content, str) else json.dumps(content))


def size(number, k=3, how="counted", adversary="everyone", sigma=1.0):
    return {"size": number, "k": k, "how": how, "adversary": adversary, "sigma": sigma}


def sampled(number, adversary="itemset", sigma=0.9, **more):
    """A claim as a run writes it for sigma 0.9; 55 samples prove it in a first attempt."""
    rest = {"epsilon": 0.0803, "delta": 0.0213, "attempts": 1, "passed": 55}
    return size(number, how="sampled", adversary=adversary, sigma=sigma) | rest | more


def certificate(*sizes, m=2, records=40, **more):
    return {"sizes": list(sizes), "m": m, "records": records, "statement": "everybody is safe", **more}


class TestCertificate:
    @pytest.fixture
    def case(self):
        return Case(sigma=0.9)

    @pytest.fixture
    def out(self, case, tmp_path):
        return put(tmp_path / "out.jsonl", case.rows)

    def judged(self, case, out, content):
        put_beside(out, ".certificate.json", content)
        return audit(out, list(map(set, case.truth)), policy=case.policy)

    def test_an_honest_one(self, case, out):
        for honest in (certificate(size(1), size(2)), certificate(size(1), sampled(2))):
            report = self.judged(case, out, honest)
            assert report.findings == ()
            assert [sentence for sentence in report.not_checked if "not bound to the release" not in sentence] == []
            assert len(report.not_checked) == 1

    def test_a_missing_one_is_reported(self, case, out):
        assert audit(out, list(map(set, case.truth)), policy=case.policy).not_checked == (NO_CERTIFICATE,)

    @pytest.mark.parametrize(
        "forged",
        [
            certificate(),
            certificate(size(1)),
            certificate(size(1), size(2), m=1),
            certificate(size(1), size(2), records=41),
            certificate(size(1), size(2, k=2)),
            certificate(size(1), size(2, how="believed")),
            certificate(size(1), size(2, how="empty")),
            certificate(size(1), sampled(2, adversary="person")),
            certificate(size(1), sampled(2, sigma=0.8)),
            certificate(size(1), size(2, sigma=0.9)),
        ],
    )
    def test_one_that_claims_less(self, case, out, forged):
        assert codes(self.judged(case, out, forged)) == {"certificate-differs"}

    @pytest.mark.parametrize(
        "forged",
        [
            certificate(size(1, k=30), size(2)),
            certificate(size(1), size(2), m=3),
            certificate(size(1), size(2), size(3)),
            certificate(size(1), sampled(2, k=4)),
            certificate(size(1), sampled(2, sigma=0.99)),
            certificate(size(1), size(2), records=40, released=4000),
            certificate(size(1), size(2), adversary="both"),
            certificate(size(1), sampled(2), joint=True),
            certificate(size(1), size(2), method="k^m-apriori"),
            certificate(size(1), size(2), settings={"k": [30, 30]}),
            certificate(size(1), size(2), settings={"sigma": [1.0, 1.0]}),
            certificate(size(1), size(2), settings=30),
            certificate(size(1), size(2), released=[40]),
        ],
    )
    def test_one_that_claims_more(self, case, out, forged):
        assert codes(self.judged(case, out, forged)) == {"certificate-differs"}

    @pytest.mark.parametrize(
        "forged",
        [
            {"epsilon": 1e-9}, {"delta": 1e-9}, {"passed": 40}, {"attempts": 9}, {"attempts": 0}, {"epsilon": 0.2},
            {"delta": 0.9}, {"epsilon": 1}, {"delta": 0}, {"delta": 5e-324}, {"epsilon": 5e-324},
            {"epsilon": -1, "passed": 10**9},
        ],
    )  # fmt: skip
    def test_samples_that_prove_nothing(self, case, out, forged):
        assert codes(self.judged(case, out, certificate(size(1), sampled(2, **forged)))) == {"certificate-differs"}
        assert codes(
            self.judged(case, out, certificate(size(1), size(2, how="sampled", adversary="itemset", sigma=0.9)))
        ) == {"certificate-differs"}

    def test_nobody_has_so_many_items_but_somebody_has(self, tmp_path):
        truth = [{"ny", "boston"}, {"miami"}] * 5
        out = put(tmp_path / "out.jsonl", [{"east"}] * 10)
        put_beside(out, ".certificate.json", certificate(size(1), size(2, how="empty"), records=10))
        promised = policy(3, 2, sigma=0.8)
        assert audit(out, policy=promised).ok  # labels alone do not tell
        assert codes(audit(out, truth, policy=promised)) == {"certificate-differs"}
        assert audit(out, [{"ny"}, {"miami"}] * 5, policy=promised).ok

    def test_what_was_counted_has_no_exception(self, tmp_path):
        pairs = [{"ny", "boston"}, {"ny", "miami"}, {"boston", "miami"}, {"ny", "la"}, {"boston", "la"}]
        truth = pairs * 5 + [{"miami", "la"}]
        out = put(tmp_path / "out.jsonl", reversed(truth))
        promised = policy(3, 2, sigma=0.8)
        assert audit(out, truth, policy=promised).ok
        put_beside(out, ".certificate.json", certificate(size(1), size(2), records=26))
        assert codes(audit(out, truth, policy=promised)) == {"below-k", "itemset-below-k"}
        assert codes(audit(out, policy=promised)) == {"below-k"}

    @pytest.mark.parametrize("junk", ["", "\x00", "[]", "{}", '{"sizes": 3}', '{"sizes": [1], "m": 2, "records": 1}',
                                      '{"sizes": [], "m": "2", "records": 1}', "[" * 100_000,
                                      '{"sizes": [], "m": 2, "m": 2, "records": 40}',
                                      json.dumps(certificate(size(1, sigma=10**400))),
                                      json.dumps(certificate(size(1, sigma=float("nan")))),
                                      json.dumps(certificate(size(1) | {"passed": 10**400}))])  # fmt: skip
    def test_junk(self, case, out, junk):
        with pytest.raises(InputError, match="certificate"):
            self.judged(case, out, junk)


class TestBlocks:
    """Items a to f on a line and an island z, joined to ab, cd, e, f and z."""

    EDGES = "one,other\na,b\nb,c\nc,d\nd,e\ne,f\nz,\n"
    BLOCKS = {"a +1": ["a", "b"], "c +1": ["c", "d"], "e": ["e"], "f": ["f"], "z": ["z"]}  # noqa: RUF012
    TRUTH = [{"a", "c"}, {"b", "d"}, {"e"}, {"f", "e"}, {"a", "f"}, {"b", "c", "e"}] * 4

    def judged(self, folder, blocks=None, rows=None, generalize=None, truth=None, **given):
        (folder / "edges.csv").write_text(self.EDGES)
        (folder / "places.csv").write_text("name,lon,lat\n" + "".join(f"{name},1,2\n" for name in "abcdefz"))
        label_of = {item: label for label, items in self.BLOCKS.items() for item in items}
        truth = self.TRUTH if truth is None else truth
        shown = [{label_of[item] for item in record if item in label_of} for record in reversed(truth)]
        out = put(folder / "out.jsonl", shown if rows is None else rows(shown))
        put_beside(out, ".blocks.json", self.BLOCKS if blocks is None else blocks)
        way = generalize or {"graph": str(folder / "edges.csv")}
        promised = {"anonymize": {"method": "k^m", "k": 2, "m": 2, "sigma": 0.1, "generalize": way}}
        return audit(out, truth, policy=promised, **given)

    @pytest.mark.parametrize("way", ["graph", "places", "balanced"])
    def test_honest(self, tmp_path, way):
        ways = {"graph": "edges.csv", "places": "places.csv"}
        truth = [*self.TRUTH, {"z"}, {"z"}]
        report = self.judged(tmp_path, generalize={way: str(tmp_path / ways[way]) if way in ways else 3}, truth=truth)
        assert report.findings == ()
        assert [way in sentence for sentence in unchecked(report)] == ([] if way == "graph" else [True])

    @pytest.mark.parametrize("way", ["graph", "places", "balanced"])
    @pytest.mark.parametrize("with_trace", [False, True])
    def test_a_block_left_out_of_the_file_and_of_every_set(self, tmp_path, way, with_trace):
        ways = {"graph": "edges.csv", "places": "places.csv"}
        count = len(self.TRUTH)
        found = self.judged(
            tmp_path,
            {label: items for label, items in self.BLOCKS.items() if label != "e"},
            lambda shown: [row - {"e"} for row in shown],
            generalize={way: str(tmp_path / ways[way]) if way in ways else 3},
            trace=pa.table({"row": range(count), "position": range(count - 1, -1, -1)}) if with_trace else None,
        )
        assert "item-without-label" in codes(found)

    def test_records_with_an_omitted_item_are_compared_all_the_same(self, tmp_path):
        left = {label: items for label, items in self.BLOCKS.items() if label != "e"}
        trace = pa.table({"row": range(24), "position": range(23, -1, -1)})
        emptied = self.judged(tmp_path, left, lambda shown: [set() if "e" in row else row for row in shown])
        assert {"item-without-label", "not-the-image"} <= codes(emptied)
        emptied = self.judged(
            tmp_path, left, lambda shown: [set() if "e" in row else row for row in shown], trace=trace
        )
        assert {"item-without-label", "not-the-image"} <= codes(emptied)

    def test_nothing_left_at_all(self, tmp_path):
        assert "item-without-label" in codes(self.judged(tmp_path, {}, lambda shown: [set() for _ in shown]))

    def test_an_item_that_nobody_has_is_in_a_block_too(self, tmp_path):
        left = {label: items for label, items in self.BLOCKS.items() if label != "z"}
        assert codes(self.judged(tmp_path, left)) == {"item-without-label"}

    @pytest.mark.parametrize("way", ["graph", "balanced"])
    def test_a_foreign_item(self, tmp_path, way):
        ways = {"graph": {"graph": str(tmp_path / "edges.csv")}, "balanced": {"balanced": 3}}
        blocks = {**self.BLOCKS, "e": ["e", "secret"]}
        assert "foreign-item" in codes(self.judged(tmp_path, blocks, generalize=ways[way]))

    def test_a_block_that_does_not_hang_together(self, tmp_path):
        blocks = {"a +1": ["a", "b"], "c +1": ["c", "d"], "e": ["e", "z"], "f": ["f"]}
        assert codes(self.judged(tmp_path, blocks)) == {"not-contiguous"}

    def test_parts_are_linked_by_their_least_names(self, tmp_path):
        blocks = {"a +1": ["a", "b", "z"], "c +1": ["c", "d"], "e": ["e"], "f": ["f"]}
        assert codes(self.judged(tmp_path, blocks)) == set()

    @pytest.mark.parametrize("way", ["graph", "places"])
    def test_a_file_that_is_not_there_or_not_csv(self, tmp_path, way):
        with pytest.raises(InputError, match="cannot be read"):
            self.judged(tmp_path, generalize={way: str(tmp_path / "nothing.csv")})
        for junk in (b"", b"\xff\xfe", b"name,b\n", b'name,b\n"a\n', b"name,b\na,b,c\n"):
            (tmp_path / "junk.csv").write_bytes(junk)
            with pytest.raises(InputError):
                self.judged(tmp_path, generalize={way: str(tmp_path / "junk.csv")})
        with pytest.raises(PolicyError):
            self.judged(tmp_path, generalize={"places": str(tmp_path / "places.csv"), "name": ["x"]})

    @pytest.mark.parametrize(
        "junk",
        ["", "[1]", "\x00", '{"a": 3}', '{"a": [null]}', '{"a": [["b"]]}', '{"a": ["a"], "a": ["b"]}', "[" * 100_000],
    )
    def test_junk(self, tmp_path, junk):
        with pytest.raises(InputError, match="blocks"):
            self.judged(tmp_path, junk)

    @pytest.mark.parametrize("content", [None, {"label": ["a"]}, {"label": [None], "items": [["a"]]}, {
        "label": ["a"], "items": [None]}, {"label": ["a"], "items": ["a"]}])  # fmt: skip
    def test_junk_in_parquet(self, tmp_path, content):
        out = put(tmp_path / "out.jsonl", [{"a"}, {"a"}])
        beside = tmp_path / "out.jsonl.blocks.parquet"
        beside.write_bytes(b"PAR1 or not") if content is None else parquet.write_table(pa.table(content), beside)
        with pytest.raises(InputError, match="blocks"):
            audit(out, [{"a"}, {"a"}], policy=policy(2, 1, hierarchy=False))


class TestBlocksOfAHierarchy:
    def judged(self, folder, **changed):
        case = Case()
        out = put(folder / "out.jsonl", case.rows)
        blocks = {**case.blocks, "west": ["la", "sf", "seattle"], **changed}
        put_beside(out, ".blocks.json", {label: items for label, items in blocks.items() if items})
        with_truth = codes(audit(out, list(map(set, case.truth)), policy=case.policy))
        assert codes(audit(out, policy=case.policy)) == with_truth  # the policy's files are enough
        return with_truth

    def test_the_cut_itself(self, tmp_path):
        assert self.judged(tmp_path) == set()

    def test_another_cut(self, tmp_path):
        assert self.judged(tmp_path, ny=["boston"], boston=["ny"]) == {"blocks-differ"}
        assert self.judged(tmp_path, west=["la", "sf"]) == {"blocks-differ", "item-without-label"}
        assert self.judged(tmp_path, ny=["ny", "la"]) == {"blocks-differ", "item-in-two-blocks"}
        assert self.judged(tmp_path, ny=["ny", "secret"]) == {"blocks-differ", "foreign-item"}
        assert self.judged(tmp_path, ny=[]) == {"unknown-label", "item-without-label"}


class TestOpenHierarchy:
    OPEN = {"hierarchy": {"kind": "suffix"}}  # noqa: RUF012
    TRUTH = [{"b.example"}, {"a.b.example"}, {"other.org"}] * 3
    ALONE = {item: [item] for record in TRUTH for item in record}  # noqa: RUF012

    def judged(self, folder, blocks, rows):
        out = put(folder / "out.jsonl", rows)
        put_beside(out, ".blocks.json", blocks)
        promised = {"anonymize": {"method": "k^m", "k": 2, "m": 2, "sigma": 1, "generalize": self.OPEN}}
        return codes(audit(out, self.TRUTH, policy=promised)) | codes(audit(out, policy=promised))

    def test_an_item_that_others_lie_under(self, tmp_path):
        assert self.judged(tmp_path, self.ALONE, self.TRUTH[::-1]) == set()

    def test_joined_it_stands_for_all_of_them(self, tmp_path):
        joined = {"b.example": ["b.example", "a.b.example"], "other.org": ["other.org"]}
        rows = [{"b.example"}] * 6 + [{"other.org"}] * 3
        assert self.judged(tmp_path, joined, rows) == set()
        assert "not-the-image" in self.judged(tmp_path, joined, self.TRUTH[::-1])
        assert "not-the-image" in self.judged(tmp_path, self.ALONE, rows)

    def test_an_item_beside_its_block(self, tmp_path):
        leaking = {**self.ALONE, "b.example": ["b.example", "a.b.example"]}
        found = self.judged(tmp_path, leaking, self.TRUTH[::-1])
        assert {"not-an-antichain", "item-in-two-blocks"} <= found

    def test_a_label_that_is_not_above_its_items(self, tmp_path):
        blocks = {"b.example": ["b.example"], "other.org": ["other.org", "a.b.example"]}
        rows = [{"b.example"}] * 3 + [{"other.org"}] * 6
        assert self.judged(tmp_path, blocks, rows) == {"blocks-differ"}


class TestNoRows:
    @pytest.mark.parametrize("with_trace", [False, True])
    def test_a_release_without_any_row(self, tmp_path, with_trace):
        case, out = Case(), put(tmp_path / "out.jsonl", [])
        trace = pa.table({"row": range(40), "position": [-1] * 40}) if with_trace else None
        for promised in (case.policy, policy(3, 2, hierarchy=False)):
            assert codes(audit(out, list(map(set, case.truth)), trace, promised)) == {"record-missing"}
            report = audit(out, policy=promised)
            assert report.ok
            assert [found.code for found in report.warnings] == ["no-rows"]
            assert audit(out, [set()], policy=promised).ok
