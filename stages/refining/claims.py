"""What the agent's texts conclude: typed sentences from the final answer, and diagnoses made on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from stages.model import FactType
from stages.refining import decisions
from stages.refining.filler import impersonal, is_filler, is_hedged, strip_lead
from stages.refining.prose import CJK, Block, Sentence, blocks, clip, plain, sentences, windows
from stages.refining.reading import Said

CLAIM_LENGTH = 280
MAX_CLAIMS = 60

_REASON = re.compile(
    r"\b(?:because|due to|caused by|root cause|culprit|the reason|as a result of|stems? from"
    r"|the (?:actual |real |main |underlying )?(?:issue|problem|bug|error|cause|failure|conflict) (?:is|was|were|here|occurs|comes|lies|indicates|happens|happened)\b(?! (?:that|to) (?:let|i)\b))"
    r"|原因|因为|由于|根因|问题(?:是|在于|出在)|导致|造成(?!的)|起因",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b(?:fail(?:s|ed)|crash(?:es|ed)|raises?|threw|throws|broke|broken|times? out|timed out"
    r"|(?:does|do|did|is|are|was|were)(?:n't| not) (?:work|compile|build|exist|found|available|defined|set|start|load)(?:ing)?|could(?:n't| not)|cannot|can't"
    r"|no such)\b|失败|报错|崩溃|抛出|不存在|出错|无法|超时|找不到",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"^(?:next(?: steps?)?[:,] |to-?dos?: |remaining: |still (?:need|to do|missing|open)|you(?:'ll|’ll| will)? (?:still |now )?(?:need|have) to|you should (?:now |also )?|"
    r"(?:the )?(?:remaining|next|follow-up|last|only) (?:step|task|work|thing|item|part)s? (?:is|are|left|remains?)|what(?:'s| is) left|pending: |later: |下一步|接下来(?:需要|要|请|还)|待办|剩下|剩余|还需要|还需|还剩|后续(?:需要|要|可以|再)|之后(?:需要|要)|需要你|你(?:还)?需要|请(?:重启|重新|手动|运行|执行|先|在|把|将))"
    r"|\b(?:to be (?:addressed|done|implemented|fixed) (?:later|next)|remains? to be|not (?:yet|been) (?:implemented|done|tested|fixed|run|verified)|will need (?:to|a|an|more|further)|still needs?|left for (?:later|a follow-up)|never (?:ran|run|tested))\b|尚未|还没有?(?!决定)|待(?:确认|处理|实现|验证|补充|定)|留待|以后再|有待",
    re.IGNORECASE,
)
_VERBS = (
    r"added|fixed|changed|removed|updated|created|replaced|renamed|implemented|moved|refactored|extracted|introduced|switched|converted|deleted|rewrote|rewritten|reverted"
    r"|configured|installed|set up|enabled|disabled|wrote|written|modified|adjusted|improved|enhanced|simplified|merged|split|corrected|resolved|bumped|upgraded|downgraded|migrated"
    r"|wired|cleaned up|consolidated|initialized|initiali[sz]ed|marked|documented|separated|wrapped|exported|imported|registered|applied|committed|pushed|tagged|ported|cast|handled|integrated|built|connected|applied|ensured|expanded|clarified|restructured|reduced|increased|raised|lowered|patched|swapped|dropped|inlined|restored|generated|translated|localized|optimized|cached|debounced|throttled|started|stopped|deployed|published|released|listed"
)
_CHANGED = re.compile(
    rf"^(?:(?:{_VERBS})\b|[^,.;]{{1,80}}\b(?:has|have|had) (?:now |also |just |successfully |already )*been (?:successfully |now )?(?:{_VERBS})\b|[^,.;]{{1,60}} (?:is|are|was|were) (?:now |also )?(?:{_VERBS})\b)"
    r"|\b(?:now (?:\w+s\b|\w+ly \w+s\b)|no longer)\b"
    r"|(?:已经?|都|成功)(?:把|将|在|被|给|从|对|由|全部|成功|为)?[^，。]{0,40}(?:改|加|增|删|移|换|修|更新|创建|写|替换|重命名|实现|拆|合并|提交|配置|安装|升级|统一|补|去掉|清理|修正|生成|迁移|封装|抽)"
    r"|^(?:修改|新增|增加|添加|删除|移除|更新|修复|重构|替换|重命名|创建|新建|实现|改为|改成|把|将|引入|拆分|合并|补充|调整|优化|去掉|抽取|抽出|迁移|升级|配置|统一|加了?|改了?|修了?|删了?|写了?)|(?:改为|改成|换成|改用|不再|现在(?:会|用|使用|是|监听|支持|走|只|由))",
    re.IGNORECASE,
)
_RESULT = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)|successful(?:ly)?|works?(?! (?:in|on) progress)|working|compiles|confirmed|verified|shows? that|returns?|prints|outputs?|found)\b|通过|成功|正常|验证|确认|输出|返回|结果|可用",
    re.IGNORECASE,
)
_DANGLING = re.compile(
    r"(?:it|its|it's|it’s|this|that|they|they're|their|these|those|he|she|him|both(?! the| of the| `)|which|and|but|so|also|then|however|otherwise|instead|such|same|the (?:same|latter|former|other|rest|following|above|first|second|third|only|key|main|result|change|changes|fix|issue|problem|solution|plan|approach|code|file|function|component|implementation|workaround)s?(?= (?:is|are|was|were|will|now|should|can|has|have|also)\b)(?! (?:is|was|were) (?:that|because|due|caused|in|with))"
    r"|here|there's|there is a|after that|in this case|in that case|for this|for that|as (?:requested|you)|with this|with these|like (?:this|that)|if (?:it|this|that|they)|when (?:it|this|that|they)|since (?:it|this|that|they)|for example|e\.g|where|while|whereas|thus|therefore|hence|meanwhile|additionally,|furthermore|moreover|not\b|or\b|you (?:can|could|may|might|should be able|'ll see|’ll see|will see)|once |now when|now,? (?:when|you)|to (?!be\b))\b"
    r"|(?:它|这(?!样)|那|其|该|此|他|她|上述|以上|前者|后者|两者|同时|另外|此外|并且|而且|但|不过|然而|所以|因此|于是|然后|比如|例如|如果|否则|这样|如上|你可以|您可以|也|还|都)",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"summary|conclusion|in short|tl;?dr|root cause|cause|problem|issue|diagnos|fix(?:es|ed)?\b|change|what (?:was|i|we|has|got|changed)|done|implement|result|finding|recommend|decision|verdict|answer|outcome|key (?:point|feature|update|addition|improvement|highlight|insight)|update|added|created|completed|status|verification|improvement"
    r"|总结|小结|结论|原因|根因|问题|修复|改动|修改|变更|完成|结果|建议|决定|方案选择|说明|验证|要点|新增|更新",
    re.IGNORECASE,
)
_NEXT_SECTION = re.compile(
    r"^(?:\W|\d)*(?:(?:suggested |recommended |possible )?next|to-?do|remaining|follow[- ]?ups?|future|open (?:questions|issues|ends)|still (?:open|to do)|what(?:'s| is) (?:next|left)|known (?:issues|limitations)|limitations|下一步|后续|待办|待确认|待处理|遗留|剩余|未完成|接下来)",
    re.IGNORECASE,
)
_HOWTO = re.compile(
    r"(?:^|\b)(?:to (?:test|use|run|try|verify|deploy|start|view|check|see|do|set|enable|get|apply|access|debug|create|install|configure)\b|how (?:to|it works|you|this works|they work)|usage|examples?|testing|test (?:the|it|scenario|steps?)|instructions|commands?|steps?(?: to)?|try (?:it|this|running)|for example|you can (?:now )?(?:test|verify|check|try|use|see|access|view)|(?:now )?when you\b|here(?:'s| is) how|you(?:'ll| will)? (?:need|see|have|can)|this will|expected|sample|make sure|prerequisites|alternative|you have \w+ options"
    r"|如何|怎么|使用方法|用法|示例|测试方法|测试步骤|运行方式|操作步骤|步骤|验证方法|启动方式|例如|你可以|可以这样)",
    re.IGNORECASE,
)
_PROPOSES = re.compile(
    r"^(?:\W|\d)*(?:option|approach|alternative|solution options?|choices?|pros|cons|trade-?offs?|considerations?|risks?|方案|选项|备选|优点|缺点|权衡|思路)(?:\s*(?:\d|[A-F]\b|[一二三四五])|s?\b|$)|^(?:pros|cons|优点|缺点)|\boptions?\b",
    re.IGNORECASE,
)
_VACUOUS = re.compile(
    r"^(?:(?:the )?(?:implementation|work|task|feature|fix|setup|migration|plan|everything|all (?:changes|tasks|done))\b[^.]{0,30}\b(?:is |are |has been |been )?(?:now )?(?:complete[d]?|done|ready|finished|in place|good to go)|all (?:set|done)|(?:successfully )?(?:completed|done|finished)[!.]?|(?:so,? )?to answer your question|(?:no )?(?:changes|response) (?:requested|needed)|documentation updated|(?:changes|updates) made|found it|i found (?:it|the (?:issue|problem|bug))|the (?:fix|solution) is (?:simple|straightforward)|全部(?:完成|搞定)|任务完成|(?:修改|更新|实现|任务)(?:已)?完成了?)[!.。！: ]*$",
    re.IGNORECASE,
)
_DID = re.compile(r"(?:implement|summary|changes|改动|总结|what|fixed|added|updated|created)", re.IGNORECASE)
_CONDITIONAL = re.compile(r"\b(?:if|when|whenever|unless|in case|would|could|e\.g)\b|如果|要是|时会|假如", re.IGNORECASE)
_STRONG = re.compile(
    r"\b(?:recommend|in short|in summary|tl;?dr|conclusion|root cause|bottom line|so the (?:answer|behaviou?r|result))\b|总之|结论|根因|综上|推荐",
    re.IGNORECASE,
)
_HERE_IS = re.compile(r"here(?:'s|’s| is| are) (?:a (?:summary|list|breakdown) of )?(?:what (?:i|we)(?:'ve| have)? (?:did|implemented|added|changed|fixed|created|was done)[^:：]*[:：]$|)", re.IGNORECASE)
_BOLD_HEAD = re.compile(r"\s*(?:\d[.)]\s*)?\*\*([^*\n]{2,120})\*\*\s*[:：—–-]?\s*(.*)")
_VERB = re.compile(_VERBS, re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!。！])\s+|(?<=[。！])")
_ANNOUNCED = re.compile(
    r"(?:let me|let's|i(?:'ll|’ll| will)(?: now)?|i need to|i'm going to|我(?:来|先|现在|再)|让我|接下来(?:我)?(?:来|会|要)?|现在(?:来|开始)?)\s*(.{6,160}?)[:：.。…]*$",
    re.IGNORECASE,
)
_OFFER = re.compile(r"\bknow\b|if you|help|when it|report|once", re.IGNORECASE)

MIN_LENGTH = 8
LOOK_BACK = 6
"""How many texts from the end are searched for one that says something."""
MAX_TOLD = 12
ITEM_RANK = 2
"""Sentences of this rank are list items or dangle: used when nothing better is told."""
TOLD_LENGTH = 220

_REASON_HINT, _ERROR_HINT, _NEXT_HINT, _CHANGED_HINT, _RESULT_HINT, _CHOICE_HINT = (1 << bit for bit in range(6))
_ALL = (1 << 6) - 1
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


def _hint_words() -> dict[str, int]:
    """The words that a match of each pattern must contain, so that texts without them need no matching."""
    lists = (
        (_REASON_HINT, "because due caused cause culprit reason result stem stems issue problem bug error failure conflict"),
        (_ERROR_HINT, "fails failed crashes crashed raise raises threw throws broke broken times timed doesn't does don't do didn't did isn't is aren't are wasn't was weren't were couldn't could cannot can't no"),
        (_NEXT_HINT, "next dos todo remaining still need have should step task work thing item part left pending later remain remains yet never steps tasks"),
        (_CHANGED_HINT, _VERBS.replace("|", " ") + " set cleaned been now no"),
        (_RESULT_HINT, "pass passes passed passing succeeds succeeded successful successfully work works working compiles confirmed verified show shows return returns prints output outputs found"),
        (_CHOICE_HINT, "decided chose chosen opted settled went going picked agreed decision instead rather favor favour longer stick stuck sticking because since over so as switched moved migrated replaced choice approach"),
    )
    hints: dict[str, int] = {}
    for bit, words in lists:
        for word in words.split():
            hints[word] = hints.get(word, 0) | bit
    return hints


_HINTS = _hint_words()


@dataclass(frozen=True, slots=True)
class Claim:
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


@dataclass(frozen=True, slots=True)
class Say:
    """The turn's last say that means something: its claims, and the sentences an outcome is told with."""

    claims: tuple[Claim, ...]
    outcome: tuple[str, ...]
    announced: str = ""
    """What the last text said it would do next, if it ends by announcing an action instead of a conclusion."""


