"""A patch that lets OmegaConf write YAML with libyaml, which is ten times as fast.

The text is the same, but libyaml escapes characters above U+FFFF, such as emoji.
"""

import contextlib
from collections.abc import Iterator
from unittest.mock import patch

import yaml
from omegaconf import omegaconf
from omegaconf._utils import OmegaConfDumper

HAS_LIBYAML = yaml.__with_libyaml__  # not with every build of PyYAML


@contextlib.contextmanager
def written_in_c() -> Iterator[None]:
    """Let OmegaConf.to_yaml use libyaml within the block, where PyYAML has it."""
    if not HAS_LIBYAML:
        yield
        return

    class Dumper(yaml.CDumper):
        """OmegaConf's dumper on top of libyaml."""

    Dumper.add_representer(str, OmegaConfDumper.str_representer)
    with patch.object(omegaconf, "get_omega_conf_dumper", lambda: Dumper):
        yield
