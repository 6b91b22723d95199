"""A synthetic log as logs are: unequal shops, text where numbers should be, gaps; and the truth behind it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posse.core.extras import extra
from posse.logs.writing import write_table
from posse.numerics.checks import Array, IntArray, check_integer

with extra("logs"):
    import pyarrow as pa

TOWNS = """
    Oslo Bergen Trondheim Stavanger Drammen Fredrikstad Kristiansand Sandnes Tromsø Sarpsborg Skien Ålesund
    Sandefjord Haugesund Tønsberg Moss Porsgrunn Bodø Arendal Hamar Ytrebygda Larvik Halden Lillehammer
    Harstad Molde Gjøvik Horten Kongsberg Jessheim Narvik Alta Elverum Mandal Leirvik Egersund Namsos
    Kragerø Ski Levanger Bryne Grimstad Mosjøen Kirkenes Hønefoss Askim Notodden Florø Volda Steinkjer
    Brumunddal Stjørdal Vennesla Ørsta Førde Odda Raufoss Risør Vadsø Voss
"""
OFFERS = ("none", "discount", "bundle")
CHANCES = (0.5, 0.3, 0.2)
WEATHER = ("cloud", "rain", "sun", "snow")
WEATHER_SHARES = (0.4, 0.3, 0.25, 0.05)
MISSPELT = {"cloud": "clowd", "rain": "rian", "sun": "sunn", "snow": "sno"}
DAY_NAMES = ("Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# What rewards of an offer are linear in; numbers in standard deviations.
CONTEXT = (
    "level",
    "trend",
    "hour sin",
    "hour cos",
    *DAY_NAMES,
    *(f"weather={name}" for name in WEATHER[1:]),
    "price",
    "stock",
    "distance",
)
LEVEL, RANK, NOISE = 12.0, 2, 2.0
# How far effects differ between shops, as a standard deviation; the share of it that is a shop's own.
SPREAD, OWN = 0.7, 0.1
LEAST_ROWS = 20
FIRST, DAYS, ZONE = np.datetime64("2026-01-05T00:00:00", "s"), 120, "Europe/Oslo"
PRICE, STOCK, DISTANCE = (40.0, 12.0), (25.0, 9.0), (4.0, 2.5)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExampleLog:
    """A log of sales in shops, and what only its author can know.

    It is a source itself: `summarise(log, ...)` reads its table.

    Attributes
    ----------
    table : pyarrow.Table
        Of n rows: order, shop, time, weather, price, stock, distance, currency, comment, offer, propensity
        and reward.
    means : (n,)
        The expected reward of each row, gaps or not.
    shops : tuple of str
        The names of the T shops.
    theta : (T, 3, m)
        The parameters of each shop and offer, by `offers` and `context`.
    offers : tuple of str
    context : tuple of str
        What parameters are about: m features, numbers of which are in standard deviations.
    """

    table: Any
    means: Array
    shops: tuple[str, ...]
    theta: Array
    offers: tuple[str, ...] = OFFERS
    context: tuple[str, ...] = CONTEXT

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file, CSV or Parquet by its ending."""
        write_table(path, self.table.schema, self.table.to_batches())


def example_log(
    *, shops: int = 60, rows: int = 12_000, seed: int = 0, unrelated: bool = False, clean: bool = False
) -> ExampleLog:
    """Make up a log of sales, with what is wrong with real ones: what a newcomer can try things on.

    In every shop the reward of an offer is linear in what is known of a visit, with parameters of its own:
    they lie near a plane that all shops share, or anywhere. A few shops have most of the rows. Prices are
    text, some of them with a currency, some missing; times have a zone; weather is misspelt now and then;
    stock has gaps and infinite values; some rows lack the shop, the offer or the reward; one column is
    constant, one is nearly empty, and one has a new value in every row.

    Parameters
    ----------
    shops : int
        T.
    rows : int
        n; a shop has 20 at least, if there are so many, and the largest thousands.
    seed : int
        Equal seeds give equal logs.
    unrelated : bool
        Whether shops have nothing in common.
    clean : bool
        Whether to leave out what is wrong: all else stays as it is.

    Returns
    -------
    ExampleLog

    Examples
    --------
    >>> log = example_log(shops=5, rows=1000)
    >>> log.table.num_rows, log.shops[:3]
    (1000, ('Oslo', 'Bergen', 'Trondheim'))
    >>> log.table.column("price").to_pylist()[:3]
    ['49.83', '43.86', '42.8']
    """
    check_integer("`shops` of example_log", shops, 1)
    check_integer("`rows` of example_log", rows, shops)
    check_integer("`seed` of example_log", seed, 0)
    truth, visits, wrong = np.random.default_rng(seed).spawn(3)
    theta = _parameters(truth, shops, unrelated)
    made = _Visits(visits, _sizes(truth, shops, rows))
    means = np.vecdot(made.features, theta[made.shop, made.offer])
    rewards = np.round(means + NOISE * visits.standard_normal(rows), 2)
    names = _names(shops)
    columns = made.columns(names, rewards)
    if not clean:
        columns = _spoilt(columns, wrong)
    return ExampleLog(table=pa.table(columns), means=means, shops=names, theta=theta)


def _names(n_shops: int) -> tuple[str, ...]:
    """Return names of shops: towns, and numbers behind them where there are more shops than towns."""
    towns = TOWNS.split()
    first = towns[:n_shops]
    more = [f"{towns[k % len(towns)]} {k // len(towns) + 1}" for k in range(len(towns), n_shops)]
    return (*first, *more)


