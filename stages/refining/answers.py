"""Short messages that get their meaning from what they answer: "2", "yes, do it", "方案二", "继续"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stages.refining.filler import impersonal
from stages.refining.prose import Block, blocks, clip, plain, sentences, windows

MAX_ANSWER = 80
"""Longer messages speak for themselves."""
OPTION_LENGTH = 160
PLAN_LENGTH = 24
"""Shorter mentions of a plan, and headings, name it only when nothing longer does."""

_ZH_DIGITS = {"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_EN_ORDINALS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
}
_PART_END = re.compile(r"[\s;；](?:(?<=[\n;；])|(?<=[.!。！]\s))")
_POLITE = re.compile(
    r"^(?:(?:ok(?:ay)?|yes|yep|yeah|sure|great|good|please|let's|lets|i(?:'d| would)? (?:like|prefer|want"
    r"|choose|pick|think)|go(?: ahead)?(?: and)? (?:with|for)|go|use|do|try|take|pick|choose|select"
    r"|implement|start with|with|the|好的?|行|可以|嗯|那就?|就|我?选择?|我想?要|用|走|按|采用|请|先做?"
    r"|实现)[\s,.:，。!！]*)+",
    re.IGNORECASE,
)
_SELECTION = re.compile(
    r"(?:(?:option|choice|plan|approach|number|no\.?|solution|#|方案|选项|计划|思路|方法|做法|第)\s*)?"
    r"(?P<what>\d{1,2}|[一二两三四五六七八九]|[A-Fa-f](?![a-z])|(?:first|second|third|fourth|fifth|one|two"
    r"|three|four|five)\b)"
    r"\s*(?:个|种|项|条|号|点)?(?:方案|选项|option|one|approach|plan|choice|吧|。|\.|!|！|please|$|\s"
    r"|[,，;；:：)])",
    re.IGNORECASE,
)
_AFFIRMATIVE = re.compile(
    r"(?:(?:yes|yep|yeah|yup|sure|ok(?:ay)?|please(?: do)?|do it|do that|go ahead|go for it|proceed|go on"
    r"|sounds good|looks good|lgtm|agreed?|correct|right|exactly|perfect|great|good|fine|continue"
    r"|keep going|(?:let's |lets )?(?:get|go) (?:started|going)(?: (?:on|with) (?:this|it|that"
    r"|the) ?\w*)?(?: in the \w+)?(?: implementing(?: (?:this|it|that|the)(?: \w+)?)?)?"
    r"|(?:start|begin|continue)(?: on| with)?(?: the| this| your)? (?:implementation|implementing|plan|work"
    r"|coding|building)"
    r"(?: (?:this|it|that|the)(?: (?:plan|approach|design|proposal|\w+))?)?"
    r"|(?:now )?(?:implement|build|execute|follow|do) (?:the|this|that|your) (?:plan|approach|proposal|design"
    r"|solution)"
    r"|approved?|make it so|that works|works for me|let's do (?:it|this|that)|let's go|start"
    r"|begin|(?:let's )?implement(?: (?:it|this|that))?|(?:just )?do (?:it|this|so)|start (?:implementing"
    r"|working)|ship it|carry on|next|y|k"
    r"|好的?|好吧|行|可以|嗯+|是的?|对的?|没问题|同意|继续|开始吧?|做吧|改吧|就这样|就这么(?:办|做|定)"
    r"|按你说的(?:来|做|办)?|请继续|执行吧?|确认|批准|通过|当然|要|需要|没错|来吧|搞吧|干吧|动手吧|开工"
    r"|那就(?:这样|改|做)吧?|ok)"
    r"(?:[\s,.!;:，。！、～~]+|(?=[\u4e00-\u9fff])|$)(?:please|then|thanks?|now|and|with it|吧|了|谢谢|呀"
    r"|啊|哈)?[\s,.!，。！]*)+",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"(?:no|nope|nah|don't|do not|not now|stop|cancel|不|不要|不用|不行|不需要|算了|别|先别|不对|取消"
    r"|否)[\s,.!，。！了吧]*(?:thanks?(?: you)?|谢谢)?[\s,.!，。！]*",
    re.IGNORECASE,
)
_OPTION_HEAD = re.compile(
    r"(?:option|approach|plan|choice|solution|alternative|way|方案|选项|方法|思路|做法"
    r"|计划)\s*(?P<n>\d{1,2}|[A-F]|[一二三四五六七八九])\s*(?:[:：.)、—–(（-]|$)\s*(?P<rest>.*)",
    re.IGNORECASE,
)
_RECOMMENDED = re.compile(r"\((?:recommended|most common|simplest)[^)]*\)|（推荐[^）]*）", re.IGNORECASE)
_QUESTION = re.compile(r"[?？][\"'”*_`)]*\s*$")
_ASKING = re.compile(
    r"^(?:so,? )?(?:would you like(?: me)? to|do you want(?: me)? to|should i|shall i|shall we|should we"
    r"|want me to|can i|may i)\s+|^(?:那)?(?:我)?(?:要不要|是否|需要我|要我|可以|我可以)(?:现在|先|就)?",
    re.IGNORECASE,
)
_ASKING_END = re.compile(
    r"(?:好吗|可以吗|行吗|对吗|怎么样|好不好|吗|吧)?\s*[?？][\"'”*_`)]*\s*$|,? (?:is that ok(?:ay)?|right"
    r"|ok(?:ay)?)\?$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"(?:^|[.,;!] )(?:please )?(?:continue|keep going|go on|carry on|next)\b|继续", re.IGNORECASE
)
_SETS_GOING = re.compile(
    r"\b(?:start|begin|implement|started|going|go ahead|go for it|proceed|do it|do this|build|execute|follow"
    r"|ship it)\b|开始|开工|动手|执行|做吧|干吧|就这么",
    re.IGNORECASE,
)
_PLANNED = re.compile(
    r"\b(?:plan|approach|proposal|design|strategy)\b(?! (?:mode|to (?:read|look)))|方案|计划|设计",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"(?:^|[\s,，、和与]|and|\+|&)\s*(?:方案|选项|option\s)?(\d{1,2})(?=$|[\s,，、.和与+&])", re.IGNORECASE
)
_WHICH = re.compile(r"which|what|how|any|anything|is there|哪|什么|怎么|如何|还有", re.IGNORECASE)
_ADVISES = re.compile(
    r"建议|推荐|\b(?:i(?:'d| would)? (?:recommend|suggest)|recommendation|my advice)\b", re.IGNORECASE
)
_HAS_CHOICE = re.compile(
    r"\b(?:instead|rather|switch|replace|use|approach|option|plan|go with|move to|migrate|drop|keep|adopt"
    r"|recommend|suggest|design|strategy)\b|建议|推荐|先不|方案|改用|换成|采用|代替|迁移|保留|弃用|不再"
    r"|计划|思路|用",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a short message means. ``number`` is how it named the option, ``text`` the option or the question.

    ``kind``: "option" (one of several was chosen), "yes", "no", "continue". ``choice`` tells a choice from
    a mere go-ahead. ``rest`` is what the message says besides.
    """

    kind: str
    text: str
    number: str = ""
    choice: bool = False
    rest: str = ""


