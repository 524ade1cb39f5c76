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
_BOLD_HEAD = re.compile(r"\s*(?:\d[.)]\s*)?\*\*([^*\n]{2,120})\*\*(\s*[:：—–-])?\s*(.*)")


@dataclass(slots=True)
class Passage:
    """A block that can be told from, with its sentences and its role; ``covered``: told with its lead-
    in already.
    """

    block: Block
    index: int
    role: str
    sentences: list[Sentence]
    covered: bool = False


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
            return "options"
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
        if block.kind == "para" and text.endswith((":", "：")):
            role = role_of(last_clause(text), section) or sticky
        elif block.kind == "para" and not block.lead:
            role, sticky = role_of("", section), ""
        if role in ("howto", "options"):
            sticky = role
        found.append(Passage(block, index, role, list(sentences(block, index))))
    return found


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
        head = item_head(other.text)
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


def separator_of(*texts: str) -> str:
    """How parts of a list are joined in a sentence of this language."""
    return "；" if any(CJK.search(text) for text in texts) else "; "


def sentence_case(text: str) -> str:
    """With a capital first letter, unless its first word is a name (path, identifier) or it is Chinese."""
    first = text.split(" ", 1)[0].replace("'", "").rstrip(",:")
    if not first.isalpha() or not first.islower() or CJK.search(text):
        return text
    return text[:1].upper() + text[1:]


def item_head(text: str) -> str:
    """What a list item is about: its bold lead, or all of it."""
    bold = _BOLD_HEAD.match(text)
    if bold is None:
        return impersonal(plain(text)).rstrip(".。:： ")
    head, rest = plain(bold[1]).rstrip(":： "), plain(bold[3])
    if not rest:
        return head
    if rest[0] in "(（":
        return f"{head} {rest}".rstrip(".。:： ")
    if wording.VERB.match(head) and " " in head:
        between = ": " if bold[2] or bold[1].rstrip().endswith((":", "：")) else " "
        return f"{head}{between}{rest}".rstrip(".。:： ") if rest[0].islower() and len(rest) < 60 else head
    return f"{head}: {rest}".rstrip(".。:： ")
