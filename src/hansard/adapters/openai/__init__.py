"""The OpenAI API: chat completions and Responses, as the service and its imitators speak them."""

TESTED = {"openai (Python SDK)": "3.49.0"}
"""The versions that made the recordings."""

FORMATS = {
    "openai-chat-completions": "chat.ChatCompletions",
    "openai-responses": "responses.Responses",
}
