"""One record at a time, as from a message queue: a value is published once a third person has exposed it."""

from __future__ import annotations

import shoal

EVENTS = [
    {"ts": "2026-03-02T08:00:00Z", "user": "ann", "site": "news.example"},
    {"ts": "2026-03-02T08:01:00Z", "user": "bob", "site": "news.example"},
    {"ts": "2026-03-02T08:02:00Z", "user": "ann", "site": "rare.example"},
    {"ts": "2026-03-02T08:03:00Z", "user": "cem", "site": "news.example"},
    {"ts": "2026-03-02T08:04:00Z", "user": "ann", "site": "news.example"},
]


def main() -> list[dict[str, object]]:
    """Push events, print what may be published."""
    z = shoal.ZAnonymity(z=3, window="1h", person="user", time="ts", attribute="site")
    released = [row for event in EVENTS for row in z.push(event)]
    for row in released:
        print(row)
    print(z.counts)
    return released


if __name__ == "__main__":
    main()
