"""An agent is one family, by whatever name it is recorded."""

from __future__ import annotations

import pytest

from hansard.adapters import adapter_for, layouts
from hansard.adapters.shared_ids import SHARED_IDS
from hansard.agents import own
from hansard.events.agent_family import FAMILIES, agent_family

NAMES = {
    "claude": ["claude", "Claude Code", "@agentclientprotocol/claude-agent-acp", "claude-oneshot", "agent-sdk", "agent_sdk"],
    "codex": ["codex", "codex-acp", "codex_cli_rs"],
    "copilot": ["Copilot", "GitHub Copilot CLI", "copilot-oneshot"],
    "cursor": ["cursor-agent", "Cursor"],
    "gemini": ["gemini-cli", "gemini"],
    "opencode": ["OpenCode", "opencode-acp"],
    "pi": ["pi"],
    "qwen": ["qwen-code", "qwen-io"],
    "openai": ["openai"],
    "scripted-sdk-agent": ["scripted-sdk-agent"],
}


@pytest.mark.parametrize(("family", "name"), [(family, name) for family, names in NAMES.items() for name in names])
def test_every_name_of_an_agent_is_of_its_family(family: str, name: str) -> None:
    assert agent_family(name) == family


def test_a_name_that_only_contains_another_is_a_family_of_its_own() -> None:
    assert agent_family("Pilot") == "pilot"
    assert agent_family("copilots") == "copilots"


def test_folders_and_ids_are_known_by_family() -> None:
    """The files of an agent and its wire meet under one name."""
    assert {layout.prefix for layout in layouts()} <= FAMILIES
    assert {family for family, _ in SHARED_IDS} <= FAMILIES
    assert {agent_family(adapter_for(layout.format).source) for layout in layouts()} <= FAMILIES
    assert {agent_family(agent.name) for agent in own().values() if agent.title.startswith("Claude")} == {"claude"}
