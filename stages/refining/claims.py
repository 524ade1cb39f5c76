"""What the agent's texts conclude: typed sentences from the final answer, and diagnoses made on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from stages.model import FactType
from stages.refining import decisions, wording
from stages.refining.cues import holds
from stages.refining.filler import impersonal, is_filler, is_hedged, strip_lead
from stages.refining.passages import Passage, passages_of, sentence_case, separator_of, with_items
from stages.refining.prose import CJK, Block, Sentence, blocks, clip, plain, windows
from stages.refining.reading import Said

CLAIM_LENGTH = 280
MAX_CLAIMS = 60

_SENTENCE_END = re.compile(r".*(?:[.!]\s+|[。！]\s*)")
_ANNOUNCING = ("let me", "let's", "i'll", "i’ll", "i will", "i need", "i'm going", "我", "接下来", "现在")
"""Every announcement holds one of these; most texts hold none."""
_ANNOUNCED = re.compile(
    r"(?:let me|let's|i(?:'ll|’ll| will)(?: now)?|i need to|i'm going to|我(?:来|先|现在|再)|让我"
    r"|(?:^|[。；，,;])接下来(?:我)?(?:来|会|要)?|(?:^|[。；，,;])现在(?:来|开始|去|我来?|就来))\s*(.{6,160}?)[:：.。…]*$",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"\b(?:issue|problem|bug|error|cause|culprit|failure) (?:is|was|lies|comes|came) (?:with|in|from)\b",
    re.IGNORECASE,
)
_DOING = re.compile(r"(?:\w+ly )?\w+ing\b", re.IGNORECASE)
_SUPPOSES = re.compile(r"(?:if|when|whenever|once|as soon as|before|after|unless)\b", re.IGNORECASE)
_OFFER = re.compile(
    r"\bknow\b|\b(?:if|when|once|after|whenever|until) (?:you|it)\b|\bhelp\b|\breport\b|你|您", re.IGNORECASE
)

ON_THE_WAY = wording.REASON.whole | decisions.BY_AGENT.whole
"""Words of which one stands in each diagnosis and choice."""
MIN_LENGTH = 8
POINTING_REACH = 80
BARE = 50
LOOK_BACK = 6
"""How many texts from the end are searched for one that says something."""
MAX_TOLD = 8
LABEL_LENGTH = 50
SHORT = 18
"""Shorter sentences tell an outcome only when there is no longer one."""
ITEM_RANK = 2
"""Sentences of this rank are list items or dangle: used when nothing better is told."""
HOWTO_RANK = 3
"""Sentences among instructions: those that state how things are tell more than loose items."""
TOLD_LENGTH = 220


class Claim(NamedTuple):
    """A sentence worth keeping, in plain impersonal words; offsets are in the "text" source.

    ``final`` tells whether it stands in the turn's last say; ``role`` is what its section is about.
    """

    kind: FactType | None
    text: str
    start: int
    end: int
    step: int
    final: bool
    role: str = ""
    decides: bool = False
    item: bool = False
    self_contained: bool = True
    block: Block | None = None
    """The list item it stands in."""


@dataclass(frozen=True, slots=True)
class Say:
    """The turn's last say that means something: its claims, and the sentences an outcome is told with."""

    claims: tuple[Claim, ...]
    outcome: tuple[str, ...]
    spoken: bool = True
    """Whether sentences tell the outcome, not only list items."""
    polar: str = ""
    """The "yes" or "no" that it begins with."""
    announced: str = ""
    """What the last text said it would do next, if it ends by announcing an action instead of a
    conclusion.
    """


def kind_of(text: str, role: str, item: bool, within: str) -> FactType | None:
    """The type of a claim by what it says; list items are held to more, since they often only illustrate.

    ``within`` is the sentence of which the text is the impersonal part.
    """
    if role == "next" or wording.NEXT.search(text, within=within):
        return "next"
    changed = _changed(text, within)
    if changed and changed.start() == 0:
        return "changed"
    if wording.REASON.search(text, within=within):
        return "reason"
    if changed:
        return "changed"
    if not item and wording.ERROR.search(text, within=within) and not wording.CONDITIONAL.search(text):
        return "error"
    if (not item or role == "conclusion") and wording.RESULT.search(text, within=within):
        return "result"
    return None


def _changed(text: str, within: str) -> re.Match[str] | None:
    found = wording.CHANGED.search(text, within=within)
    return found if found is None or _SUPPOSES.match(text) is None else None


