"""The words of the sample reviews: what fits every product, then one dictionary per kind of product.

A word may hold slots, `{so}`, which are filled in turn. In every tuple the front is used most, so the words have a
long tail. The same word may be praise for one kind of product and a fault of another: a loud speaker, a loud kettle.
"""

Lexicon = dict[str, tuple[str, ...]]

# Judgements, from best to worst: the sentiment of a word by itself, before the sentence around it turns it over.
SUPERB = (
    "great", "excellent", "amazing", "perfect", "fantastic", "wonderful", "superb", "awesome", "outstanding",
    "brilliant", "incredible", "terrific", "flawless", "fabulous", "exceptional", "magnificent", "phenomenal",
    "stunning", "impeccable", "marvelous", "spectacular", "first-rate", "splendid", "sublime", "top-notch",
    "world-class", "faultless", "glorious", "stellar", "exquisite", "unbeatable", "dazzling", "peerless",
)  # fmt: skip
GOOD = (
    "good", "nice", "solid", "decent", "pleasant", "reliable", "pretty", "likable", "pleasing", "satisfying", "smart",
    "clever", "useful", "respectable", "agreeable", "well made", "sensible", "handsome", "commendable", "neat",
    "thoughtful", "competent", "welcome", "dependable", "tasteful", "worthwhile", "inviting", "charming", "capable",
)  # fmt: skip
OKAY = (
    "okay", "average", "ordinary", "acceptable", "so-so", "passable", "adequate", "unremarkable", "standard",
    "tolerable", "run-of-the-mill", "middling", "forgettable", "sufficient", "middle-of-the-road", "commonplace",
    "fair", "workmanlike", "unexciting", "neutral", "plain", "unspectacular",
)  # fmt: skip
POOR = (
    "bad", "poor", "disappointing", "weak", "mediocre", "annoying", "lousy", "frustrating", "shoddy", "inferior",
    "underwhelming", "sloppy", "unimpressive", "second-rate", "lackluster", "crude", "clumsy", "irritating", "tacky",
    "careless", "unpleasant", "dubious", "awkward", "tiresome", "subpar", "unconvincing", "dreary", "half-baked",
)  # fmt: skip
AWFUL = (
    "terrible", "horrible", "awful", "useless", "dreadful", "worthless", "pathetic", "atrocious", "appalling",
    "garbage", "abysmal", "disgraceful", "hopeless", "unbearable", "laughable", "hideous", "ghastly", "horrendous",
    "miserable", "unusable", "shameful", "dismal", "catastrophic", "inexcusable", "wretched", "abominable", "insulting",
)  # fmt: skip

