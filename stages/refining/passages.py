"""The told parts of a text: blocks with their sentences and role, and lists joined to what introduces
them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stages.refining import wording
from stages.refining.filler import impersonal
from stages.refining.prose import CJK, Block, Sentence, clip, last_clause, plain, sentences

JOINED_LENGTH = 280
"""Characters of a lead-in with its items."""

_BARE_LEAD = re.compile(
    r"(?:i(?:'ve|’ve| have)?|i did|done|(?:the )?(?:changes|fixes|key changes)(?: i)?(?: made)?|what (?:i"
    r"|we) (?:did|changed)|我(?:做了|已)?|改动|修改|主要改动|具体改动)[:：]",
    re.IGNORECASE,
)
_OPEN_END = re.compile(r"(?:with|to|that|for|including|which|in)[:：]", re.IGNORECASE)
_LEADS_TO = re.compile(
    r"(?: (?:to|that|which|and|now|will|should))*(?: (?:include|show|track|do|are|is|were|can|explain"
    r"|indicate|clarify"
    r"|cover|contain)s?)?(?: the following)?[:：]+$",
    re.IGNORECASE,
)
_DANGLING_END = frozenset(("with", "to", "for", "as", "via", "by", "from", "including", "and", "of", "in"))
_BOLD_HEAD = re.compile(r"\s*(?:\d[.)]\s*)?\*\*([^*\n]{2,120})\*\*(\s*[:：—–-])?\s*(.*)")


@dataclass(slots=True)
class Passage:
    """A block that can be told from, with its sentences and its role; ``covered``: told with its lead-
    in already.
    """

    block: Block
    index: int
    role: str
    covered: bool = False
    cut: list[Sentence] | None = None

    @property
    def sentences(self) -> list[Sentence]:
        """The sentences of the block, cut when first asked for: most passages are never told."""
        if self.cut is None:
            self.cut = list(sentences(self.block, self.index))
        return self.cut


@lru_cache(maxsize=4_096)
def role_of(lead: str, section: str) -> str:
    """What a lead-in and a heading say their text is about: next, howto, options, conclusion or nothing."""
    if section and wording.PROPOSES.search(section):
        return "options"
    for text in (lead, section):
        if not text:
            continue
        if wording.NEXT_SECTION.match(text):
            return "next"
        if wording.PROPOSES.search(text):
            return "conclusion" if wording.VERDICT.search(text) else "options"
        if wording.HOWTO.search(text) and not wording.DID.match(text):
            return "howto"
        if wording.CONCLUDES.search(text):
            return "conclusion"
    return ""


def passages_of(parsed: list[Block]) -> list[Passage]:
    """What can be told from: no code, tables, quotes and headings; instructions stay so until
    something else begins.
    """
    found: list[Passage] = []
    sticky = ""
    lead, section = "", ""
    for index, block in enumerate(parsed):
        if block.section != section:
            section, sticky = block.section, ""
        if block.kind in ("code", "table", "heading", "quote"):
            continue
        if block.lead != lead:
            lead = block.lead
        role = role_of(lead, section) or sticky
        text = block.text.rstrip("*_ ")
        if block.kind == "para" and "options" in (role, sticky) and wording.VERDICT.search(text):
            role, sticky = "conclusion", ""
        elif block.kind == "para" and text.endswith((":", "：")):
            role = role_of(last_clause(text), section) or sticky
        elif block.kind == "para" and not block.lead and not _goes_on(parsed, index, sticky):
            role, sticky = role_of("", section), ""
        if role in ("howto", "options"):
            sticky = role
        found.append(Passage(block, index, role))
    return found


def _goes_on(parsed: list[Block], at: int, sticky: str) -> bool:
    """Whether a paragraph belongs to the option above: behind its code, or before the next numbered option."""
    if sticky != "options":
        return False
    if at > 1 and parsed[at - 1].kind == "code" and parsed[at - 2].kind == "item":
        return True
    following = (block for block in parsed[at + 1 : at + 4] if block.kind == "item" and block.level == 0)
    number = next(following, None)
    return number is not None and number.number not in ("", "1", "A", "a", "①")


_NUMBERED = re.compile(r"^(?:\W|\d|step \d+\b|phase \d+\b)+", re.IGNORECASE)
_PLACE_FILE = re.compile(r"[\w./-]*[\w-]\.[A-Za-z]\w{0,5}\b(?!\.\d)")
_GENERIC_WORDS = (
    "summary change changes made what i i've we did have done was were key main new update updates updated "
    "updating added adding implemented implementation implementing complete completed feature features fix "
    "fixes fixed fixing issue issues problem problems solution result results overview details improvement "
    "improvements the a an of for to in on and is are how it works working your you this next steps step notes "
    "note important additional major minor final quick technical created modified removed files file "
    "highlights status benefits benefit now all other testing test "
    "tests verification key-changes accomplished here's been has with enhancements applied "
    "改动 修改 变更 总结 小结 结果 完成 修复 更新 新增 说明"
)
_GENERIC = frozenset(_GENERIC_WORDS.split())
PLACE_WORDS = 4


def place_of(block: Block) -> str:
    """Where a list item's change was made, by the file in its lead-in or by what its heading names; or ``""``."""
    if block.lead and (named := _PLACE_FILE.search(block.lead)):
        return named[0]
    words = _NUMBERED.sub("", block.section).rstrip(":： !.").split()
    left = [word for word in words if word.lower().strip("(),") not in _GENERIC]
    if not left or len(left) > PLACE_WORDS or not all(any(map(str.isalnum, word)) for word in left):
        return ""
    return " ".join(left)


