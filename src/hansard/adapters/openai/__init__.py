"""The OpenAI API: chat completions and Responses, as the service and its imitators speak them."""

from hansard.adapters.openai.chat import ChatCompletions
from hansard.adapters.openai.responses import Responses

TESTED = {"openai (Python SDK)": "3.49.0"}
"""What the recordings were made with."""

ADAPTERS = (ChatCompletions, Responses)
