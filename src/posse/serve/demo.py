"""A month of fifty shops, played against a service that is up, fast enough to be watched."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from posse.client import Client, ServiceError
from posse.serve.spaces import Space

SHOPS, OFFERS = 50, 5
# A day takes so many seconds, so that a month takes two minutes.
DAY = 4.0
HOUR = DAY / 24
FEATURES = ("price", "discount", "stars", "new", "days to deliver")
BANNERS = ("spring", "summer", "plain")
# Visitors that a shop has in an hour of a working day.
VISITORS = 0.5
# A shop joins on this day.
NEWCOMER = 10
SPACES = (
    Space(
        name="shops",
        features=FEATURES,
        policy="shared-thompson",
        control=0.2,
        reward_wait=5 * DAY,
        floor=0.02,
    ),
    Space(
        name="banners",
        arms=BANNERS,
        policy="shared-greedy",
        reward_wait=5 * DAY,
        default_reward=0.0,
        floor=0.0,
    ),
)


class Month:
    """Shops whose customers have much in common, what they are offered, and what is bought days later.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int = 0) -> None:
        self.rng = rng = np.random.default_rng(seed)
        kinds = np.array([[-0.11, 0.06, 0.09, 0.02, -0.07], [0.05, 0.1, -0.02, 0.09, 0.03]])
        away = rng.standard_normal((SHOPS + 1, 2))
        self.tastes = (1.0 + 0.5 * away[:, :1]) * kinds[0] + 0.7 * away[:, 1:] * kinds[1]
        self.likes = 0.25 + np.array([0.0, 0.08, -0.04]) + 0.03 * rng.standard_normal((SHOPS + 1, 3))
        self.mail: list[tuple[float, str, float]] = []  # rewards under way, by when they are due

    def visitors(self, hour: int) -> list[int]:
        """Return the shops of an hour's visitors: more at weekends, and more in the first shops."""
        day = hour // 24
        busy = 1.7 if day % 7 >= 5 else 1.0
        there = SHOPS + (day >= NEWCOMER)
        counts = self.rng.poisson(busy * VISITORS * np.geomspace(3.0, 0.1, SHOPS + 1)[:there])
        return [shop for shop, count in enumerate(counts) for _ in range(count)]

    def offer(self) -> dict[str, dict[str, float]]:
        """Return a few articles with their features."""
        table = self.rng.standard_normal((OFFERS, len(FEATURES))).round(2)
        return {
            f"article {chr(97 + n)}": dict(zip(FEATURES, row.tolist(), strict=True))
            for n, row in enumerate(table)
        }

    def bought(self, shop: int, features: dict[str, float] | None, arm: str | int) -> bool:
        """Return whether the visitor of a shop buys what it is shown."""
        if features is None:
            chance = self.likes[shop, BANNERS.index(str(arm))]
        else:
            chance = 0.3 + np.array(list(features.values())) @ self.tastes[shop]
        return bool(self.rng.random() < np.clip(chance, 0.02, 0.98))

    def send(self, id: str | None, reward: float, now: float) -> None:
        """Let a reward come about a day later on average; one in ten is never known."""
        if id is not None and self.rng.random() < 0.9:
            heapq.heappush(self.mail, (now + self.rng.exponential(DAY), id, reward))

    def due(self, now: float) -> list[dict[str, Any]]:
        """Return the rewards that are known by now."""
        found = []
        while self.mail and self.mail[0][0] <= now:
            at, id, reward = heapq.heappop(self.mail)
            found.append({"id": id, "reward": reward, "at": at})
        return found


def play_hour(month: Month, hour: int, shops: Client, banners: Client) -> None:
    """Let the visitors of one hour come, and tell the rewards that are due."""
    visitors = month.visitors(hour)
    offers = [month.offer() for _ in visitors]
    asked: list[tuple[Client, list[dict[str, Any]]]] = [
        (shops, [{"task": name_of(s), "arms": o} for s, o in zip(visitors, offers, strict=True)]),
        (banners, [{"task": name_of(s), "arms": list(BANNERS)} for s in visitors[::2]]),
    ]
    for client, rows in asked:
        for row, answer in zip(rows, client.ask_many(rows), strict=True):
            features = row["arms"][answer.arm] if isinstance(row["arms"], dict) else None
            shop = int(row["task"].split()[-1]) - 1
            month.send(answer.id, float(month.bought(shop, features, answer.arm)), time.time())
    for start in range(0, len(rewards := month.due(time.time())), 1000):
        shops.tell_many(rewards[start : start + 1000])


def name_of(shop: int) -> str:
    """Return the name of a shop by its number.

    Examples
    --------
    >>> name_of(0)
    'shop 1'
    """
    return f"shop {shop + 1}"


def play(url: str, stop: threading.Event) -> None:
    """Play hour after hour until somebody says stop; a service that does not answer is waited for."""
    month, hour, begun = Month(), 0, 0.0
    with (
        Client(url, space="shops", timeout=5.0) as shops,
        Client(url, space="banners", timeout=5.0) as banners,
    ):
        while not stop.wait(max(0.0, begun + hour * HOUR - time.monotonic())):
            with suppress(ServiceError):
                play_hour(month, hour, shops, banners)
            hour += 1
            if hour == 1:  # the first one takes longer, as some code is compiled
                begun = time.monotonic() - HOUR


@contextmanager
def month_of_traffic(url: str, ready: threading.Event) -> Iterator[None]:
    """Play against a service from when it is ready until the end of the block.

    Parameters
    ----------
    url : str
    ready : Event
    """
    stop = threading.Event()

    def run() -> None:
        while not ready.wait(0.05):
            if stop.is_set():
                return
        play(url, stop)

    thread = threading.Thread(target=run, name="posse demo")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
