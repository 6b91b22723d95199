"""posse: many bandits, one representation.

The public names are loaded when they are first used, so that `import posse` is light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posse.core.actions import (
        EllipsoidActions as EllipsoidActions,
    )
    from posse.core.actions import (
        FiniteActions as FiniteActions,
    )
    from posse.core.codec import (
        load as load,
    )
    from posse.core.codec import (
        save as save,
    )
    from posse.core.encoder import (
        Encoder as Encoder,
    )
    from posse.core.episode import (
        Episode as Episode,
    )
    from posse.core.estimate import (
        Estimate as Estimate,
    )
    from posse.core.fading import (
        Fading as Fading,
    )
    from posse.core.learner import (
        Learner as Learner,
    )
    from posse.core.model import (
        Model as Model,
    )
    from posse.core.shipped import (
        register as register,
    )
    from posse.core.statistics import (
        GramStatistics as GramStatistics,
    )
    from posse.estimators import (
        FactorPrior as FactorPrior,
    )
    from posse.estimators import (
        GaussianPrior as GaussianPrior,
    )
    from posse.estimators import (
        LowRank as LowRank,
    )
    from posse.estimators import (
        MethodOfMoments as MethodOfMoments,
    )
    from posse.estimators import (
        MixturePrior as MixturePrior,
    )
    from posse.estimators import (
        OracleBasis as OracleBasis,
    )
    from posse.estimators import (
        PairedMoments as PairedMoments,
    )
    from posse.estimators import (
        Ridge as Ridge,
    )
    from posse.estimators import (
        TaskSpectral as TaskSpectral,
    )
    from posse.live import (
        Agent as Agent,
    )
    from posse.play import (
        Trace as Trace,
    )
    from posse.play import (
        simulate as simulate,
    )
    from posse.play import (
        simulate_all as simulate_all,
    )
    from posse.policies import (
        E2TC as E2TC,
    )
    from posse.policies import (
        PEGE as PEGE,
    )
    from posse.policies import (
        UCB as UCB,
    )
    from posse.policies import (
        At as At,
    )
    from posse.policies import (
        DoublyExponential as DoublyExponential,
    )
    from posse.policies import (
        Every as Every,
    )
    from posse.policies import (
        Geometric as Geometric,
    )
    from posse.policies import (
        Greedy as Greedy,
    )
    from posse.policies import (
        IndependentGreedy as IndependentGreedy,
    )
    from posse.policies import (
        IndependentThompson as IndependentThompson,
    )
    from posse.policies import (
        IndependentUCB as IndependentUCB,
    )
    from posse.policies import (
        LearningPolicy as LearningPolicy,
    )
    from posse.policies import (
        MLinGreedy as MLinGreedy,
    )
    from posse.policies import (
        NaiveGreedy as NaiveGreedy,
    )
    from posse.policies import (
        OracleCommit as OracleCommit,
    )
    from posse.policies import (
        OracleGreedy as OracleGreedy,
    )
    from posse.policies import (
        OracleThompson as OracleThompson,
    )
    from posse.policies import (
        Random as Random,
    )
    from posse.policies import (
        Shared as Shared,
    )
    from posse.policies import (
        SharedGreedy as SharedGreedy,
    )
    from posse.policies import (
        SharedThompson as SharedThompson,
    )
    from posse.policies import (
        SharedUCB as SharedUCB,
    )
    from posse.policies import (
        Thompson as Thompson,
    )
    from posse.problems import (
        ClassPairs as ClassPairs,
    )
    from posse.problems import (
        Clicks as Clicks,
    )
    from posse.problems import (
        EllipsoidProblem as EllipsoidProblem,
    )
    from posse.problems import (
        GaussianProblem as GaussianProblem,
    )
    from posse.problems import (
        UnevenTasks as UnevenTasks,
    )
    from posse.problems.images import (
        ImageSet as ImageSet,
    )
    from posse.problems.images import (
        load_images as load_images,
    )

__version__ = "0.1.0"

# Where the public names are at home.
_HOMES = {
    "EllipsoidActions": "posse.core.actions",
    "FiniteActions": "posse.core.actions",
    "load": "posse.core.codec",
    "save": "posse.core.codec",
    "Encoder": "posse.core.encoder",
    "Episode": "posse.core.episode",
    "Estimate": "posse.core.estimate",
    "Fading": "posse.core.fading",
    "Learner": "posse.core.learner",
    "Model": "posse.core.model",
    "register": "posse.core.shipped",
    "GramStatistics": "posse.core.statistics",
    "FactorPrior": "posse.estimators",
    "GaussianPrior": "posse.estimators",
    "LowRank": "posse.estimators",
    "MethodOfMoments": "posse.estimators",
    "MixturePrior": "posse.estimators",
    "OracleBasis": "posse.estimators",
    "PairedMoments": "posse.estimators",
    "Ridge": "posse.estimators",
    "TaskSpectral": "posse.estimators",
    "Agent": "posse.live",
    "Trace": "posse.play",
    "simulate": "posse.play",
    "simulate_all": "posse.play",
    "At": "posse.policies",
    "DoublyExponential": "posse.policies",
    "E2TC": "posse.policies",
    "Every": "posse.policies",
    "Geometric": "posse.policies",
    "Greedy": "posse.policies",
    "IndependentGreedy": "posse.policies",
    "IndependentThompson": "posse.policies",
    "IndependentUCB": "posse.policies",
    "LearningPolicy": "posse.policies",
    "MLinGreedy": "posse.policies",
    "NaiveGreedy": "posse.policies",
    "OracleCommit": "posse.policies",
    "OracleGreedy": "posse.policies",
    "OracleThompson": "posse.policies",
    "PEGE": "posse.policies",
    "Random": "posse.policies",
    "Shared": "posse.policies",
    "SharedGreedy": "posse.policies",
    "SharedThompson": "posse.policies",
    "SharedUCB": "posse.policies",
    "Thompson": "posse.policies",
    "UCB": "posse.policies",
    "ClassPairs": "posse.problems",
    "Clicks": "posse.problems",
    "EllipsoidProblem": "posse.problems",
    "GaussianProblem": "posse.problems",
    "UnevenTasks": "posse.problems",
    "ImageSet": "posse.problems.images",
    "load_images": "posse.problems.images",
}

__all__ = [
    "E2TC",
    "PEGE",
    "UCB",
    "Agent",
    "At",
    "ClassPairs",
    "Clicks",
    "DoublyExponential",
    "EllipsoidActions",
    "EllipsoidProblem",
    "Encoder",
    "Episode",
    "Estimate",
    "Every",
    "FactorPrior",
    "Fading",
    "FiniteActions",
    "GaussianPrior",
    "GaussianProblem",
    "Geometric",
    "GramStatistics",
    "Greedy",
    "ImageSet",
    "IndependentGreedy",
    "IndependentThompson",
    "IndependentUCB",
    "Learner",
    "LearningPolicy",
    "LowRank",
    "MLinGreedy",
    "MethodOfMoments",
    "MixturePrior",
    "Model",
    "NaiveGreedy",
    "OracleBasis",
    "OracleCommit",
    "OracleGreedy",
    "OracleThompson",
    "PairedMoments",
    "Random",
    "Ridge",
    "Shared",
    "SharedGreedy",
    "SharedThompson",
    "SharedUCB",
    "TaskSpectral",
    "Thompson",
    "Trace",
    "UnevenTasks",
    "load",
    "load_images",
    "register",
    "save",
    "simulate",
    "simulate_all",
]


def __getattr__(name: str) -> Any:
    """Load a public name from where it is at home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'posse' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
