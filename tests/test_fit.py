"""From a log to a model: predictions, explanations, files, and the commands for them."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from posse import FactorPrior, GaussianPrior, GramStatistics, LowRank, Model, Ridge, load, save
from posse.cli import app
from posse.cli.explain import with_deviation
from posse.core.codec import encode
from posse.core.columns import NumberColumn
from posse.core.encoder import Encoder
from posse.logs import Predictions, Recipe, example_log, explain, fit, model_of, summarise

ROLES: dict[str, Any] = {"task": "shop", "reward": "reward", "arm": "offer", "propensity": "propensity"}
PLAIN = ["--task", "shop", "--reward", "reward", "--arm", "offer", "--propensity", "propensity"]
LOG = example_log(shops=8, rows=1500, seed=1)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120", "TERM": "dumb"})


@pytest.fixture(scope="module")
def model() -> Model:
    return fit(LOG, **ROLES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log, as CSV and Parquet, and a model of it."""
    found = tmp_path_factory.mktemp("logs")
    for ending in ("csv", "parquet"):
        LOG.write(found / f"log.{ending}")
    done = run("fit", str(found / "log.csv"), *PLAIN, "--out", str(found / "model.posse"))
    assert done.exit_code == 0, done.stderr
    return found


def columns_of(table: Any) -> dict[str, Any]:
    return {name: table.column(name).to_pylist() for name in table.column_names}


# Models


def test_a_model_is_the_estimate_of_the_summary() -> None:
    summary = summarise(LOG, **ROLES)
    model = fit(LOG, **ROLES, estimator=FactorPrior(sweeps=0))
    again = FactorPrior(sweeps=0).fit(summary.statistics)
    np.testing.assert_array_equal(model.estimate.theta, again.theta)
    np.testing.assert_array_equal(model.statistics.gram, summary.statistics.gram)
    assert (model.tasks, model.encoder, model.account) == (summary.tasks, summary.encoder, summary.account)
    assert (model.task, model.reward, model.arm) == ("shop", "reward", "offer")
    usual = model_of(summary).estimate.theta
    np.testing.assert_array_equal(usual, FactorPrior(mean="level").fit(summary.statistics).theta)


def test_an_estimator_without_a_covariance_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ValueError, match=r"`estimator` must give a covariance, as these do: FactorPrior"):
        fit("no-such-file.csv", task="shop", reward="reward", estimator=LowRank(rank=1))


# Predictions


@pytest.mark.parametrize("estimator", [FactorPrior(mean="level"), Ridge()], ids=["prior", "ridge"])
def test_predictions_are_a_loop_over_rows(estimator: Any) -> None:
    model = fit(LOG, **ROLES, estimator=estimator)
    rows = example_log(shops=9, rows=200, seed=3, clean=True).table.to_pylist()
    table = {name: [row[name] for row in rows] for name in rows[0]}
    predicted = model.predict(table)
    new = model.estimate.posterior.newcomer()  # type: ignore[union-attr]
    covariance = new.deviation[0] ** 2 * new.root[0] @ new.root[0].T
    assert 0 < sum(not known for known in predicted.known) < len(rows)
    for row, mean, deviation, known in zip(rows, *predicted, strict=True):
        x = model.encoder.encode({name: [value] for name, value in row.items()}, [row["offer"]])[0]
        assert known == (row["shop"] in model.tasks)
        theta, spread = new.theta[0], covariance
        if known:
            number = model.tasks.index(row["shop"])
            theta, spread = model.estimate.theta[number], model.estimate.covariance[number]
        assert mean == pytest.approx(x @ theta, rel=1e-9)
        assert deviation == pytest.approx(np.sqrt(x @ spread @ x), rel=1e-6)


