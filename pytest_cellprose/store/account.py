"""What calls of one vendor have cost, as ledgers and manifests write it."""

from __future__ import annotations

from pytest_cellprose.record.record import Frozen


class Account(Frozen):
    """Nano-dollars, and the calls that they are for."""

    spent: int = 0
    """By the usage that was reported."""
    assumed: int = 0
    """Calls that ended without any reported usage, at their expected cost: they may have been billed."""
    calls: int = 0
    unreported: int = 0
    """Of the calls, those whose cost is assumed."""

    def __add__(self, other: Account) -> Account:
        return Account(
            spent=self.spent + other.spent,
            assumed=self.assumed + other.assumed,
            calls=self.calls + other.calls,
            unreported=self.unreported + other.unreported,
        )

    @property
    def counted(self) -> int:
        """What counts towards a cap."""
        return self.spent + self.assumed


def of_call(cost: int | None, expected: int) -> Account:
    """One call's; `cost` None: it is not known, and `expected` is assumed."""
    return Account(
        spent=cost or 0, assumed=expected if cost is None else 0, calls=1, unreported=1 if cost is None else 0
    )
