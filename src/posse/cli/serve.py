"""`posse serve`: decisions over HTTP."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Annotated

import typer
from rich.console import Console

from posse.cli.console import plain_errors
from posse.core.codec import load
from posse.core.model import Model
from posse.live.files import is_address, name_of
from posse.numerics.checks import check_choice
from posse.serve.app import make_app
from posse.serve.copying import copy_store
from posse.serve.demo import SHOPS, SPACES, month_of_traffic
from posse.serve.gate import Limits
from posse.serve.history import STEP, History
from posse.serve.looking import look_at
from posse.serve.roles import Token, check_roles, digest_of, new_token
from posse.serve.run import bind, is_loopback, serve, warm_up
from posse.serve.service import Service
from posse.serve.spaces import DEFAULT, Space, read_spaces
from posse.serve.stores import Store, open_store

console = Console()
# Makes a space that begins with a model, if there is one.
Put = Callable[[Space, Model | None], object]


def command(
    context: typer.Context,
    action: Annotated[
        str,
        typer.Argument(
            help="Nothing, to serve; `token` makes a token and prints it once, or lists or drops tokens; "
            "`copy` copies the store to a new one, to move it or to back it up."
        ),
    ] = "run",
    store: Annotated[
        str,
        typer.Option(
            help="Where decisions and rewards are kept: sqlite:PATH, or postgresql://USER@HOST/DATABASE."
        ),
    ] = "sqlite:posse.db",
    model: Annotated[
        Path | None, typer.Option(help="A fitted model that the space `default` begins with.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file with a table [spaces.NAME] for each space.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at; 0 for any.", min=0, max=65535)] = 8000,
    workers: Annotated[
        int, typer.Option(help="Processes that answer requests; several need PostgreSQL.", min=1)
    ] = 1,
    durability: Annotated[
        str, typer.Option(help="What an answer survives: process (kill -9) or power (its loss, too).")
    ] = "process",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name by which the service may be called; several times for several."),
    ] = None,
    rate: Annotated[
        float, typer.Option(help="Requests a second that one client may send; 0 for any.", min=0)
    ] = 0.0,
    most_bytes: Annotated[int, typer.Option(help="Bytes that one request may have.", min=1000)] = 4_000_000,
    demo: Annotated[
        bool, typer.Option("--demo", help="Play a month of fifty shops against the service, to be watched.")
    ] = False,
    name: Annotated[str, typer.Option(help="With `token`: who will have it.")] = "",
    role: Annotated[
        list[str] | None,
        typer.Option(help="With `token`: ask, tell, read or admin; several times for several."),
    ] = None,
    to: Annotated[
        str, typer.Option(help="With `copy`: the new store, sqlite:PATH or postgresql://USER@HOST/DATABASE.")
    ] = "",
    drop: Annotated[str, typer.Option(help="With `token`: whose is not to be valid any more.")] = "",
) -> None:
    """Bring up a decision service: ask for an arm, tell its reward, watch it at /.

    A first call needs no configuration: the space `default` is fixed by what it is first asked.
    """
    with plain_errors(context), ExitStack() as stack:
        check_choice("the action of posse serve", action, ["run", "token", "copy"])
        if action == "copy":
            copy(store, to)
            return
        if action == "token":
            keep_tokens(store, name, tuple(role or ()), drop)
            return
        if is_address(store):
            put = partial(put_spaces, config=config, model=model, demo=demo)
            limits, names = Limits(body=most_bytes, rate=rate), allow_host or []
            serve_many(store, durability, host, port, workers, names, limits, put, demo)
            return
        check_alone(workers)
        source = context.get_parameter_source("store")
        if demo and source is not None and source.name == "DEFAULT":
            store = f"sqlite:{Path(stack.enter_context(TemporaryDirectory())) / 'demo.db'}"
        opened = open_store(store, durability)
        service = stack.enter_context(closing(Service(opened)))
        put_spaces(service.put, config, model, demo)
        open_to_all = check_open(opened, store, host)
        listening, history = bind(host, port), History()
        app = make_app(
            service,
            open_to_all=open_to_all,
            hosts=names_of(host, allow_host or ()),
            limits=Limits(body=most_bytes, rate=rate),
            threaded=durability == "power",
            history=history,
        )
        warm_up()
        address = f"http://{host}:{listening.getsockname()[1]}"
        ready = Event()
        if demo:
            stack.enter_context(demo_of(address, ready, open_to_all))

        def begin() -> None:
            greet(address, store, open_to_all, demo)
            ready.set()

        serve(app, listening, begin, lambda: history.note(service.summary()["spaces"]), STEP)


def copy(store: str, to: str) -> None:
    """Copy a store to a new one, and say how much that was."""
    if not to:
        raise ValueError("`to` must say which store to copy to. Got none.")
    copied = copy_store(store, to)
    print(
        f"{copied.spaces:,} spaces, {copied.decisions:,} decisions and {copied.rewards:,} rewards "
        f"in {name_of(to)}."
    )


def check_alone(workers: int) -> None:
    """Refuse several processes on SQLite."""
    if workers > 1:
        raise ValueError(f"`workers` must be 1 with a store in SQLite, which has one writer. Got {workers}.")


def serve_many(
    address: str,
    durability: str,
    host: str,
    port: int,
    workers: int,
    allow_host: Sequence[str],
    limits: Limits,
    put_all: Callable[[Put], None],
    demo: bool,
) -> None:
    """Serve from PostgreSQL: some processes answer, one learns, and this one brings them back."""
    if demo:
        raise ValueError("`demo` must have a store in SQLite. Got one in PostgreSQL.")
    from posse.serve.child import Part
    from posse.serve.database import DatabaseStore
    from posse.serve.family import keep

    with closing(DatabaseStore(address, durability, making=True)) as store:
        open_to_all = check_open(store, address, host)
        listening = bind(host, port)
        part = Part(
            kind="asks",
            address=address,
            durability=durability,
            listening=listening.fileno(),
            hosts=tuple(sorted(names_of(host, allow_host))),
            open_to_all=open_to_all,
            limits=limits,
        )

        def begin() -> None:
            put_all(lambda space, model: store.order("put", space, model))
            greet(f"http://{host}:{listening.getsockname()[1]}", name_of(address), open_to_all, False)

        keep(part, workers, begin)


def check_open(store: Store, address: str, host: str) -> bool:
    """Return whether everybody may do everything, which needs a host that is this machine's own."""
    open_to_all = not store.tokens()
    if open_to_all and not is_loopback(host):
        raise ValueError(
            f"`host` must be a loopback address while there are no tokens: make one by "
            f"`posse serve token --store {name_of(address)} --role admin --name me`. Got {host!r}."
        )
    return open_to_all


