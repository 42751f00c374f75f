"""`check`: whether a network reads what it should, sees nothing that it must not see, and is trained as a whole."""

import sys
from collections.abc import Sequence

from firstlight import spelling
from firstlight.config.checks import check
from firstlight.config.keys import TEXTS
from firstlight.config.messages import explained
from firstlight.config.schema import compose
from firstlight.errors import UserError
from firstlight.invocation import invocation
from firstlight.terminal_text import say


def main() -> None:
    """Check the network that the command line names, and end with code 1 if a check fails."""
    arguments = sys.argv[1:]
    if not arguments or {"-h", "--help"} & set(arguments):
        say(TEXTS["check"].format(check=invocation("check"), train=invocation("train")))
        return
    spelling.use(spelling.as_override)
    named, overrides = _divided(arguments)
    with explained():
        config = compose([f"model._target_={named}", *overrides] if named else overrides, with_hydra=True)
        check(config)
        from firstlight.training.audit import audit  # torch and Lightning: seconds, after the checks
        from firstlight.training.build import prepared_data
        from firstlight.training.doctor import new_module, show

        data = prepared_data(config)
        module = new_module(config, data)
    show(audit(module, next(iter(data.train_dataloader()))))


def _divided(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name of a class, or "", and the overrides."""
    first, rest = arguments[0], list(arguments[1:])
    if "=" in first:
        return "", list(arguments)
    if ":" not in first or first.startswith(("-", ":")) or first.endswith(":"):
        raise UserError(f"{first} does not name a class; write package.module:Class, such as birds.network:MyNetwork")
    return first.replace(":", "."), rest
