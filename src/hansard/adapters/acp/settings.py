"""The settings of a session: modes, models, and config options, which agents offer one or several of."""

from __future__ import annotations

from typing import Any

from hansard import events as ev
from hansard.adapters.acp import wire
from hansard.events.lenient import as_list, as_object


class Settings:
    """What the agent lets us set. Version 2 spells the id of a config option ``configId``."""

    def __init__(self) -> None:
        self.options: list[dict[str, Any]] = []
        self.has_modes = False
        self.has_models = False

    def replace(self, opened: wire.SessionResult) -> None:
        """Take the settings of a session that was opened."""
        self.options = opened.config_options or []
        self.has_modes, self.has_models = opened.modes is not None, opened.models is not None

    def option_of(self, category: str) -> str | None:
        """Return the id of the config option of this category."""
        names = (_id(option) for option in map(as_object, self.options) if option.get("category") == category)
        return next((name for name in names if isinstance(name, str)), None)

    def category_of(self, config_id: Any) -> str | None:
        """Return the category of a config option."""
        found = (option.get("category") for option in map(as_object, self.options) if _id(option) == config_id)
        return next((category for category in found if isinstance(category, str)), None)


def _id(option: dict[str, Any]) -> Any:
    return option.get("configId", option.get("id"))


def current_value(options: list[Any], category: str) -> str | None:
    """Return the value of the config option of this category: model, mode, …"""
    found = (option.get("currentValue") for option in map(as_object, options) if option.get("category") == category)
    return next((value for value in found if isinstance(value, str)), None)


def choices(options: list[Any], category: str) -> list[Any] | None:
    """Return the possible values of the config option of this category, those of groups among them."""
    for option in map(as_object, options):
        if option.get("category") == category and isinstance(option.get("options"), list):
            return [choice for item in as_list(option["options"]) for choice in as_list(as_object(item).get("options")) or [item]]
    return None


def options_event(subtype: str, options: list[Any]) -> ev.Event:
    """Return the event for all config options of a session."""
    return ev.configuration_change(
        subtype=subtype, model=current_value(options, "model"), mode_id=current_value(options, "mode"), options=options
    )