def names_of(host: str, allow_host: Sequence[str]) -> frozenset[str]:
    """Return the names by which the service may be called, in small letters."""
    return frozenset(one.lower() for one in ("localhost", socket.gethostname(), host, *allow_host))


def put_spaces(put: Put, config: Path | None, model: Path | None, demo: bool) -> None:
    """Make the spaces of a file, of a model, and those of the demonstration."""
    for space, path in read_spaces(config) if config is not None else []:
        put(space, None if path is None else load_model(path))
    if model is not None:
        put(Space(name=DEFAULT, model=True), load_model(model))
    for space in SPACES if demo else ():
        put(space, None)


def demo_of(address: str, ready: Event, open_to_all: bool) -> AbstractContextManager[None]:
    """Return what plays the demonstration against the service, from when that is ready."""
    if not open_to_all:
        raise ValueError(
            "`demo` must have a store without tokens, as it has none itself. Got one with tokens."
        )
    return month_of_traffic(address, ready)


def greet(address: str, store: str, open_to_all: bool, demo: bool) -> None:
    """Say where the service is, and whether anybody may use it."""
    print(f"posse serves {store} at {address}", flush=True)
    if demo:
        print(
            f"A month of {SHOPS} shops is played in two minutes, and then the next. "
            f"Open {address} to watch; Ctrl-C ends it.",
            flush=True,
        )
    if open_to_all:
        print(
            "No tokens: everybody on this machine may do everything. `posse serve token` makes one.",
            flush=True,
        )


def load_model(path: Path) -> Model:
    """Return the model of a file, or say what the file is."""
    found = load(path)
    if not isinstance(found, Model):
        raise ValueError(
            f"`model` must be a file of `posse fit`. Got {type(found).__name__} in {str(path)!r}."
        )
    return found


def keep_tokens(store: str, name: str, roles: tuple[str, ...], drop: str) -> None:
    """Make a token and print it, of which only the hash is kept; or drop one; or say which there are."""
    opened = look_at(store, making=True)
    try:
        if drop:
            if not opened.drop_token(drop):
                raise ValueError(f"`drop` must be the name of a token. Got {drop!r}.")
        elif name:
            token = new_token()
            opened.add_token(Token(digest_of(token), name, check_roles(roles)))
            print(token)
        elif roles:
            raise ValueError("`name` must say who will have the token. Got none.")
        else:
            for known in opened.tokens():
                print(f"{known.name}: {', '.join(known.roles)}")
    finally:
        opened.close()
