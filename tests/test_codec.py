"""Values come back from files bit by bit, and no file does harm.

Files of every format that was released are kept in `tests/golden` and have to load for ever. For a new
format, or a new kind of value, write those that are missing by

    python -m tests.test_codec

from the root of the repository. A file that is there is never written again; one of a format that was not
released yet may be deleted first.
"""

import dataclasses
import importlib
import inspect
import json
import math
import pkgutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import posse
from posse import (
    E2TC,
    PEGE,
    UCB,
    At,
    DoublyExponential,
    EllipsoidActions,
    Estimate,
    Every,
    FactorPrior,
    Fading,
    FiniteActions,
    GaussianPrior,
    Geometric,
    GramStatistics,
    Greedy,
    IndependentGreedy,
    IndependentThompson,
    IndependentUCB,
    LearningPolicy,
    LowRank,
    MethodOfMoments,
    MLinGreedy,
    NaiveGreedy,
    OracleBasis,
    OracleCommit,
    OracleGreedy,
    OracleThompson,
    PairedMoments,
    Random,
    Ridge,
    Shared,
    SharedGreedy,
    SharedThompson,
    SharedUCB,
    TaskSpectral,
    Thompson,
)
from posse.core.account import Account, Finding
from posse.core.actions import Ellipsoids, PooledActions
from posse.core.archive import MOST_TEXT
from posse.core.codec import FORMAT, MOST_NESTING, decode, encode, load, save
from posse.core.columns import CategoryColumn, DateColumn, NumberColumn
from posse.core.encoder import Encoder
from posse.core.estimate import Certificate
from posse.core.learner_state import LearnerState
from posse.core.model import Model
from posse.core.posterior import Beliefs, KnownPosterior
from posse.core.protocols import MovesAtOnce
from posse.core.shipped import class_of, name_of, parts_of, register, shipped
from posse.core.statistics import MomentTotals
from posse.estimators.factor_prior.evidence import FactorModel
from posse.estimators.factor_prior.units import Units
from posse.estimators.gaussian_prior import GaussianPosterior
from posse.estimators.moments import MomentStatistics
from posse.estimators.ridge import InBasis, RidgePosterior
from posse.policies import ByActions
from posse.policies.explore_commit import CycleState, StageState
from posse.policies.learning import LearningState, MovedEstimate

GOLDEN = Path(__file__).parent / "golden"
BASIS = np.eye(4)[:, :2]

