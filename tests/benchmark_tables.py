"""Functions that read the tables of the benchmarks."""

import re


def names(printed: str) -> list[str]:
    """Return the first column of the tables."""
    return [found.strip() for found in re.findall(r"^│(.*?)│", printed, flags=re.MULTILINE)]


def shares(printed: str) -> list[float]:
    """Return the second column of the first table, in percent."""
    return [float(share) for share in re.findall(r"│ +([\d.]+)% │ +[\d.]+ │", printed.partition("operations")[0])]
