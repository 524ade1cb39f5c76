"""Whether a sentence makes a choice: takes one of several ways, adopts a rule, settles an approach.

Not whether it speaks of deciding. Questions, conditions, wishes for a later decision and advice are none.
"""

from __future__ import annotations

import re

from stages.refining import designs
from stages.refining.cues import Cued, words_of

_CHOICE_USER = Cued(
    r"\b(?:let(?:'s|’s|s| us) (?:just |then |rather |instead |only |actually ){0,2}(?:go with|use"
    r"|stick (?:with|to)|keep|adopt|drop|avoid|not\b|do it (?:the|with|as)|switch|call it|make it|rename)"
    r"|(?:we|i)(?:'ll| will|'re going to| are going to|'m going to| am going to)? (?:just |now |always "
    r"|only ){0,2}(?:go with|gonna use|decided\b|decide on|chose|choose|opt(?:ed)? for|settled? on"
    r"|stick with|standardi[sz]e on)"
    r"|(?:we|i)(?:'ll| will|'re going to| are going to) (?:just |now |always |only |be ){0,2}(?:us(?:e|ing)"
    r"|keep(?:ing)?|adopt(?:ing)?|drop(?:ping)?|switch(?:ing)? to)\b"
    r"|go with (?:the |option |plan |approach |your |that |this |#?\d|[a-c]\b)|stick (?:with|to) (?:the|our"
    r"|what|this|that|using)"
    r"|(?:use|using|prefer|want|keep|do|make|put|go|store|return|add|write|call|deploy|choose|pick|take"
    r"|run)\b(?:[^.?!\n]|[.?!](?=\S)){1,140}\b(?:instead of|rather than|in favou?r of|over using)\b"
    r"|instead of\b[^.?!\n]{2,80},? (?:use|let's|just|we|keep|make|do|put|store|return)\b"
    r"|(?:i|we) (?:don't|do not|dont) want (?:to (?:use|do|have|add|rely|depend|go|support|keep)|(?:each"
    r"|any|another|a separate|separate|multiple|two|both|jwt))|we (?:shouldn't|should not|should never"
    r"|must not|should always|should only|must always|never|always)\b"
    r"|(?:there|it) should (?:be )?(?:just|only) (?:be )?(?:one|a single)|we (?:only |just )?(?:want"
    r"|need) (?:a single|just one|only one|just a single)"
    r"|from now on\b|as a rule\b|no more\b[^.?!\n]{2,60}(?:please|from now)|(?:never|always) (?:use|commit"
    r"|push|run|add|write|put|call|edit|touch|deploy|log|mock|import|store|return|ask)\b"
    r"|(?:the )?(?:approach|plan|option|design|proposal|solution)(?: you(?:'ve|'re| have)?(?: proposed"
    r"| suggested| described)?)? (?:is (?:good|great|fine|perfect|approved|right|the right one"
    r"|what we want)|looks (?:good|great|right|fine)|works for me|sounds (?:good|great|right))"
    r"|(?:this|that|it)(?:'s| is) (?:a |the )?(?:good|great|right|perfect) (?:plan|approach|idea|design"
    r"|option)\b|(?:we|i) (?:don't|do not|dont) (?:actually |really )?need (?!to\b)\w+|(?:all|only|just"
    r"|keep|okay|ok|fine|without|leave|skip|simple|hard-?coded?|in memory"
    r"|client[- ]side)\b[^.?!\n]{0,60}\bfor now\b|make (?:it|this|that|them) (?:optional|mandatory|required"
    r"|configurable|read-only|the default)|(?:put|leave|keep) (?:it|this|that) (?:back|in|there|out)\b"
    r"|(?:should|would|must) (?:always |only )?(?:override|take precedence|default to|fall back)|(?:it|this"
    r"|that|they|everything) should (?:all )?be the same\b|use (?:a|the|this) (?:\w+ ){0,3}approach\b"
    r"|(?:focus(?:ing)? on|start(?:ing)? with) (?:just |only )?(?:the )?(?:primary|simplest|proposed|basic)"
    r"|let's (?:do|start with|take|build|make|try) the (?:easiest|simplest|most basic|minimal)|i (?:like"
    r"|prefer|choose|pick|approve|agree with|vote for) (?:the |option |plan |approach |your |that |this "
    r"|#?\d)"
    r"|we(?:'ll| will) (?:tackle|do|handle|deal with|leave|postpone|revisit|address) (?:this|that"
    r"|it)\b[^.?!\n]{0,30}\blater|leave it as (?:it )?is|keep it as (?:it )?is"
    r"|(?:do )?not worry about\b[^.?!\n]{2,60}for now"
    r"|(?:only|just) (?:support|use|allow|target|do|keep)\b[^.?!\n]{2,60}\bfor now)",
    "always approach design favor favour focus focusing go i idea instead just keep leave let lets make "
    "more must never now only option over plan proposal put rather rule should solution start starting "
    "stick we worry would",
)
_BOUND = re.compile(
    r"\b(?:in the background|by default|at (?:most|least)|no (?:more|later|longer) than|up to \d|(?:before"
    r"|after|every|within|for"
    r"|to|per) (?:\d+|one|two|three|five|ten|thirty)\b|\d+ (?:ms|s|seconds?|minutes?|hours?|days?|times|mb|kb"
    r"|tokens|percent)"
    r"|(?:two|three|five|ten|thirty) (?:seconds|minutes|hours|days|times)|but (?:keep|leave|not|only|without)"
    r"|(?:both|all|each) of"
    r"|for both|for all)\b|(?:默认|最多|最少|至少|不超过|后台|每(?:天|晚|小时|周|次|秒)|\d+ ?(?:秒|分钟|小时|天|次))",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"(?:then |so |ok(?:ay)?,? |please |just |and )?(?:use|renew|keep|make|trim|limit|cap|cache|store|log|set"
    r"|send|retry|expire"
    r"|rotate|allow|return|reject|drop|split|merge|share|move|treat|sort|hide|require"
    r"|refuse|skip|fall back"
    r"|default|round|truncate|batch|poll|refresh|restrict|reuse|encrypt|hash|sign|lock|block|queue"
    r"|throttle)\b(?! (?:the )?tests?\b)"
    r"|(?:那就?|就|把|先|再)?(?:改|用|设|限|缓存|保留|重试|每|放|存|记|删)",
    re.IGNORECASE,
)
_OPEN = Cued(
    r"^(?:(?:so|and|but|ok|then)[, ]+)*(?:what if|what (?:do|should|can) we do|how (?:do|should"
    r"|can|could|would) we"
    r"|how should \w+|should (?:we|it|this)|which (?:one|of|way|approach)|do we (?:need"
    r"|want))\b"
    r"|where (?:should|shall|do) (?:we|it|i) (?:keep|put|store|save)\b"
    r"|(?:放|存|写|建|部署)(?:在|到)?哪|怎么办|怎么(?:处理|防|避免|限|存)|(?:要不要|该不该|应该)|如何(?:处理|避免|防|解决|限|存)|哪(?:个|种)",
    "do how shall should what which 不 何 哪 怎 该",
)
_REPAIR = re.compile(r"\b(?:fix|error|fails?|failing|broken|bug|wrong)\b|报错|失败|修|错误|崩", re.IGNORECASE)
_TAG = re.compile(r"[, ]+(?:unless [^?？]{3,60}|ok(?:ay)?|right|yes|please)[?？]+\s*$", re.IGNORECASE)
"""A question hung on to what is said as settled."""
_LATER = re.compile(
    r"\b(?:later|to-?do|not yet|someday|postponed?)\b|以后|待办|todo|暂时|评估", re.IGNORECASE
)
_OUGHT = re.compile(
    r"\b(?:must|has to|have to|needs to|may only|may never"
    r"|is only allowed to)\b[^.?!\n]{3,120}[:;,—–] ?[^.?!\n]{0,40}\bnow\b"
    r"|(?:必须|只能|一律|不得|不许)[^。？?\n]{2,80}(?:[：；，]|——)[^。？?\n]{0,30}(?:现在|改|已)",
    re.IGNORECASE,
)
BY_AGENT = Cued(
    r"\b(?:(?:i|we)(?:'ve| have)? (?:decided|chose|chosen|opted|settled on|went with|picked|agreed)\b"
    r"|(?:decided|chose|opted|agreed) (?:to|on|for|against|not to)\b|(?:^|[:;] )(?:went|going) with\b|(?:^"
    r"|[:.;] )(?:decision|decided|chosen approach|design decision|our choice)(?: made)?: "
    r"|(?:i|we)(?:'ll| will|'m going to| am going to) (?:go with|use|keep|stick (?:with"
    r"|to))\b[^.?!\n]{2,120}\b(?:instead of|rather than|because|since|over|so that|as it)\b"
    r"|(?:switched|moved|migrated|replaced) (?:the |our |all "
    r"|every )?(?:[\w./`'()-]+ ){0,6}?(?:from\b[^.?!\n]{2,60}\bto\b|to\b[^.?!\n]{2,60}\binstead of\b"
    r"|with\b[^.?!\n]{2,60}\b(?:because|since|as it)\b)"
    r"|(?:uses|used|keeps|kept|stores|stored|reads)\b(?:[^.?!\n]|[.?!](?=\S)){2,120}\b(?:instead of"
    r"|rather than|in favou?r of)\b"
    r"|no longer (?:use|uses|using|rely|relies|depend|depends|support|supports|store"
    r"|stores)\b[^.?!\n]{2,100}\b(?:because|since|in favou?r|instead)\b"
    r"|(?:^|[.;:] ?)(?:we|it|this|they)(?:'ll| will)? [a-z]+\b[^.?!\n]{0,80}\b(?:rather than"
    r"|instead of)\b[^.?!\n]{2,80}"
    r"\b(?:because|since|so that)\b"
    r"|(?:stick|stuck|sticking) with\b[^.?!\n]{2,100}\b(?:because|since|as|instead|rather)\b)",
    "agreed choice chose chosen decided decision favor favour going instead ll longer migrated moved "
    "opted picked rather replaced settled stick sticking stuck switched went will",
    whole="decided chose chosen opted settled went going picked agreed decision instead rather favor favour "
    "longer stick stuck sticking because since over so as switched moved migrated replaced choice "
    "approach",
)
_CHOICE_ZH = Cued(
    r"(?:我们?|咱们?|那|就|最终|最后|所以|已经?|一致|还是|现在)?(?:决定(?!性|因素|于|权|是否|要不要|怎么"
    r"|如何|不了|一下)|敲定|拍板|选定|定下来)"
    r"|(?:就|还是|改|统一|全部|一律|直接|干脆|先|只|最终|最后|仍然?|继续)(?:采用|选用|使用|用|走|按"
    r"|选)(?!户|例|途|法|处|于|完|到|过|的)[^？?吗呢]{1,60}"
    r"|所以(?:就)?(?:选|用|采用|走|放)(?!户|例|途|法|处|于|完|到|过|的)[^？?吗呢]{1,60}"
    r"|(?<!为什么)我们(?:就|先|暂时)?不(?:做|加|引入|支持|采用|用|改|搞)[^？?吗呢]{1,60}"
    r"|(?:采用|选用|选择了?|选了|确定(?:使?用|采用|走)|弃用|放弃|换成|改为使用|改成使用)(?!哪|什么|题|器|框"
    r"|列表|性|一下|是否)[^？?吗呢]{2,60}"
    r"|(?:不要再?|别再?|不再|不用|禁止|不允许|不准|不能再)(?:用|使用|依赖|手动|直接|保留|支持|提交|杀|引入"
    r"|写|存)[^？?吗呢]{1,60}"
    r"|(?:以后|今后|从现在起|从今以后|后续)(?:都|一律|统一|就|只|不再|不要|必须|不许)[^？?吗呢]{2,60}"
    r"|(?:一律|统一|必须|只允许|只能|只保留|只支持)(?:用|使用|改成|改为|放|走|写|存|叫|命名|通过|由|经过"
    r"|采用|保留)[^？?吗呢]{1,60}"
    r"|用[^，。？?]{1,40}(?:代替|取代|替代|替换掉?|而不是|而不用|，?不用|，?不要用|，?别用)[^？?]{0,40}"
    r"|而不是[^。？?]{1,40}|不[用要][^，。？?]{1,30}[，,](?:改|而是|直接|就)[^。？?]{1,60}"
    r"|(?:方案|选项|计划|思路|做法|设计)[一二三四五六七八九十\dA-Da-d]?(?:可以|没问题|不错|很好|通过"
    r"|就这么定|就这样|定了|OK|ok|同意)|(?:就|按)(?:这么|这样|这个方案|你说的|你的方案|上面的方案)(?:定|办"
    r"|做|来|吧|执行)|同意(?:这个|你的|采用|用|方案)|(?:先|暂时|暂)不(?:做|管|改|动|支持|处理|考虑|引入|加|发布|上线|合并|发|提交|开|启用"
    r"|用|上|要)",
    "一 不 做 别 只 同 定 就 思 按 换 放 板 案 用 禁 计 走 选 都 须",
    cased=True,
)
_NOT = re.compile(
    r"\?\s*$|？\s*$|^(?:should|shall|do|does|did|can|could|would|will|is|are|what|which|why|how|when|where"
    r"|who|whether)\b(?!.*\.\s)"
    r"|\b(?:haven't|have not|hasn't|not yet|yet to|still need to|need to|needs to|have to|want you to"
    r"|help (?:me|us)|let me|lets? you|before (?:we|you|i)|until (?:we|you|i)|you can|you could|you may"
    r"|you should|you might|up to you|whether to|how to|when to|which to|to) "
    r"(?:decide|choose|pick|settle|agree)\b|\b(?:if|unless|in case|when|once) (?:you|we|i|they"
    r"|the user)\b[^.]{0,40}\b(?:decide|choose|chose|prefer|want|go with|pick|like|use)\b"
    r"|\b(?:recommend|suggest|advise|propose|consider|could|might|would|option(?:ally)?:|alternatively"
    r"|either|for example|e\.g\.|hypothetical)\b|\bhere's (?:how|what)\b"
    r"|\bdecides?\b(?! (?:to use|to keep|against))|(?:还没|没有|尚未|未)(?:最终)?(?:决定|确定|定)|(?:由|让"
    r"|等|待|需要|请)(?:你|您|我们|用户|大家|他|产品)[^，。]{0,12}(?:决定|确认|选择|定)|取决于|决定权|是否"
    r"|要不要|建议|推荐|可以考虑|或者|如果|假如|要是|比如|例如|吗[？?。]?$|呢[？?。]?$|怎么|如何|为什么"
    r"|哪个|哪种|什么",
    re.IGNORECASE,
)
_NOT_USER = re.compile(
    r"\?\s*$|？\s*$|^(?:should|shall|do|does|did|can|could|would|will|is|are|what|which|why|how|when|where"
    r"|who)\b[^.]*$"
    r"|\b(?:haven't|have not|not yet|yet to) (?:decided?|chosen|settled|agreed)\b|\b(?:need to|have to"
    r"|help (?:me|us)|to) (?:decide|choose|pick)\b|\bwhether\b|\bnot sure\b|\bwondering\b"
    r"|\b(?:let's|lets|let us) (?:decide|discuss|think|see|talk|look|try|keep (?:going|working|fixing"
    r"|debugging|looking|testing|trying))\b|\bkeep (?:fixing|going|working|trying|doing)\b|\byou (?:use"
    r"|used|using|keep|kept|went|chose|should have)\b|\bit (?:uses?|used|still|keeps)\b"
    r"|(?:还没|没有|尚未|未)(?:最终)?(?:决定|确定|定)|(?:由|让|等|待|帮|请)(?:你|您|我|我们"
    r"|用户)[^，。]{0,12}(?:决定|选择|定)|(?:你|您|你们)来?(?:决定|选择?|定)(?!了)|取决于|是否|要不要|如果|假如|要是|吗[？?。]?$|呢[？?。]?$|怎么"
    r"|如何|为什么|哪个|哪种|还是用[^，。]{1,20}(?:好|更)|什么",
    re.IGNORECASE,
)
_ACTS = re.compile(
    r"(?:now |next |first |then )?,? ?(?:let me|i need to|i should|i must|i have to|i want to)\b"
    r"|(?:现在|接下来|先)?(?:让我|我需要|我得)",
    re.IGNORECASE,
)