def is_self_contained(text: str) -> bool:
    """Whether a sentence can stand alone: no dangling pronoun in front, and enough words."""
    if wording.DANGLING.match(text):
        return False
    spaces = text.count(" ")
    if text.isascii():
        return spaces >= 3 or (spaces >= 2 and len(text) >= 20)
    return spaces >= 3 or len(CJK.findall(text)) >= 5


def on_the_way(parts: Iterable[Said]) -> Iterator[Claim]:
    """Diagnoses and choices in texts before the last one; guesses are left out."""
    for part in parts:
        for offset, window in windows(part.text):
            if not holds(window, ON_THE_WAY):
                continue
            passages = passages_of(blocks(window, part.start + offset))
            for claim in _claims(passages, part.step, final=False):
                if claim.decides or (claim.kind == "reason" and not is_hedged(claim.text)):
                    yield claim


def last_say(parts: tuple[Said, ...]) -> tuple[Say, int]:
    """The last text that says something, and its index in ``parts`` (-1: none)."""
    announced = _announcement(parts[-1].text) if parts else ""
    for index in range(len(parts) - 1, max(-1, len(parts) - LOOK_BACK - 1), -1):
        part = parts[index]
        found: list[Claim] = []
        outcome: list[str] = []
        spoken = False
        polar = wording.POLAR.match(part.text.lstrip("*_# \n"))
        for offset, window in windows(part.text):
            passages = passages_of(blocks(window, part.start + offset))
            found += _claims(passages, part.step, final=True)
            told, whole = _outcome(passages, polar=not outcome and polar is not None)
            outcome += told
            spoken = spoken or whole
        if outcome or any(claim.kind for claim in found):
            return Say(
                tuple(found[:MAX_CLAIMS]), tuple(outcome), spoken, polar[0] if polar else "", announced
            ), index
    return Say((), (), announced=announced), -1


def _announcement(text: str) -> str:
    last = text.strip()[-600:].rsplit("\n", 1)[-1]
    if not _may_announce(last):
        return ""
    before = _SENTENCE_END.match(last, 0, max(0, len(last) - 1))
    last = last[before.end() :] if before else last
    if not _may_announce(last):
        return ""
    match = _ANNOUNCED.search(plain(last))
    return match[1] if match and not _OFFER.search(match[1]) else ""


def _may_announce(text: str) -> bool:
    lower = text.lower()
    return any(mark in lower for mark in _ANNOUNCING)


def _claims(passages: list[Passage], step: int, final: bool) -> list[Claim]:
    found: list[Claim] = []
    parents = {passage.index: passage for passage in passages}
    for at, passage in enumerate(passages):
        if passage.covered or passage.role in ("howto", "options"):
            continue
        parent = parents.get(passage.block.parent)
        if passage.block.kind == "item" and parent is not None and parent.block.level < passage.block.level:
            continue  # a detail of an item that is told itself
        if not final and not holds(passage.block.text, ON_THE_WAY):
            continue
        previous: Sentence | None = None
        for sentence in passage.sentences:
            claim = _claim(sentence, previous, passages, at, step, final)
            if claim is not None:
                found.append(claim)
            elif found and previous is not None and found[-1].end == previous.end:
                found[-1] = _explained(found[-1], sentence)
            previous = sentence
    return found


def _explained(claim: Claim, sentence: Sentence) -> Claim:
    """A bare diagnosis ("The issue is with the path.") with the sentence behind it, which tells no more than why."""
    if claim.kind != "reason" or len(claim.text) > BARE or claim.item or not _BARE.search(claim.text):
        return claim
    if is_filler(sentence.text) or _DOING.match(sentence.text):
        return claim
    if len(claim.text) + len(sentence.text) >= CLAIM_LENGTH or sentence.text.endswith((":", "：")):
        return claim
    return claim._replace(text=f"{claim.text} {sentence.text}", end=sentence.end)


