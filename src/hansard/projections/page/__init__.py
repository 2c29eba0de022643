"""The page: plain files that the server sends, and the same files as one script and one style for a page that stands alone."""

from __future__ import annotations

from hansard.projections.page.bundle import STATIC, bundle, style

__all__ = ["STATIC", "bundle", "style"]
