"""The files beside a release of sets: its certificate and its blocks, honest and forged."""

from __future__ import annotations

import json

import pytest

from shoal.auditor import audit
from shoal.errors import InputError
from tests.auditor.sets_naive import NO_CERTIFICATE, Case, policy


def codes(report):
    return {found.code for found in report.violations}


def put(path, rows):
    path.write_text("".join(json.dumps({"items": sorted(row)}) + "\n" for row in rows))
    return path


def put_beside(path, ending, content):
    path.with_name(path.name + ending).write_text(content if isinstance(content, str) else json.dumps(content))


def size(number, k=3, how="counted", adversary="everyone", sigma=1.0):
    return {"size": number, "k": k, "how": how, "adversary": adversary, "sigma": sigma}


def certificate(*sizes, m=2, records=40):
    return {"sizes": list(sizes), "m": m, "records": records, "statement": "everybody is safe"}


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
        sampled = size(2, how="sampled", adversary="itemset", sigma=0.9)
        for honest in (certificate(size(1), size(2)), certificate(size(1), sampled)):
            report = self.judged(case, out, honest)
            assert (report.findings, report.not_checked) == ((), ())

    def test_none_is_told_of(self, case, out):
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
            certificate(size(1), size(2, how="sampled", adversary="person", sigma=0.9)),
            certificate(size(1), size(2, how="sampled", adversary="itemset", sigma=0.8)),
        ],
    )
    def test_one_that_claims_less(self, case, out, forged):
        assert codes(self.judged(case, out, forged)) == {"certificate-differs"}

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
                                      '{"sizes": [], "m": "2", "records": 1}', "[" * 100_000])  # fmt: skip
    def test_junk(self, case, out, junk):
        with pytest.raises(InputError, match="certificate"):
            self.judged(case, out, junk)
