"""What the text of an option means: each reads one form, and raises `ValueError` (or decimal's) for any other."""

from __future__ import annotations

from decimal import Decimal

DEFAULT_IN_FLIGHT = 8


def names(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not found:
        raise ValueError
    return found


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def shard(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    share = positive(number), positive(of)
    if share[0] > share[1]:
        raise ValueError
    return share


def natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def amount(text: str) -> Decimal:
    dollars = Decimal(text.removeprefix("$"))
    if not dollars.is_finite() or dollars < 0:
        raise ValueError
    return dollars


def amounts(text: str) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        vendor, equals, dollars = (part.strip() for part in pair.partition("="))
        if not vendor or not equals or vendor in found:
            raise ValueError
        found[vendor] = amount(dollars)
    if not found:
        raise ValueError
    return found


def in_flight(text: str) -> dict[str, int]:
    """``8``, or ``anthropic=8,openai=32``, or both: a number alone is for the vendors that are not named."""
    numbers = {"": DEFAULT_IN_FLIGHT}
    for part in names(text):
        vendor, equals, number = (piece.strip() for piece in part.rpartition("="))
        if bool(equals) != bool(vendor):
            raise ValueError
        numbers[vendor] = positive(number)
    return numbers


def sandbox(text: str) -> str:
    kind, colon, image = text.partition(":")
    if text != "unsafe" and not (kind == "container" and colon and image.strip()):
        raise ValueError
    return text


def seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError
    return number