def test_tables_are_predicted_as_frames_are_whatever_they_come_as(model: Model, folder: Path) -> None:
    kept = LOG.table.filter(pa.compute.is_valid(LOG.table.column("offer")))
    # texts in the place of numbers are for whoever reads tables
    numbers = pd.to_numeric(pd.Series(kept.column("price").to_pylist()), errors="coerce").to_numpy()
    expected = model.predict({**columns_of(kept), "price": numbers})
    whole = {ending: Predictions(model, folder / f"log.{ending}") for ending in ("csv", "parquet")}
    for predicted in (*whole.values(), Predictions(model, LOG)):
        table = predicted.table()
        assert table.column_names[:-3] == LOG.table.column_names
        assert table.num_rows == LOG.table.num_rows
        has_arm = [name is not None for name in LOG.table.column("offer").to_pylist()]
        found = table.filter(pa.array(has_arm))
        np.testing.assert_allclose(found.column("prediction").to_numpy(), expected.mean, rtol=1e-9)
        np.testing.assert_allclose(found.column("deviation").to_numpy(), expected.deviation, rtol=1e-9)
        np.testing.assert_array_equal(found.column("known_task").to_numpy(), expected.known)
        assert table.column("prediction").null_count == len(has_arm) - sum(has_arm) > 0
    given = whole["parquet"].table().select(LOG.table.column_names)
    assert given.to_pylist() == LOG.table.to_pylist()  # times of another zone are equal if they are one time


def test_what_is_amiss_in_a_table_is_counted(model: Model) -> None:
    rows = pa.table(
        {
            "shop": ["Oslo", "Atlantis", None, "Oslo"],
            "time": ["2026-02-01 10:00:00+01:00", "soon", None, "2026-02-02"],
            "weather": ["rain", None, "frogs", "sun"],
            "price": ["12", "NOK 9", "n/a", "inf"],
            "stock": [1.0, None, float("inf"), 2.0],
            "distance": [1.0, 2.0, 3.0, 4.0],
            "offer": ["none", "bundle", "gift", "discount"],
        }
    )
    predicted = Predictions(model, rows)
    table = predicted.table()
    assert table.column("known_task").to_pylist() == [True, False, False, True]
    assert [value is None for value in table.column("prediction").to_pylist()] == [False, False, True, False]
    found = {
        (item.column, item.what.partition(",")[0]): (item.count, item.first)
        for item in predicted.account.findings
    }
    assert found == {
        ("time", "texts that are no dates"): (1, 2),
        ("time", "missing values"): (1, 3),
        ("weather", "missing values"): (1, 2),
        ("price", "texts that are no numbers"): (1, 2),
        ("price", "missing values"): (1, 3),
        ("price", "values that are too large"): (1, 4),
        ("stock", "missing values"): (1, 2),
        ("stock", "values that are too large"): (1, 3),
        ("offer", "rows without an arm of the model's"): (1, 3),
        ("shop", "rows without a task"): (1, 3),
        ("shop", "rows of unseen tasks"): (1, 2),
    }
    assert (predicted.account.rows, predicted.account.used) == (4, 3)
    assert len(list(predicted)) == 1
    assert predicted.account.rows == 4  # a second reading counts anew


def test_without_arms_and_without_columns() -> None:
    log = pd.DataFrame({"shop": ["a", "b"] * 20, "sold": [1.0, 3.0] * 20})
    model = fit(log, task="shop", reward="sold", features=[])
    table = Predictions(model, log[["shop"]]).table()
    assert table.column("prediction").to_numpy()[:2] == pytest.approx([1.0, 3.0], abs=0.1)


# Explanations


def gaussian_log() -> tuple[pd.DataFrame, Encoder]:
    """Three shops: one that never varies its price, one with few rows, and one with very many."""
    rng = np.random.default_rng(0)
    sizes = {"fixed": 40, "few": 6, "many": 4000}
    shop = np.repeat(list(sizes), list(sizes.values()))
    log = pd.DataFrame(
        {"shop": shop, "price": rng.normal(10, 2, len(shop)), "size": rng.normal(0, 1, len(shop))}
    )
    log.loc[log["shop"] == "fixed", "price"] = 10.0
    log["sold"] = 3.0 + 0.5 * log["price"] - log["size"] + rng.standard_normal(len(log))
    columns = NumberColumn(name="price", mean=10.0, scale=2.0), NumberColumn(name="size")
    return log, Encoder(columns=columns)