CONFIGURATIONS: list[Any] = [
    DoublyExponential(),
    Geometric(),
    Geometric(first=3, ratio=1.7),
    Every(),
    Every(7),
    At((3, 8)),
    Greedy(),
    Thompson(),
    Thompson(scale=0.1),
    UCB(),
    UCB(scale=0.3),
    ByActions(other=Thompson(scale=0.5)),
    Ridge(),
    Ridge(penalty=0.1),
    OracleBasis(basis=BASIS, penalty=2.0),
    GaussianPrior(mean=np.ones(2), covariance=np.diag([0.1, 0.0]), noise=0.3),
    LowRank(rank=2),
    LowRank(rank=3, penalty=0.1, n_starts=2),
    FactorPrior(),
    FactorPrior(rank=2, mean="learned", degrees=math.inf, hard=True),
    FactorPrior(mean="level"),
    MethodOfMoments(),
    PairedMoments(),
    TaskSpectral(),
    Random(),
    PEGE(),
    E2TC(rank=2),
    E2TC(rank=2, exponent=1.5, n_explore=9, n_refine=8, subspace=TaskSpectral()),
    OracleCommit(basis=BASIS, n_refine=6),
    LearningPolicy(estimator=Ridge()),
    LearningPolicy(estimator=FactorPrior(rank=1), rule=Thompson(scale=2.0), schedule=At((5,)), memory=0.9),
    MLinGreedy(2),
    MLinGreedy(3, penalty=0.1),
    NaiveGreedy(penalty=0.5),
    IndependentGreedy(schedule=Every(3)),
    IndependentThompson(scale=0.5),
    IndependentUCB(scale=0.5),
    OracleGreedy(BASIS),
    OracleThompson(BASIS),
    SharedGreedy(),
    SharedGreedy(rank=2, schedule=Every(9), memory=0.99),
    SharedThompson(scale=0.5, draws=8, floor=0.01, prompt=True, memory=Fading(0.9, by="clock")),
    SharedUCB(rank=1, memory="epoch"),
    Shared(rank=2, scale=1.5),
]
ENCODER = Encoder(
    columns=(
        NumberColumn(name="price", mean=9.0, scale=2.0, missing=True),
        CategoryColumn(name="weather", levels=("sun", "rain"), other=True),
        DateColumn(name="time", parts=("trend", "weekday"), mean=1.7e9, scale=1e6),
    ),
    interactions=(("price", "weather"),),
    arms=("none", "discount"),
    own=("time",),
)
ACCOUNT = Account(
    source="log.csv",
    rows=9,
    used=6,
    findings=(Finding(column="price", what="missing values", count=3, done="rows dropped", first=2),),
)
COUNTS = GramStatistics.of(np.arange(12.0).reshape(3, 2, 2), np.array([[1.0, -0.5]] * 3))
PARTS: list[Any] = [
    ENCODER,
    ACCOUNT,
    COUNTS,
    GramStatistics.of(np.ones((1, 2, 3)) / 3, np.ones((1, 2))),
    Fading(0.9).of(np.ones((3, 2, 2)), np.ones((3, 2))),
    Beliefs(np.zeros((2, 2)), np.ones((2, 2, 2)), np.ones(2)),
    MomentTotals(np.array([[0.1, -0.0]])),
    MomentStatistics(COUNTS, np.eye(2)),
    Certificate(-math.inf, math.nan, 3, False),
    Estimate(np.array([[0.1, 0.2]])),
    Estimate(np.array([[0.1, 0.2]]), posterior=KnownPosterior(np.eye(2)[None])),
    Estimate(np.eye(2), basis=np.zeros((2, 0)), weights=None, certificate=Certificate(1.0, 0.1, 2, True)),
    FactorModel(np.eye(2), -math.inf, np.zeros(3), np.zeros(2)),
    StageState("refine", 1, COUNTS, BASIS),
    CycleState(2, MomentTotals(np.ones((2, 2)))),
    FiniteActions(np.ones((1, 2, 3, 2)), np.ones((1, 2, 3), dtype=bool)),
    PooledActions(np.ones((3, 2), dtype=np.float32), np.zeros((1, 2, 2), dtype=np.intp)),
    EllipsoidActions(Ellipsoids.of(np.diag([4.0, 1.0]), n_tasks=2, dim=2), n_rounds=7),
]


@dataclasses.dataclass(frozen=True)
class Shop:
    """A class of somebody else."""

    shelves: tuple[int, ...]
    keeper: Any = None


@dataclasses.dataclass(frozen=True)
class SlowRidge(Ridge):
    """A child of a class of posse that is not known itself."""


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal in type and in every bit."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        alike = left.dtype == right.dtype and left.shape == right.shape
        return bool(alike and left.tobytes() == right.tobytes())
    if isinstance(left, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or struct.pack("d", left) == struct.pack("d", right)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if name_of(type(left)) is not None:
        return all(same(getattr(left, part), getattr(right, part)) for part in parts_of(type(left)))
    return bool(left == right)


def after_json(value: Any) -> Any:
    tree, arrays = encode(value)
    return decode(json.loads(json.dumps(tree, allow_nan=False)), arrays)


def shown(value: Any) -> str:
    return type(value).__name__


# Round trips


@pytest.mark.parametrize("value", CONFIGURATIONS + PARTS, ids=shown)
def test_every_part_comes_back(value: Any, tmp_path: Path) -> None:
    assert same(after_json(value), value)
    save(value, tmp_path / "value.posse")
    assert same(posse.load(str(tmp_path / "value.posse")), value)


PLAYED: list[tuple[Any, Any]] = [
    (MLinGreedy(2), GramStatistics),
    (NaiveGreedy(), GramStatistics),
    (LearningPolicy(estimator=Ridge(penalty=0)), GramStatistics),
    (LearningPolicy(estimator=OracleBasis(basis=BASIS, penalty=0), memory=0.5), Fading(0.5)),
    (
        LearningPolicy(estimator=GaussianPrior(mean=np.ones(4), covariance=np.eye(4), noise=0.5)),
        GramStatistics,
    ),
    (LearningPolicy(estimator=Ridge(penalty=2.0), prompt=True), GramStatistics),
    (IndependentGreedy(), GramStatistics),
    (OracleThompson(BASIS), GramStatistics),
    (SharedThompson(), GramStatistics),
    (SharedUCB(rank=1, memory=0.9), Fading(0.9)),
    (Random(), GramStatistics),
    (E2TC(rank=2, n_explore=6, n_refine=4), MomentStatistics),
    (OracleCommit(basis=BASIS, n_refine=2), GramStatistics),
    (PEGE(), MomentTotals),
]


MOVING = [Ridge(penalty=2.0), Ridge(), FactorPrior(), FactorPrior(rank=1)]


@pytest.mark.parametrize(("policy", "statistics"), PLAYED, ids=lambda case: shown(case))
def test_a_state_that_is_loaded_goes_on_as_the_old_one(policy: Any, statistics: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    blocks = [statistics.of(rng.normal(size=(n, 3, 4)), rng.normal(size=(n, 3))) for n in (6, 1, 2, 9)]
    state = policy.init(3, 4)
    for block in blocks:
        save((policy, state), tmp_path / "run.posse")
        loaded_policy, loaded = load(tmp_path / "run.posse")
        assert same(loaded, state)
        if isinstance(policy, MovesAtOnce) and getattr(policy, "estimator", None) in MOVING:
            moved = policy.move(state, block)
            save(moved, tmp_path / "moved.posse")
            assert same(load(tmp_path / "moved.posse"), moved)
        state = policy.update(state, block)
        assert same(loaded_policy.update(loaded, block), state)


numbers = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
dtypes = (
    hnp.floating_dtypes(sizes=(32, 64), endianness="?")
    | hnp.integer_dtypes(endianness="?")
    | hnp.unsigned_integer_dtypes(endianness="?")
    | hnp.boolean_dtypes()
)
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=3))
trees = st.recursive(
    numbers | arrays | st.sampled_from(CONFIGURATIONS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.builds(lambda theta: Estimate(theta=theta), inner)
    ),
    max_leaves=8,
)


