"""Live decisions: traffic drives a learner, through a journal that forgets nothing."""

from posse.live.agent import Agent as Agent
from posse.live.records import Decision as Decision
from posse.live.status import Status as Status
from posse.live.status import read_status as read_status

__all__ = ["Agent", "Decision", "Status", "read_status"]