@dataclass(slots=True)
class _Passage:
    """A block that can be told from, with its sentences and its role; ``covered``: told with its lead-in already."""

    block: Block
    index: int
    role: str
    sentences: list[Sentence]
    covered: bool = False


@lru_cache(maxsize=4_096)
def role_of(lead: str, section: str) -> str:
    """What a lead-in and a heading say their text is about: next, howto, options, conclusion or nothing."""
    for text in (lead, section):
        if not text:
            continue
        if _NEXT_SECTION.match(text):
            return "next"
        if _PROPOSES.search(text):
            return "options"
        if _HOWTO.search(text) and not _DID.match(text):
            return "howto"
        if _CONCLUDES.search(text):
            return "conclusion"
    return ""


def _hints(text: str) -> int:
    """Which patterns a text may match, by its words: most sentences match none, and words are cheap to look up."""
    if not text.isascii():
        return _ALL
    hints = 0
    for word in _WORD.findall(text.lower()):
        hints |= _HINTS.get(word, 0)
    return hints


def kind_of(text: str, role: str, item: bool, hints: int = _ALL) -> FactType | None:
    """The type of a claim by what it says; list items are held to more, since they often only illustrate."""
    if role == "next" or (hints & _NEXT_HINT and _NEXT.search(text)):
        return "next"
    changed = hints & _CHANGED_HINT and _CHANGED.search(text)
    if changed and changed.start() == 0:
        return "changed"
    if hints & _REASON_HINT and _REASON.search(text):
        return "reason"
    if changed:
        return "changed"
    if not item and hints & _ERROR_HINT and _ERROR.search(text) and not _CONDITIONAL.search(text):
        return "error"
    if (not item or role == "conclusion") and hints & _RESULT_HINT and _RESULT.search(text):
        return "result"
    return None


