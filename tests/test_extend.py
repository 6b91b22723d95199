"""Adding a policy, a problem and a figure, as the how-to page does it, on a copy of the sources."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest
from docs.pages import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "howto" / "extend.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python title=\"src/(.*?)\"\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
# Where an entry goes, and what it imports.
REGISTRIES = {
    "posse/lab/named_policies.py": ("POLICIES", "from posse.policies.restless import Restless"),
    "posse/lab/named_problems.py": ("PROBLEMS", "from posse.problems.rationed import RationedArms"),
    "posse/paper/registry.py": ("FIGURES", "from posse.paper import rationed"),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources with what the page adds: three files, three entries."""
    copy = tmp_path_factory.mktemp("src")
    shutil.copytree(ROOT / "src" / "posse", copy / "posse", ignore=shutil.ignore_patterns("__pycache__"))
    added = dict(BLOCK.findall(PAGE))
    assert len(added) == 6
    for name, code in added.items():
        path = copy / name
        if name not in REGISTRIES:
            assert not path.exists()
            path.write_text(code, encoding="utf-8")
            continue
        code = indent(code, 8 * " ")
        registry, imported = REGISTRIES[name]
        opening = re.compile(rf"(^{registry}: .*?\n    \{{\n)", re.MULTILINE)
        text, count = opening.subn(rf"{imported}\n\1{code}", path.read_text())
        assert count == 1
        path.write_text(text, encoding="utf-8")
    return copy


def posse(sources: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from posse.cli import main; main()", *arguments],
        env={**os.environ, "PYTHONPATH": str(sources), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_policy_with_a_name_is_played_listed_and_drawn(sources: Path, tmp_path: Path) -> None:
    listed = posse(sources, "list").stdout
    assert "restless(share)" in listed
    assert "Of the rounds it plays anything (default: 0.1)." in listed
    policies = ("restless(share=0)", "restless", "restless(share=0.9)")
    typed = [word for policy in policies for word in ("--policy", policy)]
    plot = str(tmp_path / "restless.svg")
    small = ("simulate", "--tasks", "6", "--dim", "5", "--rounds", "200", "--seeds", "3", "--plot", plot)
    done = posse(sources, *small, *typed, "--json")
    assert done.returncode == 0, done.stderr
    assert [row["policy"] for row in json.loads(done.stdout)["rows"]] == list(policies)
    drawn = Path(plot).read_text(encoding="utf-8")
    assert "Restless, share = 0.9" in drawn
    wrong = posse(sources, "simulate", "--policy", "restless(shar=0.5)")
    assert wrong.returncode == 2
    assert wrong.stderr.strip() in PAGE
    sphere = posse(sources, "simulate", "--problem", "ellipsoid", "--policy", "restless")
    assert "Restless is made for finite action sets, and the problem ellipsoid has" in sphere.stderr
    check = "from posse import LearningPolicy, Ridge; from posse.testing import check_policy; "
    check += "from posse.policies.restless import Restless; "
    check += "check_policy(LearningPolicy(estimator=Ridge(), rule=Restless()))"
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    subprocess.run([sys.executable, "-c", check], env=environment, check=True)


def test_a_problem_with_a_name_is_played_and_its_options_are_named(sources: Path) -> None:
    assert "arms that are often sold out" in posse(sources, "list").stdout
    small = ("simulate", "--problem", "rationed", "--tasks", "6", "--dim", "5", "--rounds", "60")
    regrets = []
    for offered in ("0.5", "0.9"):
        done = posse(
            sources, *small, "--seeds", "2", "--offered", offered, "--policy", "independent-greedy", "--json"
        )
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["settings"]["offered"] == float(offered)
        regrets.append(answer["rows"][0]["regret_per_task"])
    assert regrets[0] < regrets[1]  # fewer arms, less to lose
    wrong = posse(sources, *small, "--offered", "2")
    assert wrong.returncode == 2
    assert wrong.stderr.strip() in PAGE
    taught = posse(sources, "simulate", "--help").stdout
    assert "Probability that an arm is on offer (default: 0.5)." in " ".join(taught.replace("│", " ").split())
    check = "from posse.testing import check_problem; from posse.problems.rationed import RationedArms; "
    check += "check_problem(RationedArms.draw(n_tasks=3, dim=4, rank=2, seed=0))"
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    subprocess.run([sys.executable, "-c", check], env=environment, check=True)


def test_a_figure_with_a_name_is_run_drawn_and_decided(sources: Path, tmp_path: Path) -> None:
    done = posse(sources, "reproduce", "rationed", "--seeds", "4", "--jobs", "2", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (claim,) = json.loads((tmp_path / "claims.json").read_text())["rationed"]
    assert claim["verdict"] == "holds"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "With half of the arms sold out, sharing still pays." in page
    assert 'data-chart="rationed-regret-by-round"' in page
    assert (tmp_path / "rationed" / "regret-by-round.svg").exists()
