"""Places visited by synthetic people: near a home and a workplace, and some anywhere in the city."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.randomness import next_below, next_unit, start_coins

_TRIES_A_PLACE = 16
"""Draws per place; what is still missing then is filled in order, for people who visit nearly all places."""


class Lots(NamedTuple):
    """Probabilities of places, one distribution per row, as Walker's alias tables."""

    keeps: np.ndarray
    """Probability of keeping a column that was drawn uniformly."""
    instead: np.ndarray
    """The alias: the place used if the column is not kept."""


class Habits(NamedTuple):
    """How people choose places. There is one distribution around each place; the last one is the whole city's."""

    lots: Lots
    at_home: float
    """Share of the draws near a centre that are near the home."""
    wandering: np.ndarray
    """Share of draws from the whole city, by the number of places a person visits."""


@kernel
def fill_lots(weights, lots, few, many):
    """Fill the alias tables from rows of weights; `few` and `many` are scratch space for one row each."""
    count = weights.shape[1]
    for row in range(len(weights)):
        fews, manys = 0, 0
        scale = count / weights[row].sum()
        for place in range(count):
            lots.keeps[row, place] = weights[row, place] * scale
            lots.instead[row, place] = place
            if lots.keeps[row, place] < 1:
                few[fews] = place
                fews += 1
            else:
                many[manys] = place
                manys += 1
        while fews and manys:
            fews -= 1
            small, large = few[fews], many[manys - 1]
            lots.instead[row, small] = large
            lots.keeps[row, large] -= 1 - lots.keeps[row, small]
            if lots.keeps[row, large] < 1:
                manys -= 1
                few[fews] = large
                fews += 1


@piece
def draw_lot(lots, row, coins):
    """Draw a place from the distribution of a row."""
    place = next_below(coins, lots.keeps.shape[1])
    return np.int64(place if next_unit(coins) <= lots.keeps[row, place] else lots.instead[row, place])


@kernel
def visit_places(starts, first, last, habits, key, seen, coins, places):
    """Write the places of people `first` to `last`, without repeats; the result does not depend on the thread.

    `seen` holds for every place the last person who visited it, and no person's number at the beginning.
    """
    whole_city = len(habits.lots.keeps) - 1
    count = habits.lots.keeps.shape[1]
    for person in range(first, last):
        start_coins(coins, key, person)
        at, end = starts[person], starts[person + 1]
        wandering = habits.wandering[end - at]
        home = draw_lot(habits.lots, whole_city, coins)
        work = draw_lot(habits.lots, whole_city, coins)
        for _ in range(_TRIES_A_PLACE * (end - at)):
            centre = home if next_unit(coins) <= habits.at_home else work
            place = draw_lot(habits.lots, whole_city if next_unit(coins) <= wandering else centre, coins)
            if seen[place] != person:
                seen[place] = person
                places[at] = place
                at += 1
                if at == end:
                    break
        place = home
        while at < end:
            if seen[place] != person:
                seen[place] = person
                places[at] = place
                at += 1
            place = (place + 1) % count
