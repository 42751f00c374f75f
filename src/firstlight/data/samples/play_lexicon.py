"""The words of the sample plays by theme, their inflections, and the patterns that sentences are made of.

A `{slot}` is filled from the theme's words or by another pattern. In every tuple the front is used most, so the words
have a long tail.
"""

Lexicon = dict[str, tuple[str, ...]]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


IRREGULAR = {
    "bear": ("bore", "borne"), "bend": ("bent", "bent"), "bind": ("bound", "bound"), "bite": ("bit", "bitten"),
    "bleed": ("bled", "bled"), "blow": ("blew", "blown"), "break": ("broke", "broken"), "bring": ("brought", "brought"),
    "build": ("built", "built"), "buy": ("bought", "bought"), "catch": ("caught", "caught"),
    "choose": ("chose", "chosen"), "come": ("came", "come"), "creep": ("crept", "crept"), "dig": ("dug", "dug"),
    "dream": ("dreamt", "dreamt"), "drink": ("drank", "drunk"), "eat": ("ate", "eaten"), "fall": ("fell", "fallen"),
    "feed": ("fed", "fed"), "fight": ("fought", "fought"), "find": ("found", "found"), "flee": ("fled", "fled"),
    "foresee": ("foresaw", "foreseen"), "foretell": ("foretold", "foretold"), "forget": ("forgot", "forgotten"),
    "forgive": ("forgave", "forgiven"), "freeze": ("froze", "frozen"), "grind": ("ground", "ground"),
    "grow": ("grew", "grown"), "hang": ("hung", "hung"), "hear": ("heard", "heard"), "hold": ("held", "held"),
    "keep": ("kept", "kept"), "kneel": ("knelt", "knelt"), "know": ("knew", "known"), "lead": ("led", "led"),
    "leave": ("left", "left"), "lend": ("lent", "lent"), "lose": ("lost", "lost"), "mislead": ("misled", "misled"),
    "mistake": ("mistook", "mistaken"), "outrun": ("outran", "outrun"), "overthrow": ("overthrew", "overthrown"),
    "pay": ("paid", "paid"), "ride": ("rode", "ridden"), "ring": ("rang", "rung"), "rise": ("rose", "risen"),
    "run": ("ran", "run"), "see": ("saw", "seen"), "seek": ("sought", "sought"), "sell": ("sold", "sold"),
    "send": ("sent", "sent"), "shake": ("shook", "shaken"), "shine": ("shone", "shone"), "shoot": ("shot", "shot"),
    "sing": ("sang", "sung"), "sink": ("sank", "sunk"), "slay": ("slew", "slain"), "sleep": ("slept", "slept"),
    "smite": ("smote", "smitten"), "sow": ("sowed", "sown"), "speak": ("spoke", "spoken"), "spin": ("spun", "spun"),
    "stand": ("stood", "stood"), "steal": ("stole", "stolen"), "strike": ("struck", "stricken"),
    "swear": ("swore", "sworn"), "sweep": ("swept", "swept"), "swim": ("swam", "swum"), "take": ("took", "taken"),
    "teach": ("taught", "taught"), "tread": ("trod", "trodden"), "wake": ("woke", "woken"), "wear": ("wore", "worn"),
    "weave": ("wove", "woven"), "weep": ("wept", "wept"), "win": ("won", "won"),
    "withstand": ("withstood", "withstood"),
}  # fmt: skip
DOUBLING = frozenset(
    _words(
        "beg compel dig dim drip forget hum knit outrun plot rob rot run scrub spin stab stir sup"
        " swim trap trim wed win"
    )
)
PLURALS = {
    "man": "men", "woman": "women", "child": "children", "foot": "feet", "knife": "knives", "leaf": "leaves",
    "wolf": "wolves", "thief": "thieves", "loaf": "loaves", "wife": "wives", "sheaf": "sheaves", "goose": "geese",
    "gallows": "gallows", "mouse": "mice", "hoof": "hooves", "calf": "calves", "scarf": "scarves", "oarsman": "oarsmen",
    "huntsman": "huntsmen", "tooth": "teeth", "life": "lives", "echo": "echoes",
}  # fmt: skip


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    if noun in PLURALS:
        return PLURALS[noun]
    if noun[-1] == "y" and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def third(verb: str) -> str:
    """Return the form after `he`, as in `he breaks`."""
    return plural(verb)