def with_items(
    text: str, passages: list[Passage], at: int, *, cover: bool = False, room: int = JOINED_LENGTH
) -> tuple[str, int | None]:
    """A lead-in or parent item with what it introduces ("Fixed two things: a; b"), whole items only.

    Also the end of the last item used, ``None`` without any. ``cover`` marks them as told.
    """
    block = passages[at].block
    heads: list[str] = []
    end: int | None = None
    used = len(text)
    level = -1
    section = ""
    for passage in passages[at + 1 : at + 40]:
        other = passage.block
        if other.kind != "item":
            if other.parent >= 0 and heads:
                continue
            break
        if passage.role == "options" or (block.kind == "item" and other.level <= block.level):
            break
        if other.section != (section or block.section) and (heads or block.kind == "item"):
            break
        section = other.section
        level = other.level if level < 0 else level
        if other.level > level:
            continue
        head = _with_child(item_head(other.text), other, passages, passage)
        if not head or used + len(head) + 2 > room:
            if not heads and head:
                heads.append(clip(head, max(20, room - used - 2)))
                end = other.end
            break
        heads.append(head)
        used += len(head) + 2
        end = other.end
        passage.covered = passage.covered or (cover and not other.text.rstrip("*_ ").endswith((":", "：")))
    if not heads:
        return text, None
    if _BARE_LEAD.fullmatch(text):
        return sentence_case(separator_of(text, heads[0]).join(heads)), end
    return f"{text} {separator_of(text, heads[0]).join(heads)}".strip(), end


def _with_child(head: str, block: Block, passages: list[Passage], passage: Passage) -> str:
    """The head of an item that only introduces its own items ("Default: …"), with the first of them."""
    if not block.text.rstrip("*_ ").endswith((":", "：")) or wording.VERB.match(head):
        return head
    at = passages.index(passage) + 1
    if at >= len(passages) or passages[at].block.kind != "item" or passages[at].block.level <= block.level:
        return head
    child = item_head(passages[at].block.text)
    return f"{head}: {child}" if child else head


def separator_of(*texts: str) -> str:
    """How parts of a list are joined in a sentence of this language."""
    return "；" if any(not text.isascii() and CJK.search(text) for text in texts) else "; "


def sentence_case(text: str) -> str:
    """With a capital first letter, unless its first word is a name (path, identifier) or it is Chinese."""
    if not text[:1].islower():
        return text
    first = text.split(" ", 1)[0].replace("'", "").rstrip(",:")
    if not first.isalpha() or not first.islower() or CJK.search(text):
        return text
    return text[:1].upper() + text[1:]


def item_head(text: str) -> str:
    """What a list item is about: its bold lead, or all of it."""
    bold = _BOLD_HEAD.match(text)
    if bold is None:
        head = impersonal(plain(text)).rstrip(".。 ")
        head = _LEADS_TO.sub("", head) if head.endswith((":", "：")) else head
        before, _, last = head.rpartition(" ")
        return before if last in _DANGLING_END and before else head
    head, rest = plain(bold[1]).rstrip(":： "), plain(bold[3])
    if not rest or _OPEN_END.fullmatch(rest):
        return head  # what follows is in items of its own
    if rest[0] in "(（":
        return f"{head} {rest}".rstrip(".。:： ")
    if wording.VERB.match(head) and " " in head:
        between = ": " if bold[2] or bold[1].rstrip().endswith((":", "：")) else " "
        return f"{head}{between}{rest}".rstrip(".。:： ") if rest[0].islower() and len(rest) < 60 else head
    return f"{head}: {rest}".rstrip(".。:： ")
