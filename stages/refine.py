"""Turn → what it meant: a summary, a few facts, whether a choice was made (seed 000 §3.3.1). Pure, no model.

A turn is refined from itself and the turn it answers alone, so the result is the same whenever it is made.
Nothing is invented: every fact is a sentence that was said (cleaned of markup and speaker) or states what a
tool's call and result show. Thinking, injections, our own tools' calls and filler never come in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache

from stages import entities
from stages.model import Fact, FactType, Refined, Turn, final_text
from stages.refining import actions as acts
from stages.refining import answers, claims, decisions, wording
from stages.refining.asking import Ask, ask, asks
from stages.refining.categories import categories
from stages.refining.claims import Claim
from stages.refining.cues import Cued
from stages.refining.filler import is_hedged, strip_lead
from stages.refining.passages import place_of, sentence_case
from stages.refining.phrases import Phrases, phrases
from stages.refining.prose import Sentence, clip, is_chinese, joined
from stages.refining.reading import Reading, read
from stages.refining.summary import asked_before, summarise

REFINER_VERSION = 3
"""Raised when the same turn would be refined differently: stored rows of another version are made again."""

MAX_FACTS = 8
MAX_PROBLEM = 240
SHORT_ANSWER = 42
"""Shorter answers to a question are told with the question."""
POINTING_REACH = 40
POINTING = 60
"""Shorter sentences of a person with a pronoun get what it stands for beside them."""
SAME_SHARE = 0.7
"""Two facts of which the shorter shares this much of its words with the other say the same."""
FACT_LENGTH = 280
_SHARES: dict[FactType, int] = {"decision": 3, "reason": 2, "error": 2, "changed": 4, "result": 2, "next": 1}
"""How many facts of a type are kept at first; what is left of ``MAX_FACTS`` goes to the others in order."""
_SAYS_THE_SAME: dict[FactType, FactType] = {"result": "changed"}
"""What changed and what came of it are often the same."""
_WORDS = re.compile(r"[\w.]+|[\u4e00-\u9fff]")
_SPACED = bytes(byte if chr(byte).isalnum() or chr(byte) in "_." else ord(" ") for byte in range(256))
"""For English texts: all that parts words becomes a space."""
PLACELESS = 46
"""Shorter list items that name no place do not say where something was changed."""
_NAMES_ITS_PLACE = re.compile(
    r"[\w-]\.[A-Za-z]\w{0,5}\b|\w\(\)|\w/\w[\w-]*[/.]|/\w+/|[a-z][A-Z]|\w_\w|\bREADME\b|--\w"
)
_HAS_SUFFIX = re.compile(r"\w\.\w+$")
_ASIDE = re.compile(r" \((?:[^()]*\bI\b[^()]*|[^()]*\b(?:above|below)\b[^()]*|\s*)\)")
_CONNECTIVE = Cued(
    r"^(?:so|and|but|then|now|also|given this)\b,? |^(?:所以|那么?|但是?|然后)，?",
    "also and but given now so then 但 所 然 那",
)
_POINTS = Cued(
    r"\b(?:it|this|that|them|these|those)\b|它|这个|那个",
    "it that them these this those 它 这 那",
)
MAX_PRAISE = 80
_PRAISED = re.compile(
    r"(?:the|your) (?:\w+ )?(?:approach|plan|option|design|proposal|solution|idea)\b", re.IGNORECASE
)
"""Praise of something that was proposed before."""
_LIKE_THIS = re.compile(r"(?<!thing )(?<!stuff )\blike (?:this|that|these)[.!]*$", re.IGNORECASE)
_IT_FAILS = re.compile(r"^It (?=(?:still |now )?(?:fails|failed|works|passes|crashes)\b)")
_PROBLEM = Cued(
    r"\b(?:doesn't|doesnt|does not|didn't|won't|can't|cannot|is not|isn't|not working|don't see|do not see"
    r"|fails?|failed"
    r"|failing|broken|crash(?:es|ed|ing)?|wrong|stuck|is undefined|unable"
    r"|(?:getting|get|see|seeing|hit|hits|hitting|throws?|gives?) (?:\w+ ){0,4}errors?)\b"
    r"|报错|失败|不(?:行|对|能|工作|生效|显示)|崩溃|出错|没有?(?:生效|反应|显示)|无法|卡住|丢失",
    "broken cannot crash crashed crashes crashing doesnt fail failed failing fails get getting give gives "
    "hit hits hitting not see seeing stuck t throw throws unable undefined wrong 不 丢 卡 反 效 无 显 溃 败 错",
)
_NO_PROBLEM = Cued(
    r"^(?:make sure|don't|do not|please|fix|add|if|we|you|why|so|update|let|read|there is|ensure|check|show"
    r"|handle|now|when|run|create|write|make|use|test|look|list|try|explain|give|do|tell|find|remove|delete"
    r"|implement|build|start|list)\b"
    r"|\b(?:please|fix|without|let's|make sure|can you|until|because|want|care|matter|important|issue"
    r"|reverted|mind|need)\b"
    r"|我们|不要|请|别|如果|检查|确保|处理|修|帮|希望|能不能|避免",
    "add because build care check create delete do don ensure explain find fix give handle if implement "
    "important issue let list look make matter mind need now please read remove reverted run show so "
    "start tell test there try until update use want we when why without write you 不 保 修 免 别 如 帮 我 望 检 理 "
    "请",
)


def refine(turn: Turn, previous: Turn | None, *, cwd: str | None) -> Refined:
    """What this turn meant. ``previous`` is the turn before it in the same conversation, if any."""
    reading = read(turn, cwd)
    words = phrases(reading.chinese)
    asked = ask(turn, reading.asked, words)
    answered = _answered(previous)
    answer = answers.resolve(asked.text, answered) if asked.kind == "said" else None
    say, at = claims.last_say(reading.said)
    made = [*claims.on_the_way(reading.said[: at if at >= 0 else len(reading.said)]), *say.claims]
    touched = entities.extract_reading(reading)
    before = cache(lambda: asked_before(previous, words))
    around = cache(lambda: before() or (say.outcome[0] if say.outcome and say.spoken else ""))
    facts = _facts(reading, asked, answer, around, made, words, touched.files_written, bool(answered))
    decision = any(fact.type == "decision" for fact in facts)
    summary = summarise(reading, before, asked, answer, say, facts, words)
    about = f"{asked.text} {answer.text}" if answer else asked.text
    return Refined(summary, facts, decision, categories(about, facts, touched, decision), touched)


def _answered(previous: Turn | None) -> str | None:
    """The text that a short message answers."""
    return final_text(previous.live_steps) if previous is not None else None


def _facts(
    reading: Reading,
    asked: Ask,
    answer: answers.Answer | None,
    before: Callable[[], str],
    made: list[Claim],
    words: Phrases,
    written: tuple[str, ...],
    answers_agent: bool,
) -> tuple[Fact, ...]:
    by_user = list(_from_user(asked, answer, before, words, answers_agent))
    by_tools = acts.facts(reading.actions, words)
    carried_out = bool(written) or any(action.call.command for action in reading.actions)
    by_text = list(_from_text(made, asked, carried_out, written, reading, words))
    reasons = [fact for fact in by_text if fact.type == "reason"]
    rest = [fact for fact in by_text if fact.type != "reason"]
    return _choose([*by_user, *reasons, *by_tools, *rest])


def _from_user(
    asked: Ask,
    answer: answers.Answer | None,
    before: Callable[[], str],
    words: Phrases,
    answers_agent: bool,
) -> Iterable[Fact]:
    span = (asked.sentences[0].start, asked.sentences[-1].end) if asked.sentences else None
    if answer is not None and answer.choice:
        template = {"option": words.chose, "no": words.declined, "go": words.go_ahead}.get(
            answer.kind, words.agreed
        )
        text = template.format(number=answer.number, option=answer.text, question=answer.text)
        yield Fact("decision", clip(text, FACT_LENGTH), "user", span)
    problem = False
    for number, sentence in enumerate(asked.sentences[:24]):
        text = _unconnected(strip_lead(sentence.text))
        if decisions.by_user(text) or (answers_agent and number < 2 and decisions.bounds(text)):
            text = _placed(text, asked.sentences[:number], before, words)
            if text:
                yield Fact("decision", sentence_case(text), "user", (sentence.start, sentence.end))
        elif not problem and _reports_problem(text):
            problem = True
            yield Fact("error", sentence_case(text), "user", (sentence.start, sentence.end))
    if asked.pasted:
        text = (
            words.failed.format(what=asked.command, line=asked.pasted.rstrip(". "))
            if asked.command
            else words.pasted.format(line=asked.pasted)
        )
        yield Fact("error", clip(text, FACT_LENGTH), "user", None)


def _unconnected(text: str) -> str:
    connective = _CONNECTIVE.match(text)
    return text[connective.end() :] if connective else text


def _reports_problem(text: str) -> bool:
    """Whether a person's sentence says by itself that something does not work."""
    return (
        len(text) < MAX_PROBLEM
        and _PROBLEM.search(text) is not None
        and not text.endswith(("?", "？"))
        and _NO_PROBLEM.search(text) is None
        and claims.is_self_contained(text)
        and wording.POINTING.search(text) is None
    )


