"""Each impossible option of a dataclass is one line that names its key, wherever the option is set."""

import re
from importlib import import_module
from pathlib import Path

import pytest
import yaml

TABLE = yaml.safe_load(Path(__file__).with_name("impossible.yaml").read_text(encoding="utf-8"))
CASES = [(kind, options, message) for kind, rows in TABLE.items() for options, message in rows]


@pytest.mark.parametrize(("kind", "options", "message"), CASES)
def test_an_impossible_option_is_an_error_that_names_it(kind, options, message) -> None:
    module, _, name = kind.rpartition(".")
    make = getattr(import_module(f"firstlight.{module}"), name)
    if message is None:
        make(**options)
        return
    with pytest.raises(ValueError) as error:
        make(**options)
    assert re.search(message, str(error.value))
    assert "\n" not in str(error.value)
