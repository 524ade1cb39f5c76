"""Long runs that hold nothing: names, nearly all of them, told apart by one pattern each.

A pattern that matches proves that none of the rules of ``stages.secret_rules`` can find anything in the run or near
it; a run that it does not match may still hold nothing. Everything works on bytes.
"""

from __future__ import annotations

import re

from stages.secret_base64 import LONGER, TEXT_IN_BASE64, base64_start, readable
from stages.secret_joins import continued

HEADS = (
    rb"(?:s(?:k[-_]|hp|q0|ecret_|b[p_]|ntry)|rk_|whsec|AIza|GOCSPX|"
    rb"A(?:(?:KI|SI|GP|ID|RO|NP|NV)A|C|K(?:ID|LT)|GE-|TATT|LTAK-)|g(?:h[pousr]_|ithub_|l[a-z]{1,5}[-_]|sk_)|"
    rb"x(?:ox[a-z]|app|ai-)|S(?:K|EC[0-9a-f])|HRKU-|n(?:pm_|tn_|fp_)|p(?:ypi-|plx|scale|ul-)|hf_|api_org|d(?:o[opr]_|api|ckr)|"
    rb"EAA|key-|lin_|LTAI|v(?:c[abcikpr]_|ercel)|r(?:8_|ubygems)|PMAK|NRAK|figd|tskey|CCIP|eyJ|"
    rb"[MNO][A-Za-z0-9_-]{22,27}\.|[0-9a-f]{32}-us)"
)
"""How tokens begin, by first letter: each alternative that is tried takes time."""

HEADLESS = re.compile(
    rb"(?!" + HEADS + rb"|" + TEXT_IN_BASE64.pattern + rb")"
    rb"[A-Za-z0-9]*+(?:[_/+-](?!" + HEADS + rb")[A-Za-z0-9]*+)*+(?![_/+-])={0,2}"
)
"""A whole blob in which no token begins and that does not start like text in base64: most are names."""
ESCAPES = frozenset(b"\\%")
ODD = ESCAPES | frozenset(b"[;~")
"""What may run into a token."""
HINTS = frozenset(b" \t\"'=:.")
"""What stands right before a run of which something near tells."""
AROUND = b" \t\"'=:"
CONTEXT = (
    b"bearer",
    b"basic",
    b"token",
    b"apikey",
    b"sid",
    b"code",
    b"session",
    b"sess",
    b"session_id",
    b"sessionid",
)
_CONTEXT_ENDS = frozenset(word[-2:] for word in CONTEXT)
DOT = 46
ZERO, FOUR = b"04"
_DOTTED = (b"hvs.", b"hvb.", b"hvr.", b"SG.", b"ya29.", b"v1.")
_SILENT = rb"(?<![" + re.escape(bytes(HINTS - frozenset(b".") | ODD)) + rb"])"
_AFTER_WORD = b"|".join(
    rb"(?<=[^%b]%b)(?<!(?i:%b)%b)" % (AROUND, sign, b"|".join(sorted(_CONTEXT_ENDS)), sign)
    for sign in (b" ", b" = ", b": ")
)
PLAIN = re.compile(
    rb"(?>%b|%b|(?<=\n {4})|(?<=\n {8}))(?![0-9A-Fa-f]{8}-)%b" % (_SILENT, _AFTER_WORD, HEADLESS.pattern)
)
"""A run that holds nothing, and before which nothing tells that it does. What tells ends in one of HINTS: a word
of CONTEXT right before these; joined strings, which end in a quote or, continued, in a blank; a mark; and a
word somewhere before a UUID. So a run is plain behind another character, behind blanks and signs whose word
ends unlike any of CONTEXT, and behind the indentation of a line, unless it begins like a UUID. What is left to ask
for (``telling``) is what stands before a dot, a blank or one of LONGER."""
ASKED = LONGER | frozenset(b".")
"""For a plain run behind any other character, ``telling`` need not be asked …"""
ASKED_ESCAPED = ASKED | frozenset(b" ")
"""… in a text without a backslash, that is: in one with, a blank may be a continued line's."""


def telling(data: bytes, low: bytes, at: int) -> bool:
    """Whether what stands before the plain run at ``at``, one of ASKED_ESCAPED, may tell something all the same."""
    before = data[at - 1]
    if before in LONGER:
        return in_longer(data, low, at)
    return ends_head(data, at) if before == DOT else continued(data, at)


def in_longer(data: bytes, low: bytes, at: int) -> bool:
    """Whether a run behind one of LONGER may be more than a name in a path: a webhook's, an OAuth code of Google
    (``4/0…``), or readable base64 with what stands before it.
    """
    if data[at] == ZERO and data[at - 2] == FOUR:
        return True
    return low.find(b".com/", max(0, at - 64), at) >= 0 or readable(data, base64_start(data, at))


def ends_head(data: bytes, at: int) -> bool:
    """Whether the dot before ``at`` may be the last of a token's head: each ends in one of _DOTTED or holds ``dp.``."""
    return data.endswith(_DOTTED, max(0, at - 5), at) or data.find(b"dp.", max(0, at - 48), at) >= 0
