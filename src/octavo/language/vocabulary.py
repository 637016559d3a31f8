"""Word data for other modules: the frequencies of English words, word stems, and stop words.

Large tables and models are loaded once per process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache, lru_cache, wraps
from math import log
from pathlib import Path
from threading import Lock
from typing import TypeVar

Thing = TypeVar("Thing")
WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
# Matches a word, a number, or punctuation that ends a phrase.
TOKEN = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\d[\d.,:/-]*|[^\s\w]")

_TOKENIZER = Path(__file__).with_name("data") / "tokenizer.json"
_FIRST_WORD = "the"
_MIN_LETTERS = 3
# Longer strings are not words. They would only fill the caches.
MAX_LETTERS = 40
_ENDING = re.compile(r"(?<=\w{3})(?:ations?|ments?|ings?|edly|ies|ers?|ely|ed|es|ly|s|e)$")


def load_once(make: Callable[[], Thing]) -> Callable[[], Thing]:
    """Cache the result of a function without arguments, like `functools.cache`.

    Even if several threads make the first call at the same time, the function runs only once.
    """
    lock, kept = Lock(), cache(make)

    @wraps(make)
    def get() -> Thing:
        with lock:
            return kept()

    return get


@load_once
def _ranks() -> dict[str, int]:
    """Return the frequency rank of each English word.

    The vocabulary of the embedding model is sorted by frequency, so the ranks are read from it.
    """
    vocabulary: dict[str, int] = json.loads(_TOKENIZER.read_bytes())["model"]["vocab"]
    first = vocabulary[_FIRST_WORD]
    words = ((word, place - first + 1) for word, place in vocabulary.items() if place >= first and word.isalpha())
    return dict(sorted(words, key=lambda one: one[1]))


@lru_cache(maxsize=50_000)
def rarity(stem: str) -> float:
    """Return the rarity of a word, from 0 for the most common English word to 1 for words outside the 30,000 most
    common.
    """
    ranks = _ranks()
    last = next(reversed(ranks.values()))
    rank = ranks.get(stem) or min(ranks.get(part, last) for part in stem.split("-"))
    return log(rank) / log(last)


def fold(word: str, language: str | None) -> str:
    """Normalise a word for counting: convert it to lower case and, in English, to the singular."""
    return stem(word) if language == "en" else word.lower()


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Convert an English word to lower case and, approximately, to the singular. Other endings are kept."""
    low = word.lower().replace("\u2019", "'").removesuffix("'s")
    if len(low) <= _MIN_LETTERS or not low.endswith("s") or low.endswith(("ss", "us", "is")):
        return low
    if low.endswith("ies"):
        return low[:-3] + "y"
    if low.endswith(("sses", "xes", "ches", "shes", "zes")):
        return low[:-2]
    return low[:-1]


@lru_cache(maxsize=50_000)
def is_content(word: str, language: str) -> bool:
    """Whether a word can name the subject of a text. Stop words, very short words and English adverbs cannot."""
    low = word.lower().replace("\u2019", "'")
    if len(low) < _MIN_LETTERS and not (len(low) > 1 and word.isupper()):
        return False
    return low not in STOPWORDS[language] and not (language == "en" and low.endswith("ly"))


@lru_cache(maxsize=50_000)
def root(word: str) -> str:
    """Return an approximate stem that is the same for all forms of an English word.

    It is used to compare words, not to display them.
    """
    return _ENDING.sub("", word.lower().replace("\u2019", "'").removesuffix("'s"))


_ENGLISH = """
a able about above according accordingly across actually after afterwards again against ago ain't all allow allows
almost alone along already also although always am among amongst an and another any anybody anyhow anyone anything
anyway anywhere apart are aren't around as aside ask asked asks at away back based be became because become becomes
becoming been before beforehand began begin beginning begins behind being believe below beside besides best better
between beyond both brief bring brings brought but by call called calls came can can't cannot cause caused causes
certain certainly clear clearly come comes coming consider considered could couldn't did didn't different do does
doesn't doing don't done down downwards due during each early easily eight either else elsewhere end enough especially
et etc even ever every everybody everyone everything everywhere exactly example except far few fewer finally find
finds first five follow followed following follows for form formed former formerly forth found four from full fully
further furthermore gave general generally get gets getting give given gives giving go goes going gone good got gotten
great greater had hadn't half happen happened happens hardly has hasn't have haven't having he he'd he'll he's hello
help hence her here here's hereby herein hers herself high higher him himself his how however hundred i i'd i'll i'm
i've ie eg if immediately in include included includes including indeed instead into inward is isn't it it'd it'll
it's its itself just keep keeps kept kind knew know known knows large larger largely last lately later latter least
led left less lest let let's like liked likely little long longer look looked looking looks lot lots low lower made
mainly make makes making many may maybe me mean means meanwhile merely might mightn't more moreover most mostly mr mrs
ms much must mustn't my myself namely near nearly necessarily necessary need needed needs neither never nevertheless
new next nine no nobody none nonetheless nor normally not nothing now nowhere obtain obtained obviously of off often
oh ok okay old on once one one's ones only onto or order other others otherwise ought our ours ourselves out outside
over overall own part particular particularly per perhaps place placed please possible possibly present presented
previous previously primarily probably provide provided provides put puts quickly quite rather re really reasonable
recent recently regarding regardless relatively respectively result resulted resulting results right said same saw say
saying says second secondly see seeing seem seemed seems seen sent set seven several shall shan't she she'd she'll
she's should shouldn't show showed shown shows similar similarly simply since six small smaller so some somebody
somehow someone something sometime sometimes somewhat somewhere soon specifically still subsequently substantially
such sufficiently suggest take taken takes taking tell tells ten tend than thank thanks that that'll that's the their
theirs them themselves then there there's thereafter thereby therefore therein these they they'd they'll they're
they've thing things think third this thorough those though thought three through throughout thus to today together
told tomorrow too took toward towards tried tries truly try trying turn turned twice two under unfortunately unless
unlike unlikely until unto up upon upper us use used useful uses using usually various very via viz want wanted wants
was wasn't way ways we we'd we'll we're we've well went were weren't what what's whatever when whence whenever where
where's whereas whereby wherein wherever whether which while whither who who's whoever whole whom whose why will
willing wish with within without won't wonder work would wouldn't yes yesterday yet you you'd you'll you're you've
your yours yourself yourselves zero
"""