COMMON: Lexicon = {
    "superb": SUPERB,
    "good": GOOD,
    "okay": OKAY,
    "poor": POOR,
    "awful": AWFUL,
    "mood": ("{superb}", "{awful}", "{good}", "{poor}"),
    "very": (
        "very", "really", "incredibly", "extremely", "so", "truly", "remarkably", "seriously", "unbelievably", "super",
        "exceptionally", "absurdly", "terribly", "awfully", "insanely", "wonderfully", "enormously", "astonishingly",
    ),
    "slightly": (
        "a bit", "slightly", "a little", "somewhat", "kind of", "rather", "mildly", "a tad", "sort of",
        "vaguely", "a touch", "moderately",
    ),
    "often": ("every time", "every single day", "on every occasion", "without exception", "day in, day out"),
    "person": (
        "husband", "wife", "mom", "son", "daughter", "sister", "brother", "dad", "friend", "neighbor", "boss",
        "roommate", "grandmother", "colleague", "uncle", "niece", "cousin", "fiancé", "nephew", "mother-in-law",
        "grandfather", "landlord", "teacher", "stepson", "aunt", "godmother", "fiancée", "hairdresser", "dentist",
        "accountant", "bandmate", "plumber", "goddaughter", "babysitter", "librarian", "pharmacist", "ex",
    ),
    "place": (
        "kitchen", "office", "garage", "living room", "café", "cabin", "dorm", "basement", "apartment", "workshop",
        "classroom", "studio", "camper", "attic", "backyard", "hotel room", "church hall", "library", "barn", "boat",
        "hallway", "nursery", "greenhouse", "waiting room", "clubhouse", "laundry room", "treehouse", "conservatory",
    ),
    "number": ("two", "three", "four", "six", "five", "10", "seven", "eight", "nine", "12", "eleven", "15", "20"),
    "duration": (
        "a week", "a month", "{number} days", "{number} weeks", "{number} months", "a year", "a day or two",
        "a few days", "half a year", "an afternoon", "one summer", "a whole winter", "{number} hours", "a long weekend",
        "a season", "a fortnight", "the better part of a year", "{number} evenings", "a decade", "one semester",
        "a school year",
    ),
    "price": (
        "$19.99", "$20", "$35", "$49.95", "$12", "$8.50", "$99", "$150", "$24.90", "$65", "$210", "$5", "$7.49", "$320",
    ),
    "cost": ("{price}", "the price", "this kind of money", "what it costs", "under {price}", "less than {price}"),
    "occasion": (
        "Christmas", "a birthday", "our anniversary", "a wedding", "Mother's Day", "a house-warming", "graduation",
        "a trip", "Father's Day", "the holidays", "a baby shower", "Valentine's Day", "Thanksgiving", "retirement",
        "a family reunion", "Halloween", "a fund-raiser", "a dare", "the first day of school", "our honeymoon",
    ),
    "weekday": ("Monday", "Friday", "Saturday", "Tuesday", "Wednesday", "Thursday", "Sunday"),
    "weather": ("rain", "snow", "sunshine", "fog", "wind", "hail", "heat", "thunder", "drizzle", "frost", "sleet"),
    "brand": ("{onset}{coda}",),
    "rival": ("{onset}{coda}",),
    "onset": (
        "Vel", "Brisk", "Nor", "Tarn", "Zan", "Hex", "Mira", "Pell", "Quor", "Drum", "Lumo", "Osk", "Fenn", "Ryl",
        "Kest", "Juno", "Wix", "Cova", "Thrum", "Alto", "Yar", "Dov", "Plen", "Sarn", "Gib", "Unda", "Empl", "Isk",
    ),
    "coda": (
        "dexo", "wick", "mont", "lara", "tova", "bell", "nixa", "ster", "garo", "tronel", "field", "zona", "ley",
        "bruk", "mara", "zo", "kin", "pex", "vado", "hurst", "lund", "quist", "rique", "sby", "umo", "fax", "yne",
    ),
    "any_aspect": ("{own_aspect}", "{general_aspect}"),
    "general_aspect": (
        "price", "design", "color", "size", "finish", "packaging", "manual", "shape", "warranty", "delivery", "feel",
        "smell", "customer service", "label", "weight", "logo", "website", "return policy", "seller", "gift box",
        "assembly", "workmanship", "picture on the box", "décor", "support line", "updated version", "craftsmanship",
    ),
}  # fmt: skip

