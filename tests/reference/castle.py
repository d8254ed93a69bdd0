"""CASTLE: tuples gather in forming clusters; one that holds a due tuple is output, reused around, merged or split."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.reference.tuples import Decision, Held, TupleTwin, count_values, hull_loss, people


@dataclass(eq=False)
class Forming:
    """A cluster that is not published yet; its tuples in order of arrival."""

    tuples: list[Held] = field(default_factory=list)


@dataclass
class CastleTwin(TupleTwin):
    """Left open, and decided here.

    - A forming cluster may hold several tuples of a person. All leave with it; k, carriers and `common` are about
      different people (carriers), and about every tuple (`common`).
    - "Smallest" is by tuples, "more people" by people, "oldest" by when the forming cluster was made; a merged cluster
      keeps the place of the one it was merged into. Enlargements are compared as computed, without slack.
    - tau is the mean of the hull losses of the mu last published clusters (after splitting), summed oldest first.
    - "More than half" counts the cluster itself among the forming ones.
    - Diversity: a cluster is output if it has >= k people and satisfies l, entropy_l and t; merging goes on until both
      hold. If they do not hold with everything merged, nothing is merged and the tuple is suppressed.
    - A subcluster is the first tuple left, its k-1 nearest of other people and, if diversity asks for it, more as in
      the other methods; splitting stops if that cannot be had. The rest joins tuple by tuple, in order of arrival,
      each time the subcluster that grows least then. If a subcluster fails diversity in the end, or none was made,
      the cluster is output whole.
    - max_share: a cluster is output only if no one has more of its tuples; merging goes on until that holds, too. If it
      does not hold for every subcluster, the cluster is output whole.
    - The rows of an output are listed in order of arrival, whatever their subcluster.
    - With groups=True nothing is reused.
    - With missing="own" a forming cluster holds tuples that carry the same attributes. A tuple that fits none of them
      makes a new one, even beyond beta. "Most clusters" are most of those that carry the same.
    """

    beta: int = 50
    mu: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        self.forming: list[Forming] = []
        self.published_losses: deque[float] = deque(maxlen=self.mu)

    # -- arrival

    def insert(self, one: Held) -> None:
        home = self.home_for(one)
        if home is None:
            home = Forming()
            self.forming.append(home)
        home.tuples.append(one)

    def home_for(self, one: Held) -> Forming | None:
        fitting = [cluster for cluster in self.forming if self.may_gather(cluster, one)]
        if not fitting:
            return None
        growths = [self.enlargement(cluster.tuples, [one]) for cluster in fitting]
        least = [cluster for cluster, growth in zip(fitting, growths, strict=True) if growth == min(growths)]
        tau = self.tau()
        cheap = [cluster for cluster in least if hull_loss(self.attributes, [*cluster.tuples, one]) <= tau]
        if not cheap and len(self.forming) < self.beta:
            return None
        return min(cheap or least, key=lambda cluster: len(cluster.tuples))

    def may_gather(self, cluster: Forming, one: Held) -> bool:
        return self.missing != "own" or cluster.tuples[0].carried == one.carried

    def enlargement(self, tuples: Sequence[Held], added: Sequence[Held]) -> float:
        return hull_loss(self.attributes, [*tuples, *added]) - hull_loss(self.attributes, tuples)

    def tau(self) -> float:
        if not self.published_losses:
            return 0.0
        total = 0.0
        for loss in self.published_losses:
            total += loss
        return total / len(self.published_losses)

    # -- a due tuple

    def decide(self, first: Held, now: int, *, can_wait: bool = False) -> list[Decision]:
        self.forget_old(now)
        home = next(cluster for cluster in self.forming if first in cluster.tuples)
        if self.is_ready(home.tuples):
            return self.output([home], now)
        old = self.best_reusable(first)
        if old is not None:
            self.leave_home(first, home)
            return [self.release_by_reuse(first, old, now)]
        merged = None if self.is_outlier(home) else self.merge(home)
        if merged is None:
            self.leave_home(first, home)
            return [self.suppress(first, now)]
        return self.output(merged, now)

    def is_ready(self, tuples: Sequence[Held]) -> bool:
        is_crowd = len(people(tuples)) >= self.k and self.is_diverse(tuples)
        return is_crowd and self.is_fair(Counter(one.person for one in tuples))

    def is_diverse(self, tuples: Sequence[Held]) -> bool:
        return self.diversity.failing(count_values(one.sensitive for one in tuples), self.reference_now()) is None

    def leave_home(self, one: Held, home: Forming) -> None:
        home.tuples.remove(one)
        if not home.tuples:
            self.forming.remove(home)

    def is_outlier(self, home: Forming) -> bool:
        fitting = [cluster for cluster in self.forming if self.may_gather(cluster, home.tuples[0])]
        bigger = sum(len(people(other.tuples)) > len(people(home.tuples)) for other in fitting)
        return 2 * bigger > len(fitting) or len(people(self.alike(home.tuples[0]))) < self.k

    def merge(self, home: Forming) -> list[Forming] | None:
        """The cluster and those to be merged into it until it is ready; None if it never is."""
        taken, tuples = [home], list(home.tuples)
        while not self.is_ready(tuples):
            others = [one for one in self.forming if one not in taken and self.may_gather(one, tuples[0])]
            if not others:
                return None
            nearest = min(others, key=lambda cluster: self.enlargement(tuples, cluster.tuples))
            taken.append(nearest)
            tuples += nearest.tuples
        return taken

    # -- output

    def output(self, taken: Sequence[Forming], now: int) -> list[Decision]:
        tuples = sorted((one for cluster in taken for one in cluster.tuples), key=lambda one: one.number)
        self.forming = [cluster for cluster in self.forming if cluster not in taken]
        parts = self.split(tuples)
        self.published_losses.extend(hull_loss(self.attributes, part) for part in parts)
        return self.publish([(part, self.form(part)) for part in parts], now)

    def split(self, tuples: list[Held]) -> list[list[Held]]:
        """Subclusters, in the order they are made; the whole if it has fewer than 2k people."""
        if len(people(tuples)) < 2 * self.k:
            return [tuples]
        rest, parts = list(tuples), []
        while len(people(rest)) >= self.k:
            part = self.choose(rest[0], rest)
            if part is None:
                break
            parts.append(part)
            rest = [one for one in rest if one not in part]
        if not parts:
            return [tuples]
        for one in rest:
            min(parts, key=lambda part: self.enlargement(part, [one])).append(one)
        is_kept = all(self.is_diverse(part) and self.is_fair(Counter(one.person for one in part)) for part in parts)
        return parts if is_kept else [tuples]
