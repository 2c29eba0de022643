"""An MCP server over its standard input and output, with one tool: it says again what it was told."""

import json
import sys

SAY = {"name": "say", "description": "Say it again", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


def answer(method: str, params: dict) -> dict:
    """The result of a request."""
    if method == "initialize":
        about = {"name": "echo", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [SAY]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"you said {params['arguments']['text']}"}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"], message.get("params", {}))}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
