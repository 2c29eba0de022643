"""The demo agent that comes with hansard: it needs no model, no account and no network."""

from __future__ import annotations

import sys
from pathlib import Path

from hansard.agents.base import Options
from hansard.agents.drivers.acp import AcpAgent

PROGRAM = Path(__file__).parents[2] / "demo" / "agent.py"


class Demo(AcpAgent):
    """A Python program of ours."""

    name, title = "demo", "The demo agent"

    def find(self, options: Options, path: str | None = None) -> str:
        return sys.executable

    def argv(self, options: Options) -> list[str]:
        return ["-I", str(PROGRAM)]


AGENTS = (Demo(),)
