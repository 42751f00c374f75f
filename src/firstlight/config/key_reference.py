"""The key reference of the documentation, as Markdown. Imports nothing heavy."""

from collections.abc import Iterator

from firstlight.config.keys import SECTIONS, Key, keys


def key_reference() -> str:
    """Return a chapter for each section of the configuration, with a table of its keys.

    The chapters begin with headings of the second level, `## data`, for a page with a title of its own.
    """
    return "\n".join(line for section in SECTIONS for line in _chapter(section))


def _chapter(section: str) -> Iterator[str]:
    yield f"## {f'`{section}`' if section else SECTIONS[section]}\n"
    if section:
        yield f"{SECTIONS[section]}.\n"
    yield "| key | type | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for key in keys():
        if key.section == section:
            yield f"| `{key.name}` | {key.type} | {_default(key)} | {_meaning(key)} |"
    yield ""


def _default(key: Key) -> str:
    return "" if key.is_node else f"`{key.default_text}`" if ";" not in key.default_text else key.default_text


def _meaning(key: Key) -> str:
    """Return the sentence, or the sentences with the tasks to which each applies."""
    where: dict[str, list[str]] = {}
    for variant in key.variants:
        where.setdefault(variant.sentence, []).extend(variant.where)
    if len(where) == 1:
        return _escaped(next(iter(where)))
    return "<br>".join(f"{', '.join(tasks)}: {_escaped(sentence)}" for sentence, tasks in where.items())


def _escaped(sentence: str) -> str:
    return sentence.replace("<", "&lt;").replace("_", r"\_").replace("*", r"\*").replace("[", r"\[").replace("|", r"\|")
