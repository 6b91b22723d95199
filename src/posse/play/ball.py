"""Thompson sampling by a mixture on ellipsoids, all rounds of a task in one compiled loop."""

from __future__ import annotations

from functools import partial

import numpy as np

from posse.core.protocols import Policy, Problem
from posse.core.statistics import GramStatistics
from posse.numerics.checks import Array, IntArray
from posse.numerics.compiled import compiled
from posse.policies import MixtureThompson
from posse.problems import EllipsoidProblem

# A component this many nats less likely than the likeliest is never drawn, nor kept up to date.
NEVER = 30.0


def play_ball(
    problem: Problem,
    policy: Policy,
    marks: IntArray,
    noise_rng: np.random.Generator,
    rng: np.random.Generator,
) -> tuple[Array, GramStatistics] | None:
    """Return the regret of tasks on ellipsoids at some rounds, (m, T), and the policy's last state.

    None, if the policy is not `MixtureThompson` or the problem no `EllipsoidProblem`. The law of the
    play is that of rounds one by one; a component's posterior is moved by each reward, and not made anew.

    Parameters
    ----------
    problem : Problem
    policy : Policy
    marks : (m,)
        Rounds, the last of which is the horizon.
    noise_rng, rng : numpy Generators
        Of the rewards' noise and of the policy's draws.
    """
    if type(policy) is not MixtureThompson or type(problem) is not EllipsoidProblem:
        return None
    horizon, (n_tasks, dim) = int(marks[-1]), problem.theta.shape
    policy.init(n_tasks, dim)  # its prior may have other features
    prior, start = policy.prior, policy.prior.unseen
    noise = problem.noise(horizon, noise_rng)
    best, shapes = problem.ellipsoids.support(problem.theta), problem.ellipsoids.shapes
    regret = np.zeros((len(marks), n_tasks))
    gram, moment, square = np.zeros((n_tasks, dim, dim)), np.zeros((n_tasks, dim)), np.zeros(n_tasks)
    for task in range(n_tasks):
        own = shapes[min(task, len(shapes) - 1)]
        with np.errstate(divide="ignore"):
            logs = np.log(prior.weights)
        square[task] = thompson_rounds(
            problem.theta[task],
            own,
            problem.shapes is None,
            problem.ellipsoids.inner_radius,
            best[task],
            np.ascontiguousarray(noise[:, task]),
            marks,
            start.means[0].copy(),
            np.ascontiguousarray(start.roots[0]).copy(),
            prior.noises,
            logs,
            policy.scale,
            rng,
            regret[:, task],
            gram[task],
            moment[task],
        )
    return regret, GramStatistics(gram, moment, square, np.full(n_tasks, float(horizon)))


@partial(compiled, any_order=True)
def thompson_rounds(
    theta: Array,
    shape: Array,
    ball: bool,
    radius: float,
    best: float,
    noise: Array,
    marks: IntArray,
    means: Array,
    roots: Array,
    noises: Array,
    logs: Array,
    scale: float,
    rng: np.random.Generator,
    regret: Array,
    gram: Array,
    moment: Array,
) -> float:
    """Play all rounds of one task, and return the sum of its squared rewards.

    Parameters
    ----------
    theta : (d,)
        The truth.
    shape : (d, d)
        Q of the set x'Q^-1 x <= 1; of a ball it is I.
    ball : bool
        Whether it is.
    radius : float
        Of the largest sphere inside the set, on which is played what a draw of 0 leaves open.
    best : float
        The largest mean reward.
    noise : (n,)
    marks : (m,)
        Rounds after which regret is recorded.
    means, roots : (J, d) and (J, d, d)
        Of the components' posteriors; changed in place. A reward of an action x moves them by f = R'x and
        s = s2 + f'f: the mean by R f e / s for the error e, the root to R - R f f' / (s + sqrt(s2 s)).
    noises : (J,)
        s2 of each component.
    logs : (J,)
        Logarithms of the components' weights; changed in place.
    scale : float
        Of the draws.
    rng : numpy Generator
        Draws a uniform number for the component and d normal ones for theta, a round.
    regret : (m,)
        Is filled.
    gram, moment : (d, d) and (d,)
        Are added to.
    """
    n_parts, dim = means.shape
    drawn, action, along = np.empty(dim), np.empty(dim), np.empty(dim)
    normal, chances = np.empty(dim), np.empty(n_parts)
    total, square, mark = 0.0, 0.0, 0
    for n in range(len(noise)):
        most, sum_chances = logs.max(), 0.0
        for j in range(n_parts):
            chances[j] = np.exp(logs[j] - most) if logs[j] > most - NEVER else 0.0
            sum_chances += chances[j]
        left, part = rng.random() * sum_chances, 0
        while left >= chances[part] and part < n_parts - 1:
            left -= chances[part]
            part += 1
        for i in range(dim):
            normal[i] = rng.standard_normal()
        for i in range(dim):
            moved = 0.0
            for k in range(dim):
                moved += roots[part, i, k] * normal[k]
            drawn[i] = means[part, i] + scale * moved
        length = 0.0
        for i in range(dim):
            if ball:
                action[i] = drawn[i]
            else:
                action[i] = 0.0
                for k in range(dim):
                    action[i] += shape[i, k] * drawn[k]
            length += action[i] * drawn[i]
        if length == 0.0:
            for i in range(dim):
                action[i] = normal[i]
                length += (normal[i] / radius) ** 2
        mean = 0.0
        for i in range(dim):
            action[i] /= np.sqrt(length)
            mean += action[i] * theta[i]
        total += best - mean
        reward = mean + noise[n]
        square += reward * reward
        for i in range(dim):
            moment[i] += action[i] * reward
            for k in range(dim):
                gram[i, k] += action[i] * action[k]
        for j in range(n_parts):
            if logs[j] <= most - NEVER:
                logs[j] = -np.inf  # for good: its posterior is left behind from here on
                continue
            for k in range(dim):
                along[k] = 0.0
            error, spread = reward, noises[j]
            for i in range(dim):
                error -= action[i] * means[j, i]
                for k in range(dim):
                    along[k] += action[i] * roots[j, i, k]
            for k in range(dim):
                spread += along[k] * along[k]
            logs[j] -= 0.5 * (np.log(spread) + error * error / spread)
            gain = 1.0 / (spread + np.sqrt(noises[j] * spread))
            for i in range(dim):
                moved = 0.0
                for k in range(dim):
                    moved += roots[j, i, k] * along[k]
                means[j, i] += moved * error / spread
                moved *= gain
                for k in range(dim):
                    roots[j, i, k] -= moved * along[k]
        if mark < len(marks) and n + 1 == marks[mark]:
            regret[mark] = total
            mark += 1
    return square