@given(trees)
def test_any_tree_comes_back(value: Any) -> None:
    assert same(after_json(value), value)


@settings(max_examples=30)
@given(trees)
def test_any_tree_comes_back_from_a_file_and_equal_values_give_equal_bytes(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    folder = tmp_path_factory.mktemp("trees")
    save(value, folder / "one.posse")
    loaded = load(folder / "one.posse")
    assert same(loaded, value)
    save(loaded, folder / "two.posse")
    assert (folder / "one.posse").read_bytes() == (folder / "two.posse").read_bytes()


def test_floats_and_integers_are_exact() -> None:
    values = [math.inf, -math.inf, math.nan, -0.0, 5e-324, 0.1 + 0.2, sys.float_info.max]
    values += [2**63 - 1, -(2**63), 2**5000, -(10**5000), True, 0]
    assert same(after_json(values), values)


def test_numbers_of_numpy_become_those_of_python() -> None:
    values: list[Any] = [np.float64(0.1), np.float32(0.1), np.uint64(2**64 - 1), np.True_, np.float64("nan")]
    assert same(after_json(values), [value.item() for value in values])
    few: Any = np.int8(4)
    assert same(after_json(Every(few)), Every(4))


def test_arrays_may_be_views_and_keep_their_order(tmp_path: Path) -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    for array in (
        values,
        values.T,
        values[:, ::2],
        np.broadcast_to(values[0], (5, 3, 4)),
        values.mT[0, 0, 0],
    ):
        save(array, tmp_path / "array.posse")
        loaded = load(tmp_path / "array.posse")
        assert same(loaded, array if isinstance(array, np.ndarray) else float(array))
    save(values.T, tmp_path / "array.posse")
    assert load(tmp_path / "array.posse").flags.f_contiguous


def test_what_is_no_field_is_not_stored() -> None:
    fresh, used = MLinGreedy(2), MLinGreedy(2)
    object.__setattr__(used, "_remembered", len)
    assert encode(used) == encode(fresh)


# What is refused when it is saved


class Pair(NamedTuple):
    left: int
    right: int


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (len, r"`value` must be None, .* Got the function builtins:len\."),
        (
            [0, Estimate(theta=len)],  # type: ignore[arg-type]
            r"`value\[1\].theta` must .* Got the function builtins:len",
        ),
        ({"a": (partial(len),)}, r"`value\['a'\]\[0\]` must .* Got an object of functools:partial\."),
        (Ridge, r"Got the class posse.estimators.ridge:Ridge\."),
        (SlowRidge(), r"Got an object of .*test_codec:SlowRidge\."),
        (Shop((1,)), r"registered with posse.register, to be saved. Got an object of .*test_codec:Shop\."),
        (Pair(1, 2), r"Got an object of .*:Pair\."),
        ({3: 1}, r"keys of `value` must be strings to be saved. Got 3\."),
        (np.array([None]), r"Got an object of numpy:ndarray with entries of object\."),
        (np.array(["a"]), r"with entries of <U1\."),
        (np.ones(2, dtype=complex), r"with entries of complex128\."),
        (np.ma.masked_array([1.0]), r"Got an object of numpy.ma:MaskedArray with entries of float64\."),
        (np.longdouble(1), r"Got an object of numpy:longdouble\."),
        (1j, r"Got an object of builtins:complex\."),
        (b"", r"Got an object of builtins:bytes\."),
        ({1}, r"Got an object of builtins:set\."),
        (np.random.default_rng(0), r"Got an object of numpy.random"),
    ],
)
def test_what_is_not_data_is_refused_and_nothing_is_written(value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        save(value, tmp_path / "value.posse")
    assert list(tmp_path.iterdir()) == []


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_has_an_end(tmp_path: Path) -> None:
    save(nested(MOST_NESTING), tmp_path / "deep.posse")
    assert load(tmp_path / "deep.posse") == nested(MOST_NESTING)
    circle: list[Any] = []
    circle.append(circle)
    for value in (nested(MOST_NESTING + 1), circle):
        with pytest.raises(ValueError, match="values must be nested at most 100 deep"):
            encode(value)


def test_a_long_text_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="hold long lists of numbers as arrays"):
        save("x" * MOST_TEXT, tmp_path / "long.posse")


