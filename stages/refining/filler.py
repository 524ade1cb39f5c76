"""What is said without saying anything: acknowledgements, announcements of the next tool call, offers,
praise.
"""

from __future__ import annotations

import re
from functools import lru_cache

from stages.refining import wording
from stages.refining.cues import Cued

_INTERJECTION = re.compile(
    r"(?:(?:great|perfect|excellent|awesome|wonderful|fantastic|nice|good|cool|sure(?: thing)?|certainly"
    r"|absolutely"
    r"|of course|ok(?:ay)?|alright|all right|right|yes|yep|yeah|got it|understood|no problem|thanks?(?: you)?"
    r"|(?:great|good|excellent) (?:question|catch|point|idea|news|find)s?|well done|done|ah|oh|hmm+|wait"
    r"|you(?:'re|’re| are) (?:absolutely |completely |totally |quite )?(?:right|correct)|my apologies|sorry"
    r"|i apologi[sz]e|actually|excellent progress|all done|success"
    r"|好的?|好滴|行|可以|没问题|明白了?|了解了?|收到|嗯+|当然(?:可以)?|太好了|太棒了|完美|不错|很好"
    r"|搞定了?|抱歉|对不起"
    r"|你说得对|您说得对|确实如此|是的|对|没错|谢谢|ok)"
    r"(?:[!,.:;，。！、；~～…]+|\s+[-–—]\s*)\s*)",
    re.IGNORECASE,
)
_INTERJECTS = frozenset("acdefghimnoprstuwyACDEFGHIMNOPRSTUWY好行可没明了收嗯当太完不搞抱对你您确是谢很")
"""The first letters of all interjections."""
_OPENINGS = "ab ac ah al aw ce co do ex fa go gr hm my ni no of oh ok pe ri so su th un wa we wo ye yo"
_INTERJECTS_ENGLISH = frozenset((*_OPENINGS.split(), "i "))
"""How they begin in English, in two letters."""
_ONLY = re.compile(
    r"(?:great|perfect|excellent|awesome|wonderful|fantastic|nice|good|cool|sure(?: thing)?|certainly"
    r"|absolutely"
    r"|of course|ok(?:ay)?|alright|right|yes|yep|yeah|got it|understood|no problem|thanks?(?: you)?|done"
    r"|complete[d]?"
    r"|(?:great|good|excellent) (?:question|catch|point|idea|news|work|job)s?|well done|hmm+|wait"
    r"|you are welcome"
    r"|you(?:'re|’re| are) (?:absolutely |completely |totally |quite )?(?:right|correct"
    r"|welcome)(?: about (?:that|this))?"
    r"|my apologies|all set|no response requested|(?:implementation|task|all) (?:is )?(?:done|complete[d]?)"
    r"|summary|done summary|deployment ready|key (?:points|features|changes|highlights)"
    r"|好的?|好滴|行|可以|没问题|明白了?|了解了?|收到|嗯+|当然(?:可以)?|太好了|太棒了|完美|不错|很好"
    r"|搞定了?|完成了?|已完成|抱歉"
    r"|你说得对|您说得对|确实如此|是的|对|没错|谢谢|不客气|全部完成|总结)[!.。！~～… :：,，]*",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"(?:(?:now|next|first|then|so|and|finally|also|let's see|ok(?:ay)?|again|wait)[, ]+(?:let's see[, ]+)?)?"
    r"(?:let me\b|let's\b(?! (?:go with|stick|use|keep|avoid|not))|i(?:'ll|’ll| will)(?: (?:now|also|first"
    r"|then))?\b"
    r"|i(?:'m|’m| am) (?:going to|now going|about to|happy|glad|ready)\b|i need to\b|i should\b"
    r"|i can (?:now )?see\b|i see\b|we need to see\b"
    r"|i(?:'d|’d| would) (?:like|love|be happy)\b"
    r"|now (?:i|we|let|to)\b|now (?:add|update|create|check|fix|run|build|look|test)\b|looking at\b"
    r"|checking\b|time to\b|next up\b)"
    r"|(?:now|next|first|then)[, ]+(?:i(?:'ll|’ll| will| need| can| see| have| understand)|let|we)\b"
    r"|(?:would|do|should|shall|could|can) (?:you|i|we)\b[^?]{0,160}\?"
    r"|(?:is|are) there (?:anything|any other)\b|(?:please )?let me know\b|feel free\b|happy to\b|i hope\b"
    r"|hope (?:this|that)\b"
    r"|if you(?:'d| would)? (?:have|need|want|like|see|encounter|run into|prefer)\b|just (?:say|tell"
    r"|let me)\b|which (?:one|approach|option|way|would)\b[^?]{0,80}\?"
    r"|here(?:'s|’s| is| are)\b[^.]{0,140}[:：]?$|based on (?:my|the|this)\b[^.]{0,60}[,:]?$"
    r"|i(?:'ve|’ve| have)? (?:now )?(?:a (?:clear|good|better)|understand|have (?:a|all|enough))\b"
    r"|(?:to )?(?:test|try|use|verify|run) (?:it|this|the fix|these)[:：]?$|looks? good\b[!.]?$|the (?:key"
    r"|main) (?:points|changes|features)\b[^.]{0,30}[:：]$"
    r"|(?:started|starting|running|reading|searching)\b[^.]{0,40}\.{3}$"
    r"|in summary[:,]?$|(?:changes|the changes)(?: i)?(?: made)?[:：]?$"
)
_ANNOUNCES_ZH = re.compile(
    r"(?:那|那么|好|现在|接下来|下面|然后|接着|首先|先|再|最后)?(?:，|,)?"
    r"(?:(?:让|由)?我(?:们)?(?:先|来|再|现在|这就|马上|接下来|需要|要|将|会|去|可以|想|得){1,3}(?:看|查|读"
    r"|检查|确认|了解|分析|搜索|找|试|跑|改|修|写|加|更新|运行|测试|实现|创建|处理|帮|为|开始|继续|打开"
    r"|总结|重新|把|先)"
    r"|让我|我来|我看看|我看一下|我查一下|来看看|看看|先看|先读|先查|现在(?:来|开始|去|改|就改|看)"
    r"|接下来(?:来|我|会|就)?(?:看|查|读|改|修|写|开始)|下面(?:来|我|开始|是)"
    r"|正在|稍等|请稍|请看|马上)"
    r"|(?:如果|如)(?:你|您)?(?:有|还有|需要|想)|如有|需要我|是否需要|要不要我|还有(?:什么|其他|别的)"
    r"|希望(?:这|能|对)|请告诉我|请问|有问题"
    r"|(?:你|您)(?:想|要|希望|可以告诉|觉得|看)[^。]{0,40}[?？]|以下(?:是|为)[^。]{0,60}[:：]?$|具体(?:如下"
    r"|改动|修改)[^。]{0,10}[:：]?$"
)
_LEADING_AGENT = re.compile(
    r"(?:i|we)(?:'ve|’ve| have)? (?:(?:now|also|just|already|then|successfully|both|since) ){0,3}"
    rf"(?=(?:{wording.VERBS}|completed|finished|found|made|ran|read|tested|checked|verified|kept|used|chose|decided|looked"
    rf"|reviewed|built|put|left)\b)",
    re.IGNORECASE,
)
_LEADING_SUCCESS = re.compile(r"(?:successfully|all set[:,]?|finally,) ", re.IGNORECASE)
_LEADING_ZH = re.compile(
    r"(?:那就|那么，?|我(?:们)?(?=已|把|将|在|对|给|重|新|修|改|加|增|删|用|采|发|确认)|现在，?(?=已))"
)
_LEADS = frozenset("iIİıwWsSſaAfF那我现")
"""The first letters of all speakers."""
_HEDGES = Cued(
    r"\b(?:might|may(?!\s+\d)|maybe|perhaps|possibly|probably|likely|could be|i think|i believe|i suspect"
    r"|seems?|appears?"
    r"|not sure"
    r"|should (?:probably|be able|help|now|all|work|pass|resolve|fix|start|be (?:fixed|resolved|working))"
    r"|let's see|assuming"
    r"|identify (?:if|where|whether|why)"
    r"|if the (?:issue|problem|cause))\b|可能|也许|大概|或许|估计|似乎|好像|应该是|我猜|我怀疑|不确定",
    "appear appears assuming believe cause could identify issue likely may maybe might perhaps possibly "
    "probably problem see seem seems should sure suspect think 乎 估 好 怀 概 猜 确 能 许 该",
)

