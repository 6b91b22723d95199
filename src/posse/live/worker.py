"""The process that makes refits beside an agent: reads jobs from files, writes states to files.

It is started as `python -m posse.live.worker`, reads a line of JSON for every job, and answers with one. It
ends when its input does, so that it does not outlive the agent.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import IO

from posse.core.archive import in_a_line
from posse.core.codec import load, save
from posse.live.states import MOST_BYTES


def serve(requests: IO[str], answers: IO[str]) -> None:
    r"""Make a refit for every line of requests, and answer why it failed.

    A request is `{"job": path, "state": path, "beliefs": path}`. Beliefs are made of the state as it is in
    its file, as they are when a journal is replayed.

    Examples
    --------
    >>> from io import StringIO
    >>> answers = StringIO()
    >>> serve(StringIO('{"job": "nowhere.posse"}\n'), answers)
    >>> answers.getvalue()
    '{"failed": "FileNotFoundError: [Errno 2] No such file or directory: \'nowhere.posse\'"}\n'
    """
    for line in requests:
        request = json.loads(line)
        try:
            policy, state, summary = load(request["job"], most_bytes=MOST_BYTES)
            save(policy.update(state, summary), request["state"])
            beliefs = policy.beliefs(load(request["state"], most_bytes=MOST_BYTES))
            save(tuple(beliefs.parts), request["beliefs"])
            failed = ""
        except Exception as error:  # whatever a fit may raise: the agent is told
            failed = f"{type(error).__name__}: {in_a_line(error)}"
        answers.write(json.dumps({"failed": failed}) + "\n")
        answers.flush()


if __name__ == "__main__":
    with contextlib.suppress(OSError, AttributeError):
        os.nice(5)  # decisions go first
    serve(sys.stdin, sys.stdout)
