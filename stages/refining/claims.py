"""What the agent's texts conclude: typed sentences from the final answer, and diagnoses made on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
_ANSWERS = re.compile(r"^(?:yes|no|是的?|不是?|对|没有|有|可以|不能|不会|会)[,，.。!！:：—– ]", re.IGNORECASE)
_VACUOUS = re.compile(
    r"^(?:(?:the )?(?:implementation|work|task|feature|fix|setup|migration|plan|everything|all (?:changes|tasks|done))\b[^.]{0,30}\b(?:is |are |has been |been )?(?:now )?(?:complete[d]?|done|ready|finished|in place|good to go)|all (?:set|done)|(?:successfully )?(?:completed|done|finished)[!.]?|(?:so,? )?to answer your question|(?:no )?(?:changes|response) (?:requested|needed)|documentation updated|(?:changes|updates) made|found it|i found (?:it|the (?:issue|problem|bug))|the (?:fix|solution) is (?:simple|straightforward)|全部(?:完成|搞定)|任务完成|(?:修改|更新|实现|任务)(?:已)?完成了?)[!.。！: ]*$",
    re.IGNORECASE,
)
_META = re.compile(
    r"(?:here(?:'s| is| are)|the (?:plan|document|documentation|endpoint|updates?|additions?|changes?|solution|key|main|readme|file|page|post|app|interface|implementation|issue|fix)\b.{0,60}|made .{0,40}|(?:both|now)\b.{0,60}|.{0,120}):$",
    re.IGNORECASE,
)


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
    """The turn's last say that means something, parsed: its claims, and the sentences an outcome is told with."""

    claims: tuple[Claim, ...]
    outcome: tuple[str, ...]
    announced: str = ""
    """What the last text said it would do next, if it ends by announcing an action instead of a conclusion."""


def role_of(block: Block) -> str:
    """What a block's heading or lead-in says it is about: next, howto, options, conclusion or nothing."""
    heading, lead = block.section, block.lead
    for text in (lead, heading):
        if not text:
            continue
        if _NEXT_SECTION.match(text):
            return "next"
        if _PROPOSES.search(text):
            return "options"
        if _HOWTO.search(text) and not re.match(
            r"(?:implement|summary|changes|总结|改动|what)", text, re.IGNORECASE
        ):
            return "howto"
        if _CONCLUDES.search(text):
            return "conclusion"
    return ""


def kind_of(sentence: str, role: str, final: bool) -> FactType | None:
    """The type of a claim by what it says."""
    if role == "next" or _NEXT.search(sentence):
        return "next"
    if _REASON.search(sentence):
        return "reason"
    if _CHANGED.search(sentence):
        return "changed"
    if _ERROR.search(sentence):
        return "error"
    if _RESULT.search(sentence):
        return "result"
    return None if not final else None


def is_self_contained(text: str) -> bool:
    """Whether a sentence can stand alone: no dangling pronoun in front, and enough words."""
    if _DANGLING.match(text):
        return False
    if text.isascii():
        return text.count(" ") >= 3 or (text.count(" ") >= 2 and len(text) >= 24)
    return len(CJK.findall(text)) >= 5 or text.count(" ") >= 3


def on_the_way(parts: Iterable[Said]) -> Iterator[Claim]:
    """Diagnoses and choices in texts before the last one; guesses are left out."""
    for part in parts:
        for offset, window in windows(part.text):
            if not (
                _REASON.search(window)
                or decisions._CHOICE_AGENT.search(window)
                or decisions._CHOICE_ZH.search(window)
            ):
                continue
            for claim in _claims(window, part.start + offset, part.step, final=False):
                if claim.kind == "reason" and not is_hedged(claim.text) or claim.decides:
                    yield claim


def last_say(parts: tuple[Said, ...]) -> tuple[Say, int]:
    """The last text that says something, and its index in ``parts`` (-1: none)."""
    announced = ""
    for index in range(len(parts) - 1, max(-1, len(parts) - 6), -1):
        part = parts[index]
        found: list[Claim] = []
        outcome: list[str] = []
        for offset, window in windows(part.text):
            parsed = blocks(window, part.start + offset)
            found += _claims_of(parsed, part.step, final=True)
            outcome += _outcome(parsed)
        if not announced and index == len(parts) - 1:
            announced = _announcement(part.text)
        if outcome or any(claim.kind for claim in found):
            return Say(tuple(found[:MAX_CLAIMS]), tuple(outcome), announced), index
    return Say((), (), announced), -1


def _announcement(text: str) -> str:
    last = text.strip().rsplit("\n", 1)[-1]
    pieces = [plain(piece) for piece in re.split(r"(?<=[.!。！])\s*", last) if piece.strip()]
    if not pieces:
        return ""
    match = re.search(
        r"(?:let me|let's|i(?:'ll|’ll| will)(?: now)?|i need to|i'm going to|我(?:来|先|现在|再)|让我|接下来(?:我)?(?:来|会|要)?|现在(?:来|开始)?)\s*(.{6,160}?)[:：.。…]*$",
        pieces[-1], re.IGNORECASE,
    )  # fmt: skip
    ends_open = last.rstrip().endswith((":", "：")) or len(pieces[-1]) < 160
    return match[1] if match and ends_open and not re.search(r"\bknow\b|if you|help", match[1][:20]) else ""


