"""The words of the parallel sample, English = German, common ones first.

A noun is "singular,plural=gender German singular,German plural": * marks the weak declension, / the female form, +
what is plural in English and singular in German. A verb is "base,past=government:infinitive,third person,participle":
the past where it is irregular, ! where English knows no progressive, the government "D" or a preposition with "A" or
"D", "|" behind a separable prefix, + before a participle that goes with "sein".
"""

# Nouns

PEOPLE = (
    "man,men=m Mann,Männer; woman,women=f Frau,Frauen; boy=m Junge*,Jungen; girl=n Mädchen,Mädchen,she; "
    "child,children=n Kind,Kinder; teacher=m Lehrer,Lehrer/Lehrerin; friend=m Freund,Freunde/Freundin; "
    "baby=n Baby,Babys; player=m Spieler,Spieler/Spielerin; worker=m Arbeiter,Arbeiter/Arbeiterin; "
    "student=m Student*,Studenten/Studentin; doctor=m Arzt,Ärzte/Ärztin; mother=f Mutter,Mütter; father=m Vater,Väter; "
    "neighbor=m Nachbar*,Nachbarn/Nachbarin; cook=m Koch,Köche/Köchin; "
    "police officer=m Polizist*,Polizisten/Polizistin; lady=f Dame,Damen; farmer=m Bauer*,Bauern/Bäuerin; "
    "singer=m Sänger,Sänger/Sängerin; brother=m Bruder,Brüder; sister=f Schwester,Schwestern; "
    "tourist=m Tourist*,Touristen/Touristin; dancer=m Tänzer,Tänzer/Tänzerin; driver=m Fahrer,Fahrer/Fahrerin; "
    "grandmother=f Großmutter,Großmütter; grandfather=m Großvater,Großväter; guest=m Gast,Gäste; "
    "artist=m Künstler,Künstler/Künstlerin; musician=m Musiker,Musiker/Musikerin; waiter=m Kellner,Kellner; "
    "waitress=f Kellnerin,Kellnerinnen; cyclist=m Radfahrer,Radfahrer/Radfahrerin; son=m Sohn,Söhne; "
    "daughter=f Tochter,Töchter; nurse=f Krankenschwester,Krankenschwestern; soldier=m Soldat*,Soldaten/Soldatin; "
    "uncle=m Onkel,Onkel; aunt=f Tante,Tanten; fisherman,fishermen=m Fischer,Fischer; baker=m Bäcker,Bäcker/Bäckerin; "
    "painter=m Maler,Maler/Malerin; gardener=m Gärtner,Gärtner/Gärtnerin; "
    "photographer=m Fotograf*,Fotografen/Fotografin; runner=m Läufer,Läufer/Läuferin; clown=m Clown,Clowns; "
    "actor=m Schauspieler,Schauspieler; actress=f Schauspielerin,Schauspielerinnen; "
    "firefighter=m Feuerwehrmann,Feuerwehrmänner; pilot=m Pilot*,Piloten/Pilotin; magician=m Zauberer,Zauberer; "
    "lawyer=m Anwalt,Anwälte/Anwältin; mechanic=m Mechaniker,Mechaniker/Mechanikerin; queen=f Königin,Königinnen; "
    "hiker=m Wanderer,Wanderer; scientist=m Wissenschaftler,Wissenschaftler/Wissenschaftlerin; king=m König,Könige; "
    "postman,postmen=m Briefträger,Briefträger; witch=f Hexe,Hexen; judge=m Richter,Richter/Richterin"
)
RELATIVES = (
    "mother=f Mutter,Mütter; father=m Vater,Väter; friend=m Freund,Freunde; sister=f Schwester,Schwestern; "
    "brother=m Bruder,Brüder; neighbor=m Nachbar*,Nachbarn; daughter=f Tochter,Töchter; son=m Sohn,Söhne; "
    "grandmother=f Großmutter,Großmütter; teacher=m Lehrer,Lehrer; uncle=m Onkel,Onkel; aunt=f Tante,Tanten; "
    "grandfather=m Großvater,Großväter"
)
NAMES = (
    "he Peter; she Anna; he Paul; she Maria; he Thomas; she Julia; he Max; she Laura; he Felix; she Emma; he Jonas; "
    "she Sophie; he Lukas; she Lena; he Simon; she Clara; he Oskar; she Ida; he Anton; she Greta; he Emil; she Frieda"
)
ANIMALS = (
    "dog=m Hund,Hunde; cat=f Katze,Katzen; horse=n Pferd,Pferde; bird=m Vogel,Vögel; cow=f Kuh,Kühe; "
    "duck=f Ente,Enten; sheep,sheep=n Schaf,Schafe; rabbit=n Kaninchen,Kaninchen; puppy=m Welpe*,Welpen; "
    "goat=f Ziege,Ziegen; pig=n Schwein,Schweine; mouse,mice=f Maus,Mäuse; bear=m Bär*,Bären; monkey=m Affe*,Affen; "
    "elephant=m Elefant*,Elefanten; fox=m Fuchs,Füchse; lion=m Löwe*,Löwen; donkey=m Esel,Esel; "
    "goose,geese=f Gans,Gänse; squirrel=n Eichhörnchen,Eichhörnchen; hen=n Huhn,Hühner; wolf,wolves=m Wolf,Wölfe; "
    "turtle=f Schildkröte,Schildkröten; swan=m Schwan,Schwäne; frog=m Frosch,Frösche; camel=n Kamel,Kamele; "
    "owl=f Eule,Eulen; tiger=m Tiger,Tiger; hedgehog=m Igel,Igel; zebra=n Zebra,Zebras; penguin=m Pinguin,Pinguine; "
    "deer,deer=n Reh,Rehe"
)
MOUNTS = "horse=n Pferd,Pferde; donkey=m Esel,Esel; elephant=m Elefant*,Elefanten; camel=n Kamel,Kamele"
LYING = (
    "book=n Buch,Bücher; key=m Schlüssel,Schlüssel; newspaper=f Zeitung,Zeitungen; phone=n Telefon,Telefone; "
    "letter=m Brief,Briefe; knife,knives=n Messer,Messer; pencil=m Bleistift,Bleistifte; blanket=f Decke,Decken; "
    "spoon=m Löffel,Löffel; pillow=n Kissen,Kissen; +glasses=f Brille,Brillen; towel=n Handtuch,Handtücher; "
    "fork=f Gabel,Gabeln; map=f Landkarte,Landkarten; watch=f Uhr,Uhren; +scissors=f Schere,Scheren; "
    "stone=m Stein,Steine; hammer=m Hammer,Hämmer; rope=n Seil,Seile; coin=f Münze,Münzen; brush=m Pinsel,Pinsel; "
    "ring=m Ring,Ringe; stamp=f Briefmarke,Briefmarken; comb=m Kamm,Kämme"
)
STANDING = (
    "bottle=f Flasche,Flaschen; box=f Kiste,Kisten; mug=m Becher,Becher; cup=f Tasse,Tassen; bag=f Tasche,Taschen; "
    "suitcase=m Koffer,Koffer; basket=m Korb,Körbe; bowl=f Schüssel,Schüsseln; bucket=m Eimer,Eimer; "
    "vase=f Vase,Vasen; backpack=m Rucksack,Rucksäcke; pot=m Topf,Töpfe; plate=m Teller,Teller; "
    "ladder=f Leiter,Leitern; candle=f Kerze,Kerzen; jug=m Krug,Krüge; can=f Dose,Dosen; teapot=f Teekanne,Teekannen; "
    "barrel=n Fass,Fässer; cage=m Käfig,Käfige"
)
TOYS = (
    "ball=m Ball,Bälle; doll=f Puppe,Puppen; kite=m Drachen,Drachen; balloon=m Luftballon,Luftballons; "
    "teddy bear=m Teddybär*,Teddybären; puzzle=n Puzzle,Puzzles; toy car=n Spielzeugauto,Spielzeugautos; "
    "stick=m Stock,Stöcke; frisbee=f Frisbeescheibe,Frisbeescheiben; marble=f Murmel,Murmeln"
)
CLOTHES = (
    "jacket=f Jacke,Jacken; shirt=n Hemd,Hemden; dress=n Kleid,Kleider; coat=m Mantel,Mäntel; +trousers=f Hose,Hosen; "
    "skirt=m Rock,Röcke; sweater=m Pullover,Pullover; shoe=m Schuh,Schuhe; vest=f Weste,Westen; "
    "scarf,scarves=m Schal,Schals; blouse=f Bluse,Blusen; sock=f Socke,Socken; suit=m Anzug,Anzüge; "
    "boot=m Stiefel,Stiefel; uniform=f Uniform,Uniformen; glove=m Handschuh,Handschuhe; apron=f Schürze,Schürzen; "
    "belt=m Gürtel,Gürtel; costume=n Kostüm,Kostüme; tie=f Krawatte,Krawatten"
)
HATS = (
    "hat=m Hut,Hüte; cap=f Mütze,Mützen; helmet=m Helm,Helme; +glasses=f Brille,Brillen; "
    "+sunglasses=f Sonnenbrille,Sonnenbrillen; mask=f Maske,Masken; crown=f Krone,Kronen"
)
FOOD = (
    "apple=m Apfel,Äpfel; cake=m Kuchen,Kuchen; sandwich=n Sandwich,Sandwiches; banana=f Banane,Bananen; "
    "pizza=f Pizza,Pizzas; orange=f Orange,Orangen; egg=n Ei,Eier; carrot=f Karotte,Karotten; "
    "potato=f Kartoffel,Kartoffeln; pear=f Birne,Birnen; tomato=f Tomate,Tomaten; sausage=f Wurst,Würste; "
    "cookie=m Keks,Kekse; strawberry=f Erdbeere,Erdbeeren; pancake=m Pfannkuchen,Pfannkuchen; "
    "bread roll=n Brötchen,Brötchen; peach=m Pfirsich,Pfirsiche; melon=f Melone,Melonen; onion=f Zwiebel,Zwiebeln; "
    "pretzel=f Brezel,Brezeln; mushroom=m Pilz,Pilze; cucumber=f Gurke,Gurken; plum=f Pflaume,Pflaumen"
)
PORTIONS = (
    "soup=f Suppe; bread=n Brot; rice=m Reis; meat=n Fleisch; salad=m Salat; cheese=m Käse; fruit=n Obst; "
    "fish=m Fisch; chocolate=f Schokolade; butter=f Butter; cabbage=m Kohl; honey=m Honig"
)
DRINKS = (
    "water=n Wasser; coffee=m Kaffee; milk=f Milch; tea=m Tee; juice=m Saft; beer=n Bier; wine=m Wein; "
    "lemonade=f Limonade; cocoa=m Kakao"
)
VEHICLES = (
    "car=n Auto,Autos; bicycle=n Fahrrad,Fahrräder; boat=n Boot,Boote; truck=m Lastwagen,Lastwagen; "
    "motorcycle=n Motorrad,Motorräder; tractor=m Traktor,Traktoren; stroller=m Kinderwagen,Kinderwagen; "
    "carriage=f Kutsche,Kutschen; scooter=m Roller,Roller; sled=m Schlitten,Schlitten; cart=m Karren,Karren"
)
TRANSPORT = (
    "bus,buses=m Bus,Busse; train=m Zug,Züge; subway=f U-Bahn,U-Bahnen; tram=f Straßenbahn,Straßenbahnen; "
    "airplane=n Flugzeug,Flugzeuge; helicopter=m Hubschrauber,Hubschrauber; cable car=f Seilbahn,Seilbahnen"
)
DOORS = (
    "door=f Tür,Türen; window=n Fenster,Fenster; box=f Kiste,Kisten; gate=n Tor,Tore; suitcase=m Koffer,Koffer; "
    "bottle=f Flasche,Flaschen; drawer=f Schublade,Schubladen; letter=m Brief,Briefe; cage=m Käfig,Käfige"
)
LOCKED = (
    "door=f Tür,Türen; gate=n Tor,Tore; house=n Haus,Häuser; car=n Auto,Autos; garage=f Garage,Garagen; "
    "office=n Büro,Büros"
)
DEVICES = (
    "lamp=f Lampe,Lampen; computer=m Computer,Computer; radio=n Radio,Radios; television=m Fernseher,Fernseher; "
    "oven=m Ofen,Öfen; machine=f Maschine,Maschinen; camera=f Kamera,Kameras; heater=f Heizung,Heizungen; "
    "engine=m Motor,Motoren; fan=m Ventilator,Ventilatoren"
)
READING = (
    "book=n Buch,Bücher; newspaper=f Zeitung,Zeitungen; letter=m Brief,Briefe; story=f Geschichte,Geschichten; "
    "poem=n Gedicht,Gedichte; magazine=f Zeitschrift,Zeitschriften; novel=m Roman,Romane; recipe=n Rezept,Rezepte; "
    "report=m Bericht,Berichte; fairy tale=n Märchen,Märchen; list=f Liste,Listen; diary=n Tagebuch,Tagebücher"
)
PLANTS = (
    "flower=f Blume,Blumen; tree=m Baum,Bäume; rose=f Rose,Rosen; bush=m Busch,Büsche; plant=f Pflanze,Pflanzen; "
    "tulip=f Tulpe,Tulpen; hedge=f Hecke,Hecken; cactus,cactuses=m Kaktus,Kakteen"
)
PICTURES = (
    "picture=n Bild,Bilder; photo=n Foto,Fotos; mirror=m Spiegel,Spiegel; poster=n Plakat,Plakate; "
    "calendar=m Kalender,Kalender; clock=f Uhr,Uhren"
)
INSTRUMENTS = (
    "guitar=f Gitarre,Gitarren; piano=n Klavier,Klaviere; violin=f Geige,Geigen; flute=f Flöte,Flöten; "
    "trumpet=f Trompete,Trompeten; accordion=n Akkordeon,Akkordeons; drum=f Trommel,Trommeln; harp=f Harfe,Harfen"
)
BUILDINGS = (
    "house=n Haus,Häuser; church=f Kirche,Kirchen; bridge=f Brücke,Brücken; tower=m Turm,Türme; "
    "castle=n Schloss,Schlösser; wall=f Mauer,Mauern; hotel=n Hotel,Hotels; fountain=m Brunnen,Brunnen; "
    "factory=f Fabrik,Fabriken; statue=f Statue,Statuen; hut=f Hütte,Hütten; lighthouse=m Leuchtturm,Leuchttürme; "
    "mill=f Mühle,Mühlen; barn=f Scheune,Scheunen"
)
SURFACES = (  # on, under, next to, in front of, behind
    "table=m Tisch,Tische; chair=m Stuhl,Stühle; bench=f Bank,Bänke; bed=n Bett,Betten; sofa=n Sofa,Sofas; "
    "shelf,shelves=n Regal,Regale; cupboard=m Schrank,Schränke; piano=n Klavier,Klaviere; "
    "desk=m Schreibtisch,Schreibtische; armchair=m Sessel,Sessel; stool=m Hocker,Hocker; stove=m Herd,Herde; "
    "carpet=m Teppich,Teppiche"
)
SEATS = (
    "bench=f Bank,Bänke; chair=m Stuhl,Stühle; sofa=n Sofa,Sofas; wall=f Mauer,Mauern; bed=n Bett,Betten; "
    "blanket=f Decke,Decken; stool=m Hocker,Hocker; rock=m Felsen,Felsen; roof=n Dach,Dächer; carpet=m Teppich,Teppiche"
)
CONTAINERS = (
    "box=f Kiste,Kisten; bag=f Tasche,Taschen; basket=m Korb,Körbe; cupboard=m Schrank,Schränke; "
    "suitcase=m Koffer,Koffer; car=n Auto,Autos; drawer=f Schublade,Schubladen; refrigerator=m Kühlschrank,Kühlschränke"
)
HEIGHTS = (
    "tree=m Baum,Bäume; wall=f Mauer,Mauern; ladder=f Leiter,Leitern; roof=n Dach,Dächer; mountain=m Berg,Berge; "
    "rock=m Felsen,Felsen; tower=m Turm,Türme; chair=m Stuhl,Stühle; hill=m Hügel,Hügel; fence=m Zaun,Zäune"
)
PARTS = (  # of a building
    "door=f Tür,Türen; roof=n Dach,Dächer; window=n Fenster,Fenster; wall=f Mauer,Mauern; entrance=m Eingang,Eingänge; "
    "cellar=m Keller,Keller; garden=m Garten,Gärten; tower=m Turm,Türme"
)