def ended(verb: str, ending: str) -> str:
    """Put -eth, -est, -ed or -ing to a verb."""
    if verb in DOUBLING:
        return verb + verb[-1] + ending
    if ending == "ing":
        if verb.endswith("ie"):
            return verb[:-2] + "ying"
        return (verb[:-1] if verb[-1] == "e" and not verb.endswith("ee") else verb) + ending
    if verb[-1] == "y" and verb[-2] not in "aeiou":
        return verb[:-1] + "i" + ending
    return verb + (ending[1:] if verb[-1] == "e" else ending)


def past(verb: str) -> tuple[str, str]:
    """Return the past tense and the participle."""
    return IRREGULAR.get(verb) or (ended(verb, "ed"),) * 2


def manner(adjective: str) -> str:
    """Return the adverb of an adjective."""
    if adjective.endswith("ly"):
        return f"in {adjective} wise"
    if adjective[-1] == "y" and adjective[-2] not in "aeiou":
        return adjective[:-1] + "ily"
    if adjective.endswith("ll"):
        return adjective + "y"
    if adjective.endswith(("ble", "dle", "gle", "ple", "tle", "ckle")):
        return adjective[:-1] + "y"
    if adjective.endswith("ue"):
        return adjective[:-1] + "ly"
    return adjective + "ly"


# Themes: nouns, nouns without a plural, verbs with an object, verbs without one, adjectives.
Theme = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]

COMMON: Theme = (
    _words(
        "man heart hand eye tongue day word woman name house head soul child friend foe face mind hour year thing fool"
        " knave tale story reason promise secret cause question answer door gate fire stone wall road river hill field"
        " beast bird voice ear shoulder foot finger breast thought wish quarrel lesson bargain errand riddle token"
        " neighbor stranger master servant mother father brother sister daughter wife widow orphan beggar prophet"
        " dwarf giant puppet scholar candle mirror cradle ladder basket bottle saddle pillow curtain window chimney"
    ),
    _words(
        "sorrow truth pride patience courage mercy wisdom folly anger reason malice fortune hope fear duty silence"
        " honesty envy treason gladness weariness plenty hunger thirst comfort favor labor wonder shame blame trust"
        " doubt gratitude cunning idleness modesty ambition kindness cruelty remembrance obedience"
    ),
    _words(
        "see know hold find keep take bring lose leave bear seek fear trust serve follow carry hear break forget touch"
        " guard mock praise blame curse bless beg watch name mistake forgive choose send lend despise pity answer teach"
        " deny reward obey deceive remember betray abandon flatter rule measure swallow question persuade recall"
        " delight torment offend outlive provoke honor shelter punish threaten welcome chide nourish compel"
    ),
    _words(
        "come stand speak wait fall weep sleep laugh rise live die run listen tremble wander hasten linger return"
        " whisper stumble prosper labor answer stare repent prevail waver wonder complain mutter perish endure"
    ),
    _words(
        "good old poor false true great slight gentle proud sweet foul cold strange idle honest bitter heavy bold weary"
        " wretched noble humble cruel kind hollow secret ancient foolish patient worthy crooked lean wicked sullen"
        " stubborn nimble simple dull faithful envious rotten merry solemn savage tender wanton rude brittle naked"
        " cunning lusty sickly awkward blessed peevish sturdy barren modest giddy wholesome grievous restless"
    ),
)

