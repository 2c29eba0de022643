"""Redaction: events with their secrets masked."""

from hansard.projections.redaction.redact import Redacted, mask_text, redact

__all__ = ["Redacted", "mask_text", "redact"]
