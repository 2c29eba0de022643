"""Sums of money as people read them, with what they leave out."""

from __future__ import annotations

from hansard.events.ledger import UsageSum


def money(amount: float) -> str:
    """Returns an amount in US dollars: cents, or as much as a small amount needs."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"


def cost_text(total: UsageSum) -> str:
    """Returns a cost and what is not in it: ``$12.40 (3 sessions without a price)``."""
    known = "unknown" if total.cost_usd is None else money(total.cost_usd)
    left_out = total.sessions_without_price
    if not left_out:
        return known if total.cost_usd is not None or total.total_tokens else money(0)
    return f"{known} ({left_out} {'session' if left_out == 1 else 'sessions'} without a price)"