def test_explanations_are_those_of_bayes_and_ridge() -> None:
    log, encoder = gaussian_log()
    before, noise = np.diag([4.0, 2.0, 3.0]), 1.5
    prior = GaussianPrior(mean=np.array([8.0, 1.0, 0.0]), covariance=before, noise=noise)
    model = fit(log, task="shop", reward="sold", encoder=encoder, estimator=prior)
    for name in model.tasks:
        rows = log[log["shop"] == name]
        x, y = encoder.encode(rows), rows["sold"].to_numpy()
        found = explain(model, name)
        precision = np.linalg.inv(before) + x.T @ x / noise
        covariance = np.linalg.inv(precision)
        theta = covariance @ (np.linalg.solve(before, prior.mean) + x.T @ y / noise)
        effects = found.effects
        assert (found.task, found.rows, found.alone) == (name, len(rows), None)
        assert found.noise == pytest.approx(noise**0.5)
        assert [effect.feature for effect in effects] == ["(constant)", "price", "size"]
        assert [effect.together for effect in effects] == pytest.approx(theta, rel=1e-8)
        assert [effect.together_deviation for effect in effects] == pytest.approx(np.diag(covariance) ** 0.5)
        assert [effect.others for effect in effects] == pytest.approx(prior.mean)
        assert [effect.others_deviation for effect in effects] == pytest.approx(np.diag(before) ** 0.5)
        weights = 1.0 - np.diag(covariance) / np.diag(before)
        assert [effect.weight for effect in effects] == pytest.approx(weights, abs=1e-9)
        # alone: ridge on rows around their means, and a level of least squares
        inner, mean = x[:, 1:] - x[:, 1:].mean(axis=0), y.mean()
        sums = inner.T @ inner, inner.T @ (y - mean), np.sum((y - mean) ** 2), len(y) - 1.0
        alone = Ridge().fit(GramStatistics(*(np.asarray(part)[None] for part in sums)))
        level = mean - x[:, 1:].mean(axis=0) @ alone.theta[0]
        own = [level, *alone.theta[0]]
        deviations = [None, *np.sqrt(np.diag(alone.covariance[0]))]
        for place, effect in enumerate(effects):
            if name == "fixed" and effect.feature == "price":
                assert np.isnan(effect.own)
                assert np.isnan(effect.own_deviation)
                assert effect.weight == pytest.approx(0.0, abs=1e-12)
                continue
            assert effect.own == pytest.approx(own[place], rel=1e-6)
            if place:
                assert effect.own_deviation == pytest.approx(deviations[place], rel=1e-6)
        assert effects[0].own_deviation >= np.sqrt(1.0 / len(rows)) * 0.5
    assert min(effect.weight for effect in explain(model, "many").effects) > 0.999


def test_a_level_is_as_uncertain_as_least_squares_says() -> None:
    rng = np.random.default_rng(0)
    log = pd.DataFrame({"shop": "a", "size": rng.normal(5.0, 1.0, 4000)})
    log["sold"] = 2.0 * log["size"] + rng.standard_normal(4000)
    encoder = Encoder(columns=(NumberColumn(name="size"),))  # not around its mean
    x, y = encoder.encode(log), log["sold"].to_numpy()
    theta, (square,), *_ = np.linalg.lstsq(x, y)
    expected = np.sqrt(square / 3998 * np.diag(np.linalg.inv(x.T @ x)))
    found = explain(fit(log, task="shop", reward="sold", encoder=encoder), "a").effects
    assert [effect.own for effect in found] == pytest.approx(theta, abs=0.01)
    assert [effect.own_deviation for effect in found] == pytest.approx(expected, rel=1e-2)