def test_a_file_that_cannot_be_opened_or_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.posse")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        save(1, tmp_path / "file" / "value.posse")


# Which classes


def frozen_dataclasses() -> Iterator[type[Any]]:
    for room in ("core", "estimators", "policies"):
        package = importlib.import_module(f"posse.{room}")
        names = [found.name for found in pkgutil.walk_packages(package.__path__, f"posse.{room}.")]
        for name in (package.__name__, *names):
            for cls in vars(importlib.import_module(name)).values():
                own = inspect.isclass(cls) and cls.__module__ == name and dataclasses.is_dataclass(cls)
                if own and cls.__dataclass_params__.frozen:
                    yield cls


def test_every_public_frozen_dataclass_can_be_stored_by_a_name_of_its_own() -> None:
    found = [cls for cls in frozen_dataclasses() if not cls.__name__.startswith("_")]
    assert {cls.__qualname__: cls for cls in found} == shipped()
    assert len(found) == len(shipped()) > 50
    for name, cls in shipped().items():
        assert class_of(name) is cls
        assert name_of(cls) == name
        annotated = {part for parent in cls.__mro__ for part in vars(parent).get("__annotations__", {})}
        assert set(parts_of(cls)) <= annotated, name
    for odd in (Protocol, Shop, dict, posse.Episode):
        assert name_of(odd) is None


@pytest.fixture
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("posse.core.shipped._REGISTERED", {})
    monkeypatch.setattr("posse.core.shipped._NAMES", {})


@pytest.mark.usefixtures("_forget")
def test_a_foreign_class_is_stored_once_it_is_registered(tmp_path: Path) -> None:
    assert register(Shop) is Shop
    shop = Shop((1, 2), keeper=Shop((), Ridge()))
    assert after_json(shop) == shop
    assert encode(shop)[0]["class"] == f"{Shop.__module__}:Shop"
    save(shop, tmp_path / "old.posse")
    register(Shop, name="shop.Shop")
    assert encode(shop)[0]["class"] == "shop.Shop"
    assert load(tmp_path / "old.posse") == shop
    assert posse.register is register


@pytest.mark.usefixtures("_forget")
def test_what_cannot_be_registered_is_refused() -> None:
    @dataclasses.dataclass(frozen=True)
    class Hidden:
        seed: dataclasses.InitVar[int] = 0

    with pytest.raises(
        ValueError, match=r"`cls` of register must be a dataclass. Got <built-in function len>"
    ):
        register(len)  # type: ignore[type-var]
    with pytest.raises(ValueError, match=r"Hidden must be made from its fields alone .* Got 'seed'\."):
        register(Hidden)
    for name in ("Ridge", "", "shop"):
        with pytest.raises(ValueError, match=f"with a dot or a colon: .* Got '{name}'"):
            register(Shop, name=name)
    register(Shop, name="a.shop")
    with pytest.raises(ValueError, match=r"must be free. Got 'a.shop', which is .*test_codec:Shop\."):
        register(SlowRidge, name="a.shop")


def test_a_class_may_be_defined_again(monkeypatch: pytest.MonkeyPatch) -> None:
    again = dataclasses.make_dataclass("Shop", ["shelves", "keeper"], frozen=True)
    again.__module__ = Shop.__module__
    monkeypatch.setattr("posse.core.shipped._REGISTERED", {"a.shop": Shop})
    monkeypatch.setattr("posse.core.shipped._NAMES", {Shop: "a.shop"})
    register(again, name="a.shop")
    assert type(after_json(again((), None))) is again


