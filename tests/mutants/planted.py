"""Defects that the default tests must notice: one changed place each, over all families, kernels and the auditor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Mutant:
    """One place of the source, replaced."""

    file: str
    defect: str
    old: str
    new: str
    test: str
    """A file of default tests, or one test of it, that must fail."""


MUTANTS: Final = (
    # ---- several workers
    Mutant(
        "sources/kafka/shares.py",
        "two workers read a partition",
        "partition % self.workers == self.worker",
        "partition % self.workers in (0, self.worker)",
        "tests/sources/kafka/test_shares.py",
    ),
    Mutant(
        "sources/kafka/shares.py",
        "a value in a foreign partition is counted",
        "chosen != partition",
        "chosen < 0",
        "tests/sources/kafka/test_shares.py",
    ),
    Mutant(
        "sinks/kafka/keyed.py",
        "messages that the topic holds are written again",
        "islice(self._messages(rows, first), skipped, None)",
        "islice(self._messages(rows, first), 0, None)",
        "tests/pipeline/live/test_repartition.py",
    ),
    # ---- z-anonymity
    Mutant(
        "methods/z/crowds/columns.py",
        "one person too few is enough",
        "np.subtract(out >= self.z, 1",
        "np.subtract(out >= self.z - 1, 1",
        "tests/methods/z/test_z_anonymity.py",
    ),
    Mutant(
        "kernels/z/crowd.py",
        "an event at the edge of the window is forgotten",
        "pool[np.uint64(head), 2] >= oldest_time",
        "pool[np.uint64(head), 2] > oldest_time",
        "tests/kernels/z/test_crowd.py",
    ),
    Mutant(
        "kernels/clock.py",
        "a person backs their own wrong clock",
        "not same_person and abs(",
        "abs(",
        "tests/kernels/test_clock.py",
    ),
    Mutant(
        "kernels/clock.py",
        "an event exactly as late as allowed is refused",
        "time < newest - lateness or",
        "time <= newest - lateness or",
        "tests/kernels/test_clock.py",
    ),
    Mutant(
        "methods/z/epochs/combiner.py",
        "an epoch that was published is opened again",
        "if time < self.epochs.closed_until:",
        "if False:",
        "tests/methods/z/test_combining.py",
    ),
    Mutant(
        "methods/z/epochs/follower.py",
        "a followed z is undercut by one",
        "np.where(sizes >= z, 0, PRIVATE)",
        "np.where(sizes >= z - 1, 0, PRIVATE)",
        "tests/methods/z/test_following.py",
    ),
    Mutant(
        "methods/z/reorder_buffer.py",
        "a waiting event is decided too early",
        "first.time <= limit else None",
        "first.time <= limit + 1 else None",
        "tests/methods/z/test_reorder_buffer.py",
    ),
    Mutant(
        "crypto/pseudonyms.py",
        "pseudonyms never change",
        "epochs = times // self._rotation_ns",
        "epochs = times * 0",
        "tests/crypto/test_pseudonyms.py",
    ),
    # ---- tuples
    Mutant(
        "methods/tuples/publisher.py",
        "rows of one event stay in arrival order",
        "found = order[0] + half.start",
        "found = np.arange(half.start, half.stop)",
        "tests/kernels/tuples/test_publish_order.py",
    ),
    Mutant(
        "methods/tuples/publisher.py",
        "suppressed rows are published at the root",
        "if group >= 0 or self._shows_root:",
        "if True:",
        "tests/kernels/tuples/test_publish_order.py",
    ),
    Mutant(
        "methods/tuples/decider/lanes.py",
        "lanes go back to where the last of them stopped",
        "stop = min(stops)",
        "stop = max(stops)",
        "tests/methods/tuples/test_twins.py::test_long_streams",
    ),
    Mutant(
        "kernels/tuples/fads.py",
        "FADS clusters k - 1 people",
        "if count_keys(s, PEOPLE) < s.plan[K]:",
        "if count_keys(s, PEOPLE) < s.plan[K] - 1:",
        "tests/kernels/tuples/test_kernels.py",
    ),
    Mutant(
        "kernels/tuples/k_varp.py",
        "K-VARP stops merging at k - 1 people",
        "while people < s.plan[K]:",
        "while people < s.plan[K] - 1:",
        "tests/methods/tuples/test_deciding.py",
    ),
    Mutant(
        "kernels/tuples/castle/castle.py",
        "CASTLE publishes a union of k - 1 people",
        "if f.tally[UNION_CROWD] < s.plan[K] or",
        "if f.tally[UNION_CROWD] < s.plan[K] - 1 or",
        "tests/kernels/tuples/test_castle.py",
    ),
    Mutant(
        "kernels/tuples/least_loss/least_loss.py",
        "at the end least-loss leaves k - 1 people for a last cluster",
        "if members > 0 and people < s.plan[K]:",
        "if members > 0 and people < s.plan[K] - 1:",
        "tests/methods/tuples/test_least_loss_flush.py",
    ),
    Mutant(
        "kernels/tuples/least_loss/least_loss.py",
        "least-loss grows clusters to k - 1 people and publishes them",
        "s.plan[K], own, floor)\n    if members < s.plan[K]:",
        "s.plan[K] - 1, own, floor)\n    if members < s.plan[K] - 1:",
        "tests/methods/tuples/test_least_loss_twin.py::test_it_decides_as_its_twin",
    ),
    Mutant(
        "kernels/tuples/least_loss/growth.py",
        "least-loss counts a person once for each of their tuples",
        "if s.pending_i[PERSON, s.pending_i[CHAIN, other]] == person:",
        "if other == c:",
        "tests/methods/tuples/test_least_loss_twin.py::test_it_decides_as_its_twin",
    ),
    Mutant(
        "kernels/tuples/reuse.py",
        "a cluster is reused one arrival too long",
        "CREATED] > s.plan[REUSE]:",
        "CREATED] > s.plan[REUSE] + 1:",
        "tests/methods/tuples/test_deciding.py",
    ),
    Mutant(
        "kernels/tuples/diversity.py",
        "l - 1 sensitive values are enough",
        "distinct_values(counts, used) < s.plan[DISTINCT]",
        "distinct_values(counts, used) < s.plan[DISTINCT] - 1",
        "tests/kernels/tuples/test_kernels.py",
    ),
    Mutant(
        "kernels/tuples/diversity.py",
        "closeness is not checked",
        "return s.ratios[CLOSENESS] >= 0.0 and distance_of(s, c, column) > s.ratios[CLOSENESS] + _SLACK",
        "return False",
        "tests/kernels/tuples/test_kernels.py",
    ),
    # ---- sets
    Mutant(
        "kernels/sets/sampling.py",
        "k - 1 people pass a sampled set",
        "if people >= draws.k or",
        "if people >= draws.k - 1 or",
        "tests/methods/sets/test_sampling.py",
    ),
    Mutant(
        "kernels/sets/counting.py",
        "a counted set of k - 1 people passes",
        "if walk.counts[depth, rank] < k:",
        "if walk.counts[depth, rank] < k - 1:",
        "tests/kernels/sets/test_kernels.py",
    ),
    Mutant(
        "kernels/sets/support.py",
        "a list is searched one element too short",
        "    while low < high:\n",
        "    while low < high - 1:\n",
        "tests/kernels/sets/test_kernels.py",
    ),
    Mutant(
        "methods/sets/search.py",
        "blocks are merged until k - 1 people",
        "violations(count, k, int(key[0]))",
        "violations(count, k - 1, int(key[0]))",
        "tests/methods/sets/test_twin.py::test_the_deterministic_method",
    ),
    # ---- flexible
    Mutant(
        "kernels/flexible/assignment.py",
        "a block of k - 1 people is open",
        "PUBLISHED] != 0 or blocks.info[block, PEOPLE] >= blocks.info[block, NEED]\n",
        "PUBLISHED] != 0 or blocks.info[block, PEOPLE] >= blocks.info[block, NEED] - 1\n",
        "tests/methods/flexible/test_twin.py::test_decides_as_the_naive_one_with_many_people",
    ),
    Mutant(
        "kernels/flexible/groups.py",
        "a row joins a group that is too small",
        "groups.counts[entry] < crowds[row]:",
        "groups.counts[entry] < crowds[row] - 1:",
        "tests/kernels/flexible/test_kernels.py",
    ),
    Mutant(
        "kernels/flexible/blocks.py",
        "a published label of k_s - 1 people passes",
        "return entry != NO_ENTRY and groups.counts[entry] >= people",
        "return entry != NO_ENTRY and groups.counts[entry] >= people - 1",
        "tests/kernels/flexible/test_kernels.py",
    ),
    Mutant(
        "kernels/flexible/assignment.py",
        "a row moves although too few people stay under its label",
        "tuples.info[t, PEOPLE] <= tuples.info[t, K_S]:",
        "tuples.info[t, PEOPLE] < tuples.info[t, K_S]:",
        "tests/methods/flexible/test_twin.py::test_decides_as_the_naive_one_with_many_people",
    ),
    Mutant(
        "kernels/flexible/publishing.py",
        "the last count before publishing accepts k_s - 1 people",
        "if people < blocks.info[block, K_S] and",
        "if people < blocks.info[block, K_S] - 1 and",
        "tests/kernels/flexible/test_kernels.py",
    ),
    Mutant(
        "kernels/flexible/opening.py",
        "a label is opened for k_s - 1 people",
        "return tuples.info[t, K_S] if is_open(blocks, block) else",
        "return tuples.info[t, K_S] - 1 if is_open(blocks, block) else",
        "tests/methods/flexible/test_twin.py::test_decides_as_the_naive_one_with_many_people",
    ),
    Mutant(
        "methods/flexible/density.py",
        "a cell with too few people counts as crowded",
        "if people < one.fewer_than)",
        "if people < one.fewer_than - 1)",
        "tests/methods/flexible/test_density.py",
    ),
    Mutant(
        "methods/flexible/density.py",
        "a person counts in a cell as often as they come",
        "pairs = np.unique(np.stack((cells, persons[is_listed])), axis=1)",
        "pairs = np.stack((cells, persons[is_listed]))",
        "tests/methods/flexible/test_density.py",
    ),
    # ---- messages
    Mutant(
        "decode/avro_records.py",
        "a record of another schema is read as far as it goes",
        "if stream.tell() != len(payload) - start:",
        "if False:",
        "tests/decode/test_avro_records.py",
    ),
    Mutant(
        "decode/json_blocks.py",
        "messages with several objects shift the rows after them",
        "if found.num_rows != len(texts):",
        "if found.num_rows < len(texts):",
        "tests/decode/test_messages.py",
    ),
    Mutant(
        "decode/messages.py",
        "a resumed run takes types from new messages",
        "if types is not None:",
        "if False:",
        "tests/decode/test_messages.py",
    ),
    Mutant(
        "encode/avro_columns.py",
        "a whole number of more than seven bits is cut off",
        "for bits in range(7, 64, 7):",
        "for bits in range(8, 64, 7):",
        "tests/encode/test_messages.py",
    ),
    Mutant(
        "policy/live/checks.py",
        "messages are keyed by the person",
        'if sink.key == stream.get("person"):',
        "if False:",
        "tests/policy/test_live.py",
    ),
    Mutant(
        "policy/live/messages.py",
        "where secrets are counts for the fingerprint",
        "if name not in _OPERATION}",
        "if name}",
        "tests/policy/test_live.py",
    ),
    Mutant(
        "pipeline/dead_letters.py",
        "records are sent to a topic unsealed",
        "if letters.keep_rows and secret is None:",
        "if False:",
        "tests/pipeline/live/test_wiring.py",
    ),
    # ---- auditor
    Mutant(
        "auditor/z/crowds.py",
        "the auditor accepts z - 1 people",
        "crowd >= np.maximum(z, attribute.z)[owner]",
        "crowd >= np.maximum(z, attribute.z)[owner] - 1",
        "tests/auditor/z/test_planted.py",
    ),
    Mutant(
        "auditor/z/crowds.py",
        "without a trace the auditor accepts z - 1 people",
        "(found > 0) & (found < attribute.z)",
        "(found > 0) & (found < attribute.z - 1)",
        "tests/auditor/z/test_planted.py",
    ),
    Mutant(
        "auditor/tuples/classes.py",
        "the auditor accepts classes of k - 1 people",
        'notes.violation("below-k", sentence, rows=classes.marked(classes.people < promise.k))',
        'notes.violation("below-k", sentence, rows=classes.marked(classes.people < promise.k - 1))',
        "tests/auditor/tuples/test_planted.py",
    ),
    Mutant(
        "auditor/tuples/clusters.py",
        "the auditor accepts clusters of k - 1 people",
        "small = clusters.people < promise.k",
        "small = clusters.people < promise.k - 1",
        "tests/auditor/tuples/test_planted.py",
    ),
    Mutant(
        "auditor/tuples/clusters.py",
        "the auditor accepts one carrier too few",
        "clusters.shown & (clusters.carriers < promise.min_carriers)",
        "clusters.shown & (clusters.carriers < promise.min_carriers - 1)",
        "tests/auditor/tuples/test_planted.py",
    ),
    Mutant(
        "auditor/tuples/diversity/diversity.py",
        "the auditor accepts l - 1 sensitive values",
        "there & (distinct(sets) < wanted.l)",
        "there & (distinct(sets) < wanted.l - 1)",
        "tests/auditor/tuples/test_edges.py",
    ),
    Mutant(
        "auditor/tuples/diversity/diversity.py",
        "the auditor ignores entropy",
        "there & (effective(sets) < wanted.entropy_l * (1 - _ROUNDING))",
        "there & (effective(sets) < 0)",
        "tests/auditor/tuples/test_edges.py",
    ),
    Mutant(
        "auditor/sets/shares.py",
        "the auditor accepts sets of k - 1 people",
        "below = supports < k",
        "below = supports < k - 1",
        "tests/auditor/sets/test_planted.py",
    ),
    Mutant(
        "auditor/sets/certificate.py",
        "the auditor accepts any number of passed samples",
        "claim.passed >= needed * (1 - _ROUNDING) and",
        "",
        "tests/auditor/sets/test_files_next_to_it.py",
    ),
    Mutant(
        "auditor/z/pseudonyms.py",
        "the auditor overlooks raw identifiers",
        'notes.violation("raw-identifier", "A released row contains an identifier of the truth.", rows=raw)',
        "",
        "tests/auditor/z/test_planted.py",
    ),
    Mutant(
        "auditor/tuples/clusters.py",
        "the auditor overlooks labels that do not cover",
        'notes.violation("not-covered", "A published value does not cover the record\'s value.", rows=wrong)',
        "",
        "tests/auditor/flexible/test_planted.py",
    ),
    Mutant(
        "auditor/flexible/density.py",
        "the auditor requires k of every place, however few people are there",
        "return next((k for fewer_than, k in sorted(rule.classes) if people < fewer_than), otherwise)",
        "return otherwise",
        "tests/auditor/flexible/test_planted.py",
    ),
    Mutant(
        "auditor/flexible/trace.py",
        "the auditor accepts suppressed records",
        'notes.violation("suppressed", sentence, count=int((verdict == SUPPRESSED).sum()))',
        "",
        "tests/auditor/flexible/test_planted.py",
    ),
    Mutant(
        "auditor/tuples/deadlines.py",
        "the auditor overlooks records decided too late",
        'decisions.violation("late", "A record was decided after its deadline.", late, notes)',
        "pass",
        "tests/auditor/tuples/test_planted.py",
    ),
    Mutant(
        "auditor/tuples/deadlines.py",
        "the auditor overlooks stale clusters",
        'decisions.violation("stale-reuse", "A row was published by a cluster too old to be reused.", stale, notes)',
        "",
        "tests/auditor/tuples/test_clock.py",
    ),
    Mutant(
        "auditor/released_columns.py",
        "the auditor accepts extra columns",
        'notes.violation("extra-column", ',
        'notes.info("extra-column", ',
        "tests/auditor/reading/test_hidden_data.py",
    ),
)