_ANNOUNCE_OPENINGS = (
    "ag al an ar ba ca ch co do fe fi ha he ho if in is ju le lo ne no ok pl re ru se sh so st te th ti to tr us ve "
    "wa we wh wo"
)
_ANNOUNCES_FROM = frozenset((*_ANNOUNCE_OPENINGS.split(), "i ", "i'", "i’"))
"""How English announcements begin, in two letters."""

ONLY_LENGTH = 60
"""Longer sentences are never a bare acknowledgement."""


@lru_cache(maxsize=1_024)
def strip_lead(sentence: str) -> str:
    """Without acknowledgements in front ("Perfect! I've added …", "好的，…")."""
    if sentence[:1] not in _INTERJECTS:
        return sentence
    begin = sentence[:2]
    if begin.isascii() and begin.lower() not in _INTERJECTS_ENGLISH:
        return sentence
    for _ in range(3):
        match = _INTERJECTION.match(sentence)
        if match is None or match.end() >= len(sentence):
            break
        sentence = sentence[match.end() :]
    return sentence


@lru_cache(maxsize=1_024)
def is_filler(sentence: str) -> bool:
    """Whether a plain sentence says nothing that is worth keeping. Decisions must be looked for before."""
    sentence = strip_lead(sentence.strip())
    if len(sentence) <= ONLY_LENGTH and _ONLY.fullmatch(sentence):
        return True
    if not sentence[:1].isalnum() and not any(map(str.isalnum, sentence)):
        return True
    lower = sentence.lower()[:240]
    if lower[:2] in _ANNOUNCES_FROM and _ANNOUNCES.match(lower):
        return True
    return not sentence.isascii() and _ANNOUNCES_ZH.match(sentence) is not None


def is_hedged(sentence: str) -> bool:
    """Whether it says that something may be so, not that it is."""
    return _HEDGES.search(sentence) is not None


@lru_cache(maxsize=1_024)
def impersonal(sentence: str) -> str:
    """Without the speaker: "I've successfully added X" → "Added X", "我已经把…" → "已经把…"."""
    sentence = strip_lead(sentence)
    if sentence[:1] not in _LEADS:
        return sentence
    match = _LEADING_AGENT.match(sentence) or _LEADING_SUCCESS.match(sentence) or _LEADING_ZH.match(sentence)
    if match is None:
        return sentence
    rest = (
        _LEADING_SUCCESS.sub("", sentence[match.end() :], count=1)
        if match.re is _LEADING_AGENT
        else sentence[match.end() :]
    )
    return rest[:1].upper() + rest[1:]