# Other processes

LOAD = "import sys; {first}; from posse.core.codec import load; print(load(sys.argv[1]))"


@pytest.mark.parametrize(
    "first", ["pass", "import posse.policies", "from posse import *", "import posse.cli"]
)
def test_a_new_process_loads_whatever_it_has_imported(first: str, tmp_path: Path) -> None:
    policy = LearningPolicy(estimator=LowRank(rank=2), schedule=At((5,)))
    save(policy, tmp_path / "policy.posse")
    code = LOAD.format(first=first)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "policy.posse")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == repr(policy), done.stderr


def test_loading_imports_nothing_that_a_file_names(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("print('imported'); class Thing: pass")
    written(tmp_path / "bad.posse", tree={"class": "evil:Thing", "fields": {}})
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from posse.core.codec import load\n"
        "try: load(sys.argv[1] + '/bad.posse')\n"
        "except ValueError as error: print(error)\n"
        "print('evil' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    message, imported = done.stdout.strip().splitlines()
    assert message.endswith("must be registered with posse.register before loading. Got 'evil:Thing'.")
    assert imported == "False"


# Bad files


def written(
    path: Path, tree: Any = None, document: Any = None, text: str | None = None, **members: bytes
) -> Path:
    """Write a file by hand: a tree, the whole of posse.json as data or as text, and arrays as bytes."""
    if text is None:
        text = json.dumps(document or {"format": 1, "posse": "0.1.0", "value": tree})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("posse.json", text)
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def npy(head: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    line = f"{head}\n".encode()
    return b"\x93NUMPY" + version + len(line).to_bytes(2, "little") + line + content


def head(descr: str = "'<f8'", shape: str = "(2,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def test_a_file_written_by_hand_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "good.posse", tree={"array": "a"}, a=npy(head(), bytes(16)))
    assert same(load(path), np.zeros(2))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"tuple": 3}, r"`value` must be a tree that posse.save makes. Got \{'tuple': 3\}\."),
        ([{"dict": []}], r"`value\[0\]` must be a tree"),
        ({"dict": {"a": {"float": "7"}}}, r"`value\['a'\]` must be a tree .* Got \{'float': '7'\}\."),
        ({"float": []}, "must be a tree"),
        ({"int": 5}, "must be a tree"),
        ({"int": "0b1"}, "must be a tree"),
        ({"array": 3}, "must be a tree"),
        ({"array": {"a": 1}}, "must be a tree"),
        ({"strange": 1}, "must be a tree"),
        ({"tuple": [], "dict": {}}, "must be a tree"),
        ({}, r"must be a tree that posse.save makes. Got \{\}\."),
        (float("nan"), "must be a tree that posse.save makes. Got nan"),
        ({"array": "a"}, "`value` must be an array that is there. Got 'a', which is not"),
        ({"class": 5, "fields": {}}, "the class of `value` must be registered .* Got 5"),
        ({"class": ["Ridge"], "fields": {}}, r"Got \['Ridge'\]"),
        (
            {"class": "evil:Thing", "fields": {}},
            "registered with posse.register before loading. Got 'evil:Thing'",
        ),
        ({"class": "posse.core.files:write_json", "fields": {}}, "Got 'posse.core.files:write_json'"),
        ({"class": "Ridge", "fields": []}, r"fields of `value` must be those of Ridge: penalty. Got \[\]\."),
        (
            {"class": "OracleBasis", "fields": {}},
            "must be those of OracleBasis: basis, penalty. Got none",
        ),
        (
            {"class": "Every", "fields": {"rounds": 1, "x": 1}},
            "must be those of Every: rounds. Got rounds, x",
        ),
        (
            {"class": "Ridge", "fields": {"penalty": -1}},
            "must have fields that Ridge takes. Got: `penalty` of Ridge must be a finite",
        ),
        (
            {"class": "GramStatistics", "fields": dict.fromkeys(["gram", "moment", "square", "count"], "x")},
            "takes",
        ),
        (
            {
                "class": "LearningPolicy",
                "fields": dict.fromkeys(["estimator", "rule", "schedule", "memory", "prompt"]),
            },
            "takes",
        ),
        (
            {"class": "GaussianPrior", "fields": {"mean": {"dict": {}}, "covariance": [], "noise": "x"}},
            "takes",
        ),
        (nested(MOST_NESTING + 1), "values must be nested at most 100 deep"),
    ],
)
def test_bad_trees_are_one_sentence(tree: Any, message: str, tmp_path: Path) -> None:
    refused(written(tmp_path / "bad.posse", tree=tree), message)


