"""Histories that are kept as one document: message lists for the two providers' APIs, and ATIF trajectories."""

from hansard.adapters.messages.atif import Atif
from hansard.adapters.messages.lists import AnthropicMessages, OpenAIMessages

ADAPTERS = (OpenAIMessages, AnthropicMessages, Atif)
TESTED = {"openai": "3.49.0", "anthropic": "2.8.0", "atif": "1.8.0"}
"""The packages whose types these adapters were written to."""