_USER_WORDS = frozenset(
    words_of(
        "use using gonna keep keeping adopt adopting drop dropping avoid let lets switch switching call rename "
        "decided decide chose choose opt opted settle settled standardize standardise stick instead rather "
        "favor favour over want need shouldn should must never always rule now more approach plan option "
        "design proposal solution idea like prefer pick approve agree vote tackle later leave worry only "
        "just easiest simplest minimal focus focusing start starting go basic don dont fine okay ok "
        "skip make put override would same remove disable ignore hide"
    )
)
"""Every English choice contains one of these words; most sentences contain none."""

SHORT_LENGTH = 90
"""Longer instructions describe a task."""
MAX_LENGTH = 400
"""Longer sentences are pasted matter, not choices."""


def by_user(sentence: str) -> bool:
    """Whether a sentence of a person settles something."""
    if len(sentence) > MAX_LENGTH or sentence.endswith((":", "：")):
        return False
    sentence = _TAG.sub("", sentence) if sentence.endswith(("?", "？")) else sentence
    words = words_of(sentence)
    chosen = (
        (not _USER_WORDS.isdisjoint(words) and _CHOICE_USER.search(sentence))
        or designs.settles(sentence, words)
        or (not sentence.isascii() and _CHOICE_ZH.search(sentence))
    )
    return bool(chosen) and _NOT_USER.search(sentence) is None


