"""Flexible k-anonymity written for reading: labels are texts, people are sets, groups are a dict.

It takes the same parameters as shoal.FlexibleK and decides record by record; it uses hierarchies and ontologies only
to find what lies above a value and how many leaves that has.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.hierarchies.unknown import concepts_with_unknown, tree_with_unknown
from shoal.schema import Numeric

SCALE = 2**30
UNLABELLED = 2 * SCALE
MISSING = "(missing)"


class NaiveFlexible:
    """One stream; call push for each record, then flush. Both return (row, labels) of what leaves."""

    def __init__(self, schema, concepts, *, k=6, sparse="auto", threshold=0.1, p_sparse=None, k_s=None, floor=0.05,
                 window=10_000, density=None, density_from_data=None, root=False, unknown="accept"):  # fmt: skip
        self.schema, self.k, self.window, self.unknown = schema, k, window, unknown
        self.listed = {role.name: concepts[role.name].values if role.name in concepts else leaves_of(role.hierarchy)
                       for role in schema.quasi if not isinstance(role, Numeric)}  # fmt: skip
        is_open = unknown == "accept"
        self.concepts = {name: concepts_with_unknown(own) if is_open else own for name, own in concepts.items()}
        trees = {role.name: role.hierarchy for role in schema.quasi if role.name in set(self.listed) - set(concepts)}
        self.hierarchies = {name: tree_with_unknown(tree) if is_open else tree for name, tree in trees.items()}
        self.given_sparse, self.threshold, self.p_sparse, self.given_k_s = sparse, threshold, p_sparse, k_s
        self.floor, self.density, self.root = floor, dict(density or {}), root
        self.density_from_data = density_from_data or {}
        weights = [role.weight for role in schema.quasi]
        self.weight = {role.name: role.weight / sum(weights) for role in schema.quasi}
        self.pending: list[dict[str, Any]] = []
        self.groups: dict[tuple, int] = {}
        self.depths: set[tuple[int, ...]] = set()
        self.sparse: list[str] | None = None
        self.seen = self.came = 0

    # ---- reading

    def trees(self, name):
        return self.concepts[name].tree() if name in self.concepts else self.hierarchies[name]

    def is_usable(self, record):
        if record[self.schema.person] in (None, ""):
            return False
        for role in self.schema.quasi:
            value = record[role.name]
            if value is None:
                continue
            if isinstance(role, Numeric):
                if not role.low <= value <= role.high:
                    return False
            elif value not in self.listed[role.name] and self.unknown == "refuse":
                return False
        return True

    def read(self, record):
        """The record with one text for all values that are not listed."""
        return record | {name: "unknown" for name, listed in self.listed.items()
                         if record.get(name) is not None and record[name] not in listed}  # fmt: skip

    def crowd(self, record):
        return max([self.crowd_by(name, record[name]) for name in self.density], default=self.k)

    def crowd_by(self, name, value):
        path = self.trees(name).path(value) if value is not None else ()
        return next((self.density[name][label] for label in path if label in self.density[name]), self.k)

    def block_crowd(self, block):
        """How many people a block needs: as many as any value that its labels cover."""
        needed = []
        for role, label in zip(self.normal, block, strict=True):
            if role.name in self.density:
                tree = self.trees(role.name)
                under = [leaf for leaf in leaves_of(tree) if label in tree.path(leaf)] if label != MISSING else [None]
                needed += [self.crowd_by(role.name, leaf) for leaf in under]
        for name in self.sparse:
            if name in self.density:
                needed += [self.crowd_by(name, leaf) for leaf in [None, *leaves_of(self.trees(name))]]
        return max(needed, default=self.k)

    # ---- labels of normal attributes, coarsest first, each with its loss

    def ladder(self, role, value):
        if value is None:
            return [(MISSING, 0)]
        if isinstance(role, Numeric):
            steps = cells(role, value)
            steps = steps if self.root or len(steps) == 1 else steps[1:]
        else:
            tree = self.trees(role.name)
            counts = dict(zip(tree.labels, tree.leaf_counts.tolist(), strict=True))
            counts[tree.root] = len(self.listed[role.name])
            most = max(counts[tree.root] - 1, 1)
            steps = [(label, self.label_loss(label, counts[label], most)) for label in reversed(tree.path(value))]
            if not self.root and len(tree.labels) > 1:
                steps = steps[1:]
        weight = self.weight[role.name]
        return [(label, round(round(loss * SCALE) * weight)) for label, loss in steps]

    @staticmethod
    def label_loss(label, leaves, most):
        return 1.0 if label == "unknown" else (leaves - 1) / most

    # ---- labels of sparse attributes

    def above(self, name, value):
        """(label, kind, leaves) of all labels above a value and the value itself, without the root."""
        if value is None:
            return [(MISSING, -1, 0)]
        if name in self.concepts:
            found = self.concepts[name]
            upper = [(label, int(found.property_of[found.node_of(label)]), len(found.covered(label)))
                     for label in found.labels_above(value)]  # fmt: skip
        else:
            tree = self.trees(name)
            counts = dict(zip(tree.labels, tree.leaf_counts.tolist(), strict=True))
            upper = [(label, 0, counts[label]) for label in tree.path(value)[1:-1]]
        root = [(self.trees(name).root, 0, len(self.listed[name]) + (self.unknown == "accept"))] if self.root else []
        return [(value, -1, 1), *upper, *root]

    def sparse_loss(self, name, label, leaves):
        total = len(self.listed[name])
        loss = 0 if label == MISSING else self.label_loss(label, min(leaves, total), max(total - 1, 1))
        return round(round(loss * SCALE) * self.weight[name])

    @staticmethod
    def preference_of(name):
        """The order in which labels are preferred: a missing value, values, then those with the fewest leaves."""
        return lambda one: (one[0] != MISSING, one[1] != -1, one[2], one[1], one[0])

    # ---- calibration

    def measure(self):
        """A k for every place, by the people who were in its cell."""
        for name, rule in self.density_from_data.items():
            tree, people = self.trees(name), {}
            cell_of = {leaf: tree.path(leaf)[::-1][: rule.get("level", 99) + 1][-1] for leaf in leaves_of(tree)}
            for row in self.pending:
                if row["record"][name] not in (None, "unknown"):
                    people.setdefault(cell_of[row["record"][name]], set()).add(row["person"])
            self.density[name] = {
                leaf: next((one["k"] for one in rule["classes"] if len(people.get(cell, ())) < one["fewer_than"]),
                           self.k)
                for leaf, cell in cell_of.items()
            }  # fmt: skip

    def freeze(self):
        self.measure()
        categorical = [role.name for role in self.schema.quasi if not isinstance(role, Numeric)]
        shares = {}
        for name in categorical:
            rare = 0
            for row in self.pending:
                people = {other["person"] for other in self.pending if other["came"][name] == row["came"][name]}
                rare += len(people) < self.crowd(row["record"])
            shares[name] = Fraction(rare, len(self.pending))
        if self.given_sparse == "auto":
            chosen = [name for name in categorical if self.is_sparse(name, shares[name])]
            if len(chosen) == len(self.schema.quasi):
                chosen = chosen[1:]
        else:
            chosen = [role.name for role in self.schema.quasi if role.name in self.given_sparse]
        self.sparse = chosen
        self.normal = [role for role in self.schema.quasi if role.name not in chosen]
        self.shares = shares

    def is_sparse(self, name, share):
        tag = self.concepts[name].tag if name in self.concepts else "normal"
        return tag == "sparse" if tag else share >= Fraction(str(self.threshold))

    def k_s(self, k):
        if not self.sparse:
            return k
        if self.given_k_s is not None:
            return min(max(self.given_k_s, 2), k)
        needed = []
        for name in self.sparse:
            share = Fraction(str(self.p_sparse)) if self.p_sparse is not None else self.shares[name]
            needed.append(k if share < Fraction(str(self.floor)) else min(max(math.ceil(share * k), 2), k))
        return max(needed)

    # ---- the stream

    def push(self, record):
        row, self.seen = self.seen, self.seen + 1
        if not self.is_usable(record):
            return []
        self.came += 1
        read = self.read(record)
        entry = {"row": row, "person": record[self.schema.person], "record": read, "came": record}
        left = []
        labels = self.join(entry) if self.sparse is not None else None
        if labels is None:
            self.pending.append(entry)
        else:
            left.append((row, labels))
        if self.came % self.window == 0:
            left += self.round()
        return left

    def flush(self):
        left = []
        while self.pending:
            found = self.round()
            if not found:
                break
            left += found
        return left

    def join(self, entry):
        block = tuple(self.ladder(role, entry["record"][role.name])[-1][0] for role in self.normal)
        own = tuple(MISSING if entry["record"][name] is None else entry["record"][name] for name in self.sparse)
        k = self.block_crowd(block)
        if self.count(block, ()) < k:
            return None
        if own and self.count(block, own) < self.k_s(k):
            return None
        return self.shown(block, own)

    def shown(self, block, own):
        found = dict(zip([role.name for role in self.normal], block, strict=True))
        found |= dict(zip(self.sparse, own, strict=True))
        return {name: None if label == MISSING else label[:2] if isinstance(label, tuple) else label
                for name, label in found.items()}  # fmt: skip

    def count(self, block, own):
        return self.groups.get((block, own), 0)

    def round(self):
        if self.sparse is None:
            self.freeze()
        for entry in self.pending:
            entry["ladders"] = [self.ladder(role, entry["record"][role.name]) for role in self.normal]
        done = Round(self).publish()
        self.pending = [entry for entry in self.pending if entry["row"] not in done]
        return sorted(done.items())

    @staticmethod
    def block(entry, depths):
        ladders = entry["ladders"]
        return tuple(steps[depth][0] for steps, depth in zip(ladders, depths, strict=True))

    def order(self, a, label):
        """The order of labels in their tree; a missing value comes first."""
        role = self.normal[a]
        if label == MISSING:
            return (-1,)
        return label if isinstance(role, Numeric) else (self.trees(role.name).labels.index(label),)


class Part:
    """Rows with equal labels, and those of them that are assigned to these labels."""

    def __init__(self, rows, loss, need, *, is_published):
        self.rows, self.loss, self.need, self.is_published = rows, loss, need, is_published
        self.numbers = {entry["row"] for entry in rows}
        self.assigned = Counter()
        """Assigned rows by person."""

    @property
    def people(self):
        return len(self.assigned)

    def is_last(self, entry):
        """Whether no other row of the same person is assigned."""
        return self.assigned[entry["person"]] == 1

    def add(self, entry, count):
        self.assigned[entry["person"]] += count
        if not self.assigned[entry["person"]]:
            del self.assigned[entry["person"]]


class Round:
    """One round: candidates, then the assignment of rows to them. `part_of` has the label of each assigned row."""

    def __init__(self, method):
        self.method = method
        self.part_of = {}
        self.moves = []
        self.version, self.changed, self.failed, self.listed = 0, {}, {}, set()
        self.blocks = [*self.published_blocks(), *self.new_blocks()]
        for block in self.blocks:
            block.parts = self.parts_of(block)
            self.list_parts(block.parts)

    # ---- candidates

    def make_block(self, rows, depths):
        method = self.method
        labels = method.block(rows[0], depths)
        need = method.block_crowd(labels)
        loss = sum(steps[depth][1] for steps, depth in zip(rows[0]["ladders"], depths, strict=True))
        block = Part(rows, loss, need, is_published=method.count(labels, ()) >= need)
        block.depths, block.labels, block.parts = depths, labels, []
        return block

    def published_blocks(self):
        method = self.method
        for depths in sorted(method.depths):
            found = {}
            for entry in method.pending:
                if all(depth < len(steps) for steps, depth in zip(entry["ladders"], depths, strict=True)):
                    labels = method.block(entry, depths)
                    if method.count(labels, ()) >= method.block_crowd(labels):
                        found.setdefault(labels, []).append(entry)
            for labels in (key for key, own in method.groups if not own and key in found):
                yield self.make_block(found[labels], depths)

    def new_blocks(self):
        method = self.method
        wide = len(method.normal)
        tops = split(method.pending, [[0] * wide] * wide, method)
        nodes = [(self.make_block(rows, (0,) * wide), 0) for rows in tops]
        smallest = min([method.k, *(k for table in method.density.values() for k in table.values())])
        for block, first in nodes:  # grows while it is walked through
            a = first
            while a < wide:
                if block.depths[a] + 1 >= len(block.rows[0]["ladders"][a]):
                    a += 1
                    continue
                deeper = tuple(depth + (place == a) for place, depth in enumerate(block.depths))
                parts = {}
                for entry in block.rows:
                    parts.setdefault(method.block(entry, deeper)[a], []).append(entry)
                if len(parts) == 1:
                    block = self.make_block(block.rows, deeper)  # the finer label of all rows loses less
                    continue
                for _, rows in sorted(parts.items(), key=lambda part: method.order(a, part[0])):
                    if len({entry["person"] for entry in rows}) >= smallest:
                        nodes.append((self.make_block(rows, deeper), a))
                a += 1
            if not block.is_published and len({entry["person"] for entry in block.rows}) >= block.need:
                yield block

    def parts_of(self, block):
        """The labels of sparse columns that enough people in a block share."""
        method = self.method
        k_s = method.k_s(block.need)
        found = [((), block.rows, block.loss, block.is_published)]
        for name in method.sparse:
            deeper = []
            for own, rows, loss, _ in found:
                covered = {}
                for entry in rows:
                    for one in method.above(name, entry["record"][name]):
                        covered.setdefault(one, []).append(entry)
                known = []
                for one in sorted(covered, key=method.preference_of(name)):
                    label, _, leaves = one
                    is_published = method.count(block.labels, (*own, label)) >= k_s
                    is_new = covered[one] not in known
                    if is_new or is_published:
                        known.append(covered[one])
                        people = len({entry["person"] for entry in covered[one]})
                        if people >= k_s or is_published:
                            lost = loss + method.sparse_loss(name, label, leaves)
                            deeper.append(((*own, label), covered[one], lost, is_published))
            found = deeper
        parts = []
        for own, rows, loss, is_published in found:
            part = Part(rows, loss, k_s, is_published=is_published)
            part.own, part.block = own, block
            parts.append(part)
        return parts

    # ---- moving rows

    def loss_of(self, entry):
        part = self.part_of.get(entry["row"])
        return UNLABELLED if part is None else part.loss

    def place(self, entry, part):
        old = self.part_of.pop(entry["row"], None)
        if old is not None:
            old.add(entry, -1)
            old.block.add(entry, -1)
        if part is not None:
            self.part_of[entry["row"]] = part
            part.add(entry, 1)
            part.block.add(entry, 1)

    def move(self, entry, part):
        self.moves.append((entry, self.part_of.get(entry["row"])))
        self.place(entry, part)

    def take_back(self, moves):
        while len(self.moves) > moves:
            self.place(*self.moves.pop())

    def may_leave(self, entry, target):
        part = self.part_of.get(entry["row"])
        if part is None:
            return True
        block = part.block
        if part.is_last(entry) and not part.is_published and part.people <= part.need:
            return False
        is_short = block.is_last(entry) and not block.is_published and block.people <= block.need
        return block is target or not is_short

    def is_open(self, block):
        return block.is_published or block.people >= block.need

    def take(self, part):
        saved = placed = 0
        tried = set()
        for entry in part.rows:
            old, loss = self.part_of.get(entry["row"]), self.loss_of(entry)
            if loss <= part.loss:
                continue
            if self.may_leave(entry, part.block):
                saved += loss - part.loss
                placed += old is None
                self.move(entry, part)
            elif id(old) not in tried:
                tried.add(id(old))
                saved += self.give_way(old, part)
        return saved, placed

    def move_out(self, part, block, target=None):
        """Move all rows of a part to other ones; return the loss saved, None if one has no other."""
        saved = 0
        for entry in [one for one in part.rows if self.part_of.get(one["row"]) is part]:
            other = self.other_part(entry, part, block, target)
            if other is None:
                return None
            saved += part.loss - other.loss
            self.move(entry, other)
        return saved

    def give_way(self, part, target):
        """Close a part in favour of another; return the loss saved."""
        moves, home = len(self.moves), part.block
        was_open = self.is_open(home)
        saved = self.move_out(part, None, target)
        is_fine = not home.assigned or not was_open or self.is_open(home)
        if saved is not None and saved > 0 and is_fine:
            return saved
        self.take_back(moves)
        return 0

    def lend(self, part, need):
        lost = 0
        while part.people < need:
            there = set(part.assigned)
            able = [entry for entry in part.rows
                    if entry["person"] not in there and self.may_leave(entry, part.block)]  # fmt: skip
            if not able:
                break
            best = min(able, key=lambda entry: part.loss - self.loss_of(entry))
            lost += part.loss - self.loss_of(best)
            self.move(best, part)
        return lost

    def need_of(self, part):
        """Number of people a part must have to be opened."""
        if part.is_published and part.block.is_published:
            return 1
        return part.need if self.is_open(part.block) else max(part.need, part.block.need)

    def open_part(self, part):
        moves, need = len(self.moves), self.need_of(part)
        saved, placed = self.take(part)
        if placed and part.people < need:
            saved = max(saved - self.lend(part, need), 1)
        if part.people < need:
            self.take_back(moves)
            return 0
        return saved

    def open_block(self, block):
        moves, saved = len(self.moves), 0
        for lends in (False, True):
            for part in block.parts:
                if lends and block.people >= block.need:
                    break
                before, people = len(self.moves), block.people
                found, _ = self.take(part)
                if lends and block.people > people:
                    found -= self.lend(part, part.need)
                if part.people < part.need:
                    self.take_back(before)
                else:
                    saved += found
        if block.people < block.need or saved <= 0:
            self.take_back(moves)
            return 0
        return saved

    # ---- the candidate that saves most

    def bound_of(self, one):
        """At most this much loss is saved by opening a candidate."""
        if hasattr(one, "parts"):
            finest = {}
            for part in one.parts:
                for row in part.numbers:
                    finest[row] = min(part.loss, finest.get(row, part.loss))
            return sum(max(self.loss_of(entry) - finest.get(entry["row"], UNLABELLED), 0) for entry in one.rows)
        need = self.need_of(one)
        coming = [entry for entry in one.rows if self.loss_of(entry) >= one.loss]
        has_pending = any(entry["row"] not in self.part_of for entry in coming)
        if len(people_of(one.rows)) < need or (len(people_of(coming)) < need and not has_pending):
            return 0
        return sum(self.loss_of(entry) - one.loss for entry in coming)

    def is_touched(self, one):
        """Whether anything changed for the rows of a candidate since it could not be opened."""
        homes = [self.part_of.get(entry["row"]) for entry in one.rows]
        return any(home is None or self.changed.get(id(home), 0) > self.failed.get(id(one), 0) for home in homes)

    def keep_moves(self):
        self.version += 1
        for entry, old in self.moves:
            for part in (old, self.part_of.get(entry["row"])):
                if part is not None:
                    self.changed[id(part)] = self.version
        self.moves = []

    def improve(self, *, with_blocks, only_touched):
        """Open candidates, the one that saves most first; return how many were opened."""
        buckets, queued = {}, set()

        def push(one, bucket):
            queued.add(id(one))
            buckets.setdefault(bucket, []).append(one)

        def is_postponed(one, saved):
            is_exceeded = any(stack for bucket, stack in buckets.items() if bucket > bucket_of(saved))
            if is_exceeded and saved > 0:
                push(one, bucket_of(saved))
            return is_exceeded or saved <= 0

        for block in self.blocks:
            closed = [block] if with_blocks and not self.is_open(block) else []
            for one in [*block.parts, *closed]:
                if not only_touched or self.is_touched(one):
                    push(one, math.inf)
        opened = 0
        while any(buckets.values()):
            one = buckets[max(bucket for bucket, stack in buckets.items() if stack)].pop()
            queued.discard(id(one))
            is_block = hasattr(one, "parts")
            block = one if is_block else one.block
            was_open = self.is_open(block)
            if (is_block and was_open) or is_postponed(one, self.bound_of(one)):
                continue
            self.moves = []
            saved = self.open_block(one) if is_block else self.open_part(one)
            if saved == 0:
                self.failed[id(one)] = self.version
            if is_postponed(one, saved):
                self.take_back(0)
                continue
            opened += 1
            self.keep_moves()
            self.list_parts(block.parts if is_block else [one])
            for part in block.parts if not was_open else ():
                if id(part) not in queued:
                    push(part, math.inf)
        return opened

    # ---- candidates that are not needed any more

    def other_part(self, entry, part, block, target):
        """The best part for a row that is open, or the target, other than its own and outside of a block."""
        able = [other for home in self.blocks if home is not block for other in home.parts
                if other is not part and entry["row"] in other.numbers
                and (other is target
                     or (id(other) in self.listed and self.is_open(home) and self.has_enough(other)))]  # fmt: skip
        return min(able, key=lambda other: other.loss, default=None)

    def list_parts(self, parts):
        """Remember parts that are open: rows move out to these only."""
        self.listed |= {id(part) for part in parts if self.has_enough(part)}

    def close(self, parts, block):
        self.moves, home = [], parts[0].block
        total = 0
        for part in parts:
            saved = self.move_out(part, block)
            if saved is None:
                total = 0
                break
            total += saved
        if total > 0 and (not home.assigned or self.is_open(home)):
            self.keep_moves()
            return True
        self.take_back(0)
        return False

    def close_all(self):
        closed = 0
        for block in self.blocks:
            if block.assigned:
                closed += self.close(block.parts, block)
            for part in block.parts if block.assigned else ():
                if part.assigned:
                    closed += self.close([part], None)
        return closed

    # ---- rows that would stay pending

    def pending_in(self, rows):
        return sum(entry["row"] not in self.part_of for entry in rows)

    def has_enough(self, part):
        return part.is_published or part.people >= part.need

    def take_widest(self, block):
        best, most = None, 0
        for part in block.parts:
            count = self.pending_in(part.rows)
            if count > most and not part.assigned:
                moves = len(self.moves)
                self.take(part)
                if self.has_enough(part):
                    best, most = part, count
                self.take_back(moves)
        if best is not None:
            self.take(best)
        return best is not None

    def assign_anew(self, block, choice):
        for entry in block.rows:
            if entry["row"] in self.part_of:
                self.move(entry, None)
        self.take(choice)
        if not self.has_enough(choice):
            return len(block.rows)
        while self.take_widest(block):
            pass
        for part in block.parts:
            if self.pending_in(part.rows):
                moves = len(self.moves)
                self.take(part)
                self.lend(part, 1 if part.is_published else part.need)
                if not self.has_enough(part):
                    self.take_back(moves)
        return self.pending_in(block.rows) if self.is_open(block) else len(block.rows)

    def rescue(self, block):
        was_pending = fewest = self.pending_in(block.rows)
        best = None
        for part in reversed(block.parts[:64]):
            if fewest == 0:
                break
            self.moves = []
            found = self.assign_anew(block, part)
            if found < fewest:
                best, fewest = part, found
            self.take_back(0)
        if best is not None:
            self.moves = []
            self.assign_anew(block, best)
        return fewest < was_pending

    def rescue_all(self):
        floors = [0] * len(self.method.normal)
        sizes = Counter(self.method.block(entry, floors) for entry in self.method.pending)
        whole = [block for block in self.blocks
                 if len(block.rows) == sizes[self.method.block(block.rows[0], floors)]]  # fmt: skip
        rescued = 0
        for block in whole:
            rescued += self.rescue(block)
            self.keep_moves()
            self.list_parts(block.parts)
        return rescued > 0

    # ---- publishing

    def publish(self):
        """Labels of the rows that are published, by row."""
        for number in range(6):
            opened = self.improve(with_blocks=number > 0, only_touched=number > 1)
            if not self.close_all() and number and not opened:
                break
        if self.rescue_all():
            self.improve(with_blocks=True, only_touched=True)
            self.close_all()
        method, done = self.method, {}
        for block in self.blocks:
            groups = {}
            for part in block.parts:
                for entry in part.rows:
                    if self.part_of.get(entry["row"]) is not part:
                        continue
                    done[entry["row"]] = method.shown(block.labels, part.own)
                    for size in range(len(part.own) + 1):
                        groups.setdefault(part.own[:size], set()).add(entry["person"])
            for own, people in groups.items():
                key = (block.labels, own)
                method.groups[key] = max(method.groups.get(key, 0), len(people))
            if groups:
                method.depths.add(block.depths)
        return done


def people_of(rows):
    return {entry["person"] for entry in rows}


def bucket_of(bound):
    """Bounds that differ by less than a thousandth count as equal."""
    power = max(bound.bit_length() - 11, 0)
    return 1024 * power + (bound >> power)


def split(rows, depths, method):
    """Rows by their coarsest labels, in the order of these."""
    found = {}
    for entry in rows:
        found.setdefault(method.block(entry, depths[0]), []).append(entry)
    order = sorted(found, key=lambda block: [method.order(a, label) for a, label in enumerate(block)])
    return [found[block] for block in order]


def leaves_of(tree):
    """The labels of a tree that nothing lies under."""
    inner = set(tree.parents.tolist())
    return {label for node, label in enumerate(tree.labels) if node not in inner}


def cells(role, value):
    """Ranges around a value with their loss, from the whole domain to the finest cell."""
    span = role.high - role.low
    grid = float(role.grid or span / 1024)
    count = max(1, math.ceil(round(span / grid, 9)))
    first, step = (Fraction(repr(float(number))) for number in (role.low, grid))
    step = step if role.grid else (Fraction(repr(float(role.high))) - first) / 1024

    def point(number):
        return float(first + number * step)

    cell = max(at for at in range(count) if point(at) <= value)
    widths = [1]
    while widths[-1] * 2 < count:
        widths.append(widths[-1] * 2)
    steps = []
    for width in ([count] if count > 1 else []) + widths[::-1]:
        low = point(cell // width * width)
        last = cell // width * width + width
        high = point(last) if last < count else role.high
        # At the end of the domain cells of two widths may be the same range; they are different blocks all the same.
        steps.append(((float(low), float(high), width), float(np.float64(high - low) / span)))
    return steps