def _placed(text: str, earlier: tuple[Sentence, ...], before: Callable[[], str], words: Phrases) -> str:
    """A person's sentence with what it points at beside it, if it does not stand alone: said earlier,
    or asked before.
    """
    standing = claims.is_self_contained(text)
    points = not standing or (len(text) < POINTING and _POINTS.search(text) is not None)
    points = points or _POINTS.search(text, 0, POINTING_REACH) is not None
    points = points or (len(text) < MAX_PRAISE and _PRAISED.match(text) is not None)
    if not points and (text.count(" ") >= 5 if text.isascii() else len(text) >= 8):
        return text
    if _LIKE_THIS.search(text):
        return ""  # it points at something shown
    about = _said_before([strip_lead(sentence.text) for sentence in earlier])
    about = about or (before() if points else "")
    if not about:
        return text if standing else ""
    return words.context.format(text=text.rstrip(".。!！"), about=clip(about.rstrip(".。"), 110))


def _said_before(said: list[str]) -> str:
    """The last of the earlier sentences that can stand alone, with those behind it that go on from it."""
    tail: list[str] = []
    for text in reversed(said):
        if len(text) < 18 or decisions.by_user(text):
            continue
        tail.insert(0, text)
        if _CONNECTIVE.match(text) is None and claims.is_self_contained(text):
            break
    return joined(tail)