def _parameters(rng: np.random.Generator, n_shops: int, unrelated: bool) -> Array:
    """Return the parameters of shops and offers (T, K, m), near a plane or anywhere, of equal size."""
    shape = (len(OFFERS), len(CONTEXT))
    kinds, own = rng.standard_normal((RANK, *shape)), rng.standard_normal((n_shops, *shape))
    mixtures = rng.standard_normal((n_shops, RANK)) / np.sqrt(RANK)
    shared = np.tensordot(mixtures, kinds, axes=1)
    theta = own if unrelated else np.sqrt(1.0 - OWN**2) * shared + OWN * own
    theta = SPREAD * theta
    theta[..., 0] += LEVEL
    return np.asarray(theta)


def _sizes(rng: np.random.Generator, n_shops: int, n_rows: int) -> IntArray:
    """Return the rows of each shop (T,), which add up to n: few of most shops, and very many of some."""
    least = min(LEAST_ROWS, n_rows // n_shops)
    shares = np.arange(1.0, n_shops + 1) ** -1.25
    shares -= shares[-1]
    rest = np.floor((n_rows - least * n_shops) * shares / max(shares.sum(), 1e-300)).astype(np.intp)
    rest[0] += n_rows - least * n_shops - rest.sum()
    return np.asarray(rng.permutation(least + rest))


class _Visits:
    """What happened in each of n rows, before anybody wrote it down."""

    def __init__(self, rng: np.random.Generator, sizes: IntArray) -> None:
        n_rows = int(sizes.sum())
        self.shop = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        seconds = rng.integers(DAYS * 86_400 // 60, size=n_rows) * 60
        self.time = FIRST + np.sort(seconds).astype("timedelta64[s]")
        self.weather = rng.choice(len(WEATHER), p=WEATHER_SHARES, size=n_rows)
        self.offer = rng.choice(len(OFFERS), p=CHANCES, size=n_rows)
        self.price, self.stock, self.distance = (
            np.maximum(np.round(mean + scale * rng.standard_normal(n_rows), 2), 0.1)
            for mean, scale in (PRICE, STOCK, DISTANCE)
        )

    @cached_property
    def features(self) -> Array:
        """What rewards are linear in, (n, m), by `CONTEXT`."""
        days = (self.time - FIRST) / np.timedelta64(1, "D")  # the first is a Monday
        angle = 2 * np.pi * days
        trend = (days - DAYS / 2) / (DAYS / 12**0.5)
        weekday = np.floor(days).astype(np.intp) % 7
        numbers = [
            (values - mean) / scale
            for values, (mean, scale) in (
                (self.price, PRICE),
                (self.stock, STOCK),
                (self.distance, DISTANCE),
            )
        ]
        parts = [np.ones(len(days)), trend, np.sin(angle), np.cos(angle)]
        parts += [weekday == day for day in range(1, 7)]
        parts += [self.weather == place for place in range(1, len(WEATHER))]
        return np.stack([*parts, *numbers], axis=1).astype(np.float64)

    def columns(self, names: tuple[str, ...], rewards: Array) -> dict[str, Any]:
        """Return the columns of the log, with nothing wrong."""
        n_rows = len(rewards)
        return {
            "order": pa.array([f"A-{number:07d}" for number in range(1, n_rows + 1)]),
            "shop": pa.array(np.array(names, dtype=object)[self.shop]),
            "time": pa.array(self.time).cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms", ZONE)),
            "weather": pa.array(np.array(WEATHER, dtype=object)[self.weather]),
            "price": pa.array([f"{price:g}" for price in self.price.tolist()]),
            "stock": pa.array(self.stock),
            "distance": pa.array(self.distance),
            "currency": pa.array(["NOK"] * n_rows),
            "comment": pa.array([""] * n_rows),
            "offer": pa.array(np.array(OFFERS, dtype=object)[self.offer]),
            "propensity": pa.array(np.array(CHANCES)[self.offer]),
            "reward": pa.array(rewards),
        }


def _spoilt(columns: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return columns with what is usually wrong with them."""
    n_rows = len(columns["reward"])

    def some(share: float) -> NDArray[np.bool_]:
        """Choose a share of the rows: one at least, if there are several."""
        chosen = np.zeros(n_rows, dtype=np.bool_)
        chosen[rng.permutation(n_rows)[: max(int(share * n_rows), min(1, n_rows - 1))]] = True
        return chosen

    def put(name: str, value: Any, share: float) -> None:
        """Put a value, or what a function makes of the old one, in a share of the rows."""
        old, chosen = columns[name].to_pylist(), some(share)
        new = [
            (value(item) if callable(value) else value) if here else item
            for item, here in zip(old, chosen.tolist(), strict=True)
        ]
        columns[name] = pa.array(new, type=columns[name].type)

    put("weather", lambda name: MISSPELT[name], 0.004)
    put("weather", None, 0.02)
    put("price", lambda text: f"NOK {text}", 0.01)
    put("price", "n/a", 0.03)
    put("stock", None, 0.06)
    put("stock", float("inf"), 0.0003)
    put("distance", None, 0.0005)
    put("comment", None, 1.0)
    put("comment", "came back the next day", 0.002)
    put("offer", None, 0.001)
    put("shop", None, 0.002)
    put("reward", None, 0.01)
    return columns