def refused(path: Path, message: str, **options: Any) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load(path, **options)
    assert str(caught.value).startswith(f"{str(path)!r} cannot be loaded: ")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([1], "posse.json in it must hold format, posse and value. Got"),
        ({"format": 1}, "must hold format, posse and value"),
        ({"format": "1", "posse": "", "value": 1}, "its format must be an integer of at least 1. Got '1'"),
        ({"format": True, "posse": "", "value": 1}, "its format must be .* Got True"),
        ({"format": 0, "posse": "", "value": 1}, "Got 0"),
        (
            {"format": 2, "posse": "7.1", "value": 1},
            "posse '7.1' wrote it in format 2, and this version of posse reads format 1",
        ),
    ],
)
def test_bad_documents_are_one_sentence(document: Any, message: str, tmp_path: Path) -> None:
    refused(written(tmp_path / "bad.posse", document=document), message)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"format": ' + "9" * 5000 + "}", "\x00"])
def test_bad_json_is_one_sentence(text: str, tmp_path: Path) -> None:
    refused(written(tmp_path / "bad.posse", text=text), "posse.json in it must be JSON. Got: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be an array of numbers in NumPy's format 1.0"),
        (b"\x93NUMPY", "Got another head"),
        (npy(head(), bytes(16), version=b"\x03\x00"), "Got another head"),
        (npy("{'descr': print(1)}"), "Got another head"),
        (npy(head(descr="'|O'"), bytes(16)), "Got another head"),
        (npy(head(descr="'<c8'"), bytes(16)), "Got another head"),
        (npy(head(descr="'<f3'"), bytes(6)), "Got another head"),
        (npy(head(descr="[('a', '<f8')]"), bytes(16)), "Got another head"),
        (npy(head(shape="(-2,)"), bytes(16)), "Got another head"),
        (npy(head(shape="(99999999999,)"), bytes(16)), r"Got a head for 8000000000\d+: \(99999999999,\)\."),
        (npy(head(shape=f"({10**30},)"), bytes(16)), "Got a head for 8000"),
        (npy(head(shape=f"(0, {10**30})")), "Got a head for"),
        (npy(head(shape=f"({'1, ' * 65})"), bytes(8)), "Got a head for"),
        (npy(head(), bytes(15)), "Got a head for"),
        (npy(head(), bytes(17)), "Got a head for"),
    ],
)
def test_bad_arrays_are_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    refused(written(tmp_path / "bad.posse", tree={"array": "a"}, a=content), message)


def test_files_of_another_kind_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "bad.posse"
    path.write_bytes(b"hello")
    refused(path, "it must be a zip archive that is whole. Got: File is not a zip file")
    path.write_bytes(b"")
    refused(path, "it must be a zip archive that is whole")
    save(np.arange(100.0), path)
    path.write_bytes(path.read_bytes()[:-30])
    refused(path, "it must be a zip archive that is whole")
    with zipfile.ZipFile(path, "w"):
        pass
    refused(path, "it must hold posse.json, and each name once. Got nothing")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("array-0.npy", b"")
    refused(path, r"it must hold posse.json, and each name once. Got array-0.npy\.")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("posse.json", "{}")
    refused(path, "'posse.json' in it must be stored or deflated")


@pytest.mark.usefixtures("_forget")
def test_whatever_a_constructor_raises_is_one_sentence(tmp_path: Path) -> None:
    @dataclasses.dataclass(frozen=True)
    class Picky:
        def __post_init__(self) -> None:
            raise MoodError

    class MoodError(RuntimeError):
        pass

    register(Picky, name="a.picky")
    path = written(tmp_path / "bad.posse", tree={"class": "a.picky", "fields": {}})
    refused(path, r"`value` must have fields that a.picky takes. Got: MoodError$")


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.posse"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("posse.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("posse.json", "{}")
    refused(path, "each name once. Got posse.json, posse.json")


def test_bombs_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.posse"
    many = 2**27
    written(path, tree={"array": "a"}, a=npy(head(shape=f"({many // 8},)"), bytes(many)))
    assert path.stat().st_size < many / 500
    refused(path, r"it must take at most `most_bytes`=1000000 in memory. Got 1342\d+\.", most_bytes=10**6)
    written(path, text=" " * (MOST_TEXT + 1))
    refused(path, "posse.json in it must take at most")
    with pytest.raises(ValueError, match=r"`most_bytes` of load must be an integer of at least 1. Got 0"):
        load(path, most_bytes=0)


