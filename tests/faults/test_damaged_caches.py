"""A damaged cache gives the correct encoding or a one-line error, but not a different encoding."""

from typing import Any

import pytest

from faults.damage import answered, try_damages
from faults.encoders import encoder

DAMAGES = 60  # trials for each file


@pytest.mark.faults("damaged bytes: encoding caches")
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        *[("reviews", "amazon_reviews"), ("subwords", "amazon_reviews")],
        *[("names", "names/names.txt"), ("pairs", "multi30k")],
    ],
)
def test_a_damaged_cache_changes_no_encoding(kind, data, trials, small_data, tmp_path) -> None:
    encoded = encoder(kind, small_data / data, tmp_path / "cache")
    whole = plain(encoded())
    files = sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert len(files) >= 4

    def check() -> None:
        result = answered(encoded)
        assert result is not None, "a cache can be made again"
        assert plain(result) == whole, "a different encoding without an error"

    for file in files:
        try_damages(trials, file, check, DAMAGES, f"{kind} {file.name}", "value")
        content = file.read_bytes()
        with trials.one(f"{kind} without {file.name}"):
            file.unlink()
            check()
        file.write_bytes(content)


def plain(encoded: Any) -> dict[str, Any]:
    """Return the content of an encoding in plain types."""
    return {name: in_plain_types(value) for name, value in vars(encoded).items()}


def in_plain_types(value: Any) -> Any:
    if hasattr(value, "offsets"):
        return value.ids.tolist(), value.offsets.tolist()
    if isinstance(value, tuple):  # a tuple of tokenizers
        return [each.to_json() for each in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.to_json() if hasattr(value, "to_json") else value
