"""Sample plays in verse, generated from the grammar in plays.toml.

The text has patterns of every length: spelling and inflection, agreement of verbs with their subjects, the choice of
thou or you, matching brackets and quotes, answers that repeat words of the question, speakers who are on the stage, and
the names and the style of a play. Most words of a sentence fit the theme of their scene.
"""

import random
import re
import textwrap
from dataclasses import dataclass
from functools import cache

from firstlight.data.samples import english
from firstlight.data.samples.grammar import VOWEL, Lexicon, Words, capitalized, front_first, load
from firstlight.data.samples.names import LANGUAGES, coin

VERSION = 1  # increased when the generated text changes, so that caches are not reused
NUM_PLAYS = 9
NUMERALS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
NUM_ACTS = 5
ACT_SIZE = 23_700  # characters after which an act ends with its scene
MAX_COLUMNS = 60

SENTENCE_COUNTS = (1, 1, 2, 2, 2, 3, 3, 4, 5, 7)  # the number of sentences of a speech, each equally likely

_DATA = load("plays")
_PARTS, _SENTENCES, _PEOPLE, _SHARES = (_DATA[table] for table in ("parts", "sentences", "people", "shares"))
_THEMES = [{kind: words + _DATA["common"][kind] for kind, words in theme.items()} for theme in _DATA["themes"]]


def text(seed: int = 0) -> str:
    """Return the plays, about 1.2 million characters."""
    rng = random.Random(f"plays {seed}")
    return "\n\n".join(passage for _ in range(NUM_PLAYS) for passage in Play(rng).passages()) + "\n"


@dataclass(frozen=True)
class Character:
    """A character. A smaller number is a higher rank, to which characters of lower rank never say thou."""

    name: str
    calling: str
    address: str
    rank: int
    feminine: bool

    @property
    def spoken(self) -> str:
        """The name that others use for this character."""
        return self.name if self.calling else f"the {self.name.lower()}"

    @property
    def pronouns(self) -> dict[str, str]:
        return {"he": "she", "him": "her", "his": "her"} if self.feminine else {"he": "he", "him": "him", "his": "his"}


class SpeechWords(Words):
    """The words of one speech, with a list of the drawn nouns."""

    steepness = 1.7

    def __init__(self, rng: random.Random, choices: Lexicon, given: dict[str, str]) -> None:
        super().__init__(rng, choices, given)
        self.nouns: list[str] = []

    def __missing__(self, slot: str) -> str:
        word = super().__missing__(slot)
        if slot in ("n", "m"):
            self.nouns.append(word)
        return word


# A play and its scenes


