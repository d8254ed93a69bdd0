"""Rare host names are published as their domain, or as the domain above it."""

from __future__ import annotations

import pyarrow as pa

import shoal


def main() -> pa.Table:
    """Six people, three hosts of one domain: no host has four visitors, the domain has; a lone shop stays private."""
    visits = pa.table(
        {
            "ts": [0, 10, 20, 30, 40, 50],
            "user": ["ann", "bob", "cem", "dia", "eve", "fay"],
            "site": [
                "a.blog.example",
                "b.blog.example",
                "c.blog.example",
                "a.blog.example",
                "b.blog.example",
                "x.shop.example",
            ],
        }
    )
    z = shoal.ZAnonymity(
        z=4, window="1h", person="user", time="ts", attribute="site",
        on_private="generalize", hierarchy=shoal.Hierarchy.by_suffix("."),
    )  # fmt: skip
    released = pa.Table.from_batches([z.push_batch(visits).rows])
    print(released.select(["ts", "site"]).to_pylist())
    return released


if __name__ == "__main__":
    main()
