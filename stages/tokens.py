"""Search tokens: one tokenizer for the index and for queries, Chinese and English alike.

``encode`` turns text into space-separated tokens for a contentless FTS5 table whose tokenizer only splits at
spaces (``FTS5_TOKENIZE``); ``tokens`` gives the same as a list. Both are total: any string is fine.

- Words are folded (NFKC, case, diacritics) and stemmed (porter).
- Identifiers give their whole form without separators, then their parts, so that ``listenPort``,
  ``listen_port`` and ``--listen-port`` share ``listenport listen port``. Paths and dotted names also keep
  their
  punctuated form (``src/mcp/server.ts``: the last three segments; ``server.ts``; ``2.1.0``).
- Scripts written without spaces (Han, kana, hangul, Thai …) give overlapping pairs. Traditional characters
  are
  folded to simplified ones. The distinct single characters follow at the end of the encoded text, so that
  pairs
  stay neighbours (phrases) and a one-character query finds them.
- Numbers are kept. A token has at most ``TOKEN_LIMIT`` characters.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from operator import add

import Stemmer

TOKENIZER_VERSION = 1
"""Stored with every index; a different number means that the index must be rebuilt."""

TOKEN_LIMIT = 40
RAW_LIMIT = 400
"""Characters of one unbroken raw word that are looked at: beyond lies only base64 and the like."""

PARTS_LIMIT = 24
DIGIT_PARTS = 2
"""A name with more numbers in it is a hash or the like."""

CACHE_LIMIT = 20_000
"""Raw words (and parts of them) remembered with their tokens (about 4 MB), forgotten all at once when full."""

FTS5_TOKENIZE = "ascii tokenchars './+#'"
"""The FTS5 ``tokenize`` option for encoded text: ASCII tokens hold letters, digits and these four."""

TOOL_MARK = "tool#"
"""What stands before a called tool's name in the actions column: ``tool#Bash`` is one token beside ``bash``."""

_PAIRED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
)
"""Scripts without spaces between words, as a character class."""

_OTHER = (
    '\x00-"$-&(-*,:-@\\[\\]^`{-\x7f'  # ASCII but for letters, digits and _./\\+#'-
    "\x80-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u02c2-\u02df\u2000-\u2018\u201a-\u2070\u207b-\u207e\u208a-\u208e"
    "\u20a0-\u20cf\u2190-\u245f\u249c-\u24ff\u2500-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d-\u3040"
    "\u3099-\u309c\u30a0\u30fb\u3200-\u33ff\ud800-\uf8ff\ufd3e-\ufd4f\ufe00-\ufe6f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40"
    "\uff5b-\uff65\uffe0-\uffff\U0001f000-\U0001fbff\U000e0000-\U0010ffff"
)
"""What separates words: punctuation, symbols, white space, surrogates, private use. Listed because one
negated class is four times as fast as ``\\w`` with exceptions, and because ``\\w`` leaves out the combining
marks that words hold; what a rare script's punctuation does to its words is of no consequence."""

_ASCII = bytes(range(128))
_SPACED = bytes(c if chr(c).isalnum() or chr(c) in "_./\\+#'-" else 32 for c in range(128)) + b" " * 128
"""Makes a space of every ASCII character that separates words."""

_RAW = re.compile(rf"[^{_OTHER}](?:(?<=[{_PAIRED}])[{_PAIRED}]*|[^{_OTHER}{_PAIRED}]*)")
_SEPARATORS = re.compile(rf"[{_OTHER}]*")
_PAIRED_CHAR = re.compile(rf"[{_PAIRED}]")
_DIACRITICS = re.compile("[\u0300-\u036f]")
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]+|[0-9]+")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)(?:[-+.]?[A-Za-z][A-Za-z0-9.+-]*)?", re.ASCII)
_VERSION_STARTS = "v0123456789"
_SIGNS = re.compile("[+#]")
_DOTS_AND_SIGNS = re.compile("[.+#]")
_SHARP = re.compile(r"[a-z]{1,2}(?:\+\+|#)")
_EDGES = "-./+#'\u2019_"
_PUNCTUATION = "-./\\'_"
_RARE = frozenset("+#'")
_stem: Callable[[str], str] = Stemmer.Stemmer("porter", 0).stemWord


