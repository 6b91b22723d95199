"""Which classes may stand in a file, and by which names: posse's own, and those that were registered."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, TypeVar

# Posse's own classes, and the modules that hold them. Files hold these names: one that was released stays.
SHIPPED = {
    "FiniteActions": "posse.core.actions",
    "PooledActions": "posse.core.actions",
    "Ellipsoids": "posse.core.actions",
    "EllipsoidActions": "posse.core.actions",
    "Certificate": "posse.core.estimate",
    "Estimate": "posse.core.estimate",
    "Fading": "posse.core.fading",
    "FadingStatistics": "posse.core.fading",
    "LearnerState": "posse.core.learner",
    "Beliefs": "posse.core.posterior",
    "KnownPosterior": "posse.core.posterior",
    "GramStatistics": "posse.core.statistics",
    "MomentTotals": "posse.core.statistics",
    "FactorPrior": "posse.estimators.factor_prior.estimator",
    "FactorEstimate": "posse.estimators.factor_prior.estimator",
    "FactorModel": "posse.estimators.factor_prior.evidence",
    "FactorPosterior": "posse.estimators.factor_prior.posterior",
    "Units": "posse.estimators.factor_prior.units",
    "GaussianPrior": "posse.estimators.gaussian_prior",
    "GaussianPosterior": "posse.estimators.gaussian_prior",
    "LowRank": "posse.estimators.low_rank.estimator",
    "MomentStatistics": "posse.estimators.moments",
    "MethodOfMoments": "posse.estimators.moments",
    "PairedMoments": "posse.estimators.moments",
    "TaskSpectral": "posse.estimators.moments",
    "Ridge": "posse.estimators.ridge",
    "RidgeEstimate": "posse.estimators.ridge",
    "RidgePosterior": "posse.estimators.ridge",
    "OracleBasis": "posse.estimators.ridge",
    "InBasis": "posse.estimators.ridge",
    "E2TC": "posse.policies.explore_commit",
    "PEGE": "posse.policies.explore_commit",
    "OracleCommit": "posse.policies.explore_commit",
    "StageState": "posse.policies.explore_commit",
    "CycleState": "posse.policies.explore_commit",
    "LearningPolicy": "posse.policies.learning",
    "LearningState": "posse.policies.learning",
    "MovedEstimate": "posse.policies.learning",
    "MLinGreedy": "posse.policies.presets",
    "NaiveGreedy": "posse.policies.presets",
    "IndependentGreedy": "posse.policies.presets",
    "IndependentThompson": "posse.policies.presets",
    "IndependentUCB": "posse.policies.presets",
    "OracleGreedy": "posse.policies.presets",
    "OracleThompson": "posse.policies.presets",
    "SharedGreedy": "posse.policies.presets",
    "SharedThompson": "posse.policies.presets",
    "SharedUCB": "posse.policies.presets",
    "Random": "posse.policies.random",
    "Greedy": "posse.policies.rules",
    "Thompson": "posse.policies.rules",
    "UCB": "posse.policies.rules",
    "DoublyExponential": "posse.policies.schedules",
    "Geometric": "posse.policies.schedules",
    "Every": "posse.policies.schedules",
    "At": "posse.policies.schedules",
}

_REGISTERED: dict[str, type[Any]] = {}
_NAMES: dict[type[Any], str] = {}

Class = TypeVar("Class", bound=type[Any])


def register(cls: Class, name: str | None = None) -> Class:
    """Let a dataclass of your own stand in files that `posse.save` writes and `posse.load` reads.

    Loading imports nothing that a file names, so a class has to be registered before a file that holds it
    is loaded. Under several names, files with any of them are read, and the last one is written.

    Parameters
    ----------
    cls : dataclass
        Rebuilt by a call with its fields by keyword.
    name : str, optional
        What files call it; "module:qualname" by default. With another name it can move to another module.

    Returns
    -------
    type
        The class, so that `register` can be used as a decorator.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @register
    ... @dataclass(frozen=True)
    ... class Steps:
    ...     rounds: tuple[int, ...]
    >>> register(Steps, name="shop.Steps") is Steps
    True
    """
    if not (isinstance(cls, type) and is_dataclass(cls)):
        raise ValueError(f"`cls` of register must be a dataclass. Got {cls!r}.")
    given, own = parts_of(cls), {part.name for part in fields(cls)}
    if foreign := [part for part in given if part not in own]:
        raise ValueError(
            f"{full_name(cls)} must be made from its fields alone to be registered. Got {foreign[0]!r}."
        )
    name = full_name(cls) if name is None else name
    if not (isinstance(name, str) and name) or name in SHIPPED:
        raise ValueError(f"`name` of register must be a string that posse does not use. Got {name!r}.")
    holder = _REGISTERED.get(name, cls)
    if full_name(holder) != full_name(cls):  # equal where a module or a cell of a notebook was run again
        raise ValueError(f"`name` of register must be free. Got {name!r}, which is {full_name(holder)}.")
    _REGISTERED[name], _NAMES[cls] = cls, name
    return cls


def class_of(name: str) -> type[Any] | None:
    """Return the class that files call `name`, None if there is none: posse's own, or a registered one."""
    if name in SHIPPED:
        found: type[Any] = getattr(import_module(SHIPPED[name]), name)
        return found
    return _REGISTERED.get(name)


def name_of(cls: type[Any]) -> str | None:
    """Return what files call a class, None if it may not stand in one, whatever its parents are."""
    name = cls.__qualname__
    if SHIPPED.get(name) == cls.__module__ and class_of(name) is cls:
        return name
    return _NAMES.get(cls)


def full_name(thing: Any) -> str:
    """Return where a class or function is defined, as "module:qualname"."""
    return f"{getattr(thing, '__module__', None)}:{getattr(thing, '__qualname__', type(thing).__qualname__)}"


def parts_of(cls: type[Any]) -> tuple[str, ...]:
    """Return what a class is made from: the parameters of its constructor, each an attribute of that name.

    Of a dataclass these are the fields that are not computed.
    """
    return tuple(inspect.signature(cls).parameters)