THEMES: tuple[Theme, ...] = (
    (  # the sea
        _words(
            "ship wave tide sail harbor anchor storm gull oar sailor rudder mast rock net lantern reef pilot shore"
            " current deck rope island haven wreck keel captain cove beacon whirlpool hull oarsman plank pearl cable"
        ),
        _words("salt foam spray brine tar driftwood seaweed ballast"),
        _words("drown steer sink launch moor wreck ferry flood hoist row haul toss fathom strand splice"),
        _words("drift sail float sink ebb swim founder row surge capsize anchor"),
        _words(
            "salt deep stormy briny windy drowned tidal becalmed leaky seaworthy landless foaming fathomless swollen"
        ),
    ),
    (  # war
        _words(
            "sword soldier army drum banner spear shield helmet captain wound battle siege trench trumpet breach tower"
            " arrow dagger rampart scout sentry march garrison victory enemy rebel hostage truce ditch cannon lance"
            " herald buckler ambush"
        ),
        _words("war steel blood powder glory slaughter armor valor plunder"),
        _words("slay strike wound besiege conquer smite arm stab overthrow withstand rout muster storm disarm ambush"),
        _words("fight march bleed charge muster yield retreat surrender advance rally"),
        _words(
            "bloody brave warlike armed valiant dreadful scarred martial fearless mutinous steadfast routed ruinous"
        ),
    ),
    (  # the court
        _words(
            "king crown throne queen lord prince court page duke scepter robe courtier jester subject envoy chamber"
            " palace feast chancellor usurper heir banquet steward jewel tyrant ruler regent princess kingdom carpet"
            " decree title footman whisperer"
        ),
        _words("state majesty ceremony power flattery velvet ermine homage intrigue"),
        _words(
            "crown obey banish depose flatter pardon exile summon knight raise govern anoint dethrone enthrone adorn"
        ),
        _words("reign bow rule govern scheme kneel feast plot"),
        _words(
            "royal princely stately golden lofty loyal courtly powerful perfumed haughty titled lawful jeweled regal"
        ),
    ),
    (  # the garden
        _words(
            "rose garden flower root leaf thorn tree branch bee seed orchard apple blossom weed hedge bud vine gardener"
            " lily fountain spade petal cherry nettle bough sapling thistle acorn willow plum arbor furrow sheaf pear"
        ),
        _words("earth dew grass moss clover honey barley ivy lavender"),
        _words("plant water sow prune reap gather graft weed pluck dig feed trim scatter uproot mow"),
        _words("grow bloom wither ripen rot flourish sprout blossom fade"),
        _words(
            "green ripe fragrant thorny leafy blooming withered sunny fertile mossy fruitful tangled rosy dewy budding"
        ),
    ),
    (  # night
        _words(
            "star night moon shadow dream owl ghost candle bell bat lamp spirit witch midnight evening spell phantom"
            " sleeper bed vision moth comet hag goblin omen cellar sorcerer charm cauldron demon lullaby lattice"
        ),
        _words("darkness sleep moonlight witchcraft mist dusk starlight gloom magic"),
        _words("wake haunt darken dim bewitch frighten conjure enchant startle hush foretell shroud foresee"),
        _words("sleep dream wake vanish shine glimmer hover flicker creep howl"),
        _words(
            "dark pale black silent ghostly moonlit starry dim sleepless haunted uncanny murky spectral drowsy nightly"
        ),
    ),
    (  # love
        _words(
            "lover kiss heart lip ring cheek glove vow maid sigh bride suitor letter smile wedding glance tear lock"
            " sweetheart rival bosom ribbon wooer bridegroom courtship embrace dimple blush posy veil darling sonnet"
        ),
        _words("love beauty desire jealousy longing tenderness constancy passion scorn"),
        _words("love kiss woo adore marry embrace scorn court win cherish charm wed desire jilt caress"),
        _words("sigh blush smile burn languish swoon pine weep faint flirt"),
        _words(
            "fair dear lovely loving constant jealous chaste tender fickle amorous lovesick smitten coy bashful ardent"
        ),
    ),
    (  # death
        _words(
            "grave bone tomb coffin skull worm corpse mourner churchyard shroud sexton funeral ghost vault plague"
            " poison"
            " fever executioner murderer gallows scaffold hangman epitaph spade doom carcass physician leech gravestone"
        ),
        _words("death dust grief ash mourning ruin oblivion decay murder clay"),
        _words("bury kill mourn murder poison strangle lament doom wither infect rob consume hang embalm"),
        _words("die perish mourn rot bleed expire wail sicken lament"),
        _words(
            "dead mortal pale grim mournful fatal deadly sick doomed hideous rotten ghastly graveless poisonous rigid"
        ),
    ),
    (  # hearth and kitchen
        _words(
            "table kettle oven cup loaf cook pot knife spoon goose supper pie broom bench apron ladle barrel cat mouse"
            " sausage onion larder goblet pudding hearth dish pantry kitchen housemaid landlady tavern hen egg"
        ),
        _words("bread wine ale smoke butter soup porridge pepper mustard flour cheese"),
        _words("eat drink bake boil roast stir fill scrub salt season pour taste carve devour broil"),
        _words("eat drink feast simmer sup belch brew chatter smoke"),
        _words("hungry thirsty warm greasy burnt sour fat tipsy drunken savory hot salted stale smoky toothless jolly"),
    ),
    (  # weather
        _words(
            "cloud wind storm winter thunderbolt rainbow tempest summer flood season gust morning icicle puddle frost"
            " sunbeam spring autumn drizzle snowdrift torrent flake sky blast mountain dawn heaven hailstone whirlwind"
        ),
        _words("rain snow thunder lightning ice weather hail sunshine fog warmth"),
        _words("freeze drench scorch blow shake melt chill scatter warm buffet darken blast sweep lash"),
        _words("rain blow freeze thaw thunder rage shine melt clear drip blaze"),
        _words(
            "cold warm wet gusty cloudy frosty wintry bleak mild windless snowy thunderous sultry misty frozen rainy"
        ),
    ),
    (  # market and law
        _words(
            "coin merchant purse debt judge bargain thief penny lawyer market oath court seal witness jury creditor"
            " bond"
            " ledger contract beggar bribe sum miser jailer prison lender pawnbroker clerk verdict tax trial toll heap"
        ),
        _words("gold silver law justice money interest profit credit theft usury"),
        _words("buy sell pay steal weigh count cheat judge rob borrow hoard squander fine arrest sue acquit pawn seal"),
        _words("haggle swear thrive pay beg plead cheat bargain testify"),
        _words("rich guilty just greedy lawful costly cheap dear thrifty penniless worthless wealthy stingy bankrupt"),
    ),
    (  # craft
        _words(
            "hammer smith anvil nail cloth thread loom weaver forge tailor needle wheel chain chisel blacksmith saw"
            " apprentice mason potter spindle kiln carpenter shuttle cobbler shoe lock key glazier wedge furnace tinker"
        ),
        _words("iron brass wool leather copper timber labor silk wax lead rust"),
        _words(
            "forge hammer mend build weave spin bend temper grind stitch carve bind shape hew solder polish knit rivet"
        ),
        _words("toil sweat rust labor work hammer crack spin"),
        _words(
            "hard skilled crude rusty woven molten clumsy tempered busy deft brazen leaden silken threadbare wooden"
        ),
    ),
    (  # music
        _words(
            "song string lute harp drum pipe dance fiddle singer tune dancer note ballad minstrel bell flute verse"
            " chord"
            " trumpet refrain melody fiddler poet echo jig choir reel horn rhyme measure bagpipe piper nightingale"
        ),
        _words("music harmony laughter noise mirth discord silence applause rhythm"),
        _words("sing play hear pluck tune teach charm drown echo rehearse compose serenade trill whistle"),
        _words("sing dance play hum echo ring whistle caper leap chime rejoice"),
        _words("loud soft tuneful shrill merry hoarse lively musical festive mellow melodious tuneless clamorous"),
    ),
    (  # the hunt
        _words(
            "hound deer hunter horse forest arrow wolf bow boar hawk fox snare huntsman horn hare trail stag kennel"
            " bear"
            " antler thicket falcon trap quarry hoof lair saddle burrow bridle doe pack spaniel weasel talon badger"
        ),
        _words("venison fur scent blood sport bracken game hide"),
        _words("hunt chase catch shoot track wound snare bite tame trap ride hood flush corner devour goad"),
        _words("hunt gallop bark flee pant leap snarl crouch prowl howl"),
        _words(
            "wild swift fierce hunted tame timid wounded savage fleet ravenous sharp shaggy breathless crafty trackless"
        ),
    ),
    (  # travel
        _words(
            "road traveler pilgrim inn journey mile bridge staff cloak horse desert stranger border map mule guide cart"
            " wagon crossroad milestone tent village peddler ferryman boot lodging hermit signpost path valley exile"
        ),
        _words("dust travel banishment haste mud homesickness weariness baggage"),
        _words("cross follow leave lead tread find guide mislead wear seek reach pass trace outrun pack load"),
        _words("travel wander ride stray depart return arrive limp stumble rest"),
        _words("distant long weary lost muddy foreign dusty lame homeless crooked winding narrow banished footsore"),
    ),
)

