"""Places visited by invented people: near a home and a workplace, and here and there in the whole city."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.randomness import next_below, next_unit, start_coins

_TRIES_A_PLACE = 16
"""Draws before what is still missing is taken in a row: somebody may have nearly all places there are."""


class Lots(NamedTuple):
    """Chances of places, one law a row, in Walker's tables: a column drawn uniformly is kept or exchanged."""

    keeps: np.ndarray
    """With which probability a column is kept."""
    instead: np.ndarray


class Habits(NamedTuple):
    """How people choose places; the laws are those around each place, and last that of the whole city."""

    lots: Lots
    at_home: float
    """Share of the draws near a centre that are near the home."""
    wandering: np.ndarray
    """Share of draws from the whole city, by how many places somebody visits."""


@kernel
def fill_lots(weights, lots, few, many):
    """Make Walker's tables of the rows of weights; `few` and `many` are room for a row each."""
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
    """A place, by the chances of a row."""
    place = next_below(coins, lots.keeps.shape[1])
    return np.int64(place if next_unit(coins) <= lots.keeps[row, place] else lots.instead[row, place])


@kernel
def visit_places(starts, first, last, habits, key, seen, coins, places):
    """Write the places of people `first` to `last`, all different in a person; who draws them changes nothing.

    `seen` holds for every place the last person who was given it; nobody's number is in it at the beginning.
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
            law = home if next_unit(coins) <= habits.at_home else work
            place = draw_lot(habits.lots, whole_city if next_unit(coins) <= wandering else law, coins)
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
