"""What a live agent promises is said with the numbers of the proofs; its default is what they found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from docs.pages import ROOT
from proofs.__main__ import RESULTS
from proofs.default_policy import CANDIDATES

from posse.live.settings import Settings

PAGE = (ROOT / "docs" / "explanation" / "live-contract.md").read_text(encoding="utf-8")


def result(name: str) -> dict[str, Any]:
    """What a proof has found."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_late_rewards_cost_what_the_proof_found() -> None:
    found = result("live")["late rewards"]["Shared()"]
    for problem, one in found.items():
        row = f"| {problem} | {one['ratio']:.3f} ± {one['+-']:.3f} | {one['worst seed']:.3f} |"
        assert row in PAGE, row
        assert one["ratio"] <= 1.1


def test_alarms_are_raised_as_often_as_the_proof_found() -> None:
    found = result("live")["sample-ratio alarms"]
    runs = (
        f"{found['runs']:,} runs of {found['decisions']:,} decisions, looked at every {found['looks every']}"
    )
    assert runs in " ".join(PAGE.split()), runs
    for error, one in found["errors"].items():
        median, most = (
            "" if one[f"decisions, {which}"] is None else f"{one[f'decisions, {which}']:,}"
            for which in ("median", "most")
        )
        row = f"| {error} | {one['raised']:.1%} | {median} | {most} |".replace("|  |  |", "| | |")
        assert row in PAGE, row
    assert found["errors"]["none"]["raised"] <= 0.05
    assert min(one["raised"] for error, one in found["errors"].items() if error != "none") >= 0.99


@pytest.mark.parametrize("proof", ["default-policy", "default-contenders"])
def test_the_tables_of_policies_are_what_the_proofs_found(proof: str) -> None:
    found = result(proof)
    assert f"{found['scenarios']} scenarios, {found['rounds']} rounds" in " ".join(PAGE.split())
    for name, one in found["policies"].items():
        ratio = f"{one['ratio to Shared(scale=2)']:.2f} ± {one['+-']:.2f}"
        worst = "{:.2f}, {}".format(*one["worst ratio"])
        excess = f"{one['excess variance']:,.1f}" if one["floor"] else "unbounded"
        cells = [one["floor"], f"{one['loss, random = 1']:.3f}", ratio, worst, excess]
        if name == "Shared(scale=2)":
            cells[2:4] = ["1", ""]
        row = " | ".join([f"| `{name.removesuffix(', no floor')}`", *map(str, cells)])
        assert row.replace("|  |", "| |") in PAGE, row


def test_the_default_policy_loses_least_of_those_whose_logs_can_be_evaluated_and_did_so_again() -> None:
    for proof in ("default-policy", "default-contenders"):
        policies = result(proof)["policies"]
        evaluable = {name: one for name, one in policies.items() if one["least propensity"] >= 0.005}
        least = min(evaluable, key=lambda name: float(evaluable[name]["loss, random = 1"]))
        assert CANDIDATES[least] == (Settings().policy, Settings().floor)