ADVERBS = _words(
    "now never still again here ever too soon then well always once often yet already alone together twice before"
    " today tomorrow presently straightway hereafter seldom henceforth"
)
NUMBERS = _words("two three ten seven twenty nine four forty six twelve")
RHYMES = tuple(
    _words(family)
    for family in (
        "night light sight fight might flight delight knight",
        "day way play clay decay delay bay dismay",
        "heart part art dart smart cart start",
        "eyes skies lies sighs cries spies disguise",
        "tears years fears ears spears cheers",
        "rest breast jest quest nest guest",
        "hand land band sand command strand",
        "stone bone throne moan tone loan",
        "sea tree plea knee decree glee",
        "hour flower power tower shower",
        "deep sleep sheep keep heap",
        "foes woes rose blows throes snows",
        "head bread dead bed thread dread",
        "fire desire lyre choir mire",
        "grave wave knave slave cave",
        "spring king ring string thing sting",
        "cold gold fold mold hold",
        "mind kind blind hind",
        "snow blow woe foe crow",
    )
)

# Who is in a play, and where: (calling, form of address, rank); a lower rank stands higher.
CALLINGS = (
    ("king", "my liege", 0), ("queen", "my queen", 0), ("duke", "your grace", 1), ("duchess", "your grace", 1),
    ("chancellor", "my lord", 1), ("abbess", "holy mother", 1), ("lord", "my lord", 2), ("lady", "my lady", 2),
    ("captain", "captain", 2), ("countess", "madam", 2), ("merchant", "good master", 3), ("nurse", "good nurse", 4),
    ("physician", "master doctor", 3), ("weaver", "mistress", 3), ("sailor", "good sailor", 4),
    ("shepherdess", "good maid", 4), ("soldier", "good soldier", 4), ("witch", "old mother", 3),
    ("jester", "sir fool", 4), ("landlady", "hostess", 3), ("gardener", "good fellow", 4), ("maid", "good girl", 4),
    ("knight", "sir knight", 2), ("singer", "good woman", 3), ("smith", "good smith", 4), ("widow", "good widow", 3),
)  # fmt: skip
FEMININE = frozenset(
    _words("queen duchess abbess lady countess nurse weaver shepherdess witch landlady maid singer widow")
)
SERVANTS = _words("messenger guard porter beggar boy watchman boatman page")
SETTINGS = (
    "the shore near {place}", "a camp before {place}", "a hall in the palace", "the garden of {host}", "a dark street",
    "a chamber in the house of {host}", "a churchyard", "the kitchen of {host}", "a heath. Thunder",
    "a market in {place}",
    "the forge of {host}", "a tavern. Music within", "a forest near {place}", "the road to {place}",
)  # fmt: skip


