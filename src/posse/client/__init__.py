"""Ask a service for decisions, and tell it rewards: with retries that cannot count twice, and a way out."""

from posse.client.clients import AsyncClient, Client
from posse.client.talk import Answer, ServiceError, UnavailableError

__all__ = ["Answer", "AsyncClient", "Client", "ServiceError", "UnavailableError"]