def test_a_task_of_one_row_says_its_level_and_nothing_more() -> None:
    log = pd.DataFrame({"shop": ["a"] * 30 + ["b"], "size": np.arange(31.0) % 7, "sold": np.arange(31.0) % 5})
    effects = explain(fit(log, task="shop", reward="sold"), "b").effects
    assert effects[0].own == 0.0
    assert all(
        np.isnan(value) for value in (effects[0].own_deviation, effects[1].own, effects[1].own_deviation)
    )
    alone = explain(fit(log, task="shop", reward="sold", features=[]), "a").effects
    first = log["sold"][:30]
    assert (alone[0].own, alone[0].own_deviation) == pytest.approx((first.mean(), first.std() / 30**0.5))


def test_effects_are_given_in_units_of_columns(model: Model) -> None:
    effects = {effect.feature: effect for effect in explain(model, "Oslo").effects}
    price = next(column for column in model.encoder.columns if column.name == "price")
    assert isinstance(price, NumberColumn)
    effect = effects["bundle: price"]
    assert effect.scale == price.scale
    assert effect.per_unit == pytest.approx(effect.together / price.scale)
    assert effects["none: time trend"].scale == pytest.approx(120 / 12**0.5, rel=0.01)  # days
    assert effects["none: weather=rain"].scale is None
    assert effects["none: weather=rain"].per_unit is None
    rows = {**columns_of(LOG.table.slice(0, 1)), "shop": ["Oslo"], "offer": ["bundle"]}
    low, high = (model.predict({**rows, "price": [value]}).mean[0] for value in (10.0, 11.0))
    assert high - low == pytest.approx(effect.per_unit)


def test_without_an_intercept_features_speak_for_themselves() -> None:
    log, _ = gaussian_log()
    model = fit(log, task="shop", reward="sold", encoder=Recipe(intercept=False))
    effects = explain(model, "many").effects
    number = model.tasks.index("many")
    alone = Ridge().fit(model.statistics.take(np.array([number])))
    assert [effect.own for effect in effects] == pytest.approx(alone.theta[0])


def test_a_task_unlike_the_others_is_said_to_be() -> None:
    rng = np.random.default_rng(0)
    theta = 0.5 * rng.standard_normal((60, 2)) @ rng.standard_normal((2, 8))
    theta += 0.05 * rng.standard_normal((60, 8))
    theta[7] = 1.5 * rng.standard_normal(8)
    shop, x = np.repeat(np.arange(60), 60), rng.standard_normal((3600, 8))
    log = pd.DataFrame(x, columns=list("abcdefgh")).assign(shop=shop)
    log["sold"] = np.vecdot(x, theta[shop]) + rng.standard_normal(3600)
    model = fit(log, task="shop", reward="sold")
    alone = {name: explain(model, name).alone for name in model.tasks}
    assert max(alone, key=lambda name: alone[name] or 0.0) == "7"
    assert list(alone.values()) == model.estimate.alone.tolist()  # type: ignore[attr-defined]
    assert explain(model, 7).task == "7"  # type: ignore[arg-type]


def test_a_task_that_is_not_there_is_named_with_its_nearest(model: Model) -> None:
    with pytest.raises(ValueError, match=r"a task of the model .* Got 'Osloo'. Did you mean 'Oslo'\?"):
        explain(model, "Osloo")
    with pytest.raises(ValueError, match="a task of the model must be"):
        explain(model, None)  # type: ignore[arg-type]


# Files


def test_a_new_process_predicts_bit_by_bit(model: Model, tmp_path: Path) -> None:
    save(model, tmp_path / "model.posse")
    LOG.write(tmp_path / "log.parquet")
    code = (
        "import sys; import pyarrow.parquet as pq; from posse import load; "
        "from posse.logs import Predictions; "
        "pq.write_table(Predictions(load(sys.argv[1]), sys.argv[2]).table(), sys.argv[3])"
    )
    names = [str(tmp_path / name) for name in ("model.posse", "log.parquet", "out.parquet")]
    subprocess.run([sys.executable, "-c", code, *names], check=True)
    found, here = pq.read_table(names[2]), Predictions(model, LOG).table()
    for name in ("prediction", "deviation", "known_task"):
        assert found.column(name).to_pylist() == here.column(name).to_pylist()
    again = load(names[0])
    assert encode(again)[0] == encode(model)[0]
    assert repr(explain(again, "Oslo")) == repr(explain(model, "Oslo"))


