"""Without an extra: what needs it says so in one sentence, and what does not need it works."""

import subprocess
import sys

import pytest

LAB = ("polars", "joblib", "platformdirs")
REPORT = ("matplotlib", "bokeh", "jinja2")
DASK = ("dask", "distributed")
LOGS = ("duckdb", "pyarrow")
HIDE = "import sys; sys.modules.update(dict.fromkeys({hidden!r})); "
COMMAND = "from posse.cli import main; sys.argv = {argv!r}; main()"


def run(code: str, hidden: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    program = HIDE.format(hidden=hidden) + code
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def run_command(*arguments: str, hidden: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return run(COMMAND.format(argv=["posse", *arguments]), hidden)


@pytest.mark.parametrize(
    ("arguments", "hidden", "extra"),
    [
        (("simulate", "--rounds", "9"), LAB, "lab"),
        (("reproduce", "fig1"), LAB, "lab"),
        (("compare",), LAB, "lab"),
        (("reproduce", "fig1"), REPORT, "report"),
        (("compare", "few-tasks"), REPORT, "report"),
        (("simulate", "--engine", "dask", "--rounds", "9"), DASK, "dask"),
        (("fit", "log.csv", "--task", "shop", "--reward", "sold"), LOGS, "logs"),
        (("predict", "model.posse", "log.csv"), LOGS, "logs"),
        (("explain", "model.posse", "oslo"), LOGS, "logs"),
        (("diagnose", "log.csv", "--task", "shop", "--reward", "sold"), LOGS, "logs"),
        (("example-log", "log.csv"), LOGS, "logs"),
    ],
)
def test_a_command_without_its_extra_is_one_sentence(
    arguments: tuple[str, ...], hidden: tuple[str, ...], extra: str
) -> None:
    done = run_command(*arguments, hidden=hidden)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert any(line.startswith(f"Error: this needs {name}, which is not installed.") for name in hidden)
    assert line.endswith(f'Get it by: pip install "posse[{extra}]"')


@pytest.mark.parametrize(
    ("module", "hidden", "extra"),
    [
        ("posse.lab.grid", LAB, "lab"),
        ("posse.lab.charts", LAB, "lab"),
        ("posse.paper.registry", LAB, "lab"),
        ("posse.paper.claims", LAB, "lab"),
        ("posse.suite", LAB, "lab"),
        ("posse.viz.still", REPORT, "report"),
        ("posse.viz.interactive", REPORT, "report"),
        ("posse.viz.pages", REPORT, "report"),
        ("posse.logs", LOGS, "logs"),
        ("posse.sklearn", ("sklearn",), "sklearn"),
    ],
)
def test_a_module_without_its_extra_is_one_sentence(module: str, hidden: tuple[str, ...], extra: str) -> None:
    done = run(f"import {module}", hidden)
    assert done.stderr.splitlines()[-1].endswith(f'Get it by: pip install "posse[{extra}]"')


def test_what_needs_no_extra_works_without_any() -> None:
    everything = (*LAB, *REPORT, *DASK, *LOGS, "sklearn")
    code = (
        "import posse; from posse import *; "
        "problem = GaussianProblem.draw(n_tasks=4, dim=5, rank=2, seed=0); "
        "print(simulate(problem, SharedGreedy(), horizon=30, seed=0)); "
        "digits = load_images('digits'); "
        "pairs = ClassPairs(images=digits.images, labels=digits.labels, n_classes=3, brightest=16); "
        "print(simulate(pairs, IndependentThompson(), horizon=20, seed=0)); "
        "import posse.testing; posse.testing.check_policy(MLinGreedy(2))"
    )
    done = run(code, everything)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("<Trace of ") == 2
    assert run_command("theory", "--json", hidden=everything).returncode == 0
    assert run_command("--version", hidden=everything).returncode == 0
    taught = run_command("--help", hidden=everything)
    assert taught.returncode == 0
    assert taught.stdout.count("Not installed:") == 9
    listed = run_command("list", hidden=everything)
    assert listed.returncode == 0
    assert "shared-greedy" in listed.stdout
    assert "Figures and scenarios: this needs polars" in listed.stdout
    assert "high-rank-many" in run_command("list", hidden=REPORT).stdout
    mnist = run("from posse import load_images; load_images('mnist')", everything)
    assert mnist.stderr.splitlines()[-1].endswith('pip install "posse[lab]"')


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import posse", ("numpy", "scipy", "numba", "typer")),
        ("import posse.lab.grid", (*REPORT, "typer", "scipy.stats", "scipy.optimize", "numba")),
        ("import posse.lab.experiment", (*REPORT, "typer", "scipy.stats", "scipy.optimize", "numba")),
        ("from posse import simulate", (*LAB, *REPORT, "numba")),
        ("import posse.core.codec", (*LAB, *REPORT, "scipy", "numba", "posse.policies")),
        ("import posse.cli", ("numpy",)),
        ("import posse.lab.charts", REPORT),
        ("import posse.logs, posse.cli.fit, posse.cli.predict, posse.cli.explain", (*LAB[:2], *REPORT)),
    ],
)
def test_imports_are_light(code: str, forbidden: tuple[str, ...]) -> None:
    done = run(f"{code}; print([name for name in {forbidden!r} if name in sys.modules])", ())
    assert done.stdout.strip() == "[]", done.stderr


def test_public_names_are_all_there_and_no_others() -> None:
    import posse

    assert set(posse.__all__) <= set(dir(posse))
    for name in posse.__all__:
        assert getattr(posse, name) is not None
    with pytest.raises(AttributeError, match="module 'posse' has no attribute 'NoSuchPolicy'"):
        posse.NoSuchPolicy  # noqa: B018
