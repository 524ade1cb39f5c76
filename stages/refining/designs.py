"""Instructions of a person that settle a design: what it is made of, where something is kept, what it is to be.

Each kind has words that every match contains; a sentence without them is not matched at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_NAME = r"(?:https?://\S|@?\w[\w.-]*[\d./@_-]\w|\w+ \d+(?:\.\d+)*\b|[a-z]+[A-Z]\w|(?<![.?!] )(?-i:[A-Z])\w)"
"""Something that has a name of its own: a library, a version, a path, an address."""
_STORES = (
    r"(?:env(?:ironment)?(?: variables?| vars?|\b)|storage|localstorage|sessionstorage|database|db|memory"
    r"|cookies?|sqlite|redis|postgres\w*|config\w*|root|git|repo\w*|monorepo|s3|volume)\b"
)


def _kind(words: str, pattern: str) -> tuple[frozenset[str], re.Pattern[str]]:
    return frozenset(words.split()), re.compile(pattern, re.IGNORECASE)


_KINDS = (
    # a plan told what to be made of, or changed in content
    _kind(
        "uses using based built top",
        r"\b(?:create|write|make|build|implement|set up|add|plan|start|do)\b[^.?!\n]{2,100}\b(?:that uses"
        r"|which uses|using|based on|built (?:on|with)|on top of) (?:the |a |our )?" + _NAME,
    ),
    _kind(
        "plan design spec approach proposal",
        r"\b(?:update|change|adjust|revise|modify|amend|rework) (?:the |our |your |this )?(?:\w+ )?(?:plan"
        r"|design|spec|approach|proposal)\b[^.?!\n]{0,24}?\b(?:so (?:that )?|to (?:use|have|put|make|keep"
        r"|only|include|follow|support|store|be)\b)",
    ),
    _kind(
        "use using",
        r"\b(?:update|change|switch|convert|migrate|rewrite|refactor|move)\b[^.?!\n]{1,80}\bto (?:use|using)"
        r" (?:the |a )?" + _NAME,
    ),
    _kind(
        "using building going only",
        r"\b(?:be sure|make sure|make it clear|note|say|remember|clarify)\b[^.?!\n]{0,40}\bwe(?:'re|’re"
        r"| are| will be) (?:using|building|going with|only)\b",
    ),
    # where something is kept, and how it is set up
    _kind(
        "keep store save put persist hold cache",
        r"\b(?:keep|store|save|put|persist|hold|cache)\b[^.?!\n]{2,60}\b(?:in|into|inside|under|at)"
        r" (?:an? |the |our |its )?(?:\w+ )?" + _STORES,
    ),
    _kind(
        "should shouldn shouldnt",
        r"\b(?:it|they|this|that|these|[\w./-]+ (?:file|files|code|config|logic|component|module|folder"
        r"|directory)) should(?:n't| not|nt)? (?:all |only |just )?(?:be|live|go|sit|stay|belong) (?:in|on|at"
        r"|under|inside|outside|with|next to)\b",
    ),
    _kind(
        "let",
        r"\blet's (?:get|set)\b[^.?!\n]{1,40}\b(?:with|in|as|using) an? \w",
    ),
    # what it is to be, for how long
    _kind(
        "now",
        r"\bfor now,? (?:just )?(?:remove|skip|drop|leave|disable|ignore|hide|keep|use|only)\b"
        r"|\b(?:remove|skip|drop|disable|ignore|hide|revert)\b[^.?!\n]{1,40}\bfor now\b",
    ),
    _kind(
        "make",
        r"\bmake (?:it|this|them|everything) an? [\w ,-]{2,40}\bwith\b",
    ),
    _kind(
        "simple minimal basic small",
        r"\bkeep (?:it|this|that|them|things|everything|the \w+) (?:very |really |dead |as )?(?:simple|minimal"
        r"|basic|small)|\b(?:make|write|create) (?:it |this |them |things )?(?:very |dead |really )?(?:simple"
        r"|minimal)(?:, \w+)? (?:plan|design|approach|api|proposal)s?\b",
    ),
    _kind(
        "will going should must",
        r"\b(?:this|it|[\w-]+ (?:app|service|project|repo|package|api|ui)) (?:will|is going to|should|must)"
        r" be (?:a|an|one) (?!problem|issue|while|long|bit|lot|pain|good|great|nice|better|bug|mess|way|big"
        r"|hard|quick)\w",
    ),
    # what the person did
    _kind(
        "reverted deleted removed rolled dropped disabled uninstalled got gave",
        r"(?<!when )(?<!if )(?<!after )(?<!once )(?<!before )\bi(?:'ve|’ve| have)? (?:just |already |also "
        r"|now |manually )?(?:reverted|deleted|removed|rolled back|dropped|disabled|uninstalled|got rid of"
        r"|gave up on)\b(?= \w)(?! (?:a|an|some|my) (?:comment|file|doc|document|text|line|word|item|row)\b)",
    ),
)
_CUES = frozenset().union(*(needed for needed, _ in _KINDS))


def settles(sentence: str, words: Collection[str]) -> bool:
    """Whether a sentence settles a design. ``words`` are its words in lower case, without apostrophes."""
    return not _CUES.isdisjoint(words) and any(
        not needed.isdisjoint(words) and pattern.search(sentence) is not None for needed, pattern in _KINDS
    )