def encode(text: str) -> str:
    """``text`` as index tokens separated by spaces."""
    if not text:
        return ""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if text.isascii():
        return _joined(_ascii_words(text))
    distinct = _beyond_ascii(text)
    listed = "".join(distinct)
    if _SEPARATORS.fullmatch(listed):
        return _joined(_ascii_words(text))
    singles = _PAIRED_CHAR.findall(listed)
    if not singles:
        return _joined(_RAW.findall(text))
    if not distinct.isdisjoint(_traditional()):
        text = text.translate(_simplified())
        singles = list(set("".join(singles).translate(_simplified())))
    return f"{_joined(_RAW.findall(text))} {' '.join(sorted(singles))}"


def _joined(raw_words: list[str]) -> str:
    return " ".join(filter(None, map(_CACHE.__getitem__, raw_words)))


def _ascii_words(text: str) -> list[str]:
    """The raw words of a text in which only ASCII makes words: what _RAW finds, in two thirds of the time."""
    return text.encode("ascii", "replace").translate(_SPACED).decode("ascii").split()  # "?" separates


def _beyond_ascii(text: str) -> set[str]:
    """The distinct characters that are not ASCII (in half the time that the set of all takes)."""
    beyond = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return set(beyond.decode("utf-8", "surrogatepass"))


def tokens(text: str) -> list[str]:
    """The tokens of ``text`` in order, repeats kept, without the appended single characters."""
    return list(chain.from_iterable(group for _, group in words(text)))