def _claim(
    sentence: Sentence, previous: Sentence | None, passages: list[Passage], at: int, step: int, final: bool
) -> Claim | None:
    raw = strip_lead(sentence.text)
    if len(raw) < MIN_LENGTH:
        return None
    decides = decisions.by_agent(raw)
    if not decides and (is_filler(raw) or wording.VACUOUS.match(raw)):
        return None
    passage = passages[at]
    text, start, end = impersonal(raw), sentence.start, sentence.end
    item = passage.block.kind == "item"
    kind = _item_kind(text, passage.role, raw) if item else kind_of(text, passage.role, False, raw)
    if not final and kind != "reason" and not decides:
        return None  # on the way only diagnoses and choices are kept
    standing = is_self_contained(text) and wording.POINTING.search(text, 0, POINTING_REACH) is None
    if text.endswith((":", "：")):
        joined, last = with_items(text, passages, at, cover=kind is not None)
        if last is None:
            return None
        text, end, standing = joined, last, not wording.DANGLING.match(text)
    elif not standing and previous is not None and kind and not is_filler(previous.text):
        before = impersonal(previous.text)
        if len(before) + len(text) < CLAIM_LENGTH and is_self_contained(before):
            text, start, standing = f"{before} {text}", previous.start, True
    text = clip(sentence_case(text), CLAIM_LENGTH)
    block = passage.block if item else None
    return Claim(kind, text, start, end, step, final, passage.role, decides, item, standing, block)


def _item_kind(text: str, role: str, within: str) -> FactType | None:
    """The type of a list item: by what follows its label ("Return type: changed …"), if it has one."""
    label, _, rest = text.partition(": ")
    if rest and len(label) < LABEL_LENGTH and wording.VERB.match(rest):
        return "changed"
    return kind_of(text, role, True, within)


def _outcome(passages: list[Passage], *, polar: bool = False) -> tuple[list[str], bool]:
    """What tells the outcome, the best first (conclusions, then the top), and whether it is sentences.

    ``polar``: it begins with a yes or no, which the first sentence explains however that begins ("yes, but …").
    """
    told: list[tuple[int, int, str]] = []
    sections: set[str] = set()
    for at, passage in enumerate(passages):
        block, role = passage.block, passage.role
        if role == "next" or (block.kind == "item" and (block.parent >= 0 or role in ("howto", "options"))):
            continue
        base = (0 if block.kind == "para" else 2) + {"howto": 3, "options": 3}.get(role, 0)
        for sentence in passage.sentences:
            text = _told(sentence.text, passages, at)
            if text:
                lesser = _is_lesser(text) and not (polar and not told and not _is_short(text))
                rank = base + (2 if lesser else 0) - (2 if _is_strong(text) else 0)
                told.append((rank, len(told), text))
                if rank == ITEM_RANK:
                    sections.add(block.section)
        if len(told) >= MAX_TOLD:
            break
    told.sort(key=lambda entry: entry[:2])
    spoken = [text for rank, _, text in told if rank < ITEM_RANK]
    if spoken or not told:
        return spoken, bool(spoken)
    states = [text for rank, _, text in told if rank == HOWTO_RANK and wording.STATES.search(text)]
    if states and len(sections) != 1:
        return states[-2:], True
    texts = [text.rstrip(".;!。；！:：") for _, _, text in told[:4]]
    return [sentence_case(separator_of(*texts).join(dict.fromkeys(texts)))], False


def _is_strong(text: str) -> bool:
    if wording.STRONG.search(text) is None:
        return False
    lower = text.lower()
    return any(word in lower for word in wording.STRONG_WORDS)


def _is_lesser(text: str) -> bool:
    """Whether a sentence tells an outcome badly: it dangles, is very short, or speaks of what is still
    to do.
    """
    return _is_short(text) or wording.DANGLING.match(text) is not None or wording.NEXT.match(text) is not None


def _is_short(text: str) -> bool:
    return len(text) < (SHORT if text.isascii() else SHORT // 4)


def _told(sentence: str, passages: list[Passage], at: int) -> str:
    """A sentence as an outcome tells it, a lead-in with its items; ``""`` if it says nothing."""
    raw = strip_lead(sentence)
    here = wording.HERE_IS.match(raw) if raw.endswith((":", "：")) else None
    if here is None and (is_filler(raw) or wording.VACUOUS.match(raw)):
        return ""
    text = sentence_case(impersonal(raw[here.end() :] if here else raw))
    if not raw.endswith((":", "：")):
        return text
    if not _lists(passages, at):
        return ""
    joined, end = with_items(text, passages, at, room=TOLD_LENGTH)
    return joined if end is not None else ""


def _lists(passages: list[Passage], at: int) -> bool:
    return at + 1 < len(passages) and passages[at + 1].block.kind == "item"
