"""YAML that libyaml writes in the tests equals what OmegaConf writes."""

from unittest.mock import patch

import hydra
import pytest
from omegaconf import OmegaConf, omegaconf
from omegaconf._utils import get_omega_conf_dumper

from firstlight.config.schema import register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from yaml_in_c import HAS_LIBYAML, written_in_c

REASON = "this build of PyYAML has no libyaml, so the tests use OmegaConf's own"
VALUES = {
    "strings": ["", "yes", "1e3", "0x1f", "1_000", "null", "a: b", "# not a comment", "two\nlines", " spaces ", "*"],
    "letters": ["é", "日本語", "\x07", "\u2028", "a\tb", "'", '"', "\\"],
    "long": ["a word and another " * 20, "x" * 300, "${paths.log_dir}", {"key with spaces": "${oc.env:HOME}"}],
    "numbers": [1, -1.5, 1e-7, 3e30, float("inf"), True, None, {}, [], {"deep": {"deeper": [{"deepest": 0}]}}],
}


def in_python(config: object) -> str:
    with patch.object(omegaconf, "get_omega_conf_dumper", get_omega_conf_dumper):
        return OmegaConf.to_yaml(config)


@pytest.mark.skipif(not HAS_LIBYAML, reason=REASON)
def test_the_text_is_that_of_omegaconf() -> None:
    register_schemas()
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        config = hydra.compose(CONFIG_NAME, overrides=["task=stars"])
    for each in (config, OmegaConf.create(VALUES)):
        expected = in_python(each)
        with written_in_c():
            assert OmegaConf.to_yaml(each) == expected


@pytest.mark.skipif(not HAS_LIBYAML, reason=REASON)
def test_letters_that_it_escapes_are_read_back() -> None:
    with written_in_c():
        assert OmegaConf.create(OmegaConf.to_yaml(OmegaConf.create({"face": "😀"}))).face == "😀"
