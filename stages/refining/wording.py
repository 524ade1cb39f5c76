"""The wording by which sentences are told apart, in English and Chinese: what they say, and how they
may stand.
"""

import re

from stages.refining.cues import Cued

REASON = Cued(
    r"\b(?:because|due to|caused by|root cause|culprit|the reason|as a result of|stems? from"
    r"|the (?:actual |real |main |underlying )?(?:issue|problem|bug|error|cause|failure|conflict) (?:is|was"
    r"|were|here|occurs|comes|lies|indicates|happens|happened)\b(?! (?:that|to) (?:let|i)\b))"
    r"|原因|因为|由于|根因|问题(?:是|在于|出在)|导致|造成(?!的)|起因",
    "as because* bug cause caused conflict culprit* due error failure issue problem reason* root stem stems 于 因 致 "
    "造 题",
    whole="because due caused cause culprit reason result stem stems issue problem bug error failure conflict",
)
ERROR = Cued(
    r"\b(?:fail(?:s|ed)|crash(?:es|ed)|raises?|threw|throws|broke|broken|times? out|timed out"
    r"|(?:does|do|did|is|are|was|were)(?:n't| not) (?:work|compile|build|exist|found|available|defined|set"
    r"|start|load)(?:ing)?|could(?:n't| not)|cannot|can't"
    r"|no such)\b|失败|报错|崩溃|抛出|不存在|出错|无法|超时|找不到",
    "broke broken cannot crashed crashes failed fails not out raise raises such t threw throws 不 出 报 法 溃 "
    "败 超",
    whole="fails failed crashes crashed raise raises threw throws broke broken times timed doesn't does don't "
    "do didn't did isn't is aren't are wasn't was weren't were couldn't could cannot can't no",
)
NEXT = Cued(
    r"^(?:next(?: steps?)?[:,] |to-?dos?: |remaining: |still (?:need|to do|missing|open)|you(?:'ll|’ll"
    r"| will)? (?:still |now )?(?:need|have) to|you should (?!see|be able|notice|get)(?:now |also )?|"
    r"(?:the )?(?:remaining|next|follow-up|last|only) (?:step|task|work|thing|item|part)s? (?:is|are|left"
    r"|remains?)|what(?:'s| is) left|pending: |later: |下一步|接下来(?:需要|要|请|还)|待办|剩下|剩余|还需要"
    r"|还需|还剩|后续(?:需要|要|可以|再)|之后(?:需要|要)|需要你|你(?:还)?需要|请(?:重启|重新|手动|运行|执行"
    r"|先|在|把|将))"
    r"|\b(?:to be (?:addressed|done|implemented|fixed) (?:later|next)|remains? to be|not (?:yet"
    r"|been) (?:implemented|done|tested|fixed|run|verified)|will need (?:to|a|an|more|further)|still needs?"
    r"|left for (?:later|a follow-up)|never (?:ran|run|tested))\b|尚未|还没有?(?!决定)|待(?:确认|处理|实现"
    r"|验证|补充|定)|留待|以后再|有待",
    "been do dos follow have item items later need never next part parts pending remain remaining remains "
    "should step steps still task tasks thing things todo todos what work works yet 之 你 再 剩 待 未 来 步 续 请 还",
    whole="next dos todo remaining still need have should step task work thing item part left pending later "
    "remain remains yet never steps tasks",
)
VERBS = (
    r"added|fixed|changed|removed|updated|created|replaced|renamed|implemented|moved|refactored|extracted"
    r"|introduced|switched|converted|deleted|rewrote|rewritten|reverted"
    r"|configured|installed|set up|enabled|disabled|wrote|written|modified|adjusted|improved|enhanced"
    r"|simplified|merged|split|corrected|resolved|bumped|upgraded|downgraded|migrated"
    r"|wired|cleaned up|consolidated|initialized|initiali[sz]ed|marked|documented|separated|wrapped"
    r"|exported|imported|registered|applied|committed|pushed|tagged|ported|cast|handled|integrated|built"
    r"|connected|applied|ensured|expanded|clarified|restructured|reduced|increased|raised|lowered|patched"
    r"|swapped|dropped|inlined|restored|generated|translated|localized|optimized|cached|debounced|throttled"
    r"|started|stopped|deployed|published|released|listed"
)
CHANGED = Cued(
    rf"^(?:(?:{VERBS})\b|[^,.;]{{1,80}}\b(?:has|have|had) (?:now |also |just |successfully "
    rf"|already )*been (?:successfully |now )?(?:{VERBS})\b|[^,.;]{{1,60}} (?:is|are|was|were) (?:now "
    rf"|also )?(?:{VERBS})\b)"
    r"|\b(?:now (?:\w+s\b|\w+ly \w+s\b)|no longer)\b"
    r"|(?:已经?|都|成功)(?:把|将|在|被|给|从|对|由|全部|成功|为)?[^，。]{0,40}(?:改|加|增|删|移|换|修|更新"
    r"|创建|写|替换|重命名|实现|拆|合并|提交|配置|安装|升级|统一|补|去掉|清理|修正|生成|迁移|封装|抽)"
    r"|^(?:修改|新增|增加|添加|删除|移除|更新|修复|重构|替换|重命名|创建|新建|实现|改为|改成|把|将|引入"
    r"|拆分|合并|补充|调整|优化|去掉|抽取|抽出|迁移|升级|配置|统一|加了?|改了?|修了?|删了?|写了?)|(?:增加"
    r"|新增|添加|删除|移除|修改|更新|修复|重构|替换|实现|创建|新建|去掉|引入)了|(?:改为|改成|换成|改用|不再"
    r"|现在(?:会|用|使用|是|监听|支持|走|只|由))",
    VERBS.replace("|", " ") + " been now longer "
    "一 不 会 修 写 创 删 功 加 化 升 去 只 实 将 已 并 引 把 抽 拆 持 换 改 整 新 是 用 由 监 移 补 走 都 配 重",
    whole=VERBS.replace("|", " ") + " set cleaned been now no",
)
RESULT = Cued(
    r"\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)|successful(?:ly)?|works?(?! (?:in|on) progress)|working"
    r"|compiles|confirmed|verified|shows? that|returns?|prints|outputs?|found)\b|通过|成功|正常|验证|确认"
    r"|输出|返回|结果|可用",
    "compiles confirmed found output outputs pass passed passes passing prints return returns show shows "
    "succeeded succeeds successful successfully verified work working works 功 正 用 结 认 证 输 返 通",
    whole="pass passes passed passing succeeds succeeded successful successfully work works working compiles "
    "confirmed verified show shows return returns prints output outputs found",
)
DANGLING = Cued(
    r"(?:it|its|it's|it’s|this|that|(?:with|by|for|without|of|in) (?:it|this|that|them)"
    r"|they|they're|their|these|those|he|she|him|both(?! the| of the| `)|which"
    r"|and|but|so|also|then|however|otherwise|instead|such|same|the (?:same|latter|former|other|rest"
    r"|following|above|first|second|third|only|key|main|result|change|changes|fix|issue|problem|solution"
    r"|plan|approach|code|file|function|component|implementation|workaround|error)s?(?= (?:is|are|was|were"
    r"|will"
    r"|now|should|can|has|have|also)\b)(?! (?:is|was|were) (?:that|because|due|caused|in|with))"
    r"|here|there's|there is a|after that|in this case|in that case|for this|for that|as (?:requested|you)"
    r"|with this|with these|like (?:this|that)|if (?:it|this|that|they)|when (?:it|this|that|they)"
    r"|since (?:it|this|that|they)|for example|e\.g|where|while|whereas|thus|therefore|hence|meanwhile"
    r"|additionally,|furthermore|moreover|whether\b|not\b|or\b|you (?:can|could|may|might|should be able"
    r"|'ll see"
    r"|’ll see|will see)|once |now when|now,? (?:when|you)|to (?!be\b))\b"
    r"|(?:它|这(?!样)|那|其|该|此|他|她|上述|以上|前者|后者|两者|同时|另外|此外|并且|而且|但|不过|然而|所以"
    r"|因此|于是|然后|比如|例如|如果|否则|这样|如上|你可以|您可以|也|还(?!需|没|剩|有)|都)",
)
CONCLUDES = Cued(
    r"summary|conclusion|in short|tl;?dr|root cause|cause|problem|issue|diagnos|fix(?:es|ed)?\b|change"
    r"|what (?:was|i|we|has|got|changed)|done|implement|result|finding|recommend|decision|verdict|answer"
    r"|outcome|key (?:point|feature|update|addition|improvement|highlight|insight)|update|added|created"
    r"|completed|status|verification|improvement"
    r"|总结|小结|结论|原因|根因|问题|修复|改动|修改|变更|完成|结果|建议|决定|方案选择|说明|验证|要点|新增"
    r"|更新",
)
NEXT_SECTION = Cued(
    r"^(?:\W|\d)*(?:(?:suggested |recommended |possible )?next(?!\.?js)|to-?do|remaining|follow[- ]?ups?"
    r"|future"
    r"|open (?:questions|issues|ends)|still (?:open|to do)|what(?:'s| is) (?:next|left)|known (?:issues"
    r"|limitations)|limitations|下一步|后续|待办|待确认|待处理|遗留|剩余|未完成|接下来)",
)
HOWTO = Cued(
    r"(?:^|\b)(?:to (?:test|use|run|try|verify|deploy|start|view|check|see|do|set|enable|get|apply|access"
    r"|debug|create|install|configure)\b|how (?:to|it works|you|this works|they work)|usage|examples?"
    r"|^testing\b|test (?:the|it|scenario|steps?)|instructions|commands?|steps?(?: to)?|try (?:it|this"
    r"|running)|for example|you can (?:now )?(?:test|verify|check|try|use|see|access|view)"
    r"|(?:now )?when you\b|here(?:'s| is) how|you(?:'ll| will)? (?:need|see|have|can)|this will|expected"
    r"|sample|make sure|prerequisites|alternative|you have \w+ options"
    r"|如何|怎么|使用方法|用法|示例|测试方法|测试步骤|运行方式|操作步骤|步骤|验证方法|启动方式|例如|你可以"
    r"|可以这样)",
)
PROPOSES = Cued(
    r"^(?:\W|\d)*(?:option|approach|alternative|solution options?|choices?|pros|cons|trade-?offs?"
    r"|considerations?|risks?|方案|选项|备选|优点|缺点|权衡|思路)(?:\s*(?:\d|[a-f]\b|[一二三四五])|s?\b|$)"
    r"|^(?:pros|cons|优点|缺点)|\boptions?\b",
)
VACUOUS = Cued(
    r"^(?:(?:the )?(?:implementation|work|task|feature|fix|setup|migration|plan|everything|all (?:changes"
    r"|tasks|done))\b[^.]{0,30}\b(?:is |are |has been |been )?(?:now )?(?:complete[d]?|done|ready|finished"
    r"|in place|good to go)|all (?:set|done)|(?:successfully )?(?:completed|done|finished)[!.]?"
    r"|(?:so,? )?to answer your question|(?:no )?(?:changes|response) (?:requested|needed)"
    r"|documentation updated|(?:changes|updates) made|found it|i found (?:it|the (?:issue|problem|bug))"
    r"|the (?:fix|solution) is (?:simple|straightforward)|全部(?:完成|搞定)|任务完成|(?:修改|更新|实现"
    r"|任务)(?:已)?完成了?)[!.。！: ]*$",
    "answer complete completed documentation done finished found good made needed place ready requested "
    "set simple straightforward 完 搞",
)
DID = Cued(r"(?:implement|summary|changes|改动|总结|what|fixed|added|updated|created)")
CONDITIONAL = Cued(
    r"\b(?:if|when|whenever|unless|in case|would|could|e\.g)\b|如果|要是|时会|假如",
    "case could g if unless when whenever would 会 如 要",
)
STATES = re.compile(
    r"^(?!(?:you|run|open|go|click|replace|set|copy|make|add|use|try|visit|if|once|when|then|now)\b)"
    r"(?=.{30})(?:[^,.;]{2,60} (?:is|are|isn't|aren't|does|do|was|were|has|have)\b)|^(?=.{12})[^，。]{2,20}(?:是"
    r"|会|不)",
    re.IGNORECASE,
)
VERDICT = Cued(
    r"\b(?:is|are|would be|will be) (?:\w+ ){0,2}(?:best|the (?:better|right|simplest|safest) (?:choice"
    r"|option|fit|one))\b"
    r"|\b(?:i(?:'d| would)? recommend|my recommendation|recommended (?:approach|option|choice))\b"
    r"|(?:我)?(?:建议|推荐)(?:采用|使用|用|选|走|先|改)|(?:更|最)合适",
)
"""Which of several ways is said to be the one to take."""
POINTING = Cued(
    r"\b(?:issue|problem|reason|cause|error|bug) (?:is|was) that (?:it|they)\b"
    r"|\b(?:this|these|those)\b(?! (?:session|turn|repo\w*|project|app|codebase|monorepo|workspace|machine"
    r"|morning"
    r"|afternoon|week|month|year|time|branch)\b)",
    "that these this those",
)
"""A word that points at something outside the sentence when it stands near its beginning."""
SPEAKS = re.compile(
    r"\bI(?:'|’|\b)(?!/)|\bmy\b|^(?i:you(?:'re|’re)?|we(?:'re|’re)?) (?:\w+ ){1,3}(?:it|this|that|them)\b"
    r"|\b(?:shown|listed|mentioned|described|output|see|code|steps?) (?:above|below)\b"
)


