"""Histories that are kept as one document: message lists for the two providers' APIs, and ATIF trajectories."""

FORMATS = {
    "openai-messages": "lists.OpenAIMessages",
    "anthropic-messages": "lists.AnthropicMessages",
    "atif": "atif.Atif",
}
TESTED = {"openai (Python SDK)": "3.49.0", "anthropic (Python SDK)": "2.8.0", "atif (Python package)": "1.8.0"}
"""The packages whose types these adapters were written to."""