def _from_text(
    made: list[Claim],
    asked: Ask,
    carried_out: bool,
    written: tuple[str, ...],
    reading: Reading,
    words: Phrases,
) -> Iterable[Fact]:
    first_result = True
    question = asked.text if asks(asked.text) else ""
    to_choose = bool(written) and decisions.asks_for_a_way(asked.text)
    whole = reading.turn.status not in ("cancelled", "unfinished")  # else the last words may be cut anywhere
    for claim in made:
        kind = claim.kind
        if (claim.decides and (carried_out or claim.final)) or (
            written and claim.final and decisions.ought(claim.text)
        ):
            kind = "decision"
        elif (
            to_choose
            and first_result
            and claim.final
            and not claim.item
            and kind in (None, "changed", "result")
            and decisions.takes(claim.text)
        ):
            kind = "decision"  # the way that was taken, where one was asked for
        elif kind == "changed" and not written and wording.VERB.match(claim.text) is None:
            kind = "result"  # how things are, or would be
        leads = whole and claim.final and first_result and not claim.item and claim.role != "next"
        if kind is None and not leads:
            continue
        text = _completed(claim, written, reading)
        if kind is None and text:
            kind = "result"  # the lead of an answer is what came of the question
            if question and len(text) < (SHORT_ANSWER if text.isascii() else SHORT_ANSWER // 3):
                text = words.context.format(text=text.rstrip(".。"), about=clip(question, 110))
        if kind is None or not text:
            continue
        first_result = False
        if (kind not in ("next", "decision") and is_hedged(text)) or (
            kind == "next" and "should now" in text
        ):
            continue
        if not claim.final and kind not in ("reason", "decision"):
            continue
        yield Fact(kind, text, "text", (claim.start, claim.end))


def _completed(claim: Claim, written: tuple[str, ...], reading: Reading) -> str:
    """The claim's words made to stand alone, or ``""`` if that is not possible."""
    text = _ASIDE.sub("", claim.text) if "(" in claim.text else claim.text
    if text.startswith("It ") and _IT_FAILS.match(text):
        command = next(
            (acts.what(a) for a in reversed(reading.actions) if a.call.command and a.step < claim.step), ""
        )
        return _IT_FAILS.sub(f"{command} ", text) if command else ""
    if not claim.self_contained or (claim.kind != "reason" and wording.speaks(text)):
        return ""
    if (
        not claim.item
        or claim.kind not in ("changed", "result")
        or len(text) > 200
        or _NAMES_ITS_PLACE.search(text)
    ):
        return text
    place = place_of(claim.block) if claim.kind == "changed" and claim.block is not None else ""
    if place:
        return f"{place}: {text}" if place.lower() not in text.lower() else text
    if len(written) == 1 and _HAS_SUFFIX.search(written[0]):
        return f"{acts.shown(written[0])}: {text}"
    return text if len(text) >= PLACELESS or not written or claim.kind == "result" else ""


def _choose(facts: list[Fact]) -> tuple[Fact, ...]:
    """At most ``MAX_FACTS`` different ones: a fair share of each type, in the order given."""
    distinct: list[Fact] = []
    seen: dict[str, list[set[str]]] = {}
    kinds = [_SAYS_THE_SAME.get(fact.type, fact.type) for fact in facts]
    for fact, kind in zip(facts, kinds, strict=True):
        if _WORDS.search(fact.text) is None:
            continue
        if kinds.count(kind) > 1:
            bag = _words_of(fact.text.lower())
            others = seen.setdefault(kind, [])
            if any(_overlap(bag, other) for other in others):
                continue
            others.append(bag)
        distinct.append(Fact(fact.type, _ended(clip(fact.text, FACT_LENGTH - 1)), fact.source, fact.span))
    shares = dict(_SHARES)
    kept: list[int] = []
    for index, fact in enumerate(distinct):
        if shares[fact.type] > 0:
            shares[fact.type] -= 1
            kept.append(index)
    order: tuple[FactType, ...] = ("decision", "reason", "error", "changed", "result", "next")
    if len(kept) > MAX_FACTS:
        kept = sorted(sorted(kept, key=lambda i: (order.index(distinct[i].type), i))[:MAX_FACTS])
    spare = [index for index in range(len(distinct)) if index not in set(kept)]
    kept = sorted([*kept, *spare[: MAX_FACTS - len(kept)]])
    return tuple(distinct[index] for index in kept)


def _words_of(lower: str) -> set[str]:
    if lower.isascii():
        return set(lower.encode().translate(_SPACED).decode().split())
    return set(_WORDS.findall(lower))


def _overlap(left: set[str], right: set[str]) -> bool:
    return len(left & right) >= SAME_SHARE * min(len(left), len(right))


def _ended(text: str) -> str:
    """With a full stop, as sentences have."""
    if text[-1] in ".!?…。！？;:；：":
        return text
    return (
        f"{text}。"
        if "\u3400" <= text[-1] <= "\u9fff" or (text[-1] in "”）" and not text.isascii() and is_chinese(text))
        else f"{text}."
    )