def _claims(text: str, base: int, step: int, final: bool) -> list[Claim]:
    return _claims_of(blocks(text, base), step, final)


def _claims_of(parsed: list[Block], step: int, final: bool) -> list[Claim]:
    found: list[Claim] = []
    for index, block in enumerate(parsed):
        if block.kind in ("code", "table", "heading", "quote"):
            continue
        role = role_of(block)
        if role in ("howto", "options"):
            if block.kind == "item" or role == "options":
                continue
        previous: Sentence | None = None
        for sentence in sentences(block, index):
            claim = _claim(sentence, previous, block, parsed, role, step, final)
            if claim is not None:
                found.append(claim)
            previous = sentence
    return found


def _claim(
    sentence: Sentence,
    previous: Sentence | None,
    block: Block,
    parsed: list[Block],
    role: str,
    step: int,
    final: bool,
) -> Claim | None:
    raw = strip_lead(sentence.text)
    decides = decisions.by_agent(raw)
    if not decides and (is_filler(raw) or _VACUOUS.match(raw)) or len(raw) < 8:
        return None
    text, start = impersonal(raw), sentence.start
    if text.endswith((":", "：")):
        text = _with_items(text, block, parsed)
        if text.endswith((":", "：")) and not decides:
            return None
    standing = is_self_contained(text)
    kind = kind_of(text, role, final)
    if not standing and previous is not None and kind and not is_filler(previous.text):
        before = impersonal(previous.text)
        if len(before) + len(text) < CLAIM_LENGTH and is_self_contained(before):
            text, start, standing = f"{before} {text}", previous.start, True
    return Claim(
        kind,
        clip(text, CLAIM_LENGTH),
        start,
        sentence.end,
        step,
        final,
        role,
        decides,
        block.kind == "item",
        standing,
    )


def _with_items(text: str, block: Block, parsed: list[Block]) -> str:
    """A lead-in or parent item with what it introduces: "Fixed two things: a; b"."""
    index = next((i for i, other in enumerate(parsed) if other is block), -1)
    heads: list[str] = []
    for other in parsed[index + 1 : index + 12]:
        if other.kind != "item" or (block.kind == "item" and other.level <= block.level):
            break
        if heads and other.level > parsed[index + 1].level:
            continue
        heads.append(item_head(other.text))
    heads = [head for head in heads if head]
    if not heads:
        return text
    joined = "；".join(heads) if not text.isascii() and CJK.search(text) else "; ".join(heads)
    return clip(f"{text} {joined}", CLAIM_LENGTH)


def item_head(text: str) -> str:
    """What a list item is about: its bold lead, or its first clause."""
    bold = re.match(r"\s*(?:\d[.)]\s*)?\*\*([^*\n]{2,120})\*\*\s*[:：—–-]?\s*(.*)", text)
    if bold is None:
        return impersonal(plain(text)).rstrip(".。:： ")
    head, rest = plain(bold[1]).rstrip(":： "), plain(bold[2])
    if not rest or len(head) >= 24 or re.match(_VERBS, head, re.IGNORECASE) and " " in head:
        return f"{head} {rest}".rstrip(".。:： ") if rest and rest[0].islower() and len(rest) < 60 else head
    return f"{head}: {rest}".rstrip(".。:： ")


def _outcome(parsed: list[Block]) -> list[str]:
    """The sentences that tell what came of it, best first: from concluding sections, else from the top."""
    told: list[tuple[int, int, str]] = []
    for index, block in enumerate(parsed):
        if block.kind not in ("para", "item") or block.parent >= 0 and block.kind == "item":
            continue
        role = role_of(block)
        if role in ("howto", "options", "next") and block.kind == "item" or role == "next":
            continue
        for sentence in sentences(block, index):
            text = _told(sentence.text, block, parsed)
            if text:
                rank = 0 if block.kind == "para" else 2
                rank += 1 if role == "howto" else 3 if role == "options" else 0
                told.append((rank, len(told), text))
                if len(told) >= 12:
                    break
    strong = re.compile(
        r"\b(?:recommend|in short|in summary|tl;?dr|conclusion|root cause|bottom line)\b|总之|结论|根因|综上|推荐",
        re.IGNORECASE,
    )
    told.sort(key=lambda item: (item[0] - (1 if strong.search(item[2]) else 0), item[1]))
    return [text for _, _, text in told]


def _told(sentence: str, block: Block, parsed: list[Block]) -> str:
    raw = strip_lead(sentence)
    if is_filler(raw) or _VACUOUS.match(raw) or _HOWTO.match(raw) and raw.endswith((":", "：")):
        return ""
    text = impersonal(raw)
    if text.endswith((":", "：")):
        text = _with_items(text, block, parsed)
        if text.endswith((":", "：")):
            return ""
    return text