# What is compounded with the nouns of a kind: written apart in English, together in German

COMPOUNDS = {
    "CLOTHES": "winter=Winter; summer=Sommer; rain=Regen; leather=Leder; wool=Woll; work=Arbeits; silk=Seiden",
    "SURFACES": "kitchen=Küchen; garden=Garten; office=Büro; wooden=Holz; metal=Metall; children's=Kinder",
    "STANDING": "plastic=Plastik; wooden=Holz; metal=Metall; kitchen=Küchen; silver=Silber; travel=Reise",
    "LYING": "kitchen=Küchen; silver=Silber; school=Schul; travel=Reise; office=Büro",
    "BUILDINGS": "stone=Stein; village=Dorf; city=Stadt; wooden=Holz",
    "DEVICES": "kitchen=Küchen; office=Büro; car=Auto; toy=Spielzeug",
    "PLANTS": "garden=Garten; house=Zimmer; forest=Wald",
    "VEHICLES": "toy=Spielzeug; rental=Miet; racing=Renn; children's=Kinder",
}

# Adjectives: the same English word may be another one in German beside another noun

COLORS = (
    "red=rot; blue=blau; white=weiß; black=schwarz; green=grün; yellow=gelb; brown=braun; grey=grau; "
    "light blue=hellblau; dark green=dunkelgrün; striped=gestreift; orange=orangefarben; dark blue=dunkelblau; "
    "colorful=bunt; purple=violett; light green=hellgrün; golden=golden; checkered=kariert; dark red=dunkelrot"
)
PERSONAL = (
    "young=jung; old=alt; little=klein; tall=groß; friendly=freundlich; happy=glücklich; tired=müde; sad=traurig; "
    "short=klein; strong=stark; hungry=hungrig; angry=wütend; sick=krank; curious=neugierig; careful=vorsichtig; "
    "brave=mutig; famous=berühmt; rich=reich; lonely=einsam; polite=höflich; poor=arm; nervous=nervös; clever=klug; "
    "lazy=faul; elegant=elegant; patient=geduldig; proud=stolz; shy=schüchtern; strict=streng; jealous=eifersüchtig"
)
OF_ANIMALS = (
    "small=klein; big=groß; young=jung; old=alt; hungry=hungrig; wild=wild; tired=müde; wet=nass; fat=dick; "
    "fast=schnell; dangerous=gefährlich; white=weiß; black=schwarz; brown=braun; grey=grau; shaggy=zottelig; "
    "tame=zahm; thirsty=durstig; lazy=faul; curious=neugierig"
)
OF_THINGS = (
    "small=klein; big=groß; old=alt; new=neu; heavy=schwer; beautiful=schön; expensive=teuer; light=leicht; "
    "broken=kaputt; round=rund; strange=seltsam; cheap=billig; dirty=schmutzig; modern=modern; useful=nützlich; "
    "precious=wertvoll; dusty=staubig; rusty=rostig; ordinary=gewöhnlich"
)
OF_VESSELS = (
    "empty=leer; small=klein; big=groß; old=alt; new=neu; heavy=schwer; full=voll; light=leicht; dirty=schmutzig; "
    "clean=sauber; cheap=billig; wet=nass; dusty=staubig; rusty=rostig"
)
OF_CLOTHES = (
    "new=neu; old=alt; long=lang; short=kurz; warm=warm; thick=dick; dirty=schmutzig; elegant=elegant; wet=nass; "
    "tight=eng; expensive=teuer; clean=sauber; thin=dünn; light=leicht; worn=abgetragen; fashionable=modisch"
)
OF_FOOD = (
    "fresh=frisch; big=groß; sweet=süß; delicious=lecker; small=klein; ripe=reif; cold=kalt; sour=sauer; rotten=faul; "
    "juicy=saftig; bitter=bitter; tough=zäh"
)
OF_PORTIONS = (
    "fresh=frisch; hot=heiß; cold=kalt; warm=warm; delicious=lecker; spicy=scharf; salty=salzig; cheap=billig; "
    "good=gut; expensive=teuer; dry=trocken"
)
OF_DRINKS = (
    "cold=kalt; hot=heiß; warm=warm; fresh=frisch; strong=stark; good=gut; sweet=süß; cheap=billig; clear=klar; "
    "expensive=teuer; bitter=bitter"
)
OF_READING = (
    "long=lang; short=kurz; old=alt; new=neu; exciting=spannend; funny=lustig; boring=langweilig; thick=dick; "
    "sad=traurig; interesting=interessant; famous=berühmt; secret=geheim; difficult=schwierig"
)
OF_BUILDINGS = (
    "old=alt; big=groß; tall=hoch; small=klein; new=neu; beautiful=schön; famous=berühmt; dark=dunkel; wide=breit; "
    "empty=leer; ugly=hässlich; modern=modern; mysterious=geheimnisvoll; ruined=verfallen"
)
OF_PLANTS = (
    "beautiful=schön; small=klein; big=groß; red=rot; old=alt; green=grün; tall=hoch; yellow=gelb; withered=verwelkt; "
    "rare=selten; thorny=dornig"
)
KINDS = {  # nouns: adjectives, and whether colors fit
    "PEOPLE": ("PERSONAL", False),
    "RELATIVES": ("PERSONAL", False),
    "ANIMALS": ("OF_ANIMALS", False),
    "MOUNTS": ("OF_ANIMALS", False),
    "LYING": ("OF_THINGS", True),
    "STANDING": ("OF_VESSELS", True),
    "TOYS": ("OF_THINGS", True),
    "CLOTHES": ("OF_CLOTHES", True),
    "HATS": ("OF_THINGS", True),
    "FOOD": ("OF_FOOD", False),
    "PORTIONS": ("OF_PORTIONS", False),
    "DRINKS": ("OF_DRINKS", False),
    "VEHICLES": ("OF_THINGS", True),
    "TRANSPORT": ("OF_THINGS", True),
    "DOORS": ("OF_THINGS", True),
    "LOCKED": ("OF_THINGS", True),
    "DEVICES": ("OF_THINGS", True),
    "READING": ("OF_READING", False),
    "PLANTS": ("OF_PLANTS", False),
    "PICTURES": ("OF_THINGS", False),
    "INSTRUMENTS": ("OF_THINGS", False),
    "BUILDINGS": ("OF_BUILDINGS", False),
    "SURFACES": ("OF_THINGS", True),
    "SEATS": ("OF_THINGS", True),
    "CONTAINERS": ("OF_VESSELS", True),
    "HEIGHTS": ("OF_BUILDINGS", False),
    "PARTS": ("OF_BUILDINGS", False),
}
DEGREES = "very=sehr; too=zu; really=wirklich; quite=ziemlich; not very=nicht sehr; extremely=äußerst"
COMPARISONS = {
    "PEOPLE": (
        "older than=älter als; taller than=größer als; as old as=so alt wie; younger than=jünger als; "
        "stronger than=stärker als; friendlier than=freundlicher als; as tall as=so groß wie; richer than=reicher als; "
        "happier than=glücklicher als; more careful than=vorsichtiger als"
    ),
    "ANIMALS": (
        "bigger than=größer als; smaller than=kleiner als; faster than=schneller als; as old as=so alt wie; "
        "stronger than=stärker als; more dangerous than=gefährlicher als; as big as=so groß wie"
    ),
    "STANDING": (
        "bigger than=größer als; heavier than=schwerer als; more expensive than=teurer als; cheaper than=billiger als; "
        "newer than=neuer als; as heavy as=so schwer wie; more beautiful than=schöner als; lighter than=leichter als"
    ),
    "BUILDINGS": (
        "taller than=höher als; older than=älter als; more famous than=berühmter als; as tall as=so hoch wie; "
        "bigger than=größer als; uglier than=hässlicher als"
    ),
}