_GERMAN = """
ab aber abs alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes anders auch auf
aus außer außerdem bald bei beide beiden beim bereits besonders bevor bin bis bisher bist bzw da dabei dadurch dafür
dagegen daher dahin damals damit danach daneben dann daran darauf daraus darf darin darüber darum darunter das dass
davon davor dazu dein deine deinem deinen deiner dem den denen denn dennoch der deren des deshalb dessen desto dich
die dies diese diesem diesen dieser dieses dir doch dort du durch dürfen eben ebenfalls ebenso ein eine einem einen
einer eines einfach einige einigen einiger einiges einmal er erst erste ersten es etwa etwas euch euer eure für ganz
gar gegen gehabt gehen geht gemacht genau gerade gern gewesen gewisse gibt ging gut hab habe haben halt hat hatte
hatten hätte hätten her heute hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im immer in indem ins
insbesondere ist ja je jede jedem jeden jeder jedes jedoch jemand jene jenem jenen jener jenes jetzt kam kann kein
keine keinem keinen keiner können könnte konnte konnten lassen lässt machen macht mal man manche manchem manchen
mancher manches mehr mehrere mein meine meinem meinen meiner meist mich mir mit möchte möglich muss müssen musste nach
nachdem natürlich neben nein neu neue neuen neuer nicht nichts nie noch nun nur ob oben oder oft ohne schon sehr sei
sein seine seinem seinen seiner seines seit selbst sich sie sind so sobald sogar solche solchem solchen solcher soll
sollen sollte sollten sondern sonst sowie sowohl statt über um und uns unser unsere unserem unseren unserer unter usw
vergangenen viel viele vielen vieler vielleicht vom von vor war waren warum was weil weit weiter weitere weiteren
welche welchem welchen welcher welches wenig weniger wenn wer werde werden wie wieder will wir wird wirklich wo wobei
wohl wollen wollte worden wurde wurden würde würden zu zudem zum zumindest zur zwar zwei zwischen
"""

_FRENCH = """
a à afin ai ainsi alors après as assez au aucun aucune aujourd aura aurait aussi autant autre autres aux avaient avais
avait avant avec avez avoir avons ayant bien bon car ce ceci cela celle celles celui cent cependant certain certaine
certaines certains ces cet cette ceux chaque chez ci comme comment contre d dans de déjà depuis dernier dernière
derrière des dès devant doit donc dont du durant elle elles en encore enfin entre es est et étaient étais était étant
été être eu eux faire fait faut fois font fut grand grande hors hui ici il ils j je jusqu jusque l la là laquelle le
lequel les lesquelles lesquels leur leurs lors lorsque lui m ma mais malgré me même mêmes mes mieux moi moins mon n ne
ni non nos notamment notre nous nouveau nouvelle on ont or ou où par parce parfois parmi pas pendant peu peut peuvent
plus plusieurs plutôt point pour pourquoi pourtant premier première près puis puisque qu quand que quel quelle quelles
quelque quelques quels qui quoi rien s sa sans se selon sera serait ses seulement si sien soi soit son sont sous
souvent sur t ta tandis tant te tel telle telles tels tes toi ton toujours tous tout toute toutefois toutes très trop
tu un une vers voici voilà vos votre vous vraiment y
"""