def is_self_contained(text: str) -> bool:
    """Whether a sentence can stand alone: no dangling pronoun in front, and enough words."""
    if _DANGLING.match(text):
        return False
    spaces = text.count(" ")
    if text.isascii():
        return spaces >= 3 or (spaces >= 2 and len(text) >= 20)
    return spaces >= 3 or len(CJK.findall(text)) >= 5


def on_the_way(parts: Iterable[Said]) -> Iterator[Claim]:
    """Diagnoses and choices in texts before the last one; guesses are left out."""
    for part in parts:
        for offset, window in windows(part.text):
            if not _hints(window) & (_REASON_HINT | _CHOICE_HINT):
                continue
            passages = _passages(blocks(window, part.start + offset))
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
        for offset, window in windows(part.text):
            passages = _passages(blocks(window, part.start + offset))
            found += _claims(passages, part.step, final=True)
            outcome += _outcome(passages)
        if outcome or any(claim.kind for claim in found):
            return Say(tuple(found[:MAX_CLAIMS]), tuple(outcome), announced), index
    return Say((), (), announced), -1


def _announcement(text: str) -> str:
    last = text.strip()[-600:].rsplit("\n", 1)[-1]
    pieces = [plain(piece) for piece in _SENTENCE_END.split(last) if piece.strip()]
    match = _ANNOUNCED.search(pieces[-1]) if pieces else None
    return match[1] if match and not _OFFER.search(match[1][:24]) else ""


