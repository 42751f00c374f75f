"""Every key of all tasks, as the chapter of the documentation that lists them."""

from collections.abc import Iterator
from functools import cache

from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from firstlight.config.keys import SECTIONS, Key, as_typed, keys_of, keys_of_choices
from firstlight.config.schema import compose
from firstlight.config_files import CONFIG_DIR


@cache
def all_keys() -> dict[str, dict[str, Key]]:
    """Return every key by its name, for each task that has it; for other keys, for the choices that have it."""
    found: dict[str, dict[str, Key]] = {}
    tasks = sorted(path.stem for path in (CONFIG_DIR / "task").glob("*.yaml"))
    for task in tasks:
        config = compose([f"task={task}"], with_hydra=True)
        HydraConfig.instance().set_config(config)
        OmegaConf.set_struct(config, False)
        for key in keys_of(config):
            found.setdefault(key.name, {})[task] = key
    for choice, key in keys_of_choices():
        if found.setdefault(key.name, {}).keys().isdisjoint(tasks):
            found[key.name][choice] = key
    order = list(SECTIONS)
    return dict(sorted(found.items(), key=lambda item: order.index(next(iter(item[1].values())).section)))


def key_reference() -> str:
    """Return a chapter of Markdown for each section of the configuration, with its keys and a folded table of them.

    The chapters begin with headings of the second level, `## data`, for a page with a title.
    """
    return "\n".join(line for section in SECTIONS for line in _chapter(section))


def _chapter(section: str) -> Iterator[str]:
    yield f"## {f'`{section}`' if section else SECTIONS[section]}\n"
    if section:
        yield f"{SECTIONS[section]}.\n"
    mine = {name: places for name, places in all_keys().items() if next(iter(places.values())).section == section}
    names = ", ".join(f"<code>{name.removeprefix(f'{section}.')}</code>" for name in mine)
    yield f'<details class="keys" markdown="1">\n<summary>{len(mine)} keys: {names}</summary>\n'
    yield "| key | type | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for name, places in mine.items():
        key = next(iter(places.values()))
        values = {place: f"`{as_typed(each.value)}`" for place, each in places.items()}
        sentences = {place: _escaped(each.sentence) for place, each in places.items()}
        default = "" if key.is_node else _by_place(values, "; ")
        yield f"| `{name}` | {_escaped(key.type)} | {default} | {_by_place(sentences, '<br>')} |"
    yield "\n</details>\n"


def _by_place(texts: dict[str, str], separator: str) -> str:
    """Return the text, or if the tasks have several, each one with its tasks."""
    where: dict[str, list[str]] = {}
    for place, text in texts.items():
        where.setdefault(text, []).append(place)
    if len(where) == 1:
        return next(iter(where))
    return separator.join(f"{', '.join(places)}: {text}" for text, places in where.items())


def _escaped(sentence: str) -> str:
    return sentence.replace("<", "&lt;").replace("_", r"\_").replace("*", r"\*").replace("[", r"\[").replace("|", r"\|")
