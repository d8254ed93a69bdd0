"""Group people with similar sets of items; a group publishes what all its members have.

People's sets are stored one after another: person p has ``items[starts[p] : starts[p + 1]]``, ascending, each with the
weight that is lost when the item is not published.
"""

from __future__ import annotations

from shoal.kernels.compiling import kernel, piece

DROPPED = 1
NOWHERE = -1
FREE = -2


@piece
def meet(starts, items, weights, person, shared, sums, count):
    """Cut shared items down to those a person has too, adding up their weights; return how many are left."""
    at, end, left = starts[person], starts[person + 1], 0
    for place in range(count):
        item = shared[place]
        while at < end and items[at] < item:
            at += 1
        if at < end and items[at] == item:
            shared[left] = item
            sums[left] = sums[place] + weights[at]
            left += 1
    return left


@kernel
def cut_sequence(starts, items, weights, totals, order, buckets, k, loss, taken, shared, sums):
    """Cut people in a row into groups of at least k neighbours, or leave them out, so that the least weight is lost.

    loss[i] is the least for the first i of the row, taken[i] how many the last group among them has, DROPPED for one
    person who loses everything. Longer groups than 2k - 1 can be cut without loss; none crosses two buckets.
    """
    loss[0] = 0
    for first in range(len(order)):
        person = order[first]
        whole = totals[person]
        if taken[first + 1] == 0 or loss[first] + whole < loss[first + 1]:
            loss[first + 1] = loss[first] + whole
            taken[first + 1] = DROPPED
        count = starts[person + 1] - starts[person]
        for place in range(count):
            shared[place] = items[starts[person] + place]
            sums[place] = weights[starts[person] + place]
        for last in range(first + 1, min(first + 2 * k - 1, len(order))):
            if buckets[last] != buckets[first]:
                break
            count = meet(starts, items, weights, order[last], shared, sums, count)
            if count == 0:
                break
            whole += totals[order[last]]
            if last - first + 1 < k:
                continue
            lost = loss[first] + whole
            for place in range(count):
                lost -= sums[place]
            if taken[last + 1] == 0 or lost < loss[last + 1]:
                loss[last + 1] = lost
                taken[last + 1] = last - first + 1


@piece
def best_partner(starts, items, weights, order, groups, begin, end, sum_of):
    """The place of the free person with whom a group would show most, NOWHERE if none has anything of it."""
    best, most = NOWHERE, 0
    for place in range(begin, end):
        if groups[place] != FREE:
            continue
        total = 0
        for entry in range(starts[order[place]], starts[order[place] + 1]):
            if sum_of[items[entry]] > 0:
                total += sum_of[items[entry]] + weights[entry]
        if total > most:
            best, most = place, total
    return best


@kernel
def grow_groups(starts, items, weights, order, ends, k, groups, shared, sums, sum_of):
    """Let groups of k people grow in a row, one at a time, always by the person with whom a group shows most.

    The first of a group meets people of the row up to its own end. groups gets a number for each place, NOWHERE for
    people left out; sum_of is zero for every item, before and after. Return how many groups there are.
    """
    groups[:] = FREE
    found = 0
    for first in range(len(order)):
        if groups[first] != FREE:
            continue
        person = order[first]
        count = starts[person + 1] - starts[person]
        for place in range(count):
            shared[place] = items[starts[person] + place]
            sums[place] = weights[starts[person] + place]
        groups[first] = found
        members = 1
        while members < k:
            for place in range(count):
                sum_of[shared[place]] = sums[place]
            partner = best_partner(starts, items, weights, order, groups, first + 1, ends[first], sum_of)
            for place in range(count):
                sum_of[shared[place]] = 0
            if partner == NOWHERE:
                break
            count = meet(starts, items, weights, order[partner], shared, sums, count)
            groups[partner] = found
            members += 1
        if members == k:
            found += 1
            continue
        for place in range(first + 1, ends[first]):
            if groups[place] == found:
                groups[place] = FREE
        groups[first] = NOWHERE
    return found


@kernel
def read_cuts(taken, groups):
    """Number the groups of a row that was cut, from the end on; NOWHERE for people left out. Return how many."""
    at, count = len(groups), 0
    while at > 0:
        length = taken[at]
        for place in range(at - length, at):
            groups[place] = NOWHERE if length == DROPPED else count
        if length > DROPPED:
            count += 1
        at -= length
    return count


@kernel
def mark_shared(starts, items, members, group_starts, counts, kept):
    """Mark what every member of a group has; counts is zero for every item, before and after."""
    for group in range(len(group_starts) - 1):
        size = group_starts[group + 1] - group_starts[group]
        for place in range(group_starts[group], group_starts[group + 1]):
            for entry in range(starts[members[place]], starts[members[place] + 1]):
                counts[items[entry]] += 1
        for place in range(group_starts[group], group_starts[group + 1]):
            for entry in range(starts[members[place]], starts[members[place] + 1]):
                kept[entry] = counts[items[entry]] == size
        for place in range(group_starts[group], group_starts[group + 1]):
            for entry in range(starts[members[place]], starts[members[place] + 1]):
                counts[items[entry]] = 0


@piece
def worth_in(weight_of, group_items, begin, end):
    """Weight of a group's items for a person, 0 if they lack one; the last item, the rarest, is checked first."""
    total = 0
    for at in range(end - 1, begin - 1, -1):
        weight = weight_of[group_items[at]]
        if weight == 0:
            return 0
        total += weight
    return total


@kernel
def find_homes(
    starts, items, weights, people, own, group_starts, group_items, listed_starts, listed, most, weight_of, homes, worth
):
    """Find for some people the group that shows most of what they have, more than worth[place], and nothing else.

    Groups are listed under their last item. At most `most` groups are compared for one person; weight_of is
    zero for every item, before and after.
    """
    for place in range(len(people)):
        person = people[place]
        begin, end = starts[person], starts[person + 1]
        most_left = 0
        for entry in range(begin, end):
            weight_of[items[entry]] = weights[entry]
            most_left += weights[entry]
        homes[place] = NOWHERE
        looked = 0
        for entry in range(end - 1, begin - 1, -1):
            if most_left <= worth[place] or looked >= most:
                break
            item = items[entry]
            for at in range(listed_starts[item], listed_starts[item + 1]):
                group = listed[at]
                if group == own[place] or group_starts[group + 1] - group_starts[group] > entry - begin + 1:
                    continue
                total = worth_in(weight_of, group_items, group_starts[group], group_starts[group + 1])
                looked += 1
                if total > worth[place]:
                    worth[place] = total
                    homes[place] = group
            most_left -= weights[entry]
        for entry in range(begin, end):
            weight_of[items[entry]] = 0