_SPANISH = """
a al algo alguien algún alguna algunas alguno algunos allí ante antes aquel aquella aquellas aquello aquellos aquí así
aun aún aunque bajo bien cabe cada casi como cómo con contra cual cuál cuales cualquier cuando cuándo cuanto cuatro da
dado de debe deben debido decir del dentro desde después dice dicho dijo donde dónde dos durante e él el ella ellas
ello ellos embargo en encima entonces entre era eran eres es esa esas ese eso esos esta está estaba estaban estado
están estar estas este esto estos estoy fin fue fueron fui ha había habían haber hace hacen hacer hacia han hasta hay
he hecho hemos hizo hoy incluso junto la las le les lo los luego más mas me medio mejor menos mi mí mientras mis misma
mismas mismo mismos momento mucha muchas mucho muchos muy nada nadie ni ningún ninguna no nos nosotros nuestra
nuestras nuestro nuestros nueva nuevo nunca o os otra otras otro otros para parece parte pero poco podía porque por
pues puede pueden pueda qué que quien quién quienes se sea sean según ser será si sí sido siempre sin sino sobre solo
sólo son soy su sus suya suyo tal también tampoco tan tanta tanto te tenía tener tiempo tiene tienen toda todas
todavía todo todos tras tres tu tú tus un una unas uno unos usted ustedes va van varias varios veces ver vez y ya yo
"""

_ITALIAN = """
a abbia abbiamo ad adesso agli ai al alcuna alcune alcuni alcuno all alla alle allo allora altra altre altri altro
anche ancora anzi aveva avevano avere ben bene c che chi ci ciò cioè circa come con contro cosa così cui d da dagli
dai dal dall dalla dalle dallo davanti degli dei del dell della delle dello dentro deve di dopo dove due dunque
durante e è ed era erano essere fa faceva fanno fare fatto fin fine fino fra già gli ha hai hanno ho i il in indietro
infatti invece io l la là le lei li lo loro lui lungo ma mai me meglio meno mentre mi mia mie miei mio modo molta
molte molti molto n ne né negli nei nel nell nella nelle nello nessun nessuna nessuno niente no noi non nostra nostre
nostri nostro nulla nuova nuovo o od oggi ogni oltre ora ovvero parte per perché però più poco poi poiché possono può
presso prima primo proprio qua qual quale quali qualche qualcosa qualcuno quando quanta quanti quanto quasi quei quel
quella quelle quelli quello questa queste questi questo qui quindi s sarà se sé secondo sei sembra sempre senza si sia
siamo siano solo sono sopra soprattutto sotto sta stata state stati stato stessa stesse stessi stesso su sua sue sugli
sui sul sull sulla sulle sullo suo suoi tale tali tanto te tra tre troppo tu tua tuo tutta tutte tutti tutto un una
uno va verso vi viene voi volta vostra vostro
"""

_PORTUGUESE = """
a à ao aos após aquela aquelas aquele aqueles aquilo as às assim até através bem bom cada com como contra da dadas
dado dar das de dela delas dele deles demais depois desde dessa dessas desse desses desta destas deste destes deve
devem dia disso disto diz do dois dos duas durante e é ela elas ele eles em embora enquanto entanto então entre era
eram essa essas esse esses esta está estão estar estas estava estavam este estes estou eu faz fazer fez fim foi foram
for fosse grande há havia isso isto já lá lhe lhes logo mais mas me meio menos mesma mesmas mesmo mesmos meu meus
minha minhas muita muitas muito muitos na nada não nas nem nenhum nenhuma nessa nesse nesta neste no nos nós nossa
nossas nosso nossos nova novo num numa nunca o onde os ou outra outras outro outros para parte pela pelas pelo pelos
perante pode podem pois por porém porque pouca pouco poucos pôr primeira primeiro própria próprio quais qual qualquer
quando quanto quase quatro que quem quer são se seja sejam sem sempre sendo ser será seu seus si sido sim só sob sobre
sua suas tal talvez também tampouco tanto tão te tem têm tempo tendo tenha ter teve teu tinha tinham toda todas
todavia todo todos três tu tua tudo um uma umas uns vai vão vem vez vezes você vocês
"""

_DUTCH = """
aan aangezien achter af al aldus alle alleen alles als altijd ander andere anderen anders bent beter bij bijna
bijvoorbeeld binnen boven buiten daar daardoor daarin daarna daarom daarop dan dat de deze die dient dit doch doen
doet door dus een eens echter eerst eerste eigen elk elke en enige enkele er erg ergens etc even evenals gaan gaat ge
geen geweest gewoon haar had hadden heb hebben heeft hem hen het hier hij hoe hun iedere ieder iemand iets ik in
inclusief indien is ja je jij jou jouw jullie kan kon konden kunnen laat later liever maar maken maakt me mede meer
meest men met mij mijn minder moest moet moeten mogelijk mogen mag na naar naast nadat niet niets nieuw nieuwe nog
nooit nu of om omdat ook onder ondanks ons onze ooit op over overigens pas per reeds samen sinds slechts soms steeds
te tegen ten ter terwijl tevens tijdens toch toe toen tot totdat tussen twee u uit uw vaak van vanaf vanuit veel
verder vier vol volgens voor vooral voordat vrij waar waarbij waardoor waarin waarna waarom waarop wanneer want waren
was wat we weer wel welke werd werden wie wij wil worden wordt zal ze zeer zei zelf zelfs zich zij zijn zo zoals
zonder zou zouden zowel zullen
"""

STOPWORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": _ENGLISH,
        "de": _GERMAN,
        "fr": _FRENCH,
        "es": _SPANISH,
        "it": _ITALIAN,
        "pt": _PORTUGUESE,
        "nl": _DUTCH,
    }.items()
}
