"""What is in `deploy`: commands that exist, files that are there, and a proxy that passes on."""

import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
import yaml

from posse.cli import app
from posse.client import Client
from serve_world import ARMS, run, served

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
OPENSSL = shutil.which("openssl")


def parsed(arguments: list[str]) -> dict[str, Any]:
    """Return the options of a `posse serve` command line; what it does not know is an error."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("posse", ["serve", *arguments], resilient_parsing=True)
    found: dict[str, Any] = group.get_command(context, "serve").make_context("serve", arguments).params
    return found


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, each on one line."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in whole if line)]


def test_the_image_takes_files_that_are_there_and_runs_a_command_that_exists() -> None:
    found = instructions()
    for name, rest in found:
        if name == "COPY":
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
    install = next(rest for name, rest in found if name == "RUN")
    extras = set(re.findall(r"\.\[([^]]+)\]", install)[0].split(","))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert extras <= set(project["project"]["optional-dependencies"])
    for needed in ("readme", "license-files"):
        for file in [project["project"][needed]] if needed == "readme" else project["project"][needed]:
            assert any(name == "COPY" and file in rest.split() for name, rest in found), file
    last = dict(found)
    assert json.loads(last["ENTRYPOINT"]) == ["posse", "serve"]
    options = parsed(json.loads(last["CMD"]))
    assert (options["store"], options["host"], options["port"]) == ("sqlite:/data/posse.db", "0.0.0.0", 8000)
    assert last["EXPOSE"] == str(options["port"])
    assert options["store"].removeprefix("sqlite:").startswith(last["VOLUME"])
    subprocess.run([sys.executable, "-c", re.findall(r'python -c "([^"]+)"', install)[0]], check=True)


def test_the_check_of_the_image_asks_a_service_whether_it_is_ready(tmp_path: Path) -> None:
    rest = dict(instructions())["HEALTHCHECK"]
    _, option, code = json.loads(rest[rest.index("[") :])
    with served(tmp_path / "s.db") as server:
        here = code.replace(":8000/", f":{server.port}/")
        assert here != code
        assert subprocess.run([sys.executable, option, here], check=False).returncode == 0
    assert (
        subprocess.run([sys.executable, option, here], check=False, stderr=subprocess.DEVNULL).returncode != 0
    )


def test_the_composition_has_a_database_and_a_service_that_finds_it() -> None:
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = found["services"]
    assert set(services) == {"database", "posse"}
    for service in services.values():
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in found["volumes"]
        assert set(service.get("depends_on", {})) <= set(services)
    posse, database = services["posse"], services["database"]
    options = parsed(posse["command"])
    user, host, name = re.findall(r"postgresql://(\w+)@(\w+)/(\w+)", options["store"])[0]
    assert host == "database"
    assert (user, name) == (database["environment"]["POSTGRES_USER"], database["environment"]["POSTGRES_DB"])
    assert posse["environment"]["PGPASSWORD"] == database["environment"]["POSTGRES_PASSWORD"]
    assert options["workers"] == 2
    assert (DEPLOY / posse["build"]["context"] / posse["build"]["dockerfile"]).resolve().is_file()
    assert posse["ports"] == [
        f"127.0.0.1:{options['port']}:{options['port']}"
    ]  # nobody else's before there is TLS


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Return a certificate that signs itself, and its key."""
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    command = f"{OPENSSL} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=decide.example.org"
    named = ["-addext", "subjectAltName=DNS:decide.example.org", "-keyout", str(key), "-out", str(chain)]
    subprocess.run([*command.split(), *named], check=True, capture_output=True)
    return chain, key


@pytest.fixture
def proxy(tmp_path: Path, certificate: tuple[Path, Path]) -> Iterator[Any]:
    """Yield what starts the proxy before a port, by its file with other ports and paths."""
    started = []

    def start(port: int) -> int:
        with socket.create_server(("127.0.0.1", 0)) as one:
            own = int(one.getsockname()[1])
        text = (DEPLOY / "nginx.conf").read_text()
        for old, new in [
            ("listen 443", f"listen 127.0.0.1:{own}"),
            ("127.0.0.1:8000", f"127.0.0.1:{port}"),
            ("/etc/ssl/posse/fullchain.pem", str(certificate[0])),
            ("/etc/ssl/posse/privkey.pem", str(certificate[1])),
        ]:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "".join(f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in kinds)
        log = f"access_log {tmp_path}/access.log;\n"
        file = tmp_path / "nginx.conf"
        file.write_text(f"daemon off;\npid {tmp_path}/pid;\nevents {{}}\nhttp {{\n{places}{log}{text}\n}}\n")
        command = [str(NGINX), "-p", str(tmp_path), "-e", str(tmp_path / "error.log"), "-c", str(file)]
        subprocess.run([*command, "-t"], check=True, capture_output=True)
        started.append(subprocess.Popen(command))
        for _ in range(400):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", own)) == 0:
                    return own
            time.sleep(0.05)
        raise AssertionError((tmp_path / "error.log").read_text())

    yield start
    for process in started:
        process.terminate()
        process.wait(timeout=10)


@pytest.mark.slow
@pytest.mark.skipif(NGINX is None or OPENSSL is None, reason="there is no nginx on this machine")
def test_the_proxy_passes_on_what_is_for_the_service_over_tls(
    tmp_path: Path, certificate: tuple[Path, Path], proxy: Any
) -> None:
    store = tmp_path / "s.db"
    token = run("serve", "token", "--store", store, "--name", "a", "--role", "admin")[1].strip()
    trusted = ssl.create_default_context(cafile=str(certificate[0]))
    with served(store, "--allow-host", "decide.example.org") as server:
        port = proxy(server.port)
        with httpx.Client(verify=trusted, base_url=f"https://127.0.0.1:{port}") as http:
            named = {
                "headers": {"Host": "decide.example.org"},
                "extensions": {"sni_hostname": "decide.example.org"},
            }
            assert http.get("/healthz", **named).json() == {"ok": True}  # type: ignore[arg-type]
            assert http.get("/v1/status", **named).status_code == 401  # type: ignore[arg-type]
            page = http.get("/", **named)  # type: ignore[arg-type]
            assert (page.status_code, page.headers["x-frame-options"]) == (200, "DENY")
            named["headers"]["Authorization"] = f"Bearer {token}"
            found = http.post("/v1/ask", json={"task": "a", "arms": ARMS}, **named).json()  # type: ignore[arg-type]
            told = http.post("/v1/tell", json={"id": found["id"], "reward": 1.0}, **named)  # type: ignore[arg-type]
            assert told.json() == {"ok": True}
            large = http.post("/v1/ask", content=b" " * 4_500_000, **named)  # type: ignore[arg-type]
            assert large.status_code == 413
            named["headers"]["Host"] = "evil.example"
            assert http.get("/v1/status", **named).status_code == 421  # type: ignore[arg-type]
        with Client(f"http://127.0.0.1:{server.port}", token=token) as client:
            assert client.tell(found["id"], 1.0)
    assert token not in (tmp_path / "access.log").read_text()