def _passages(parsed: list[Block]) -> list[_Passage]:
    """What can be told from: no code, tables, quotes and headings; instructions stay so until something else begins."""
    found: list[_Passage] = []
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
            role = role_of(plain(text).rstrip(":： "), section) or sticky
        elif block.kind == "para" and not block.lead:
            role, sticky = role_of("", section), ""
        if role in ("howto", "options"):
            sticky = role
        found.append(_Passage(block, index, role, list(sentences(block, index))))
    return found


def _claims(passages: list[_Passage], step: int, final: bool) -> list[Claim]:
    found: list[Claim] = []
    parents = {passage.index: passage for passage in passages}
    for at, passage in enumerate(passages):
        if passage.covered or passage.role in ("howto", "options"):
            continue
        parent = parents.get(passage.block.parent)
        if passage.block.kind == "item" and parent is not None and parent.block.level < passage.block.level:
            continue  # a detail of an item that is told itself
        previous: Sentence | None = None
        for sentence in passage.sentences:
            claim = _claim(sentence, previous, passages, at, step, final)
            if claim is not None:
                found.append(claim)
            previous = sentence
    return found


def _claim(
    sentence: Sentence, previous: Sentence | None, passages: list[_Passage], at: int, step: int, final: bool
) -> Claim | None:
    raw = strip_lead(sentence.text)
    if len(raw) < MIN_LENGTH:
        return None
    hints = _hints(raw)
    decides = bool(hints & _CHOICE_HINT) and decisions.by_agent(raw)
    if not decides and (is_filler(raw) or _VACUOUS.match(raw)):
        return None
    passage = passages[at]
    text, start, end = impersonal(raw), sentence.start, sentence.end
    item = passage.block.kind == "item"
    kind = kind_of(text, passage.role, item, hints)
    standing = is_self_contained(text)
    if text.endswith((":", "：")):
        joined, last = _with_items(text, passages, at, cover=kind is not None)
        if last is None:
            return None
        text, end, standing = joined, last, not _DANGLING.match(text)
    elif not standing and previous is not None and kind and not is_filler(previous.text):
        before = impersonal(previous.text)
        if len(before) + len(text) < CLAIM_LENGTH and is_self_contained(before):
            text, start, standing = f"{before} {text}", previous.start, True
    return Claim(kind, clip(text, CLAIM_LENGTH), start, end, step, final, passage.role, decides, item, standing)


