"""The OpenAI API: chat completions and Responses, as the service and its imitators speak them."""

TESTED = {"openai (Python SDK)": "3.49.0"}
"""What the recordings were made with."""

FORMATS = {
    "openai-chat-completions": "chat.ChatCompletions",
    "openai-responses": "responses.Responses",
}