def test_a_file_that_claims_more_than_it_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.posse"
    save(np.zeros(2), path)
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("array-0.npy").file_size
    content = path.read_bytes()
    start = content.rindex(b"PK\x01\x02")
    claimed = struct.pack("<II", 2**31, 2**31)
    assert content[start + 20 : start + 28] == struct.pack("<II", size, size)
    path.write_bytes(content[: start + 20] + claimed + content[start + 28 :])
    refused(path, r"its \d+ bytes must be enough for what it holds. Got 21474")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_files_are_refused_or_come_back_equal(compression: int, tmp_path: Path) -> None:
    value = {"state": StageState("refine", 1, COUNTS, BASIS), "policy": E2TC(rank=2), "seeds": (1, math.inf)}
    path, rng = tmp_path / "value.posse", np.random.default_rng(0)
    save(value, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    whole, refusals = path.read_bytes(), 0
    for number in range(400):
        damaged = bytearray(whole)
        if number % 4 == 0:
            del damaged[int(rng.integers(len(whole))) :]
        for _ in range(int(rng.integers(1, 4)) if damaged else 0):
            damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            found = load(path)
        except ValueError:
            refusals += 1
        else:
            assert same(found, value)
    assert refusals > 200


def test_damaged_trees_are_refused_or_loaded() -> None:
    """Without checksums: any change of the text is refused as a ValueError, or is another value."""
    tree, arrays = encode([StageState("refine", 1, COUNTS, BASIS), *CONFIGURATIONS[:12], math.nan])
    text, rng, refusals = json.dumps(tree), np.random.default_rng(0), 0
    for _ in range(400):
        damaged = list(text)
        damaged[int(rng.integers(len(text)))] = str(rng.choice(list('0e"[]{}:,-xa')))
        try:
            decode(json.loads("".join(damaged)), arrays)
        except ValueError:
            refusals += 1
    assert refusals > 200


# Files of every format that was released

# What files of each name hold. A value whose file was released stays as it is; new ones get new names.
GOLDEN_VALUES: dict[str, Any] = {
    "plain": [None, True, -3, 2**70, 0.1, -0.0, math.inf, -math.inf, math.nan, "é", (1,), {"a": []}],
    "arrays": (
        np.array([[0.1, -0.0], [math.nan, math.inf]]),
        np.array([0.1], dtype=np.float32),
        np.arange(3, dtype=np.int64),
        np.array(True),
        np.zeros((2, 0)),
        np.arange(6.0).reshape(2, 3).T,
    ),
    "schedules-and-rules": [
        *(DoublyExponential(), Geometric(first=3, ratio=1.7), Every(7), At((3, 8))),
        *(Greedy(), Thompson(scale=0.1), UCB(scale=0.3)),
    ],
    "estimators": [
        *(Ridge(), Ridge(penalty=0.1), OracleBasis(basis=BASIS, penalty=2.0)),
        GaussianPrior(mean=np.ones(2), covariance=np.diag([0.1, 0.0]), noise=0.3),
        LowRank(rank=3, penalty=0.1, n_starts=2),
        FactorPrior(rank=2, mean="learned", degrees=math.inf, hard=True),
        *(MethodOfMoments(), PairedMoments(), TaskSpectral()),
    ],
    "policies": [
        *(
            Random(),
            PEGE(),
            OracleCommit(basis=BASIS, n_refine=6),
            OracleGreedy(BASIS),
            OracleThompson(BASIS),
        ),
        E2TC(rank=2, exponent=1.5, n_explore=9, n_refine=8, subspace=TaskSpectral()),
        LearningPolicy(estimator=Ridge(), rule=Thompson(scale=2.0), schedule=At((5,)), memory=0.9),
        *(MLinGreedy(3, penalty=0.1), NaiveGreedy(penalty=0.5)),
        *(IndependentGreedy(schedule=Every(3)), IndependentThompson(scale=0.5), IndependentUCB(scale=0.5)),
        *(
            SharedGreedy(rank=2, memory=0.99),
            SharedThompson(scale=0.5),
            SharedUCB(rank=1, memory="epoch", scale=2.0),
        ),
        IndependentGreedy(memory=Fading(0.9, by="clock"), prompt=True),
    ],
    "statistics": [
        COUNTS,
        GramStatistics.of(np.ones((1, 2, 3)), np.ones((1, 2))),
        Fading(0.5).of(np.ones((2, 2, 2)), np.ones((2, 2))),
        MomentTotals(np.array([[0.1, -0.0]])),
        MomentStatistics(COUNTS, np.eye(2)),
    ],
    "estimates": [
        Estimate(np.eye(2), basis=np.zeros((2, 0)), certificate=Certificate(1.0, 0.1, 2, True)),
        FactorModel(np.eye(2), -math.inf, np.zeros(3), np.zeros(2)),
        MovedEstimate.of(Beliefs(np.eye(2), np.ones((2, 2, 2)), np.ones(2))),
    ],
    "states": [
        StageState("refine", 1, COUNTS, BASIS),
        CycleState(2, MomentTotals(np.ones((2, 2)))),
        LearningState(COUNTS, Estimate(np.eye(2))),
    ],
    "posteriors": [
        KnownPosterior(np.eye(2)[None]),
        RidgePosterior(COUNTS, np.zeros((2, 2)), np.ones(2), 1.0),
        InBasis(BASIS, np.zeros((2, 2)), RidgePosterior(COUNTS, np.zeros((2, 2)), np.ones(2), 1.0)),
        GaussianPosterior(np.eye(2), np.ones((2, 2, 2)), np.zeros(2), 0.5),
        Units(0, 3),
    ],
    "learner": LearnerState(
        SharedThompson(floor=0.01),
        LearningState(COUNTS, Estimate(np.eye(2))),
        np.eye(2),
        np.ones((2, 2, 2)),
        np.ones(2),
        COUNTS,
        0.5,
        np.array([3.0, 3.0]),
        np.array([False, True]),
        ("north", "south"),
        2.0,
        math.inf,
    ),
    "model": [
        ENCODER,
        Model(
            estimate=Estimate(np.eye(2), posterior=KnownPosterior(np.ones((2, 2, 2)))),
            statistics=COUNTS,
            encoder=Encoder(columns=(NumberColumn(name="price"),)),
            tasks=("north", "south"),
            task="shop",
            reward="sold",
            arm=None,
            account=ACCOUNT,
        ),
    ],
    "actions": [
        FiniteActions(np.ones((1, 2, 3, 2)), np.ones((1, 2, 3), dtype=bool)),
        PooledActions(np.ones((3, 2), dtype=np.float32), np.zeros((1, 2, 2), dtype=np.int64)),
        EllipsoidActions(Ellipsoids(np.eye(2)[None], np.eye(2)[None], 1.0, 2), n_rounds=7),
    ],
}
STORED = sorted(GOLDEN.glob("format-*/*.posse"))


def test_every_kind_of_value_is_stored_in_the_present_format() -> None:
    assert {path.stem for path in STORED if path.parent.name == f"format-{FORMAT}"} == set(GOLDEN_VALUES)


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_files_of_every_format_load(path: Path) -> None:
    assert same(load(path), GOLDEN_VALUES[path.stem])


@pytest.mark.parametrize("name", GOLDEN_VALUES)
def test_the_present_format_is_written_as_it_was(name: str, tmp_path: Path) -> None:
    save(GOLDEN_VALUES[name], tmp_path / "new.posse")
    stored = GOLDEN / f"format-{FORMAT}" / f"{name}.posse"
    with zipfile.ZipFile(tmp_path / "new.posse") as new, zipfile.ZipFile(stored) as old:
        assert new.namelist() == old.namelist()
        for member in new.namelist()[1:]:
            assert new.read(member) == old.read(member)
        assert contains(*(json.loads(some.read("posse.json"))["value"] for some in (new, old)))


def contains(new: Any, old: Any) -> bool:
    """Return whether a tree is another, or that and fields that were added since."""
    if isinstance(old, dict):
        return set(old) <= set(new) and all(contains(new[name], old[name]) for name in old)
    if isinstance(old, list):
        return len(old) == len(new) and all(map(contains, new, old))
    return bool(new == old)


def test_fields_that_were_added_with_a_default_may_be_missing(tmp_path: Path) -> None:
    tree = {"class": "FactorPrior", "fields": {"rank": 3}}
    assert load(written(tmp_path / "older.posse", tree=tree)) == FactorPrior(rank=3)


def write_golden() -> None:
    """Write the files of the present format that are not there yet."""
    for name, value in GOLDEN_VALUES.items():
        path = GOLDEN / f"format-{FORMAT}" / f"{name}.posse"
        if not path.exists():
            save(value, path)
            print(path)


if __name__ == "__main__":
    write_golden()