def resolve(message: str, answered: str | None) -> Answer | None:
    """The meaning of a message in the light of the text it answers, or ``None`` if it speaks for itself."""
    message = plain(message.strip()[: MAX_ANSWER + 240])
    end = _PART_END.search(message)
    first = message[: end.start()] if end else message
    if not message or len(first) > MAX_ANSWER:
        return None
    if answered and (numbers := _selected(first)):
        chosen = _options_named(numbers, options(answered))
        if chosen:
            rest = _rest(message, first)
            return Answer("option", "; ".join(chosen), "+".join(numbers), choice=True, rest=rest)
    if len(message) > MAX_ANSWER:
        return None
    return _agreement(message, answered)


def _rest(message: str, first: str) -> str:
    after = message[len(first) :].strip(" ,.;，。；")
    inline = re.split(r"[,，]\s*|\s+(?:but|and|但是?|不过|并且?)\s*", first, maxsplit=1)
    if not after and len(inline) > 1 and len(inline[1]) > 8:
        return inline[1].strip()
    return after


def _agreement(message: str, answered: str | None) -> Answer | None:
    if _NEGATIVE.fullmatch(message):
        declined = proposal(answered or "") if _ASKING.match(question(answered or "")) else ""
        return Answer("no", declined, choice=bool(declined))
    if _AFFIRMATIVE.fullmatch(message):
        asked = proposal(answered or "")
        kind = "continue" if _GOES_ON.search(message) else "yes"
        if not asked and kind == "yes" and _SETS_GOING.search(message) and (plan := planned(answered or "")):
            return Answer("go", plan, choice=True)
        return Answer(
            kind, asked, choice=kind == "yes" and bool(asked) and _HAS_CHOICE.search(asked) is not None
        )
    return None