# The patterns of sentences. Speaker and listener: I and {thou}. Absent and present third person: {who}, {he}.
PHRASES: Lexicon = {
    # One thing, several things, and either of them as an object.
    "one": (
        "the {n}",
        "the {a} {n}",
        "{my} {n}",
        "{thy} {n}",
        "{my} {a} {n}",
        "the {n} of {name}",
        "{thy} {a} {n}",
        "{m}",
        "{his} {n}",
        "{who}",
        "this {a} {n}",
        "every {n}",
        "{a} {m}",
        "the {n} of {some}",
        "a {a} {n}",
        "{my} {m}",
        "no {n}",
        "the {n} that {ts} {object}",
        "{his} {a} {n}",
        "that {n}",
        "the {adv} {ten} {n}",
        "the {a} and {a} {n}",
        "the {n} in {my} {n}",
        "a {m_}-{ten} {n}",
        "{thy} {m}",
        "the {n} {who} {ted}",
        "the {n_}less {n}",
        "the {m} of {many}",
        "the most {a} {n} of all",
        "an un{ten} {n}",
        "each {n} of {place}",
    ),
    "many": (
        "the {ns}",
        "{my} {ns}",
        "{thy} {ns}",
        "the {a} {ns}",
        "{my} {a} {ns}",
        "all {thy} {ns}",
        "these {ns}",
        "{his} {ns}",
        "{a} {ns}",
        "the {ns} of {name}",
        "{number} {ns}",
        "the {ns} of {one}",
        "those {a} {ns}",
        "the {ns} that {t} {object}",
        "{thy} {a} {ns}",
        "{one} and {one}",
        "such {ns}",
        "{m} and {m}",
        "the {number} {a} {ns}",
        "the {n_}less {ns}",
        "the {ns} {who} {ted}",
        "these {m_}-{ten} {ns}",
    ),
    "some": ("{one}", "{many}"),
    "object": ("{one}", "{many}", "{one}", "{thee}", "{him}", "me"),
    "where": (
        "in the {n}",
        "in {place}",
        "by the {n}",
        "beneath {one}",
        "among the {ns}",
        "before {many}",
        "under {thy} {n}",
        "at the {n} of {name}",
        "upon the {a} {n}",
        "with {many}",
        "without {m}",
        "beside {one}",
        "like {a} {ns}",
        "for the {m} of {name}",
        "against {many}",
        "in a {n} of {m}",
        "behind {one}",
        "as {ns} {i}",
    ),
    "act": ("{ts} {object}", "{is} {where}", "{is}", "{ts} {object} {where}", "{adv} {ts} {object}", "{is} {adv}"),
    "acts": ("{t} {object}", "{i} {where}", "{i}", "{t} {object} {where}", "{adv} {t} {object}", "{i} {adv}"),
    "do": ("{t} {object}", "{i} {where}", "{i}", "{t} {object} {where}", "{i} {adv}", "{t} {one} and {t} {many}"),
    "clause": (
        "{one} {act}",
        "{many} {acts}",
        "I {acts}",
        "{thou} {tst} {object}",
        "{one} is {a}",
        "{many} are {a}",
        "{who} {act}",
        "{one} {hath} {ten} {object}",
        "I have {ten} {object}",
        "{thou} {hast} {ten} {object}",
        "{one} will {do}",
        "{many} will {do}",
        "{thou} {wilt} {do}",
        "I shall {do}",
        "{he} {ted} {object}",
        "{many} have {ten} {object}",
        "{one} was {ten} by {some}",
        "{many} were {ten} by {some}",
        "I {ted} {object}",
        "{one} is {ten} {where}",
        "{many} are {ten} {where}",
        "{thou} {art} {a}",
        "I am {a}",
        "{he} is {a}",
        "there is {m} in {some}",
        "{he} {hath} {ten} {object}",
        "{who} would {do}",
        "{one} {doth} not {t} {object}",
        "{many} do not {do}",
        "{thou} {dost} {adv} {do}",
        "{one} is {a} and {many} are {a}",
        "{many} {ied} {where}",
        "{one} is more {a} than {one}",
        "{many} are more {a} than {many}",
        "{one} must {do}",
        "{many} must {do}",
        "{thou} {shalt} {do}",
        "{thou} {art} {ting} {object}",
        "{one} is {ting} {object}",
        "{many} are {ting} {object}",
        "{thou} {ist} {where}",
        "{who} and {name} {acts}",
        "{name} {act}",
    ),
}

