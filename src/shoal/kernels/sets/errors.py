"""The distance between items and the centre of the block they are published as."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel


@kernel
def distance_cost(members, weights, points, centres, shares, radius_m):
    """Sum over the members of weight times metres to the area-weighted mean of their cells' centres.

    On a sphere (radius_m > 0) points are on the unit sphere and centres are longitude and latitude in radians; in a
    plane both are metres. The half chord is the root of the haversine, without a sine and a cosine for each member.
    """
    area = 0.0
    first = 0.0
    second = 0.0
    for item in members:
        area += shares[item]
        first += shares[item] * centres[item, 0]
        second += shares[item] * centres[item, 1]
    first /= area
    second /= area
    x = first
    y = second
    z = 0.0
    if radius_m > 0:
        x = np.cos(second) * np.cos(first)
        y = np.cos(second) * np.sin(first)
        z = np.sin(second)
    total = 0.0
    for item in members:
        chord = np.sqrt((points[item, 0] - x) ** 2 + (points[item, 1] - y) ** 2 + (points[item, 2] - z) ** 2)
        if radius_m > 0:
            total += weights[item] * 2.0 * radius_m * np.arcsin(min(1.0, chord / 2.0))
        else:
            total += weights[item] * chord
    return total
