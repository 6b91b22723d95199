"""Rules of the house: small functions, docstrings that stand alone, one version, few dependencies."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from proofs.__main__ import PROOFS
from radon.complexity import cc_visit

import posse

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "src").rglob("*.py"))
MOST_LINES, MOST_BODY, MOST_COMPLEXITY = 400, 60, 12
# Openings that lean on something else than the function they stand in.
LEANING = re.compile(r"^((Return|Make|Draw|Fill) )?(the same|some|what follows|the others?)\b", re.IGNORECASE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Function):
            yield node


def is_kernel(function: Function) -> bool:
    return any("compiled" in ast.unparse(decorator) for decorator in function.decorator_list)


def body_lines(function: Function) -> int:
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return statements[-1].end_lineno - statements[0].lineno + 1 if statements else 0  # type: ignore[operator]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_modules_and_functions_are_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    kernels = {function.name for function in functions(path) if is_kernel(function)}
    for function in functions(path):
        assert function.name in kernels or body_lines(function) <= MOST_BODY, function.name
    for block in cc_visit(path.read_text(encoding="utf-8")):
        if block.name not in kernels and block.letter != "C":
            assert block.complexity <= MOST_COMPLEXITY, f"{block.name}: {block.complexity}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_docstrings_stand_alone(path: Path) -> None:
    for function in functions(path):
        text = ast.get_docstring(function) or ""
        assert not LEANING.match(text), f"{function.name}: {text.splitlines()[0]}"


def test_the_version_is_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/posse/__init__.py"
    for name in ("README.md", "CITATION.cff", "docs/index.md", "mkdocs.yml"):
        assert posse.__version__ in (ROOT / name).read_text(encoding="utf-8"), name


def test_dependencies_are_few_and_extras_are_named_after_what_they_are_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {re.split(r"[<>=\[]", requirement)[0] for requirement in project["dependencies"]}
    assert core == {"numpy", "scipy", "numba", "threadpoolctl", "typer", "rich"}
    extras = {"lab", "report", "dask", "logs", "sklearn", "postgres", "serve", "spark", "all"}
    assert set(project["optional-dependencies"]) == extras
    named = set(re.findall(r"extra\(\"(\w+)\"\)", "".join(path.read_text() for path in MODULES)))
    assert named <= set(project["optional-dependencies"])


def test_the_workflow_runs_what_the_readme_says_on_every_supported_python() -> None:
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    assert re.findall(r'"(3\.\d+)"', workflow) == ["3.11", "3.12", "3.13"]
    assert ".ci/run" in workflow
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_proof_has_a_stored_result_with_its_date_and_commit() -> None:
    for name in PROOFS:
        found = json.loads((ROOT / "proofs" / "results" / f"{name}.json").read_text(encoding="utf-8"))
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
        assert re.fullmatch(r"[0-9a-f]{40}", found["commit"])
        assert found["seconds"] > 0
