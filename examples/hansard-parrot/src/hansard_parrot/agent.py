"""How a parrot is started. Its wire is the adapter's business."""

from __future__ import annotations

from hansard import Agent, Capabilities, Options


class ParrotAgent(Agent):
    """One process, JSON both ways."""

    name, title, format, programs = "parrot", "Parrot", "parrot-json", ("parrot",)
    install = "pip install hansard-parrot"
    capabilities = Capabilities(images=False, resume=False, model=False, mode=False, mcp=False)

    def argv(self, options: Options) -> list[str]:
        return ["--json"]