# Verbs

ALONE = (  # without an object, anywhere
    "sleep,slept=schlafen,schläft,geschlafen; sing,sang=singen,singt,gesungen; dance=tanzen,tanzt,getanzt; "
    "run,ran=laufen,läuft,+gelaufen; work=arbeiten,arbeitet,gearbeitet; laugh=lachen,lacht,gelacht; "
    "wait=warten,wartet,gewartet; read,read=lesen,liest,gelesen; cry=weinen,weint,geweint; "
    "swim,swam=schwimmen,schwimmt,+geschwommen; rest=sich aus|ruhen,ruht,ausgeruht; jump=springen,springt,+gesprungen; "
    "stand,stood=stehen,steht,gestanden; smile=lächeln,lächelt,gelächelt; paint=malen,malt,gemalt; "
    "talk=reden,redet,geredet; train=trainieren,trainiert,trainiert; argue=streiten,streitet,gestritten; "
    "whistle=pfeifen,pfeift,gepfiffen; fish=angeln,angelt,geangelt; hide,hid=sich verstecken,versteckt,versteckt; "
    "dream=träumen,träumt,geträumt; shop=ein|kaufen,kauft,eingekauft; kneel,knelt=knien,kniet,gekniet; "
    "clean up=auf|räumen,räumt,aufgeräumt; get dressed,got=sich an|ziehen,zieht,angezogen; yawn=gähnen,gähnt,gegähnt"
)
WAKING = (  # without an object, at a time
    "get up,got=auf|stehen,steht,+aufgestanden; fall asleep,fell=ein|schlafen,schläft,+eingeschlafen; "
    "arrive=an|kommen,kommt,+angekommen; wake up,woke=auf|wachen,wacht,+aufgewacht; hurry=sich beeilen,beeilt,beeilt; "
    "come back,came=zurück|kommen,kommt,+zurückgekommen; leave,left=weg|gehen,geht,+weggegangen; "
    "stop=auf|hören,hört,aufgehört; depart=ab|reisen,reist,+abgereist; cough=husten,hustet,gehustet"
)
OF_BEASTS = (
    "run,ran=laufen,läuft,+gelaufen; sleep,slept=schlafen,schläft,geschlafen; jump=springen,springt,+gesprungen; "
    "drink,drank=trinken,trinkt,getrunken; eat,ate=fressen,frisst,gefressen; play=spielen,spielt,gespielt; "
    "lie,lay=liegen,liegt,gelegen; rest=sich aus|ruhen,ruht,ausgeruht; hide,hid=sich verstecken,versteckt,versteckt; "
    "stand,stood=stehen,steht,gestanden; wait=warten,wartet,gewartet"
)
BEAST_FRAMES = (
    ("eat,ate=fressen,frisst,gefressen; smell=an D:riechen,riecht,gerochen", ("FOOD",)),
    (
        "chase=jagen,jagt,gejagt; watch=beobachten,beobachtet,beobachtet; follow=D:folgen,folgt,+gefolgt; "
        "look at=an|sehen,sieht,angesehen; bite,bit=beißen,beißt,gebissen; "
        "run after,ran=D:nach|laufen,läuft,+nachgelaufen",
        ("ANIMALS", "PEOPLE"),
    ),
    ("play with=mit D:spielen,spielt,gespielt; bring back,brought=zurück|bringen,bringt,zurückgebracht", ("TOYS",)),
)
FRAMES = (  # verbs, kinds of object, where
    ("wear,wore=tragen,trägt,getragen", ("CLOTHES", "HATS"), ""),
    (
        "throw,threw=werfen,wirft,geworfen; catch,caught=fangen,fängt,gefangen; hold,held=halten,hält,gehalten; "
        "play with=mit D:spielen,spielt,gespielt; pick up=auf|heben,hebt,aufgehoben; look for=suchen,sucht,gesucht; "
        "!find,found=finden,findet,gefunden; hide,hid=verstecken,versteckt,versteckt; "
        "lose,lost=verlieren,verliert,verloren; bring along,brought=mit|bringen,bringt,mitgebracht",
        ("TOYS",),
        "OUTSIDE",
    ),
    (
        "eat,ate=essen,isst,gegessen; buy,bought=kaufen,kauft,gekauft; cut,cut=schneiden,schneidet,geschnitten; "
        "prepare=zu|bereiten,bereitet,zubereitet; order=bestellen,bestellt,bestellt; share=teilen,teilt,geteilt; "
        "try,tried=probieren,probiert,probiert; sell,sold=verkaufen,verkauft,verkauft; "
        "wrap=ein|packen,packt,eingepackt",
        ("FOOD", "FOOD", "PORTIONS"),
        "INSIDE",
    ),
    (
        "hold,held=halten,hält,gehalten; carry=tragen,trägt,getragen; look for=suchen,sucht,gesucht; "
        "buy,bought=kaufen,kauft,gekauft; look at=an|sehen,sieht,angesehen; !find,found=finden,findet,gefunden; "
        "pick up=auf|heben,hebt,aufgehoben; !need=brauchen,braucht,gebraucht; "
        "take along,took=mit|nehmen,nimmt,mitgenommen; sell,sold=verkaufen,verkauft,verkauft; "
        "show around=herum|zeigen,zeigt,herumgezeigt; forget,forgot=vergessen,vergisst,vergessen; "
        "give back,gave=zurück|geben,gibt,zurückgegeben; hide,hid=verstecken,versteckt,versteckt; "
        "throw away,threw=weg|werfen,wirft,weggeworfen; bring back,brought=zurück|bringen,bringt,zurückgebracht; "
        "point at=auf A:zeigen,zeigt,gezeigt; steal,stole=stehlen,stiehlt,gestohlen",
        ("LYING", "STANDING", "INSTRUMENTS"),
        "OUTSIDE",
    ),
    (
        "!see,saw=sehen,sieht,gesehen; help=D:helfen,hilft,geholfen; talk to=mit D:sprechen,spricht,gesprochen; "
        "wait for=auf A:warten,wartet,gewartet; listen to=D:zu|hören,hört,zugehört; visit=besuchen,besucht,besucht; "
        "watch=D:zu|sehen,sieht,zugesehen; meet,met=treffen,trifft,getroffen; look at=an|sehen,sieht,angesehen; "
        "call=an|rufen,ruft,angerufen; follow=D:folgen,folgt,+gefolgt; thank=D:danken,dankt,gedankt; "
        "hug=umarmen,umarmt,umarmt; ask=fragen,fragt,gefragt; pick up=ab|holen,holt,abgeholt; "
        "laugh at=über A:lachen,lacht,gelacht; greet=begrüßen,begrüßt,begrüßt; look for=suchen,sucht,gesucht; "
        "invite=ein|laden,lädt,eingeladen; think of,thought=an A:denken,denkt,gedacht; "
        "dance with=mit D:tanzen,tanzt,getanzt; !believe=D:glauben,glaubt,geglaubt; "
        "look after=auf A:auf|passen,passt,aufgepasst; draw,drew=zeichnen,zeichnet,gezeichnet; "
        "!trust=D:vertrauen,vertraut,vertraut; congratulate=D:gratulieren,gratuliert,gratuliert; "
        "warn=warnen,warnt,gewarnt; argue with=mit D:streiten,streitet,gestritten; "
        "complain about=sich über A:beschweren,beschwert,beschwert",
        ("PEOPLE",),
        "OUTSIDE",
    ),
    (
        "feed,fed=füttern,füttert,gefüttert; pet=streicheln,streichelt,gestreichelt; "
        "watch=beobachten,beobachtet,beobachtet; look for=suchen,sucht,gesucht; "
        "photograph=fotografieren,fotografiert,fotografiert; look after=auf A:auf|passen,passt,aufgepasst; "
        "play with=mit D:spielen,spielt,gespielt; chase=jagen,jagt,gejagt; wash=waschen,wäscht,gewaschen; "
        "run after,ran=D:nach|laufen,läuft,+nachgelaufen; call=rufen,ruft,gerufen; "
        "lock up=ein|sperren,sperrt,eingesperrt",
        ("ANIMALS",),
        "OUTSIDE",
    ),
    (
        "read,read=lesen,liest,gelesen; write,wrote=schreiben,schreibt,geschrieben; "
        "read out,read=vor|lesen,liest,vorgelesen; look for=suchen,sucht,gesucht; "
        "talk about=über A:sprechen,spricht,gesprochen; laugh at=über A:lachen,lacht,gelacht; "
        "tear up,tore=zerreißen,zerreißt,zerrissen; translate=übersetzen,übersetzt,übersetzt; "
        "print out=aus|drucken,druckt,ausgedruckt; copy=ab|schreiben,schreibt,abgeschrieben; "
        "publish=veröffentlichen,veröffentlicht,veröffentlicht",
        ("READING",),
        "INSIDE",
    ),
    (
        "drink,drank=trinken,trinkt,getrunken; order=bestellen,bestellt,bestellt; buy,bought=kaufen,kauft,gekauft; "
        "heat up=auf|wärmen,wärmt,aufgewärmt; spill=verschütten,verschüttet,verschüttet",
        ("DRINKS",),
        "INSIDE",
    ),
    (
        "repair=reparieren,repariert,repariert; wash=waschen,wäscht,gewaschen; push=schieben,schiebt,geschoben; "
        "pull=ziehen,zieht,gezogen; buy,bought=kaufen,kauft,gekauft; paint=streichen,streicht,gestrichen; "
        "sell,sold=verkaufen,verkauft,verkauft; load=beladen,belädt,beladen; clean=putzen,putzt,geputzt; "
        "park=ab|stellen,stellt,abgestellt; tow away=ab|schleppen,schleppt,abgeschleppt",
        ("VEHICLES",),
        "OUTSIDE",
    ),
    (
        "put on,put=an|ziehen,zieht,angezogen; take off,took=aus|ziehen,zieht,ausgezogen; "
        "wash=waschen,wäscht,gewaschen; try on,tried=an|probieren,probiert,anprobiert; "
        "buy,bought=kaufen,kauft,gekauft; iron=bügeln,bügelt,gebügelt; fold=falten,faltet,gefaltet; "
        "sew,sewed=nähen,näht,genäht; hang up,hung=auf|hängen,hängt,aufgehängt",
        ("CLOTHES",),
        "INSIDE",
    ),
    ("put on,put=auf|setzen,setzt,aufgesetzt; take off,took=ab|nehmen,nimmt,abgenommen", ("HATS",), ""),
    (
        "open=öffnen,öffnet,geöffnet; close=schließen,schließt,geschlossen; "
        "break open,broke=auf|brechen,bricht,aufgebrochen",
        ("DOORS",),
        "",
    ),
    (
        "get on,got=in A:ein|steigen,steigt,+eingestiegen; wait for=auf A:warten,wartet,gewartet; "
        "get off,got=aus D:aus|steigen,steigt,+ausgestiegen; !miss=verpassen,verpasst,verpasst; "
        "run after,ran=D:nach|laufen,läuft,+nachgelaufen",
        ("TRANSPORT",),
        "",
    ),
    (
        "turn on=ein|schalten,schaltet,eingeschaltet; turn off=aus|schalten,schaltet,ausgeschaltet; "
        "repair=reparieren,repariert,repariert; try out,tried=aus|probieren,probiert,ausprobiert; "
        "take apart,took=auseinander|nehmen,nimmt,auseinandergenommen",
        ("DEVICES",),
        "INSIDE",
    ),
    (
        "water=gießen,gießt,gegossen; plant=pflanzen,pflanzt,gepflanzt; "
        "photograph=fotografieren,fotografiert,fotografiert; smell=an D:riechen,riecht,gerochen; "
        "dig up,dug=aus|graben,gräbt,ausgegraben",
        ("PLANTS",),
        "OUTSIDE",
    ),
    (
        "look at=an|sehen,sieht,angesehen; photograph=fotografieren,fotografiert,fotografiert; "
        "visit=besichtigen,besichtigt,besichtigt; draw,drew=zeichnen,zeichnet,gezeichnet; "
        "build,built=bauen,baut,gebaut; walk past=an D:vorbei|gehen,geht,+vorbeigegangen; "
        "tear down,tore=ab|reißen,reißt,abgerissen",
        ("BUILDINGS",),
        "",
    ),
    ("sit on,sat=auf D:sitzen,sitzt,gesessen; sit down on,sat=sich auf A:setzen,setzt,gesetzt", ("SEATS",), ""),
    (
        "climb on=auf A:klettern,klettert,+geklettert; jump over=über A:springen,springt,+gesprungen; "
        "fall off,fell=von D:fallen,fällt,+gefallen",
        ("HEIGHTS",),
        "",
    ),
    ("ride,rode=auf D:reiten,reitet,+geritten; get on,got=auf A:auf|steigen,steigt,+aufgestiegen", ("MOUNTS",), ""),
    (
        "hang up,hung=auf|hängen,hängt,aufgehängt; look at=an|sehen,sieht,angesehen; "
        "take down,took=ab|hängen,hängt,abgehängt",
        ("PICTURES",),
        "INSIDE",
    ),
    ("lock=ab|schließen,schließt,abgeschlossen; unlock=auf|schließen,schließt,aufgeschlossen", ("LOCKED",), ""),
)
PLAY = "play=spielen,spielt,gespielt"
GAMES = (
    "football=Fußball; the guitar=Gitarre; tennis=Tennis; the piano=Klavier; basketball=Basketball; cards=Karten; "
    "chess=Schach; the violin=Geige; volleyball=Volleyball; the flute=Flöte; golf=Golf; the drums=Schlagzeug; "
    "hide-and-seek=Verstecken; the trumpet=Trompete; table tennis=Tischtennis; the harp=Harfe"
)
GIVING = (  # somebody (dative) something (accusative)
    "give,gave=geben,gibt,gegeben; show=zeigen,zeigt,gezeigt; bring,brought=bringen,bringt,gebracht; "
    "send,sent=schicken,schickt,geschickt; sell,sold=verkaufen,verkauft,verkauft; lend,lent=leihen,leiht,geliehen; "
    "hand=reichen,reicht,gereicht; offer=an|bieten,bietet,angeboten; give back,gave=zurück|geben,gibt,zurückgegeben"
)
GOING = (
    "go,went=gehen,geht,+gegangen; walk=gehen,geht,+gegangen; run,ran=laufen,läuft,+gelaufen; "
    "come,came=kommen,kommt,+gekommen; hurry=eilen,eilt,+geeilt"
)
TRAVELING = (
    "go,went=fahren,fährt,+gefahren; travel=reisen,reist,+gereist; drive back,drove=zurück|fahren,fährt,+zurückgefahren"
)
POSTURES = {  # of things: where they are, how they are put there
    "LYING": ("liegen,liegt,gelegen", "legen,legt,gelegt"),
    "STANDING": ("stehen,steht,gestanden", "stellen,stellt,gestellt"),
    "TOYS": ("liegen,liegt,gelegen", "legen,legt,gelegt"),
    "CLOTHES": ("liegen,liegt,gelegen", "legen,legt,gelegt"),
}
KNOWING = ("!know,knew=kennen,kennt,gekannt", "!know,knew=wissen,weiß,gewusst")
TRYING = (
    "try,tried=versuchen,versucht,versucht; begin,began=beginnen,beginnt,begonnen; "
    "!forget,forgot=vergessen,vergisst,vergessen; !refuse=sich weigern,weigert,geweigert; "
    "!decide=beschließen,beschließt,beschlossen; !hope=hoffen,hofft,gehofft; "
    "!promise=versprechen,verspricht,versprochen"
)

