"""A process to be killed: asks and tells in a loop, and says what was acknowledged, a line at a time."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

import numpy as np

from posse.live import Agent
from posse.live.journal import JournalError

# Numbers of two system calls, by the machine, and the number of the error with which they are to fail.
FAULTS = {
    "sync": ({"x86_64": (74, 75), "aarch64": (82, 83)}, errno.EIO),  # fsync and fdatasync
    "full": ({"x86_64": (18, 296), "aarch64": (68, 70)}, errno.ENOSPC),  # pwrite and pwritev
}


def fail(fault: str) -> None:
    """Let system calls of this process fail that write to files: a filter of the kernel sees to it."""

    def step(code: int, yes: int, no: int, value: int) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    numbers, reason = FAULTS[fault]
    first, second = numbers[platform.machine()]
    steps = [
        step(0x20, 0, 0, 0),  # load the number of the call
        step(0x15, 1, 0, first),
        step(0x15, 0, 1, second),
        step(0x06, 0, 0, 0x00050000 | reason),
        step(0x06, 0, 0, 0x7FFF0000),  # as usual
    ]
    code = ctypes.create_string_buffer(b"".join(steps))
    program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0):
        raise OSError(ctypes.get_errno(), "no filter for system calls")


def main(path: str, durability: str, seed: str, fault: str = "") -> None:
    """Ask and tell until something fails or the process is killed; with a fault it does so soon."""
    rng = np.random.default_rng(int(seed))
    agent = Agent.open(path, durability=durability, refits="inline", snapshot_every=50, reward_wait=1.0)
    start = agent.status().decisions
    for n in range(start, start + 1_000_000):
        try:
            if fault and n == start + 20:
                fail(fault)
            decision = agent.ask(f"shop {rng.integers(5)}", rng.standard_normal((4, 3)), id=f"{seed}-{n}")
            print("asked", decision.id, flush=True)
            reward = float(rng.standard_normal())
            agent.tell(decision.id, reward)
            print("told", decision.id, repr(reward), flush=True)
            if rng.random() < 0.3:
                agent.tell(decision.id, reward)
        except JournalError as error:
            print("error", error, flush=True)
            return