# What each kind of product is called, has, is when it pleases (apt) or annoys (inapt), should do (work), may do (fail).
KINDS: tuple[Lexicon, ...] = (
    {
        "product": (
            "kettle", "blender", "toaster", "coffee maker", "mixer", "air fryer", "juicer", "waffle iron",
            "rice cooker", "espresso machine", "food processor", "popcorn maker", "slow cooker", "dehydrator",
        ),
        "own_aspect": (
            "lid", "motor", "cord", "timer", "handle", "noise level", "filter", "pitcher", "power switch", "spout",
            "heating element", "drip tray", "blade", "thermostat", "start button",
        ),
        "apt": ("quiet", "fast", "compact", "powerful", "easy to clean", "efficient", "light", "safe", "sleek"),
        "inapt": ("loud", "slow", "bulky", "flimsy", "hard to clean", "messy", "heavy", "leaky", "wobbly", "greasy"),
        "work": ("boil water in a minute", "crush ice", "shut itself off", "brew a strong cup", "brown both sides"),
        "fail": (
            "leak", "overheat", "trip the breaker", "burn my breakfast", "spill", "smell of melted plastic", "rust",
        ),
    },
    {
        "product": (
            "frying pan", "knife", "saucepan", "baking sheet", "cutting board", "skillet", "peeler", "whisk", "teapot",
            "casserole dish", "wok", "garlic press", "crème brûlée set", "rolling pin", "colander", "ladle", "grater",
        ),
        "own_aspect": (
            "coating", "handle", "grip", "edge", "rim", "balance", "base", "rivet", "glaze", "nonstick surface",
            "heat distribution", "pouring lip", "hanging loop", "steel", "enamel",
        ),
        "apt": ("sharp", "heavy", "durable", "nonstick", "dishwasher safe", "well balanced", "hot", "deep", "hefty"),
        "inapt": ("dull", "thin", "scratched", "light", "warped", "slippery", "shallow", "uneven", "sticky", "brittle"),
        "work": ("sear a steak", "slice tomatoes", "release an omelette", "survive the dishwasher", "hold an edge"),
        "fail": ("warp", "chip", "peel", "rust", "stain", "burn the sauce", "lose its handle", "crack"),
    },
    {
        "product": (
            "speaker", "pair of headphones", "radio", "soundbar", "turntable", "microphone", "set of earbuds",
            "amplifier", "subwoofer", "karaoke machine", "headset", "receiver", "music player", "boom box",
        ),
        "own_aspect": (
            "sound", "bass", "battery life", "volume knob", "treble", "ear cushion", "bluetooth", "cable", "ear hook",
            "charging case", "headband", "equalizer", "stereo effect", "noise canceling", "remote", "volume",
        ),
        "apt": ("loud", "clear", "crisp", "comfortable", "warm", "rich", "portable", "punchy", "balanced", "small"),
        "inapt": ("quiet", "muffled", "tinny", "crackly", "uncomfortable", "harsh", "cold", "hollow", "distorted"),
        "work": ("pair with my phone", "fill the room", "hold a charge", "block out the train", "stay connected"),
        "fail": ("cut out", "hiss", "lose the connection", "buzz", "die at half volume", "hurt my ears", "crackle"),
    },
    {
        "product": (
            "phone", "charger", "phone case", "screen protector", "power bank", "tablet", "smartwatch", "camera",
            "cable", "tripod", "car mount", "selfie stick", "fitness tracker", "memory card", "stylus", "drone",
            "e-reader",
        ),
        "own_aspect": (
            "screen", "battery", "selfie camera", "charging port", "touchscreen", "connector", "app", "interface",
            "zoom", "fingerprint sensor", "adhesive", "signal", "menu", "speaker", "lens", "night mode",
            "notification light",
        ),
        "apt": ("fast", "thin", "bright", "responsive", "smooth", "light", "protective", "intuitive", "slim", "cool"),
        "inapt": ("slow", "thick", "dim", "laggy", "buggy", "hot", "fragile", "confusing", "loose", "glitchy"),
        "work": ("charge overnight", "survive a drop", "focus", "last all day", "fit my model", "sync with the app"),
        "fail": ("freeze", "crack", "restart itself", "drain the battery", "fall off", "lose photos", "glitch"),
    },
    {
        "product": (
            "laptop", "keyboard", "mouse", "monitor", "printer", "router", "webcam", "hard drive", "graphics card",
            "docking station", "scanner", "flash drive", "modem", "desktop", "gaming chair", "software package",
        ),
        "own_aspect": (
            "space bar", "trackpad", "fan", "screen", "installation", "driver", "resolution", "scroll wheel", "hinge",
            "power supply", "setup wizard", "range", "speed", "memory", "backlight", "ink cartridge", "documentation",
        ),
        "apt": ("quick", "silent", "sharp", "stable", "easy to install", "cool", "compatible", "snappy", "modern"),
        "inapt": ("sluggish", "noisy", "blurry", "unstable", "bloated", "outdated", "incompatible", "cryptic", "hot"),
        "work": ("boot in seconds", "print in color", "reach the second floor", "wake from sleep", "run my games"),
        "fail": ("crash", "jam", "drop the signal", "corrupt my files", "overheat", "show a blue screen", "freeze"),
    },
    {
        "product": (
            "novel", "book", "memoir", "mystery", "thriller", "biography", "cookbook", "textbook", "poetry collection",
            "fantasy saga", "travel guide", "romance", "picture book", "history", "short story collection", "sequel",
        ),
        "own_aspect": (
            "plot", "ending", "writing", "dialogue", "main character", "pace", "first chapter", "translation", "cover",
            "narrator", "love story", "twist", "villain", "index", "print", "research", "prose", "epilogue", "binding",
        ),
        "apt": ("gripping", "funny", "moving", "dark", "witty", "original", "dense", "thorough", "deep", "poignant"),
        "inapt": ("boring", "predictable", "long", "shallow", "repetitive", "dry", "preachy", "confusing", "cliché"),
        "work": ("hold my attention", "make me laugh", "keep me guessing", "teach me something", "bring me to tears"),
        "fail": (
            "put me to sleep", "lose its thread", "fall apart at the spine", "contradict itself", "drag", "ramble",
        ),
    },
    {
        "product": (
            "movie", "film", "album", "documentary", "box set", "DVD", "comedy", "concert recording", "soundtrack",
            "video game", "cartoon", "western", "musical", "audiobook", "horror flick", "remake", "live record",
        ),
        "own_aspect": (
            "acting", "story", "score", "picture quality", "singing", "script", "first half", "lead actor",
            "humor", "camera work", "chorus", "bonus disc", "editing", "costume design", "finale", "lyric sheet",
            "opening scene",
        ),
        "apt": ("funny", "catchy", "scary", "touching", "fresh", "dark", "sweet", "powerful", "loud", "hypnotic"),
        "inapt": (
            "dull", "slow", "silly", "overlong", "stale", "loud and empty", "sappy", "derivative", "dated", "flat",
        ),
        "work": ("keep the kids quiet", "make us laugh", "give me goosebumps", "surprise me", "get me dancing"),
        "fail": ("skip", "bore me", "send the whole family to bed", "drag", "stop in the middle", "get on my nerves"),
    },
    {
        "product": (
            "jacket", "sweater", "dress", "shirt", "coat", "hoodie", "skirt", "pair of jeans", "scarf", "raincoat",
            "blouse", "pair of gloves", "swimsuit", "hat", "pair of leggings", "cardigan", "tie", "vest", "bathrobe",
        ),
        "own_aspect": (
            "fit", "fabric", "zipper", "stitching", "collar", "lining", "sleeve", "cut", "pocket", "button", "hem",
            "waistband", "pattern", "hood", "seam", "length", "material", "cuff", "embroidery", "drawstring",
        ),
        "apt": ("soft", "warm", "flattering", "comfortable", "light", "true to size", "stylish", "stretchy", "cozy"),
        "inapt": ("itchy", "thin", "tight", "see-through", "stiff", "baggy", "wrinkled", "scratchy", "short", "frumpy"),
        "work": ("keep me warm", "survive the wash", "keep its shape", "keep the rain out", "turn heads"),
        "fail": ("shrink", "fade", "tear", "unravel", "pill", "bleed dye", "lose a button", "come apart at the seams"),
    },
    {
        "product": (
            "pair of boots", "pair of sneakers", "pair of sandals", "pair of slippers", "pair of running shoes",
            "pair of heels", "backpack", "purse", "suitcase", "wallet", "belt", "duffel bag", "umbrella", "briefcase",
        ),
        "own_aspect": (
            "sole", "heel", "leather", "strap", "buckle", "insole", "arch support", "lace", "clasp", "wheel", "tongue",
            "inner pocket", "toe box", "tread", "telescopic handle", "combination lock", "padding", "snap",
        ),
        "apt": ("roomy", "comfortable", "waterproof", "sturdy", "light", "elegant", "broken in", "spacious", "supple"),
        "inapt": ("narrow", "stiff", "squeaky", "cramped", "heavy", "slippery", "cheap", "scuffed", "smelly", "hard"),
        "work": ("support my feet", "carry a laptop", "keep my toes dry", "roll straight", "survive the airport"),
        "fail": ("give me blisters", "split", "lose a wheel", "soak through", "squeak", "come unglued", "rip open"),
    },
    {
        "product": (
            "toy", "puzzle", "doll", "board game", "train set", "toy truck", "teddy bear", "building set", "card game",
            "dollhouse", "robot", "science kit", "kite", "play tent", "marble run", "puppet", "yo-yo", "water pistol",
        ),
        "own_aspect": (
            "rulebook", "paint job", "battery compartment", "voice", "box", "track", "face", "remote control", "idea",
            "artwork", "set of dice", "hair", "siren", "spinner", "tiny shovel", "costume", "theme", "scoreboard",
        ),
        "apt": ("fun", "educational", "durable", "colorful", "addictive", "safe", "cute", "imaginative", "simple"),
        "inapt": ("boring", "fragile", "loud", "complicated", "tiny", "creepy", "dangerous", "pointless", "small"),
        "work": ("keep the kids busy", "make the toddler giggle", "snap together", "teach counting", "roll uphill"),
        "fail": ("break", "lose an arm", "tip over", "scare the baby", "end up under the couch", "splinter", "snap"),
    },
    {
        "product": (
            "lawn mower", "garden hose", "trimmer", "rake", "grill", "sprinkler", "planter", "shovel", "bird feeder",
            "patio umbrella", "wheelbarrow", "leaf blower", "hammock", "fire pit", "greenhouse kit", "hedge cutter",
        ),
        "own_aspect": (
            "nozzle", "engine", "pull cord", "handle", "coupling", "spray pattern", "blade", "ignition", "perch",
            "wheel", "grate", "fuel tank", "stand", "ash pan", "trigger", "drain hole", "canopy", "safety catch",
        ),
        "apt": ("rugged", "light", "powerful", "weatherproof", "long", "easy to start", "squirrel proof", "strong"),
        "inapt": ("rusty", "short", "kinked", "underpowered", "heavy", "loud", "wobbly", "hard to start", "leaky"),
        "work": ("start on the first pull", "reach the back fence", "cut tall grass", "stand up to the wind"),
        "fail": ("kink", "stall", "rust", "spray me", "blow over", "clog", "attract wasps", "kill my tomatoes"),
    },
    {
        "product": (
            "dog bed", "leash", "cat tree", "dog toy", "litter box", "collar", "fish tank", "harness", "pet carrier",
            "scratching post", "chew bone", "hamster wheel", "cat food", "flea shampoo", "bird cage", "dog crate",
        ),
        "own_aspect": (
            "clip", "squeaker", "cushion", "scent", "latch", "lid", "stuffing", "rope", "door", "ingredient list",
            "mat", "water filter", "platform", "reflective strip", "cover", "buckle", "flavor", "bell",
        ),
        "apt": (
            "chew proof", "soft", "washable", "sturdy", "roomy", "odorless", "big", "tough", "quiet", "escape proof",
        ),
        "inapt": ("smelly", "tiny", "flimsy", "wobbly", "hard", "squeaky", "unsafe", "heavy", "stinky", "loud"),
        "work": ("calm the puppy", "contain the smell", "survive our beagle", "please the cat", "stay upright"),
        "fail": ("fall over", "fray", "upset the dog", "leak", "choke the puppy", "shed fluff", "scare the parrot"),
    },
    {
        "product": (
            "shampoo", "face cream", "lipstick", "perfume", "hair dryer", "sunscreen", "razor", "mascara",
            "nail polish", "body lotion", "electric toothbrush", "curling iron", "deodorant", "bath bomb", "concealer",
            "hand soap",
        ),
        "own_aspect": (
            "scent", "texture", "pump", "shade", "brush", "bottle", "formula", "lather", "cap", "applicator", "tube",
            "heat setting", "staying power", "list of ingredients", "mirror", "glow", "consistency", "nozzle",
        ),
        "apt": ("gentle", "moisturizing", "light", "long lasting", "fragrant", "soothing", "silky", "refreshing"),
        "inapt": (
            "greasy", "sticky", "harsh", "overpowering", "drying", "clumpy", "chalky", "watery", "streaky", "strong",
        ),
        "work": ("tame my curls", "last all day", "clear my skin", "wash out", "calm the redness", "cover freckles"),
        "fail": ("sting", "smear", "leave a film", "give me a rash", "clump", "burn my scalp", "leak in the bag"),
    },
    {
        "product": (
            "coffee", "tea", "chocolate", "hot sauce", "granola", "olive oil", "protein bar", "honey", "popcorn",
            "jalapeño salsa", "peanut butter", "candy", "pasta", "soup mix", "tomato purée", "trail mix", "licorice",
        ),
        "own_aspect": (
            "flavor", "aroma", "texture", "aftertaste", "freshness", "roast", "portion", "crunch", "sweetness", "seal",
            "bag", "expiration date", "recipe on the back", "spice", "jar", "nutrition label", "tin",
        ),
        "apt": (
            "delicious", "fresh", "sweet", "tasty", "crunchy", "smooth", "spicy", "strong", "rich", "dark", "creamy",
        ),
        "inapt": ("stale", "bitter", "bland", "salty", "soggy", "chalky", "sour", "watery", "greasy", "sweet and fake"),
        "work": ("satisfy my sweet tooth", "wake me up", "dissolve", "keep fresh", "please picky eaters"),
        "fail": ("go stale", "upset my stomach", "melt in the mail", "taste burnt", "stick to my teeth", "clump"),
    },
    {
        "product": (
            "drill", "screwdriver set", "wrench", "ladder", "tape measure", "flashlight", "hammer", "saw", "toolbox",
            "sander", "level", "staple gun", "pressure washer", "socket set", "work light", "glue gun", "padlock",
        ),
        "own_aspect": (
            "chuck", "grip", "battery", "bit", "beam", "trigger", "locking mechanism", "case", "torque", "blade guard",
            "hinge", "switch", "scale", "ratchet", "cord", "magnet", "laser line", "belt clip",
        ),
        "apt": ("strong", "heavy duty", "precise", "bright", "rugged", "accurate", "hard", "compact", "trustworthy"),
        "inapt": ("weak", "soft", "dim", "imprecise", "wobbly", "stripped", "dull", "crooked", "rickety", "rough"),
        "work": ("drive long screws", "hold a charge", "cut a straight line", "lock", "reach the gutter", "grip"),
        "fail": ("strip", "slip", "smoke", "bend", "jam", "snap in half", "die mid-project", "round off the bolts"),
    },
    {
        "product": (
            "chair", "desk", "mattress", "bookshelf", "couch", "table", "pillow", "nightstand", "bed frame",
            "bar stool", "recliner", "futon", "dresser", "ottoman", "TV stand", "wardrobe", "coat rack", "bench",
            "comforter",
        ),
        "own_aspect": (
            "cushion", "drawer", "wood", "leg", "veneer", "armrest", "assembly guide", "upholstery", "backrest", "foam",
            "hardware", "tabletop", "slat", "paint", "shelf", "headboard", "knob", "height adjustment",
        ),
        "apt": ("comfortable", "sturdy", "easy to assemble", "firm", "roomy", "heavy", "solid as a rock", "plush"),
        "inapt": ("wobbly", "hard", "lumpy", "saggy", "scratched", "crooked", "creaky", "flimsy", "small", "tippy"),
        "work": ("support my back", "fit through the door", "hold my weight", "go together", "match our décor"),
        "fail": ("sag", "creak", "collapse", "wobble", "smell of glue", "lose its veneer", "tip over", "hurt my back"),
    },
    {
        "product": (
            "yoga mat", "tent", "bicycle", "sleeping bag", "water bottle", "helmet", "treadmill", "jump rope",
            "tennis racket", "basketball", "fishing rod", "skateboard", "golf club", "camping stove", "kayak",
            "dumbbell", "life vest",
        ),
        "own_aspect": (
            "grip", "saddle", "brake", "pole", "zipper", "lid", "chain", "padding", "strap", "bounce", "frame", "reel",
            "chin strap", "ventilation", "carry bag", "pedal", "display", "valve", "straw", "groundsheet",
        ),
        "apt": ("light", "grippy", "waterproof", "warm", "bouncy", "stable", "packable", "thick", "cool", "nimble"),
        "inapt": ("heavy", "slippery", "leaky", "cold", "flat", "unstable", "thin", "bulky", "sweaty", "rattly"),
        "work": ("keep its shape", "keep water cold", "stand up to a storm", "shift gears", "fit in the trunk"),
        "fail": ("leak", "tear", "deflate", "squeak", "come loose", "rattle", "snap", "collapse at 3 a.m."),
    },
    {
        "product": (
            "stroller", "crib", "car seat", "baby monitor", "high chair", "diaper bag", "baby bottle", "pacifier",
            "night light", "baby carrier", "changing pad", "bouncer", "playpen", "bib", "rattle", "bassinet", "potty",
        ),
        "own_aspect": (
            "harness", "brake", "buckle", "tray", "nipple", "camera", "mattress", "canopy", "folding mechanism",
            "melody", "strap", "wheel", "lid", "night vision", "fabric", "leg rest", "mobile", "cup holder",
        ),
        "apt": ("safe", "washable", "light", "easy to fold", "soft", "gentle", "cute", "leakproof", "quiet", "dim"),
        "inapt": ("unsafe", "heavy", "hard to fold", "stained", "loud", "bright", "rickety", "drafty", "fiddly"),
        "work": ("soothe the twins", "fold with one hand", "keep her dry", "fit in the trunk", "get him to sleep"),
        "fail": ("leak", "tip", "wake the baby", "pinch little fingers", "jam", "mildew", "lose its wheels", "sag"),
    },
    {
        "product": (
            "lamp", "rug", "curtain", "picture frame", "candle", "mirror", "clock", "vase", "shower head", "towel",
            "vacuum cleaner", "humidifier", "fan", "wall sticker", "doorbell", "string of lights", "trash can", "iron",
        ),
        "own_aspect": (
            "shade", "dimmer", "glass", "scent", "pattern", "alarm", "suction", "water pressure", "cord", "bulb",
            "hook", "wick", "dial", "pile", "pedal", "remote", "plug", "mist", "chime", "attachment",
        ),
        "apt": ("bright", "quiet", "soft", "warm", "elegant", "absorbent", "cool", "tall", "vibrant", "thick"),
        "inapt": ("dim", "loud", "thin", "faded", "crooked", "scratchy", "gaudy", "small", "yellowish", "dusty"),
        "work": ("light up the hallway", "pick up dog hair", "keep time", "brighten the room", "block the sun"),
        "fail": ("flicker", "fade", "shed", "fall off the wall", "drip", "buzz", "run slow", "smell like soap", "tip"),
    },
    {
        "product": (
            "pen", "notebook", "planner", "stapler", "paper shredder", "calculator", "whiteboard", "label maker",
            "guitar", "ukulele", "sewing machine", "paint set", "sketchbook", "set of markers", "easel", "yarn",
            "violin bow",
        ),
        "own_aspect": (
            "paper", "ink", "nib", "cover", "spiral", "tuning", "needle", "pigment", "display", "binding", "tip",
            "motor", "string", "case", "bobbin", "blending", "layout", "neck", "page count", "eraser",
        ),
        "apt": ("smooth", "thick", "vivid", "in tune", "sharp", "thin", "organized", "soft", "light", "dark"),
        "inapt": (
            "scratchy", "thin as tissue", "pale", "out of tune", "smudgy", "blunt", "cluttered", "stiff", "splotchy",
        ),
        "work": ("lie flat", "stay in tune", "dry fast", "sew a straight seam", "shred ten pages", "write at once"),
        "fail": ("bleed through", "jam", "smudge", "go out of tune", "dry out", "snap", "skip stitches", "leak"),
    },
)  # fmt: skip