# Where, when, how

PLACES = {
    "OUTSIDE": (
        "in=in the park:m Park; on=auf the street:f Straße; in=in the garden:m Garten; at=an the beach:m Strand; "
        "in=in the city:f Stadt; on=auf the playground:m Spielplatz; in=in the forest:m Wald; "
        "on=auf the meadow:f Wiese; at=auf the market:m Markt; at=an the station:m Bahnhof; "
        "in front of=vor the house:n Haus; at=an the lake:m See; in front of=vor the school:f Schule; "
        "in=in the yard:m Hof; on=auf the bridge:f Brücke; in=in the village:n Dorf; "
        "behind=hinter the church:f Kirche; next to=neben the fountain:m Brunnen; in=in the snow:m Schnee; "
        "at=in the zoo:m Zoo; under=unter the tree:m Baum; in=in the mountains:p Berge; "
        "at=an the bus stop:f Bushaltestelle; at=an the airport:m Flughafen; in=in the field:n Feld; "
        "between=zwischen the houses:p Häuser; in=in the stadium:n Stadion; at=an the riverbank:n Flussufer"
    ),
    "INSIDE": (
        "in=in the kitchen:f Küche; in=in the garden:m Garten; in=in the living room:n Wohnzimmer; "
        "at=in the school:f Schule; in=in the restaurant:n Restaurant; in=in the café:n Café; in=in the office:n Büro; "
        "in=in the shop:m Laden; in=in the hotel:n Hotel; in=in the bedroom:n Schlafzimmer; "
        "in=in the library:f Bibliothek; on=auf the balcony:m Balkon; in=in the train:m Zug; "
        "in=in the cellar:m Keller; in=in the hospital:n Krankenhaus; on=auf the terrace:f Terrasse; "
        "in=in the bathroom:n Badezimmer; in=in the museum:n Museum; in=in the tent:n Zelt"
    ),
}
GOALS = (  # where to
    "park=in A:m Park; school=zu D:f Schule; station=zu D:m Bahnhof; beach=an A:m Strand; city=in A:f Stadt; "
    "market=auf A:m Markt; church=in A:f Kirche; lake=an A:m See; kitchen=in A:f Küche; bakery=zu D:f Bäckerei; "
    "garden=in A:m Garten; hospital=in A:n Krankenhaus; cinema=in A:n Kino; theater=in A:n Theater; "
    "museum=in A:n Museum; harbor=zu D:m Hafen; village=in A:n Dorf; playground=auf A:m Spielplatz; door=zu D:f Tür; "
    "post office=zu D:f Post; river=zu D:m Fluss; swimming pool=in A:n Schwimmbad"
)
CITIES = (
    "Berlin=Berlin; Munich=München; Paris=Paris; Vienna=Wien; Italy=Italien; London=London; Cologne=Köln; "
    "France=Frankreich; Rome=Rom; Spain=Spanien; Prague=Prag; Norway=Norwegen; Venice=Venedig; Poland=Polen; "
    "Moscow=Moskau; Greece=Griechenland"
)
MEANS = (
    "by train=mit dem Zug; by car=mit dem Auto; by bus=mit dem Bus; by bicycle=mit dem Fahrrad; "
    "by ship=mit dem Schiff; by taxi=mit dem Taxi; by subway=mit der U-Bahn; by tram=mit der Straßenbahn"
)
MANNERS = "alone=allein; quietly=leise; for hours=stundenlang; happily=fröhlich; patiently=geduldig"
FREQUENCIES = "often=oft; always=immer; sometimes=manchmal; never=nie; usually=meistens; rarely=selten"
PRESENT = (
    "now=jetzt; today=heute; again=wieder; at the moment=im Moment; this morning=heute Morgen; this evening=heute Abend"
)
HABITS = (
    "every day=jeden Tag; in the evening=am Abend; every morning=jeden Morgen; on Sundays=sonntags; "
    "in summer=im Sommer; every week=jede Woche; in winter=im Winter; on Mondays=montags; at night=nachts; "
    "every year=jedes Jahr; twice a day=zweimal am Tag; in the afternoon=am Nachmittag"
)
PAST = (
    "yesterday=gestern; last week=letzte Woche; on Sunday=am Sonntag; this morning=heute Morgen; "
    "last summer=letzten Sommer; last year=letztes Jahr; on Monday=am Montag; in the morning=am Morgen; "
    "last night=letzte Nacht; yesterday evening=gestern Abend; on Friday=am Freitag; last month=letzten Monat; "
    "the day before yesterday=vorgestern; in May=im Mai; before breakfast=vor dem Frühstück; "
    "after school=nach der Schule; in October=im Oktober"
)
FUTURE = (
    "tomorrow=morgen; soon=bald; next week=nächste Woche; tonight=heute Abend; next year=nächstes Jahr; "
    "on Saturday=am Samstag; tomorrow morning=morgen früh; next month=nächsten Monat; "
    "the day after tomorrow=übermorgen; on Thursday=am Donnerstag; in spring=im Frühling; in autumn=im Herbst"
)
PERIODS = "days=Tagen; weeks=Wochen; years=Jahren; hours=Stunden; months=Monaten; minutes=Minuten"
NUMBERS = "two=zwei; three=drei; four=vier; five=fünf; six=sechs; seven=sieben; eight=acht; nine=neun"
MODALS = (  # German: ich, du, er, wir
    "can=kann,kannst,kann,können; must=muss,musst,muss,müssen; should=soll,sollst,soll,sollen; "
    "want to=will,willst,will,wollen; would like to=möchte,möchtest,möchte,möchten; may=darf,darfst,darf,dürfen"
)
FEATURES = (  # of people
    "with long hair=mit langen Haaren; with blond hair=mit blonden Haaren; with a beard=mit Bart; "
    "with short hair=mit kurzen Haaren; with an umbrella=mit einem Regenschirm; "
    "with a blue backpack=mit einem blauen Rucksack; with glasses=mit Brille; with red cheeks=mit roten Wangen; "
    "with a camera=mit einer Kamera; with a big bag=mit einer großen Tasche; with curly hair=mit lockigen Haaren; "
    "with green eyes=mit grünen Augen; with a walking stick=mit einem Gehstock; from the village=aus dem Dorf; "
    "from Spain=aus Spanien"
)
WEATHER = (  # English: subject|verb|rest, German: subject|verb|end
    "it|is|raining=es|regnet|; the sun|is|shining=die Sonne|scheint|; it|is|snowing=es|schneit|; "
    "the weather|is|nice=das Wetter|ist|schön; it|is|cold=es|ist|kalt; it|is|getting dark=es|wird|dunkel; "
    "the bells|are|ringing=die Glocken|läuten|; the wind|is|blowing=der Wind|weht|; it|is|too late=es|ist|zu spät; "
    "the music|is|too loud=die Musik|ist|zu laut; there|is|no time=es|gibt|keine Zeit; "
    "everybody|is|asleep=alle|schlafen|; nobody|is|watching=niemand|sieht|zu"
)