def _selected(message: str) -> list[str]:
    """The options that a message names, normalised to "1", "2" … or letters; empty if it is not a
    selection.
    """
    rest = _POLITE.sub("", message).strip()
    match = _SELECTION.match(rest + " ")
    if match is None:
        return []
    bare = not re.match(
        r"(?:option|choice|plan|approach|number|no\.?|solution|#|方案|选项|计划|思路|方法|做法|第)",
        rest,
        re.IGNORECASE,
    )
    tail = rest[match.end() :].strip(" .,!。，！")
    word = match["what"].lower()
    if (
        bare
        and tail
        and ((word.isalpha() and len(word) == 1) or word in _EN_ORDINALS)
        and not re.match(r"(?:option|one|approach)", tail)
    ):
        return []
    if (
        bare
        and word.isdigit()
        and match[0].rstrip()[-1] not in ",，;；:："
        and re.match(r"[A-Za-z\u4e00-\u9fff]", tail)
        and not re.match(r"(?:and|but|please|但|不过|吧|和|，)", tail)
    ):
        return []
    return list(dict.fromkeys([_number(match["what"]), *_MORE.findall(tail[:24])]))


def _number(word: str) -> str:
    word = word.strip().lower()
    if word in _ZH_DIGITS:
        return str(_ZH_DIGITS[word])
    if word in _EN_ORDINALS:
        return str(_EN_ORDINALS[word])
    return str(int(word)) if word.isdecimal() else word.upper()


def options(text: str) -> dict[str, str]:
    """The options that a text ends up offering.

    Headed ones ("Option 2: …", "方案二：…"), else its last numbered list.
    """
    headed: dict[str, str] = {}
    listed: list[dict[str, str]] = []
    offset, part = windows(text)[-1]
    parsed = blocks(part, offset)
    for index, block in enumerate(parsed):
        match = _OPTION_HEAD.match(plain(block.text)) if block.kind in ("heading", "item", "para") else None
        if match:
            headed[_number(match["n"])] = _describe(match["rest"], parsed, index)
        elif (block.kind == "item" and block.number and block.level == 0) or (
            block.kind == "heading" and re.match(r"\d[.)]", block.text)
        ):
            number = _number(block.number or block.text[0])
            if number in ("1", "A") or not listed:
                listed.append({})
            listed[-1][number] = _describe(plain(block.text), parsed, index)
    if len(headed) >= 2:
        return headed
    return next((group for group in reversed(listed) if len(group) >= 2), headed)


def _describe(text: str, parsed: list[Block], index: int) -> str:
    text = _RECOMMENDED.sub("", text).strip(" :：-–—")
    if len(text) < 12 and index + 1 < len(parsed) and parsed[index + 1].kind in ("para", "item"):
        following = next(sentences(parsed[index + 1]), None)
        if following is not None:
            text = f"{text}: {following.text}" if text else following.text
    return clip(text, OPTION_LENGTH)


def _options_named(numbers: list[str], offered: dict[str, str]) -> list[str]:
    return [offered[number] for number in numbers if number in offered]


def question(text: str) -> str:
    """The question that a text ends with, as a clause; ``""`` if it does not end with one."""
    offset, part = windows(text)[-1]
    last: str = ""
    for block in blocks(part[-2_500:], offset)[-6:]:
        if block.kind in ("code", "table"):
            continue
        for sentence in sentences(block):
            if _QUESTION.search(sentence.text):
                last = sentence.text
    return clip(last, OPTION_LENGTH)


def planned(text: str) -> str:
    """What a text presents as a plan or an approach, in its own first sentence about it; ``""`` if none."""
    heading = ""
    for offset, part in windows(text):
        for block in blocks(part, offset):
            if block.kind not in ("para", "heading", "item") or _PLANNED.search(block.text) is None:
                continue
            for sentence in sentences(block):
                if _PLANNED.search(sentence.text) is None or _QUESTION.search(sentence.text):
                    continue
                said = clip(impersonal(sentence.text).rstrip(".。:： "), OPTION_LENGTH)
                if block.kind != "heading" and len(said) > PLAN_LENGTH:
                    return said
                heading = heading or said
    return heading


def proposal(text: str) -> str:
    """What a "yes" to this text agrees to: its closing question without the asking, else what it
    recommends.
    """
    asked = question(text)
    if asked and not _WHICH.match(asked):
        return _ASKING.sub("", _ASKING_END.sub("", asked)).strip(" ?？") or asked
    offset, part = windows(text)[-1]
    advice = [
        sentence.text
        for block in blocks(part[-2_500:], offset)
        if block.kind in ("para", "item")
        for sentence in sentences(block)
        if _ADVISES.search(sentence.text)
    ]
    return clip(advice[-1].rstrip("。."), OPTION_LENGTH) if advice else ""
