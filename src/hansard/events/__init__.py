"""The vocabulary: one envelope, every type of event, and the content blocks they carry.

from hansard import events as ev

ev.AssistantChunk, ev.TextBlock
"""

from hansard.events.content import *  # noqa: F403
from hansard.events.types import *  # noqa: F403
