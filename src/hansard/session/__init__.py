"""A session with a running agent: append, then show, then send. Where it stands is derived from its log and from nothing else."""

from hansard.session.session import Session

__all__ = ["Session"]
