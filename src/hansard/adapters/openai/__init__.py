"""The OpenAI API: chat completions and Responses, as the service and its imitators speak them."""

from hansard.adapters.openai.chat import ChatCompletions

TESTED = {"openai (Python SDK)": "3.49.0"}
"""What the recordings were made with."""

ADAPTERS = (ChatCompletions,)