def words(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each raw word of ``text`` (NFKC) with its tokens, in order; raw words without any token are left out.

    A raw word is a run of one spaceless script, or an identifier with everything that belongs to it.
    """
    text = unicodedata.normalize("NFKC", text)
    folded = simplify(text)
    for match in _RAW.finditer(folded):
        found = _CACHE[match[0]]
        if found:
            yield text[match.start() : match.end()], found.split(" ")


def tool_token(name: str) -> str:
    """The token that tells that a tool of this name was called."""
    return f"{TOOL_MARK}{_fold(name)}"[:TOKEN_LIMIT]


def is_paired(text: str) -> bool:
    """Whether ``text`` begins with a character of a script written without spaces (tokens are pairs)."""
    return _PAIRED_CHAR.match(text) is not None


def fold(text: str) -> str:
    """``text`` for case-blind comparison: NFKC, case, Traditional folded to Simplified. Length may change."""
    return text.lower() if text.isascii() else simplify(unicodedata.normalize("NFKC", text).casefold())


def simplify(text: str) -> str:
    """``text`` with Traditional characters made simplified, one by one: same length."""
    if text.isascii() or not _PAIRED_CHAR.search(text) or _traditional().isdisjoint(text):
        return text
    return text.translate(_simplified())


@cache
def _simplified() -> dict[int, str]:
    """Traditional → Simplified, character by character: made once by OpenCC (20 ms), only for Han text."""
    from opencc import OpenCC

    blocks = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF))
    source = "".join(chr(code) for first, last in blocks for code in range(first, last + 1))
    target = OpenCC("t2s").convert("\n".join(source)).split("\n")
    return {ord(old): new for old, new in zip(source, target, strict=True) if old != new and len(new) == 1}


@cache
def _traditional() -> frozenset[str]:
    return frozenset(map(chr, _simplified()))


class _Cache(dict[str, str]):
    """Raw word → its tokens, joined by spaces ("" for none)."""

    def __missing__(self, raw: str) -> str:
        if raw.isascii():
            if raw.isalpha() and raw.islower():
                expanded = _stem(raw[:TOKEN_LIMIT]) if len(raw) > 3 else raw
            else:
                expanded = _plain(raw[:RAW_LIMIT])
        elif _PAIRED_CHAR.match(raw):
            return self._keep(raw, _pairs(raw)) if len(raw) <= 4 else _pairs(raw)
        else:
            expanded = " ".join(filter(None, _expand(raw[:RAW_LIMIT])))  # a mark alone folds to nothing
        return self._keep(raw, expanded) if len(raw) <= 64 else expanded

    def _keep(self, raw: str, expanded: str) -> str:
        if len(self) >= CACHE_LIMIT:
            self.clear()
        self[raw] = expanded if expanded != raw else raw
        return expanded


_CACHE = _Cache()


def _pairs(run: str) -> str:
    return " ".join(map(add, run, run[1:])) if len(run) > 1 else run


def _plain(raw: str) -> str:
    """The tokens of an ASCII word: what ``_expand`` gives, sooner for words of usual signs."""
    if raw.isalnum():
        if raw.isdigit() or (raw.isalpha() and (raw.istitle() or raw.isupper())):
            return _word(raw)
        return " ".join(_parts(raw, raw)[:PARTS_LIMIT])
    word = raw.strip(_PUNCTUATION)
    if word.isalnum():
        return _CACHE[word]
    bare = word.replace("_", "").replace("-", "")
    if bare.isalnum():
        return " ".join(_parts(word, bare)[:PARTS_LIMIT])
    if bare.replace(".", "").isalnum() and not (word[0] in _VERSION_STARTS and _VERSION.fullmatch(word)):
        pieces = word.split(".")
        if "" not in pieces and "" not in (found := [_CACHE[piece] for piece in pieces]):
            return _limited(f"{word[:TOKEN_LIMIT].lower()} {' '.join(found)}")
    return " ".join(_expand(raw))


def _limited(tokens: str) -> str:
    few = tokens.count(" ") < PARTS_LIMIT
    return tokens if few else " ".join(tokens.split(" ", PARTS_LIMIT)[:PARTS_LIMIT])


def _expand(raw: str) -> list[str]:
    """All tokens of one raw word, at most ``PARTS_LIMIT``."""
    if raw[-1] in "+#" and _SHARP.fullmatch(raw.lower()):
        return [raw.lower()]
    if raw.startswith(TOOL_MARK):
        name = raw.removeprefix(TOOL_MARK)
        return [tool_token(name), *_expand(name)] if name else ["tool"]
    raw = raw.replace("\\", "/").strip(_EDGES)
    if "/" not in raw:
        return _dotted(raw)[:PARTS_LIMIT]
    segments = [segment for part in raw.split("/") if (segment := part.strip(_EDGES))]
    found = [_fold("/".join(segments[-3:]))[:TOKEN_LIMIT]] if len(segments) > 1 else []
    named = _names(raw)
    for segment in segments[-12:]:
        found += named(segment)
    return found[:PARTS_LIMIT]


def _names(text: str) -> Callable[[str], list[str]]:
    """What gives the tokens of names within ``text``: they are remembered like words, but for rare signs."""
    return _remembered if text.isascii() and _RARE.isdisjoint(text) else _dotted


def _remembered(name: str) -> list[str]:
    return _CACHE[name].split(" ")


def _dotted(segment: str) -> list[str]:
    """A name with or without dots: versions stay whole, ``server.ts`` gives itself and its parts."""
    signs = "+" in segment or "#" in segment
    if "." not in segment:
        return (
            [t for part in _SIGNS.split(segment) for t in _identifier(part)]
            if signs
            else _identifier(segment)
        )
    if segment[0] in _VERSION_STARTS and (version := _VERSION.fullmatch(segment)):
        number = version[1]
        short = ".".join(number.split(".")[:2])
        whole = _fold(segment)
        return [whole[:TOKEN_LIMIT], *dict.fromkeys(token for token in (number, short) if token != whole)]
    split = _DOTS_AND_SIGNS.split(segment) if signs else segment.split(".")
    parts = [part for part in split if part.strip(_EDGES)]
    found = [_fold(".".join(parts))[:TOKEN_LIMIT]] if len(parts) > 1 else []
    for part in parts:
        found += _identifier(part)
    return found


def _identifier(name: str) -> list[str]:
    """``listenPort``, ``listen-port`` → ``listenport listen port``; a plain word → its stem."""
    name = _possessive(name)
    return _parts(name, name.replace("_", "").replace("-", ""))


def _parts(name: str, bare: str) -> list[str]:
    """The tokens of a name without quotes; ``bare`` is the name without ``_`` and ``-``."""
    # Names of few parts are split in one go: no part reaches over a ``-`` or ``_``.
    parts = _CAMEL.findall(name) if name.isascii() else []
    if not parts or (len(parts) > DIGIT_PARTS and _is_broken(parts, bare)):
        parts = [part for piece in name.replace("-", "_").split("_") if piece for part in _camel(piece)]
    if len(parts) > 1:
        return [_word(bare), *[_CACHE[part] for part in parts if len(part) > 1 or part.isdigit()]]
    return [_word(part) for part in parts]


def _possessive(name: str) -> str:
    """``user's`` → ``user``, ``don't`` → ``dont``."""
    if "'" not in name and "\u2019" not in name:
        return name
    name = name.replace("\u2019", "'")
    return name.removesuffix("'s").replace("'", "")


def _camel(piece: str) -> list[str]:
    """Splits at case and digit borders; hashes and other alternations of digits and letters stay whole."""
    if not piece.isascii():
        return [piece]
    parts = _CAMEL.findall(piece)
    return [piece] if _is_broken(parts, piece) else parts


def _is_broken(parts: list[str], bare: str) -> bool:
    """Whether these are too many parts, or too many numbers, for a name."""
    if len(parts) > PARTS_LIMIT:
        return True
    return not bare.isalpha() and sum(map(str.isdigit, parts)) > DIGIT_PARTS


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _DIACRITICS.sub("", decomposed))


def _word(part: str) -> str:
    folded = part[:TOKEN_LIMIT].lower() if part.isascii() else _fold(part)[:TOKEN_LIMIT]
    return _stem(folded) if len(folded) > 3 and folded.isascii() and folded.isalpha() else folded


_ENGLISH = """
a about above after again all also am an and any are arent as at be because been before being below between
both but by can cant could couldnt did didnt do does doesnt doing done dont down during each either else etc
every few for from further get gets getting go goes got had has hasnt have havent having he her here hers
him his how i if im in into is isnt it its ive just know let lets like me might mine more most much must my
myself need no nor not now of off ok on once one only or other our ours out over own please same she should
so some such than that thats the their them then there these they thing things this those through to too
under until up us use used using very want was wasnt way we well were what whats when where which while who
whom whose why will with wont would wouldnt yes you your yours
"""
_PARTICLES = "的了是在我你他她它们这那和与或及吗呢吧啊呀嘛也都就还又很被把么"
_CHINESE = """
的 了 是 在 我 你 他 她 它 们 这 那 和 与 或 及 吗 呢 吧 啊 呀 嘛 也 都 就 还 又 很 被 把 给 对 从 到 向 让
使 会 能 要 想 有 没 不 个 些 么 着 过 得 地 之 其 而 且 但 若 如 所 以 为 因 于 并 再 最 更 请 我们 你们
他们 它们 这个 那个 这些 那些 这里 那里 这样 那样 什么 怎么 怎样 如何 为何 为什么 哪个 哪些 哪里 多少 时候
一个 一些 一下 可以 能够 需要 应该 是否 是不是 有没有 没有 不是 还是 或者 以及 而且 但是 因为 所以 如果 虽然
已经 现在 然后 之前 之后 关于 对于 通过 进行 使用 问题是 请问 帮我 告诉 知道 一直 怎么办
"""

FUNCTION_WORDS = frozenset(word for word in _CHINESE.split() if len(word) > 1 or word in _PARTICLES)
"""Chinese words between which a query's content stands."""

WHOLE_WORDS = (
    "存在",
    "目的",
    "了解",
    "是非",
    "和谐",
    "其他",
    "其它",
    "被动",
    "与会",
    "我国",
    "标的",
    "的确",
    "着色",
    "着手",
    "了结",
    "在线",
    "在场",
    "和平",
)
"""Words that hold one of those characters and are not to be broken at it."""

STOP_WORDS: frozenset[str] = frozenset(
    {_word(word) for word in _ENGLISH.split()}
    | {word for word in _CHINESE.split() if len(word) == 1}
    | {pair for word in _CHINESE.split() if len(word) > 1 for pair in map(add, word, word[1:])}
)
"""Tokens that say nothing about a turn: they weigh nothing in a query that holds anything else."""