def _with_items(
    text: str, passages: list[_Passage], at: int, *, cover: bool = False, room: int = CLAIM_LENGTH
) -> tuple[str, int | None]:
    """A lead-in or parent item with what it introduces ("Fixed two things: a; b"), whole items only.

    Also the end of the last item used, ``None`` without any. ``cover`` marks them as told.
    """
    block = passages[at].block
    heads: list[str] = []
    end: int | None = None
    used = len(text)
    level = -1
    for passage in passages[at + 1 : at + 40]:
        other = passage.block
        if other.kind != "item":
            if other.parent >= 0 and heads:
                continue
            break
        if block.kind == "item" and other.level <= block.level:
            break
        level = other.level if level < 0 else level
        if other.level > level:
            passage.covered = passage.covered or cover
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
        passage.covered = passage.covered or cover
    if not heads:
        return text, None
    separator = "；" if CJK.search(text) else "; "
    return f"{text} {separator.join(heads)}", end


def item_head(text: str) -> str:
    """What a list item is about: its bold lead, or all of it."""
    bold = _BOLD_HEAD.match(text)
    if bold is None:
        return impersonal(plain(text)).rstrip(".。:： ")
    head, rest = plain(bold[1]).rstrip(":： "), plain(bold[2])
    if not rest:
        return head
    if _VERB.match(head) and " " in head:
        return f"{head} {rest}".rstrip(".。:： ") if rest[0].islower() and len(rest) < 60 else head
    return f"{head}: {rest}".rstrip(".。:： ")


def _outcome(passages: list[_Passage]) -> list[str]:
    """The sentences that tell what came of it, the best first: conclusions, then the top."""
    told: list[tuple[int, int, str]] = []
    for at, passage in enumerate(passages):
        block, role = passage.block, passage.role
        if role == "next" or (block.kind == "item" and (block.parent >= 0 or role in ("howto", "options"))):
            continue
        base = (0 if block.kind == "para" else 2) + {"howto": 3, "options": 3}.get(role, 0)
        for sentence in passage.sentences:
            text = _told(sentence.text, passages, at)
            if text:
                rank = base + (2 if _DANGLING.match(text) else 0) - (2 if _STRONG.search(text) else 0)
                told.append((rank, len(told), text))
        if len(told) >= MAX_TOLD:
            break
    told.sort(key=lambda entry: entry[:2])
    spoken = [text for rank, _, text in told if rank < ITEM_RANK]
    return spoken or ["; ".join(text.rstrip(".;") for _, _, text in told[:4])] * bool(told)


def _told(sentence: str, passages: list[_Passage], at: int) -> str:
    raw = strip_lead(sentence)
    opens = raw.endswith((":", "："))
    if opens and (match := _HERE_IS.match(raw)):
        return _with_items(impersonal(raw[match.end() :]), passages, at, room=TOLD_LENGTH)[0] if _lists(passages, at) else ""
    if is_filler(raw) or _VACUOUS.match(raw):
        return ""
    text = impersonal(raw)
    if not opens:
        return text
    return _with_items(text, passages, at, room=TOLD_LENGTH)[0] if _lists(passages, at) else ""


def _lists(passages: list[_Passage], at: int) -> bool:
    return at + 1 < len(passages) and passages[at + 1].block.kind == "item"