SENTENCES: Lexicon = {
    "says": (
        "{clause}.",
        "{clause}, and {clause}.",
        "{clause}, but {clause}.",
        "if {clause}, {clause}.",
        "{clause};",
        "when {clause}, {clause}.",
        "I know that {clause}.",
        "{voc}, {clause}.",
        "O {a} {n}! {clause}.",
        "though {clause}, {clause}.",
        "{clause}, for {clause}.",
        "I {t} {object}, and {t} {object}.",
        "O {m}, {m}!",
        "’tis {m} that {ts} {object}, and {m} that {ts} {object}.",
        "{clause}: {clause}.",
        "let {one} {do}.",
        "what {a} {n} {act}!",
        "as {many} {acts}, so {many} {acts}.",
        "{clause}, and {he} {ts} {object}.",
        "he that {ts} {object} {ts} {object}.",
        "they say that {clause}.",
        "not {m}, but {m}, {act}.",
        "{clause} (and {clause}).",
        "{who} told me, ‘{clause}.’",
        "I would not {do}, nor {do}, nor {do}.",
        "I heard {name} say, ‘{clause}!’",
        "where {many} {i}, {many} {i}.",
        "{clause}—O, {clause}!",
        "{manner}, {clause}.",
        "one {n} for {some}, one {n} for {some}!",
        "so {a}, so {a}, and yet so {a}!",
        "{t} {many}; {t} {one}.",
        "{clause} till {clause}.",
        "neither {one} nor {one} {act}.",
        "both {who} and {name} {acts}.",
        "’tis not the {n} but the {n} that {ts} {object}.",
        "I swear by {one} that {clause}.",
        "alas, {clause}!",
        "{who} {act} {manner}; {he} {ts} {object}, and {his} {n} {is}.",
        "{thou} {ist}, {thou} {tst}, {thou} {tst} {object}.",
        "because {clause}, {clause}.",
        "unless {clause}, {clause}.",
        "’twas {who} that {ted} {object}, and {he} {ied}.",
        "the {n}, the {n}, the {a} {n}, {is}.",
        "my {n} (the {a} {n}) {act}.",
        "{thou} {a} {n}, {thou} {n} of {m}!",
    ),
    "asks": (
        "what {n} is this?",
        "{dost} {thou} {do}?",
        "{hast} {thou} {ten} {object}?",
        "why should {one} {do}?",
        "{art} {thou} {a}?",
        "{wilt} {thou} {do}?",
        "how shall I {do}?",
        "who {ts} {object} {where}?",
        "{canst} {thou} {do}, {voc}?",
        "shall {one} {do}, or {do}?",
        "is not {one} {a}?",
        "are not {many} {a}?",
        "where is {who}, and where is {his} {n}?",
        "did {name} not {t} {object}?",
        "what if {clause}?",
    ),
    "bids": (
        "{t} {object}.",
        "{do}, {voc}.",
        "go, {t} {object}.",
        "come, {t} {object} {where}.",
        "{i} not, {voc}.",
        "let {one} {do}.",
        "let {many} {do}, and let {one} {do}.",
        "do not {t} {object}, lest {clause}.",
        "give me {thy} {n}, and {t} {my} {n}.",
        "bear {my} {n} to {name}.",
        "tell {who} that {clause}.",
    ),
}

