"""Flexible k-anonymity written for reading: labels are texts, people are sets, groups are a dict.

It takes the same parameters as shoal.FlexibleK and decides record by record; it uses hierarchies and ontologies only
to find what lies above a value and how many leaves that has.
"""

from __future__ import annotations

import math
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
                 window=10_000, density=None, root=False, criteria=1, unknown="accept"):  # fmt: skip
        self.schema, self.k, self.window, self.unknown = schema, k, window, unknown
        self.listed = {role.name: concepts[role.name].values if role.name in concepts else leaves_of(role.hierarchy)
                       for role in schema.quasi if not isinstance(role, Numeric)}  # fmt: skip
        is_open = unknown == "accept"
        self.concepts = {name: concepts_with_unknown(own) if is_open else own for name, own in concepts.items()}
        trees = {role.name: role.hierarchy for role in schema.quasi if role.name in set(self.listed) - set(concepts)}
        self.hierarchies = {name: tree_with_unknown(tree) if is_open else tree for name, tree in trees.items()}
        self.given_sparse, self.threshold, self.p_sparse, self.given_k_s = sparse, threshold, p_sparse, k_s
        self.floor, self.density, self.root, self.criteria = floor, density or {}, root, criteria
        weights = [role.weight for role in schema.quasi]
        self.weight = {role.name: role.weight / sum(weights) for role in schema.quasi}
        self.pending: list[dict[str, Any]] = []
        self.groups: dict[tuple, list] = {}
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
        return [(value, -1, 1), *upper]

    def sparse_loss(self, name, label, leaves):
        total = len(self.listed[name])
        loss = 0 if label == MISSING else self.label_loss(label, min(leaves, total), max(total - 1, 1))
        return round(round(loss * SCALE) * self.weight[name])

    @staticmethod
    def preference(entry):
        label, kind, leaves = entry
        return (kind != -1, leaves, kind, label)

    # ---- calibration

    def freeze(self):
        categorical = [role.name for role in self.schema.quasi if not isinstance(role, Numeric)]
        shares = {}
        for name in categorical:
            rare = 0
            for row in self.pending:
                people = {other["person"] for other in self.pending if other["came"][name] == row["came"][name]}
                rare += len(people) < row["crowd"]
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
        entry = {"row": row, "person": record[self.schema.person], "record": read, "crowd": self.crowd(read),
                 "came": record}  # fmt: skip
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
        return self.groups.get((block, own), [0])[0]

    def round(self):
        if self.sparse is None:
            self.freeze()
        for entry in self.pending:
            entry["ladders"] = [self.ladder(role, entry["record"][role.name]) for role in self.normal]
        tops: dict[tuple, list] = {}
        for entry in self.pending:
            tops.setdefault(self.block(entry, [0] * len(self.normal)), []).append(entry)
        nodes = [
            self.part(rows, [0] * len(self.normal)) for _, rows in sorted(tops.items(), key=lambda top: str(top[0]))
        ]
        left: dict[int, dict] = {}
        for node in nodes:
            self.publish(node, left)
        self.pending = [entry for entry in self.pending if entry["row"] not in left]
        return sorted(left.items())

    @staticmethod
    def block(entry, depths):
        ladders = entry["ladders"]
        return tuple(steps[min(depth, len(steps) - 1)][0] for steps, depth in zip(ladders, depths, strict=True))

    # ---- from the coarsest labels down

    def part(self, rows, depths):
        node = {"depths": depths, "rows": rows, "below": []}
        done = set()
        while node["rows"]:
            best, cost = None, self.cost(node["rows"], depths)
            for a in range(len(depths)):
                if a in done or depths[a] + 1 >= len(node["rows"][0]["ladders"][a]):
                    continue
                split = self.split(node["rows"], depths, a)
                if split is None:
                    done.add(a)
                    continue
                parts, rest, deeper = split
                found = sum(self.cost(members, deeper) for members in parts) + self.cost(rest, depths)
                if found < cost:
                    best, cost = (a, *split), found
            if best is None:
                break
            a, parts, rest, deeper = best
            done.add(a)
            node["below"] += [self.part(members, deeper) for members in parts]
            node["rows"] = rest
        return node

    def split(self, rows, depths, a):
        deeper = [depth + (place == a) for place, depth in enumerate(depths)]
        parts: dict[Any, list] = {}
        for entry in rows:
            parts.setdefault(entry["ladders"][a][depths[a] + 1][0], []).append(entry)
        listed = [members for _, members in sorted(parts.items(), key=lambda part: self.order(a, part[0]))]
        fitting = [members for members in listed if self.is_crowd(members, deeper)]
        rest = [entry for members in listed if members not in fitting for entry in members]
        while rest and fitting and self.is_crowd(rows, depths) and not self.is_crowd(rest, depths):
            smallest = min(fitting, key=len)
            fitting.remove(smallest)
            rest += smallest
        return (fitting, rest, deeper) if fitting else None

    def order(self, a, label):
        """The order of labels in their tree."""
        role = self.normal[a]
        return label if isinstance(role, Numeric) else self.trees(role.name).labels.index(label)

    def is_crowd(self, rows, depths):
        k = self.block_crowd(self.block(rows[0], depths))
        return len({entry["person"] for entry in rows}) >= k or self.count(self.block(rows[0], depths), ()) >= k

    def cost(self, rows, depths):
        if not rows:
            return 0
        block = self.block(rows[0], depths)
        k = self.block_crowd(block)
        labels, _ = self.label(rows, block, k)
        people = {entry["person"] for entry in rows if entry["row"] in labels}
        if len(people) < k and self.count(block, ()) < k:
            return len(rows) * UNLABELLED
        total = 0
        for entry in rows:
            if entry["row"] not in labels:
                total += UNLABELLED
                continue
            for steps, depth in zip(entry["ladders"], depths, strict=True):
                total += steps[min(depth, len(steps) - 1)][1]
            total += sum(loss for _, loss in labels[entry["row"]])
        return total

    # ---- labels of a block

    def label(self, rows, block, k):
        """(label, loss) for each sparse attribute by row, where there is one for all; and the criteria by prefix."""
        k_s, criteria = self.k_s(k), {}
        found: dict[int, list] = {entry["row"]: [] for entry in rows}
        segments = [((), rows)]
        for name in self.sparse:
            following = []
            for prefix, members in segments:
                given, criteria[prefix] = self.label_segment(members, block, prefix, name, k_s)
                parts: dict[str, list] = {}
                for entry in members:
                    if entry["row"] not in given:
                        found.pop(entry["row"])
                        continue
                    label, leaves = given[entry["row"]]
                    found[entry["row"]].append((label, self.sparse_loss(name, label, leaves)))
                    parts.setdefault(label, []).append(entry)
                following += [((*prefix, label), part) for label, part in parts.items()]
            segments = following
        return found, criteria

    def label_segment(self, members, block, prefix, name, k_s):
        given: dict[int, tuple] = {}
        above = {entry["row"]: self.above(name, entry["record"][name]) for entry in members}

        def covered(label):
            return [entry for entry in members if entry["row"] not in given
                    and label in [one[0] for one in above[entry["row"]]]]  # fmt: skip

        def is_enough(label, rows):
            people = {entry["person"] for entry in rows}
            return bool(people) and (len(people) >= k_s or self.count(block, (*prefix, label)) >= k_s)

        classes = {one for entries in above.values() for one in entries if one[1] <= 0}
        for label, _, leaves in sorted(classes, key=self.preference):
            rows = covered(label)
            if is_enough(label, rows):
                given |= {entry["row"]: (label, leaves) for entry in rows}
        shown = list(self.groups.get((block, prefix), [0, []])[1])
        chosen = []
        for _ in range(self.criteria):
            left = {one for row, entries in above.items() if row not in given for one in entries if one[1] >= 0}
            has_room = len(shown) < self.criteria
            choices = [one for one in left if (has_room or one[0] in shown) and is_enough(one[0], covered(one[0]))]
            if not choices:
                break
            label, _, leaves = min(choices, key=lambda one: (-len(covered(one[0])), self.preference(one)))
            given |= {entry["row"]: (label, leaves) for entry in covered(label)}
            shown += [label] if label not in shown else []
            chosen.append(label)
        if self.root:
            rows = [entry for entry in members if entry["row"] not in given and entry["record"][name] is not None]
            root = self.concepts[name].root if name in self.concepts else self.trees(name).root
            leaves = len(self.concepts[name].values) if name in self.concepts else len(leaves_of(self.trees(name)))
            if is_enough(root, rows):
                given |= {entry["row"]: (root, leaves) for entry in rows}
        return given, chosen

    # ---- from the finest nodes up

    def publish(self, node, left):
        rows = list(node["rows"])
        for below in node["below"]:
            rows += self.publish(below, left)
        if not rows:
            return []
        block = self.block(rows[0], node["depths"])
        k = self.block_crowd(block)
        labels, criteria = self.label(rows, block, k)
        people = {entry["person"] for entry in rows if entry["row"] in labels}
        if not labels or (len(people) < k and self.count(block, ()) < k):
            return rows
        self.note(rows, block, labels, criteria, left)
        return [entry for entry in rows if entry["row"] not in labels]

    def note(self, rows, block, labels, criteria, left):
        groups: dict[tuple, set] = {}
        for entry in rows:
            if entry["row"] in labels:
                own = tuple(label for label, _ in labels[entry["row"]])
                left[entry["row"]] = self.shown(block, own)
                for size in range(len(own) + 1):
                    groups.setdefault(own[:size], set()).add(entry["person"])
        for own, people in groups.items():
            known = self.groups.setdefault((block, own), [0, []])
            known[0] = max(known[0], len(people))
        for prefix, chosen in criteria.items():
            for label in chosen:
                if (*prefix, label) in groups and label not in self.groups[(block, prefix)][1]:
                    self.groups[(block, prefix)][1].append(label)


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
