"""Agents that talk to each other: a message from one session to another, and the answer back. Both are on the record, in both logs."""

from hansard.talk.talks import Talks

__all__ = ["Talks"]