class Play:
    """A play with its people, its places, and verbs that end in -eth or in -s."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.archaic = rng.random() < 0.5
        self.language = rng.choice(tuple(LANGUAGES))
        self.used: set[str] = set()
        self.places = tuple(self._new_name(feminine=True) for _ in range(4))
        self.cast: list[Character] = []
        for person in rng.sample(_PEOPLE["callings"], 11):
            calling, address, rank, *feminine = person.split(", ")
            name = self._new_name(feminine=bool(feminine))
            self.cast.append(Character(name, calling, address, int(rank), bool(feminine)))
        self.cast += [
            Character(name.capitalize(), "", f"good {name}", 5, feminine=False)
            for name in rng.sample(_PEOPLE["servants"], 2)
        ]
        self.names = tuple(person.name for person in self.cast if person.calling)
        self.oaths = {person.name: self._chronicle().one_of(_PARTS["oaths"]) for person in self.cast}

    def passages(self) -> list[str]:
        """Return the title, the persons and the acts."""
        title = _tidy(self._chronicle().one_of(_PARTS["titles"])).upper()
        passages = [title, "THE PERSONS OF THE PLAY", "\n".join(map(self._billing, self.cast))]
        for act in range(NUM_ACTS):
            passages += [f"ACT {NUMERALS[act]}.", *self._scenes(deadly=act >= NUM_ACTS - 2)]
        return passages

    def _scenes(self, *, deadly: bool) -> list[str]:
        """Return the scenes of an act."""
        passages: list[str] = []
        for number in NUMERALS:
            passages += [f"SCENE {number}. {self._setting()}", *Scene(self, deadly=deadly).passages()]
            if sum(map(len, passages)) > ACT_SIZE:
                break
        return passages

    def words(
        self, theme: int, speaker: Character | None, listener: Character | None, given: dict[str, str]
    ) -> SpeechWords:
        """Return the words with which a speaker addresses a listener."""
        thou = _says_thou(speaker, listener)
        choices = _choices(theme, self.archaic, thou) | {"name": self.names, "place": self.places}
        return SpeechWords(self.rng, choices, given)

    def _chronicle(self) -> SpeechWords:
        """Return words about a random person, without a listener."""
        given = {"who": self.rng.choice(self.names), "he": "he", "him": "him", "his": "his"}
        return self.words(self.rng.randrange(len(_THEMES)), None, None, given)

    def _billing(self, person: Character) -> str:
        if not person.calling:
            return f"A {person.name.upper()}"
        return _with_articles(f"{person.name.upper()}, a {person.calling} of {self.rng.choice(self.places)}")

    def _setting(self) -> str:
        setting = self.rng.choice(_PARTS["settings"])
        place, host = self.rng.choice(self.places), self.rng.choice(self.names)
        return capitalized(setting.format(place=place, host=host)) + "."

    def _new_name(self, *, feminine: bool) -> str:
        name = coin(self.rng, self.language, feminine=feminine)
        while not 4 <= len(name) <= 9 or name in self.used:
            name = coin(self.rng, self.language, feminine=feminine)
        self.used.add(name)
        return name.capitalize()


class Scene:
    """A scene with the people on the stage, the next speaker and the pending answer."""

    def __init__(self, play: Play, *, deadly: bool) -> None:
        self.play = play
        self.rng = play.rng
        self.deadly = deadly
        self.theme = self.rng.randrange(len(_THEMES))
        self.stage = self.rng.sample(play.cast, self.rng.choice((1, 2, 2, 3, 3, 4, 5)))
        self.written: list[str] = []
        self.heard = ""  # a noun of the last speech
        self.due = ""  # the pattern of the answer of the next speaker
        self.topic: dict[str, str] = {}  # the words that the answer repeats

    def passages(self) -> list[str]:
        """Return the scene from the first entrance to the last exit."""
        self._direct(f"Enter {_listed(self.stage)}")
        if len(self.stage) == 1:
            self._speak(self.stage[0], None, count=self.rng.randrange(6, 14))
            self._enter(None)
        speaker, listener = self.rng.sample(self.stage, 2)
        for _ in range(self.rng.randrange(8, 40)):
            speaker, listener = self._turn(speaker, listener)
        self._end(speaker, listener)
        return self.written

    def _turn(self, speaker: Character, listener: Character) -> tuple[Character, Character]:
        """Write a speech. Return the next speaker and the next listener."""
        event = self.rng.random()
        if event < 0.06 and len(self.stage) < min(6, len(self.play.cast)):
            return self._enter(speaker), speaker
        if event < 0.12 and len(self.stage) > 2:
            self._speak(speaker, listener, last="farewells", after="Exit")
            self.stage.remove(speaker)
            return listener, self._other_than(listener)
        called = self._speak(speaker, listener)
        if called or self.rng.random() < 0.75:
            return listener, speaker if self.rng.random() < 0.85 else self._other_than(listener)
        follower = self._other_than(speaker)
        return follower, speaker if self.rng.random() < 0.6 else self._other_than(follower)

    def _enter(self, speaker: Character | None) -> Character:
        """Add a person to the stage, announced by the speaker, if any, and return the person."""
        comer = self.rng.choice([person for person in self.play.cast if person not in self.stage])
        if speaker:
            self._speak(speaker, comer, last="arrivals")
        self._direct(f"Enter {comer.name}")
        self.stage.append(comer)
        self.due = front_first(_PARTS["greetings"], self.rng, SpeechWords.steepness)
        return comer

    def _end(self, speaker: Character, listener: Character) -> None:
        """Write the end of the scene: a death or rhymes."""
        if self.deadly and len(self.play.cast) > 7 and self.rng.random() < 0.3:
            self._speak(speaker, listener, last="deaths", after="Dies")
            self.play.cast.remove(speaker)
            self._direct(f"Exeunt with the body of {speaker.name}")
            return
        words = self._words(speaker, listener)
        self._say(speaker, [*_verse(words.one_of(_SENTENCES["says"])), *self._rhymes(words, 1)])
        self._direct("Exeunt")

    def _other_than(self, person: Character) -> Character:
        return self.rng.choice([other for other in self.stage if other is not person])

    def _words(self, speaker: Character, listener: Character | None) -> SpeechWords:
        absent = [person for person in self.play.cast if person not in self.stage and person is not listener]
        who = self.rng.choice(absent or self.play.cast)
        given = {"who": who.spoken, "key": self.heard, **who.pronouns, **self.topic}
        given |= {"next": listener.spoken if listener else "my soul", "voc": _vocative(speaker, listener)}
        return self.play.words(self.theme, speaker, listener, given)

    def _speak(
        self, speaker: Character, listener: Character | None, count: int = 0, last: str = "", after: str = ""
    ) -> bool:
        """Write a speech that may start with an answer or an echo. Return whether it addresses the listener."""
        words = self._words(speaker, listener)
        if not last and not self.due and self.rng.random() < _SHARES["song"]:
            self.heard = ""
            self._say(speaker, ["[_Sings._]", *self._rhymes(words, 2)])
            return False
        sentences = self._opening(speaker, words)
        self.due, self.topic = "", {}
        sentences += [self._sentence(words) for _ in range(count or self.rng.choice(SENTENCE_COUNTS))]
        ending = self._ending(words, listener, last)
        lines = _verse(" ".join([*sentences, *ending]), broken=not ending)
        self._gesture(lines, speaker, listener, words)
        self._say(speaker, lines + ([f"[_{after}._]"] if after else []))
        self.heard = self.rng.choice(words.nouns) if words.nouns else ""
        return bool(self.due) or bool(ending)

    def _opening(self, speaker: Character, words: SpeechWords) -> list[str]:
        if self.due:
            return [words.fill(self.due)]
        if self.heard and self.rng.random() < _SHARES["echo"]:
            return [words.one_of(_PARTS["echoes"])]
        if self.rng.random() < _SHARES["oath"]:
            return [f"{self.play.oaths[speaker.name]}, {words['clause']}."]
        return []

    def _sentence(self, words: SpeechWords) -> str:
        kind = self.rng.choices(("says", "asks", "bids"), (74, 12, 14))[0]
        if self.rng.random() < _SHARES["theme"]:
            return words.one_of(_SENTENCES[kind])
        usual, other = words.choices, self.rng.randrange(len(_THEMES))
        words.choices = usual | _nouns(other)
        sentence = words.one_of(_SENTENCES[kind])
        words.choices = usual
        return sentence

    def _ending(self, words: SpeechWords, listener: Character | None, last: str) -> list[str]:
        if last:
            return [words.one_of(_PARTS[last])]
        if listener and self.rng.random() < _SHARES["question"]:
            question, self.due = front_first(_PARTS["exchanges"], self.rng, SpeechWords.steepness).split(" => ")
            self.topic = self._new_topic(words)
            words.update(self.topic)
            return [words.fill(question)]
        if listener and self.rng.random() < _SHARES["call"]:
            return [words.one_of(_PARTS["calls"])]
        return []

    def _new_topic(self, words: SpeechWords) -> dict[str, str]:
        verb, thing, person = words["t"], words["n"], words["name"]
        before, done = english.past(verb)
        deeds = {"deed": verb, "deed_ed": before, "deed_en": done, "deed_es": _third(verb, self.play.archaic)}
        return {**deeds, "thing": thing, "thing_s": english.plural(thing), "person": person}

    def _gesture(self, lines: list[str], speaker: Character, listener: Character | None, words: SpeechWords) -> None:
        """Insert a stage direction before one of the lines in some speeches."""
        if not listener or self.rng.random() >= _SHARES["gesture"]:
            return
        own = {"He": speaker.pronouns["he"].title(), "his": speaker.pronouns["his"]}
        gesture = SpeechWords(self.rng, words.choices, {**words, **own}).one_of(_PARTS["gestures"])
        lines.insert(self.rng.randrange(len(lines)), f"[_{_with_articles(gesture)}._]")

    def _rhymes(self, words: SpeechWords, num_couplets: int) -> list[str]:
        families = (self.rng.choice(_PARTS["rhymes"]).split(", ") for _ in range(num_couplets))
        pairs = (self.rng.sample(family, 2) for family in families)
        return [
            self._rhymed_line(words, rhyme) + mark for pair in pairs for rhyme, mark in zip(pair, ",.", strict=True)
        ]

    def _rhymed_line(self, words: SpeechWords, rhyme: str) -> str:
        words["rhyme"] = rhyme
        while True:
            line = _tidy(words.one_of(_PARTS["couplets"]))
            if len(line) < MAX_COLUMNS and 9 <= sum(map(_syllables, line.split())) <= 11:
                return line

    def _say(self, speaker: Character, lines: list[str]) -> None:
        self.written.append("\n".join([f"{speaker.name.upper()}.", *lines]))

    def _direct(self, direction: str) -> None:
        self.written.append(textwrap.fill(f"[_{direction}._]", MAX_COLUMNS))


def _says_thou(speaker: Character | None, listener: Character | None) -> bool:
    """Return whether a speaker says thou: to nobody, to a lower rank, or to the same rank and gender."""
    if not speaker or not listener:
        return True
    return listener.rank > speaker.rank or (listener.rank, listener.feminine) == (speaker.rank, speaker.feminine)


def _vocative(speaker: Character, listener: Character | None) -> str:
    if not listener:
        return "my soul"
    return listener.address if listener.rank <= speaker.rank else listener.spoken.replace("the ", "good ")


def _listed(people: list[Character]) -> str:
    names = [person.name for person in people]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


# The words of a theme


@cache
def _nouns(theme: int) -> Lexicon:
    nouns, masses, adjectives = (_THEMES[theme][kind] for kind in ("nouns", "masses", "adjectives"))
    plurals = tuple(map(english.plural, nouns))
    return {
        **dict.fromkeys(("n", "n_"), nouns),
        **dict.fromkeys(("m", "m_"), masses),
        "ns": plurals,
        "a": adjectives,
        "manner": tuple(map(english.adverb, adjectives)),
        **{slot: tuple(map(str.title, words)) for slot, words in (("N", nouns), ("Ns", plurals), ("A", adjectives))},
    }


@cache
def _choices(theme: int, archaic: bool, thou: bool) -> Lexicon:
    """Return the words and patterns of every slot."""
    return (
        _DATA["phrases"]
        | {slot: (forms.split(" => ")[not thou],) for slot, (forms,) in _DATA["second_person"].items()}
        | {slot: (forms.split(" => ")[not archaic],) for slot, (forms,) in _DATA["third_person"].items()}
        | _nouns(theme)
        | _verbs("t", _THEMES[theme]["deeds"], archaic, thou)
        | _verbs("i", _THEMES[theme]["acts"], archaic, thou)
    )


def _verbs(slot: str, verbs: tuple[str, ...], archaic: bool, thou: bool) -> Lexicon:
    return {
        slot: verbs,
        f"{slot}s": tuple(_third(verb, archaic) for verb in verbs),
        f"{slot}st": tuple(english.ended(verb, "est") for verb in verbs) if thou else verbs,
        f"{slot}ed": tuple(english.past(verb)[0] for verb in verbs),
        f"{slot}en": tuple(english.past(verb)[1] for verb in verbs),
        f"{slot}ing": tuple(english.ended(verb, "ing") for verb in verbs),
    }


def _third(verb: str, archaic: bool) -> str:
    return english.ended(verb, "eth") if archaic else english.third(verb)


# Spelling and verse

_START = re.compile(r"((?:^|[.!?]’? |\.” |, (?=‘))[“‘’]?)([a-z])")
_BEFORE_VOWEL = re.compile(rf"\b(a|my|thy)(?= (?:{VOWEL}|honey))")
_LOW = re.compile("^([‘’“(]*)([a-z])")
_VOWELS = re.compile("[aeiouy]+")
_SILENT = re.compile(r"(?<=[^aeiou\W])(?:(?<!l)e|(?<![td])ed|(?<![sxzhcg])es)$")


def _with_articles(text: str) -> str:
    """Return a text with an, mine and thine before vowels."""
    return _BEFORE_VOWEL.sub(lambda found: "an" if found[0] == "a" else found[0][:-1] + "ine", text)


def _tidy(text: str) -> str:
    """Return a text whose sentences begin with a capital."""
    return _START.sub(_raised, _with_articles(text))


def _raised(found: re.Match[str]) -> str:
    return found[1] + found[2].upper()


@cache
def _syllables(word: str) -> int:
    word = word.lower().strip("‘’“”.,;:!?()—")
    return max(1, len(_VOWELS.findall(_SILENT.sub("", word))))


def _verse(text: str, *, broken: bool = False) -> list[str]:
    """Return sentences in lines of about ten syllables. An open sentence ends with a dash if broken, else a stop."""
    if text.endswith(";"):
        text = text[:-1] + ("—" if broken else ".")
    lines: list[str] = []
    line, length = "", 0
    for word in _tidy(text).split():
        count = _syllables(word)
        if line and (length + count > 11 or length >= 10 or len(line) + len(word) >= MAX_COLUMNS):
            lines.append(line)
            line, length = "", 0
        line = f"{line} {word}" if line else _LOW.sub(_raised, word)
        length += count
    return [*lines, line]
