"""What a service could do at most: an answer without a journal, without learning, without a check.

    python -m benchmarks.service_bare SERVER PORT

SERVER is uvicorn or granian, which answer with a random arm, or wabbit: Vowpal Wabbit's decisions by uvicorn.
"""

from __future__ import annotations

import random
import sys
from typing import Any
from uuid import uuid4

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def random_arm(request: Request) -> Response:
    """Answer with any arm on offer."""
    asked = msgspec.json.decode(await request.body())
    arms = list(asked["arms"])
    chances = dict.fromkeys(arms, 1.0 / len(arms))
    found = {"id": uuid4().hex, "arm": random.choice(arms), "propensities": chances}
    return Response(msgspec.json.encode(found), media_type="application/json")


class Wabbit:
    """Vowpal Wabbit's contextual bandit behind an endpoint: one model for all tasks, and no journal."""

    def __init__(self) -> None:
        from vowpalwabbit import LabelType, Workspace

        self.kind = LabelType.CONTEXTUAL_BANDIT
        self.vw = Workspace("--cb_explore_adf --epsilon 0.1 -q :: --quiet")

    async def answer(self, request: Request) -> Response:
        """Answer with an arm that it draws."""
        asked = msgspec.json.decode(await request.body())
        task = asked["task"].replace(" ", "_")
        lines = [f"shared |t {task}"]
        for row in asked["arms"].values():
            pairs = row.items() if isinstance(row, dict) else enumerate(row)
            lines.append("|a " + " ".join(f"{str(name).replace(' ', '_')}:{value}" for name, value in pairs))
        examples = self.vw.parse(lines, self.kind)
        chances: list[float] = self.vw.predict(examples)
        self.vw.finish_example(examples)
        arm = random.choices(list(asked["arms"]), chances)[0]
        found = {
            "id": uuid4().hex,
            "arm": arm,
            "propensities": dict(zip(asked["arms"], chances, strict=True)),
        }
        return Response(msgspec.json.encode(found), media_type="application/json")


def app_of(answer: Any) -> Starlette:
    """Return an application with one endpoint."""
    return Starlette(routes=[Route("/v1/ask", answer, methods=["POST"])])


bare = app_of(random_arm)


def main(server: str, port: int) -> None:
    """Serve until a signal comes."""
    if server == "granian":
        from granian.constants import HTTPModes, Interfaces
        from granian.server import Server

        Server(
            "benchmarks.service_bare:bare",
            port=port,
            interface=Interfaces.ASGI,
            http=HTTPModes.http1,
            log_enabled=False,
        ).serve()
        return
    import uvicorn

    app = app_of(Wabbit().answer) if server == "wabbit" else bare
    uvicorn.run(
        app,
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
