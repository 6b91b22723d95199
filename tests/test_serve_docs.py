"""The pages on the service: their calls and their code, against a service that runs."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from posse.serve.spaces import read_spaces
from serve_world import run, served

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "howto" / "serve.md").read_text(encoding="utf-8")
POSTGRES = (ROOT / "docs" / "howto" / "serve-postgres.md").read_text(encoding="utf-8")
PERFORMANCE = (ROOT / "docs" / "explanation" / "performance.md").read_text(encoding="utf-8")
OPERATE = (ROOT / "docs" / "howto" / "operate.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```\n", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.slow


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "spaces.toml").write_text(block(PAGE, "toml"))
    with served(tmp_path / "s.db", "--config", tmp_path / "spaces.toml") as one:
        yield one.port


def block(page: str, kind: str) -> str:
    return next(match[2] for match in BLOCK.finditer(page) if match[1] == kind)


def test_calls_and_code_of_the_page_do_what_it_says(
    port: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    calls, scripts, answer, namespace = 0, 0, None, dict[str, Any]()
    for kind, text in BLOCK.findall(PAGE):
        here = text.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
        if kind == "bash" and text.startswith("curl"):
            done = subprocess.run(
                ["bash", "-c", here.replace("curl", "curl -s")], capture_output=True, check=True
            )
            answer, calls = json.loads(done.stdout), calls + 1
        elif kind == "json":
            said = json.loads(text)
            assert answer is not None
            if "arm" in said:  # it is drawn
                assert said.pop("arm") in said["propensities"]
                arm = answer.pop("arm")
                assert (
                    said.pop("propensity") in said["propensities"].values(),
                    arm in said["propensities"],
                ) == (True, True)
                assert answer.pop("propensity") == answer["propensities"][arm]
            assert answer == said
        elif kind == "py":
            scripts += 1
            exec(compile(here, "serve.md", "exec"), namespace)
        elif kind == "text":
            assert capsys.readouterr().out == text
    assert (calls, scripts) == (5, 2)


def test_tokens_files_and_calls_are_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tokens = re.findall(r"^posse (serve token[^#\n]*)", PAGE, re.MULTILINE)
    assert len(tokens) == 5
    for line in tokens:
        code, _, errors = run(*line.split())
        assert code == 0, errors
    assert run("serve", "token")[1] == "me: admin\nshop: ask, tell\n"
    assert block(PAGE, "nginx") == (ROOT / "deploy" / "nginx.conf").read_text()
    (tmp_path / "spaces.toml").write_text(block(PAGE, "toml"))
    names = [space.name for space, _ in read_spaces(tmp_path / "spaces.toml")]
    assert names == list(tomllib.loads(block(PAGE, "toml"))["spaces"])


def test_the_table_of_calls_has_all_of_them_with_their_roles(port: int) -> None:
    import httpx

    described = httpx.get(f"http://127.0.0.1:{port}/openapi.json").json()["paths"]
    table = PAGE.partition("## All calls")[2].partition("## Who")[0]
    for path, operations in described.items():
        row = next(
            line
            for line in table.splitlines()
            if f"{path}`" in line or f"{path}`" in line.replace("`,", "` ")
        )
        for method, operation in operations.items():
            assert method.upper() in row
            role = re.search(r"role '(\w+)'", operation.get("description", ""))
            assert role is None or role[1] in row.split("|")[2]


def test_a_copy_of_a_service_that_runs_is_one_moment_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = block(OPERATE, "bash")
    with served("posse.db") as server:
        client = server.client()
        arms = {"a": [1.0], "b": [2.0]}
        ids = [client.post("/v1/ask", task=f"t{n % 3}", arms=arms)["id"] for n in range(20)]
        for id in ids[:10]:
            client.post("/v1/tell", id=id, reward=1.0)
        code, said, errors = run(*command.split()[1:])
        assert (code, "20 decisions and 10 rewards" in said) == (0, True), errors
        client.post("/v1/tell", id=ids[11], reward=1.0)
        client.close()
    with served("backup.db") as server:
        client = server.client()
        status = client.get("/v1/status")
        assert (status["decisions"], status["rewards"], status["pending"]) == (20, 10, 10)
        client.post("/v1/tell", id=ids[11], reward=1.0)  # told again, as it was not in the copy
        assert client.get("/v1/status")["rewards"] == 11
        client.close()


def result(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / path).read_text(encoding="utf-8"))
    return found


def test_the_pages_say_what_the_soak_found() -> None:
    found = result("proofs/results/soak.json")
    kills, ask = found["kills"], found["milliseconds of an ask, with retries"]
    capacity = found["capacity, decisions with rewards a second"]
    learner = found["seconds to the next learner"]
    page, operate = " ".join(POSTGRES.split()), " ".join(OPERATE.split())
    for words in (
        f"for {found['seconds']} seconds, with {kills['learns']} kills of learners and {kills['asks']} of",
        f"answered {capacity} decisions with their rewards a second at most; ",
        f"at {found['rate kept up']} a second, {found['rewards acknowledged']:,} rewards were acknowledged: ",
        f"{found['lost']} were lost, {found['counted twice']} counted twice, ",
        f"and clients that retry saw {found['errors after retries']} errors",
        f"after {learner['median']} s (median; {learner['worst']} s at worst)",
        f"an ask took {ask['median']} ms (99 %: {ask['99 %']} ms)",
    ):
        assert words in page, words
    assert f"{capacity} decisions with their rewards a second" in operate


def test_the_pages_say_what_the_benchmark_of_the_service_found() -> None:
    from benchmarks.service import CEILING, CONNECTIONS, markdown

    found = result("benchmarks/results/service.json")
    assert markdown(found) in PERFORMANCE
    rows = {(row["server"], row["requests"]): row for row in found["rows"]}
    ours = {kind: row for (server, kind), row in rows.items() if server == "posse serve"}
    paint = found["milliseconds until the page shows its numbers"]
    assert (CEILING, "named") in rows
    operate = " ".join(OPERATE.split())
    for words in (
        f"{ours['named']['a second']:,} single requests a second over {CONNECTIONS} connections",
        f"{ours['named batch']['a second']:,} decisions a second in batches of a hundred by name and "
        f"{ours['listed batch']['a second']:,} in lists",
        f"{ours['named']['server CPU, µs']} µs of the server's processor time each",
        f"{ours['named batch']['server CPU, µs']} and {ours['listed batch']['server CPU, µs']} µs in batches",
        f"its numbers {paint['median']} ms after it is opened (median of ten; {paint['most']} ms at most)",
    ):
        assert words in operate, words


def test_a_benchmark_says_what_it_has_not_measured() -> None:
    from benchmarks.service import remarks

    found = {
        "milliseconds until the page shows its numbers": None,
        "not measured": ["random arm, Granian: pip install granian"],
    }
    assert remarks(found) == [
        "Until the page shows its numbers: not measured: no browser.",
        "Not measured: random arm, Granian: pip install granian.",
    ]
