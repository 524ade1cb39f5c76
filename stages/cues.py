"""Cues in a person's words, English and Chinese, that they carry on with a discussion or turn to another
subject.
"""

from __future__ import annotations

import re

LEAD_CHARS = 200
"""A turn announces a new subject in its beginning; later in it such words mean something else."""

_ENGLISH_ON = r"""
    continue | keep\s+going | go\s+(?:on|ahead) | proceed | commit | push\b | try\s+again | again\b
  | do\s+(?:it|that|so) | implement\s+(?:it|this|that) | (?:begin|start)\s+(?:the\s+|to\s+)?implement\w*
  | get\s+started | still\b | same\s+(?:error|problem|issue) | not\s+working
  | fix\s+(?:it|this|that|the|these) | revert | undo\s+(?:it|that) | run\s+(?:it|the\s+tests?)
  | test\s+it | (?:that|this|it)\s+works | works\b | update\s+(?:the\s+)?(?:plan|readme|docs?)
  | why\b | how\s+come | what\s+about | similarly | it\b | that\b | this\b | these\b | those\b
"""
_CHINESE_ON = (
    "还是|继续|接着|提交|推送|再试|再来|可以|对的|是的|没错|不行|不对|为什么|同样|跑一下|试一下|按你说的"
    "|就这样|就按|改一下|修一下|那就|那|它|这个|还有"
)
_ASSENT = (
    r"(?:ok(?:ay)?|yes|yep|great|good|perfect|nice|cool|thanks?|no|sure|right|hmm+"
    r"|now|please|then|and|but|also|just)"
)

_CARRIES_ON = re.compile(
    rf"^\W*(?:{_ASSENT}\b[\s,.!]*)*(?:$|{_ENGLISH_ON}|{_CHINESE_ON}"
    rf"|(?:好的?|嗯|行|对)[，,。！!\s]*(?:$|{_CHINESE_ON}))",
    re.VERBOSE | re.IGNORECASE,
)
_TURNS_AWAY = re.compile(
    r"""\b(?:let'?s|lets)\s+(?:move\s+on|switch|start|now|make\s+a\s+(?:new\s+)?plan|add|think)
      | \bnow\s+(?:let'?s|i\s+want|it'?s\s+time|make\s+sure|for\s+something)
      | \b(?:new|next|another|different|separate)\s+(?:feature|task|topic|question|thing|subject|issue)
      | \bsomething\s+else\b | \bon\s+another\s+note\b | \bwhile\s+(?:you|we|i)(?:'re|'m|\s+are|\s+am)\s+at\s+it\b
      | \bside\s+(?:note|question)\b | \bone\s+more\s+thing\b
      | \bby\s+the\s+way\b | \bbtw\b | \bunrelated\b
      | 换个 | 另外 | 另一个 | 下一个 | 顺便 | 顺手 | ^对了 | 别的事 | (?:另|还有)一?件事
      | 题外话 | 新的?(?:功能|任务|需求|问题)
      | 接下来 | 现在(?:来|我们|开始)
    """,
    re.VERBOSE | re.IGNORECASE,
)


_COMES_BACK = re.compile(
    r"""^\W*(?:(?:ok(?:ay)?|now|so|and|let'?s|can\s+we|好|那|我们|现在)[\s,，。.]*)*
        (?:(?:going|go|come|coming|getting)?\s*back\s+to\b | return(?:ing)?\s+to\b | remember\b
         | 回到 | 说回 | 再说回 | 继续(?:刚才|之前|上次)) | (?:刚才|之前)[^，。,.]{0,8}(?:那|的)""",
    re.VERBOSE | re.IGNORECASE,
)


def comes_back(text: str) -> bool:
    """Whether a message names an earlier subject to return to: “back to the queue”, “回到缓存”."""
    return _COMES_BACK.search(text[:LEAD_CHARS]) is not None


def carries_on(text: str) -> bool:
    """Whether a message begins as one that continues: “commit it”, “still failing”, “好，提交吧”,
    “还是报错”.
    """
    return _CARRIES_ON.match(text) is not None


def turns_away(text: str) -> bool:
    """Whether a message announces something new: “now let's add …”, “by the way”, “另外”, “换个话题”."""
    return _TURNS_AWAY.search(text[:LEAD_CHARS]) is not None