# Commands


def test_fit_says_what_it_read_and_what_it_found(folder: Path, model: Model) -> None:
    out = folder / "again.posse"
    done = run("fit", str(folder / "log.csv"), *PLAIN, "--out", str(out))
    first, second, *_, last = done.stdout.splitlines()
    used = model.account.used
    assert first == f"8 tasks, {model.encoder.dim} features, {used:,} of 1,500 rows."
    assert second.startswith("Tasks share ")
    assert last == str(out)
    assert "- shop: 3 rows without a task" in done.stderr
    np.testing.assert_allclose(load(out).estimate.theta, model.estimate.theta, atol=1e-6)


def test_fit_is_told_features_categories_gaps_and_the_rank(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "model.posse"
    features = ["--features", "price, weather,stock", "--categories", "stock", "--rank", "0"]
    done = run("fit", str(folder / "log.csv"), *PLAIN[:4], *features, "--missing", "drop", "--out", str(out))
    assert done.exit_code == 0, done.stderr
    model = load(out)
    assert [column.name for column in model.encoder.columns] == ["price", "weather"]
    assert model.estimate.rank == 0
    assert "no direction" in done.stdout
    assert model.account.used < 1450
    assert "stock" in str(model.account)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reward", "rewrad"], "--reward must be a known name. Got 'rewrad'. Did you mean 'reward'?"),
        (["--features", "prise"], "a column of --features must be a known name. Got 'prise'. Did you mean"),
        (["--rank", "many"], "`rank` of FactorPrior, if not an integer, must be one of auto. Got 'many'."),
        (["--rank", "99"], "must be an integer in [0, min("),
        (["--missing", "ignore"], "--missing must be one of impute, drop, refuse. Got 'ignore'."),
        (["--missing", "refuse"], "every row must be whole"),
        (["--categories", "colour"], "a column of Recipe must be"),
    ],
)
def test_fit_refuses_what_it_cannot_do(
    arguments: list[str], message: str, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "model.posse"
    done = run("fit", str(folder / "log.csv"), *PLAIN, *arguments, "--out", str(out))
    assert done.exit_code == 2
    assert message in done.stderr
    assert (done.stdout, out.exists()) == ("", False)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predict_gives_the_table_back_with_predictions(ending: str, folder: Path, tmp_path: Path) -> None:
    model, out = folder / "model.posse", tmp_path / f"out.{ending}"
    done = run("predict", str(model), str(folder / "log.parquet"), "--out", str(out))
    assert (done.exit_code, done.stdout) == (0, f"{out}\n")
    expected = Predictions(load(model), folder / "log.parquet").table()
    if ending == "parquet":
        assert pq.read_table(out).equals(expected)
        return
    found = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    assert [row["prediction"] for row in found] == [
        "" if value is None else repr(value) for value in expected.column("prediction").to_pylist()
    ]
    assert {row["known_task"] for row in found} == {"true", "false"}


def test_predict_prints_a_table_and_counts_on_stderr(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "new.csv"
    text = io.StringIO((folder / "log.csv").read_text(encoding="utf-8"))
    rows = [row for row in csv.DictReader(text) if row["offer"]][:3]
    rows[1]["shop"] = "Paris, Texas"
    rows[2]["price"] = ""
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    done = run("predict", str(folder / "model.posse"), str(table))
    found = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["known_task"] for row in found] == ["true", "false", "true"]
    assert [row["shop"] for row in found] == [row["shop"] for row in rows]
    assert all(np.isfinite(float(row["prediction"])) and float(row["deviation"]) > 0 for row in found)
    assert (
        "- shop: 1 rows of unseen tasks, first in row 2: predicted from what is known of new" in done.stderr
    )
    assert "- price: 1 missing values, first in row 3: filled with the mean" in done.stderr


def test_predict_of_no_rows_is_a_line_of_names(folder: Path, tmp_path: Path) -> None:
    header = (folder / "log.csv").read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "empty.csv").write_text(header + "\n", encoding="utf-8")
    done = run("predict", str(folder / "model.posse"), str(tmp_path / "empty.csv"))
    assert (done.exit_code, done.stdout) == (0, f"{header},prediction,deviation,known_task\n")
    assert "0 rows read" in done.stderr


