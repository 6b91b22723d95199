"""What a live agent promises is said with the numbers of the proofs; its default is what they found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from docs.pages import ROOT
from proofs.__main__ import RESULTS

from posse.live.settings import Settings

PAGE = (ROOT / "docs" / "explanation" / "live-contract.md").read_text(encoding="utf-8")


def result(name: str) -> dict[str, Any]:
    """What a proof has found."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_the_table_of_policies_is_what_the_proof_found() -> None:
    found = result("default-policy")
    assert f"{found['scenarios']} scenarios, {found['rounds']} rounds" in " ".join(PAGE.split())
    for name, one in found["policies"].items():
        worst, where = one["worst ratio"]
        ratio = f"{one['ratio to Shared()']:.2f} ± {one['+-']:.2f}" if name != "Shared()" else "1"
        excess = f"{one['excess variance']:,.1f}" if one["floor"] else "unbounded"
        plain = name.removesuffix(", no floor")
        row = f"| `{plain}` | {one['floor']:g} | {one['loss, random = 1']:.3f} | {ratio} |"
        row += f" {worst:.2f}, {where} | {excess} |" if name != "Shared()" else f" | {excess} |"
        assert row in PAGE, row


def test_the_default_policy_loses_least_of_those_whose_logs_can_be_evaluated() -> None:
    policies = result("default-policy")["policies"]
    evaluable = {name: one for name, one in policies.items() if one["least propensity"] >= 0.005}
    least = min(evaluable, key=lambda name: float(evaluable[name]["loss, random = 1"]))
    assert (repr(Settings().policy), Settings().floor) == (least, evaluable[least]["floor"])


@pytest.mark.parametrize("name", ["kills", "kills-postgres"])
def test_what_is_said_of_kills_was_found(name: str) -> None:
    found = result(name)
    assert (found["kills"], found["lost"], found["doubled"]) == (1000, 0, 0)
    assert f"{found['rewards']:,} rewards" in PAGE