def speaks(text: str) -> bool:
    """Whether a sentence holds words of a speaker to a listener: such a one does not stand alone."""
    spoken = "I" in text or "my " in text or "above" in text or "below" in text
    if not spoken and text[:2].lower() not in ("yo", "we"):
        return False
    return SPEAKS.search(text) is not None


STRONG = Cued(
    r"\b(?:(?:is|are) (?:often |usually |generally |probably )?(?:the )?best\b"
    r"|recommend|in short|in summary|tl;?dr|conclusion|root cause|bottom line|so the (?:answer"
    r"|behaviou?r|result))\b|总之|结论|根因|综上|推荐",
    "best bottom cause conclusion recommend short so summary tl tldr 总 根 综 荐 论",
)
STRONG_WORDS = (
    "recommend", "best", "in short", "summary", "dr", "conclusion", "cause", "bottom", "so the ",
    "总之", "结论", "根因", "综上", "推荐",
)  # fmt: skip
"""Of which one stands in plain letters in a text that is strong."""
POLAR = re.compile(
    r"(?:(?:yes|yep|yeah|no|nope|not quite|not really|it can|it does|it is)(?=[,.:;!—– ])"
    r"|(?:是的?|不是|不用|不行|行|可以|不可以|对|不对|没有|不会|会|能|不能|有)"
    r"(?=[，。,.：:；！—]))",
    re.IGNORECASE,
)
"""How an answer to a yes-or-no question begins."""
HERE_IS = re.compile(
    r"here(?:'s|’s| is| are) (?:a (?:summary|list|breakdown) of )?(?:what (?:i|we)(?:'ve| have)? (?:did"
    r"|implemented|added|changed|fixed|created|was done)[^:：]*[:：]$|)",
    re.IGNORECASE,
)
VERB = re.compile(VERBS, re.IGNORECASE)