def test_predict_refuses_what_it_cannot_read(folder: Path, tmp_path: Path) -> None:
    model, log = str(folder / "model.posse"), str(folder / "log.csv")
    (tmp_path / "lacking.csv").write_text("shop,offer,prize\nOslo,none,3\n", encoding="utf-8")
    (tmp_path / "nothing.csv").write_text("", encoding="utf-8")
    (tmp_path / "broken.posse").write_bytes(Path(model).read_bytes()[:2000])
    (tmp_path / "cut.parquet").write_bytes((folder / "log.parquet").read_bytes()[:-500])
    save({"not": "a model"}, tmp_path / "other.posse")
    predicted = tmp_path / "predicted.csv"
    assert run("predict", model, log, "--out", str(predicted)).exit_code == 0
    for arguments, message in (
        (
            [model, str(tmp_path / "lacking.csv")],
            "which lacks time, weather, price, stock, distance and has shop",
        ),
        ([model, str(tmp_path / "nothing.csv")], "nothing.csv"),
        ([model, str(tmp_path / "cut.parquet")], "cannot be read"),
        ([model, str(predicted)], "must not have columns prediction, deviation, known_task yet"),
        ([model, str(tmp_path / "gone.csv")], "must be"),
        ([model, log, "--out", str(tmp_path / "out.xlsx")], "must end in .csv, .parquet, .pq"),
        ([str(tmp_path / "broken.posse"), log], "broken.posse"),
        ([str(tmp_path / "other.posse"), log], "a model must be what `posse fit` wrote. Got"),
    ):
        done = run("predict", *arguments)
        assert (done.exit_code, done.stdout) == (2, ""), arguments
        assert done.stderr.startswith("Error: "), done.stderr
        assert message in done.stderr, done.stderr
    assert run("predict", str(tmp_path / "no.posse"), log).exit_code == 1
    assert not (tmp_path / "out.xlsx").exists()


def test_explain_shows_the_largest_effects_or_all_of_them(folder: Path) -> None:
    model = str(folder / "model.posse")
    short, whole = run("explain", model, "Oslo"), run("explain", model, "Oslo", "--all")
    data = json.loads(run("explain", model, "Oslo", "--json").stdout)
    effects = data["effects"]
    largest = sorted(effects, key=lambda effect: -abs(effect["together"]))[:20]
    shown = short.stdout.splitlines()
    assert shown[0].startswith(f"Oslo: {data['rows']:,.0f} rows, rewards have a standard deviation of ")
    assert [line.split("  ")[0] for line in shown[3:-1]] == [effect["feature"] for effect in largest]
    assert shown[-1].startswith(f"{len(effects) - 20} smaller effects are not shown")
    listed = whole.stdout.splitlines()[3:]
    assert [line.split("  ")[0] for line in listed] == [effect["feature"] for effect in effects]
    found = explain(load(model), "Oslo")
    for line, effect, item in zip(listed, found.effects, effects, strict=True):
        assert with_deviation(effect.together, effect.together_deviation) in line
        weight = None if np.isnan(effect.weight) else effect.weight
        assert ("-" if weight is None else f" {weight:.0%}") in line
        assert item["weight"] == weight
        assert item["per_unit"] == effect.per_unit
        assert (item["own"] is None) == np.isnan(effect.own)


def test_explain_of_an_unknown_task_and_of_no_model(folder: Path) -> None:
    done = run("explain", str(folder / "model.posse"), "Olso")
    assert done.exit_code == 2
    assert "Did you mean 'Oslo'?" in done.stderr
    assert run("explain", str(folder / "log.csv"), "Oslo").exit_code == 2


@pytest.mark.parametrize("command", ["fit", "predict", "explain", "example-log"])
def test_help_teaches_by_an_example(command: str) -> None:
    assert f"For example: posse {command} " in " ".join(run(command, "--help").stdout.split())