# The word {key} is of the speech before.
ECHOES = (
    "“{key}”? {clause}.", "speak not of {key} to me; {clause}.", "{key}, {sayst} {thou}? {clause}.",
    "what {key}? {clause}.", "“{key},” {sayst} {thou}; I say “{m}.”", "no more of {key}, {voc}.",
    "{thy} {key}? why, {clause}.", "{key} here, {key} there! {clause}.", "O, not the {key}! {clause}.",
    "what is {key} to {some}? {clause}.", "call it not {key}; call it {m}.", "“{key}!” the {ns} cry, “{key}!”",
)  # fmt: skip

# What one asks and another answers about the same {thing} and {person}.
EXCHANGES = (
    ("who {deed_ed} {thy} {thing}?", "’twas {person} {deed_ed} {my} {thing}, and {clause}."),
    ("{hast} {thou} {deed_en} the {thing}, {voc}?", "I have {deed_en} the {thing}, {voc}, and {clause}."),
    ("where {hast} {thou} hid the {thing}?", "the {thing} is hid {where}; {clause}."),
    ("why {dost} {thou} {deed} the {thing} of {person}?", "I {deed} the {thing} of {person} because {clause}."),
    ("{wilt} {thou} {deed} {my} {thing}?", "I will {deed} {thy} {thing} when {clause}."),
    ("{hath} {person} {deed_en} the {a} {thing}?", "{person} {hath} {deed_en} {object}, but not the {thing}."),
    ("what {deed_es} the {thing}?", "{m} {deed_es} the {thing}, and {m}, and {many}."),
    ("{knowst} {thou} {person}?", "I {t} {person}, and {t} the {thing} {where}."),
    ("{didst} {thou} {deed} {person}?", "I never {deed_ed} {person}, {voc}; {clause}."),
    ("how many {thing_s} {hast} {thou}?", "I have {number} {thing_s}, {voc}, and {a} {ns}."),
)
GREETINGS = ("well met, {voc}; {clause}.", "{voc}, I come from {place}: {clause}.", "good morrow, {voc}. {clause}.")
CALLS = (
    "speak, {next}.", "what {sayst} {thou}, {next}?", "{next}, {t} {object}.", "{clause}, {next}.",
    "{next}, hear me!",
)  # fmt: skip
ARRIVALS = ("but soft, here comes {next}.", "look, {next} is here.", "who comes? ’tis {next}, and {a}.")
FAREWELLS = ("farewell; {clause}.", "I go to {t} {one}.", "{voc}, I take my leave.", "I will to {place}, and {do}.")
DEATHS = ("O, I am slain! {clause}.", "I die, {voc}. {clause}.", "{t} {my} {n} when I am dead; O, O!")
OATHS = ("by {one}", "by the {ns} of {place}", "{m} and {m}", "by {my} {n}", "O {ns} and {ns}", "by {number} {ns}")
GESTURES = (
    "Aside", "Aside to {next}", "{He} kneels", "Giving {next} a {n}", "Reads", "Taking the {n}", "{He} weeps", "Music",
    "Drawing {his} {n}", "{He} strikes {next}", "Thunder", "A {n} is heard within", "Shows a {n}", "To {next}",
)  # fmt: skip
COUPLETS = (
    "for {one} shall {t} the {ns} of {rhyme}", "and {many} {t} {thy} {m} in {rhyme}",
    "so {one} is {a}, and {one} is {rhyme}",
    "when {many} {i}, {many} are {rhyme}", "then {t} {my} {n} and {t} the {a} {rhyme}",
    "where {one} {hath} {ten} {my} {a} {rhyme}",
    "no {n} can {t} the {m} of {rhyme}", "let {many} {i}, and {t} the {rhyme}",
    "and I will {t} the {ns} of the {rhyme}",
)  # fmt: skip
TITLES = (
    "The {N} of {place}", "{name} and {name}", "The {A} {N}", "{name}, King of {place}", "A {N} for {name}",
    "The {Ns} of {place}",
)  # fmt: skip

# (for thou, for you)
SECOND_PERSON = {
    "thou": ("thou", "you"), "thee": ("thee", "you"), "thy": ("thy", "your"), "my": ("my", "my"), "art": ("art", "are"),
    "hast": ("hast", "have"), "dost": ("dost", "do"), "wilt": ("wilt", "will"), "shalt": ("shalt", "shall"),
    "canst": ("canst", "can"), "sayst": ("sayest", "say"), "knowst": ("knowest", "know"), "didst": ("didst", "did"),
}  # fmt: skip
# (in an archaic play, in another)
THIRD_PERSON = {"hath": ("hath", "has"), "doth": ("doth", "does")}
