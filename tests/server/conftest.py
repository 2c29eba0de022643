"""A server must not call the synchronous store on its event loop."""

from tests.loop_guard import loop_guard as loop_guard
