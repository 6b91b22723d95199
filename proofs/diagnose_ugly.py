"""How often a diagnosis of the ugly example log is right: with gaps, texts for numbers and unequal shops."""

from __future__ import annotations

from typing import Any

import numpy as np

from posse.core.encoder import Encoder
from posse.logs.answer import answer
from posse.logs.contenders import fit_two
from posse.logs.example import example_log
from posse.logs.held_out import squared_errors, total
from posse.logs.parts import summarise_parts
from posse.logs.scan import Roles
from posse.logs.summarise import summarise
from proofs.diagnose import Outcome, cells

SHOPS, ROWS, FRESH_ROWS = 40, 6_000, 20_000


def one(seed: int, *, related: bool, arm: str | None) -> Outcome:
    """Return verdict, rank, gain with its ends, and the gain on fresh rows, of one log.

    The last is known where arms are named. Else rewards are not linear in the features, as an offer changes
    what other features are worth, and no fresh row tells excess error from what the model cannot say.
    """
    log = example_log(shops=SHOPS, rows=ROWS, seed=seed, unrelated=not related)
    roles = Roles(task="shop", reward="reward", arm=arm, propensity="propensity")
    summary, parts = summarise_parts(log, roles)
    constant = summary.encoder.constant
    found = answer(parts, constant)
    fresh = np.nan
    if arm is not None:
        theta = fit_two(total(parts), constant).theta
        fresh = _fresh_gain(seed, theta, summary.encoder, summary.tasks, related=related)
    gain = found.gain
    return found.verdict, found.rank, gain.value, gain.low, gain.high, fresh


def _fresh_gain(seed: int, theta: Any, encoder: Encoder, tasks: tuple[str, ...], *, related: bool) -> float:
    """Return 1 - sum(shared) / sum(alone) over excess errors of shops on fresh rows without noise or gaps."""
    fresh = example_log(shops=SHOPS, rows=FRESH_ROWS, seed=seed, unrelated=not related, clean=True)
    place = fresh.table.schema.get_field_index("reward")
    expected = fresh.table.set_column(place, "reward", [fresh.means])
    seen = summarise(expected, task="shop", reward="reward", arm="offer", encoder=encoder)
    own = seen.statistics.take([seen.tasks.index(task) for task in tasks])
    alone, shared = (
        float(np.mean(squared_errors(own, theta[name]) / own.count)) for name in ("alone", "shared")
    )
    return 1.0 - shared / alone


def prove(n_seeds: int = 100) -> dict[str, Any]:
    """Return verdicts for related and unrelated shops, with offers as named arms and as a category."""
    settings = {
        f"{'related' if related else 'unrelated'}, {'--arm offer' if arm else 'no arm'}": {
            "related": related,
            "arm": arm,
        }
        for related in (True, False)
        for arm in ("offer", None)
    }
    found = cells("diagnose-ugly", one, settings, n_seeds)
    return {"seeds": n_seeds, "shops": SHOPS, "rows": ROWS, **found}