def bounds(sentence: str) -> bool:
    """Whether an instruction also settles how: with a number, a place in time, an exception ("but keep …")."""
    return (
        len(sentence) < SHORT_LENGTH and bool(_IMPERATIVE.match(sentence)) and bool(_BOUND.search(sentence))
    )


def asks_for_a_way(text: str) -> bool:
    """Whether a request leaves open what is to be done ("what if …", "how do we …"), so that doing
    something answers it with a choice.
    """
    return _OPEN.search(text) is not None and _REPAIR.search(text) is None


def takes(sentence: str) -> bool:
    """Whether a sentence tells of something done, not of something put off or weighed."""
    return _NOT.search(sentence) is None and _LATER.search(sentence) is None


def ought(sentence: str) -> bool:
    """Whether a sentence of the agent states a rule and that it holds now."""
    if len(sentence) > MAX_LENGTH or ("now" not in sentence and sentence.isascii()):
        return False
    return _OUGHT.search(sentence) is not None


def by_agent(sentence: str) -> bool:
    """Whether a sentence of the agent announces a choice (whether it was carried out is the caller's
    to see).
    """
    if len(sentence) > MAX_LENGTH:
        return False
    chosen = BY_AGENT.search(sentence) or (not sentence.isascii() and _CHOICE_ZH.search(sentence))
    return bool(chosen) and _NOT.search(sentence) is None and _ACTS.match(sentence) is None
