"""What is said in the bilingual corpus, and what each turn belongs to: the labels stand beside the turns.

An invented support-chat gateway, /home/dev/outpost. Two subjects run through seven sessions, in Chinese and
English: ``C`` the Redis cache of product answers, ``T`` the access tokens of the gateway. Written and labelled
before any output was seen. Distractors share their words: browser and build caches, language-model tokens, a token
bucket.
"""

# ruff: noqa: E501  (an utterance stands on one line)

from dataclasses import dataclass

from tests.wires import Call, agent, bash, edit, grep, read, say, write


@dataclass(frozen=True, slots=True)
class Ask:
    """One turn. ``themes``: C or T for a member, c or t for acceptable either way. ``decided``: whether a choice
    was made; none where one may say so or not."""

    user: str
    answer: str
    calls: tuple[Call, ...] = ()
    themes: str = ""
    decided: bool | None = False


@dataclass(frozen=True, slots=True)
class Talk:
    title: str | None
    day: int
    hour: int
    asks: tuple[Ask, ...]


def ask(user: str, answer: str, *calls: Call, themes: str = "", decided: bool | None = False) -> Ask:
    return Ask(user, answer, calls, themes, decided)


LOGIN = Talk(
    "网关登录",
    2,
    10,
    (
        ask(
            "网关现在的访问令牌多久过期？客服说离职的人一个月后还能登录",
            "访问令牌写死了 30 天，签发以后没有任何办法收回：`gateway/auth.py` 里只验签名和过期时间。离职的人要等到令牌自己过期。",
            read("gateway/auth.py", "TTL = 30 * 86400\n\ndef verify(token): return decode(token, KEY)"),
            themes="T",
        ),
        ask(
            "那改短一点，同时要能收回",
            "可以两步走：访问令牌缩短到 15 分钟；另发一个可以撤销的刷新令牌，存在 Postgres 的 `grants` 表里。离职时删掉那一行，最多 15 分钟后就失效。",
            themes="T",
            decided=None,
        ),
        ask(
            "就这么做",
            "决定：访问令牌 15 分钟，刷新令牌存 `grants` 表、可以撤销，因为只靠过期时间收不回已经签发的令牌。`gateway/auth.py` 和 `gateway/grants.py` 已改好，测试 12 个通过。",
            edit("gateway/auth.py", "TTL = 30 * 86400", "TTL = 15 * 60"),
            write("gateway/grants.py", "def revoke(user): ...\n"),
            bash("pytest tests/gateway -q", "12 passed in 1.10s"),
            themes="T",
            decided=True,
        ),
        ask(
            "还是报错",
            "登录页用的是旧字段名 `expires`，现在叫 `expires_in`。改了 `web/login.ts`，登录恢复正常。",
            bash(
                "npm test -- login",
                "TypeError: Cannot read properties of undefined (reading 'expires')",
                code=1,
            ),
            edit("web/login.ts", "res.expires", "res.expires_in"),
            themes="T",
        ),
        ask(
            "把日志的时间改成北京时间，看着太累",
            "`gateway/logging.py` 的时间格式改成 UTC+8，并写上时区。",
            edit("gateway/logging.py", "utcnow()", "now(BEIJING)"),
        ),
        ask(
            "提交吧，刚才登录那部分",
            "已提交 9b1c0de：短期访问令牌与可撤销的刷新令牌。日志的改动没有包括在内。",
            bash('git commit -m "短期访问令牌"', "[main 9b1c0de] 短期访问令牌"),
            themes="T",
        ),
        ask(
            "单元测试里的假时钟怎么写比较好？",
            "用 `freezegun` 会拖慢测试；建议把时钟当参数传进去，默认 `time.time`，测试里传一个函数。",
        ),
        ask(
            "撤销之后正在进行的会话要不要立刻断开？",
            "不用。websocket 每 15 分钟会换一次访问令牌，换的时候刷新令牌已经没了，连接自然断开。立刻断开要广播到所有节点，代价大于收益。我们不做立刻断开。",
            themes="T",
            decided=True,
        ),
        ask("好，先这样", "好的。今天改了登录时长和撤销，日志时区也改了。", themes="t"),
    ),
)

CONTEXT = Talk(
    "prompt too long",
    3,
    14,
    (
        ask(
            "The model refuses long chats: “context length exceeded, 8192 tokens”. How do we count tokens today?",
            "We do not count at all: `llm/prompt.py` joins the whole history. With the model's tokenizer a long chat has "
            "about 11,000 tokens, the limit is 8,192.",
            read("llm/prompt.py", "def build(history): return '\\n'.join(history)"),
        ),
        ask(
            "Trim it then, but keep the system prompt",
            "Decided: keep the system prompt and the newest messages up to 6,000 tokens, and summarise the rest, because "
            "cutting in the middle loses the customer's question. `llm/prompt.py` does it now.",
            edit("llm/prompt.py", "'\\n'.join(history)", "fit(history, budget=6000)"),
            bash("pytest tests/llm -q", "8 passed in 0.42s"),
            decided=True,
        ),
        ask(
            "中文的 token 数好像算少了",
            "是的：按空格估算不适合中文，一个汉字大约是一个半 token。改用模型自带的分词器来数，误差在 1% 以内。",
            edit("llm/count.py", "len(text.split())", "len(encode(text))"),
            decided=None,
        ),
        ask(
            "Does the tokenizer slow things down?",
            "Counting a chat takes 3 ms with the tokenizer instead of 0.1 ms. That is nothing beside the 900 ms of the call.",
            bash("python bench/count.py", "3.1 ms"),
        ),
        ask(
            "commit it",
            "Committed as 40aa9f1.",
            bash('git commit -am "Fit the prompt"', "[main 40aa9f1] Fit the prompt"),
        ),
        ask(
            "How much do we pay for output tokens per month?",
            "About 212 dollars: 53 million output tokens in October. Summaries are a quarter of that.",
            bash("python tools/bill.py --month 10", "output 53.1M tokens, 212.40 USD"),
        ),
        ask(
            "fix the linting",
            "Two unused imports in `llm/count.py` are gone; ruff is clean.",
            bash("ruff check llm", "llm/count.py:3:1: F401 'math' imported but unused", code=1),
            edit("llm/count.py", "import math\n", ""),
        ),
    ),
)

STALE = Talk(
    "商品缓存",
    5,
    9,
    (
        ask(
            "客服机器人报的价格是旧的，运营昨天已经改价了。是不是 redis 缓存没有更新？",
            "是的。商品回答在 redis 里缓存 24 小时（`answers:*`），改价时没有任何人去删它，所以旧价格最多会留一天。",
            grep("setex", "bot", "bot/answers.py:31: r.setex(key, 86400, text)"),
            themes="C",
        ),
        ask(
            "TTL 改成 5 分钟行不行？",
            "行，但命中率会从 92% 掉到大约 60%，模型费用会涨一倍半。更好的办法是改价时主动失效：商品服务发 `product.changed` 事件，我们收到就删对应的键。",
            bash("python tools/hitrate.py --ttl 300", "hit rate 0.61"),
            themes="C",
        ),
        ask(
            "用事件",
            "决定：缓存保留 24 小时，收到 `product.changed` 事件时主动失效，不靠短 TTL，因为命中率掉下来模型费用会翻倍。`bot/invalidate.py` 订阅事件并删除 `answers:<商品>:*`。",
            write("bot/invalidate.py", "def on_changed(event): delete(f'answers:{event.id}:*')\n"),
            bash("pytest tests/bot -q", "15 passed in 0.92s"),
            themes="C",
            decided=True,
        ),
        ask(
            "还是旧的",
            "键里用的是商品编码，事件里给的是数字 id，两边对不上，所以什么也没删。现在先查一次对照表再删，手工改价后 2 秒就能看到新价格。",
            bash("redis-cli keys 'answers:*' | head -3", "answers:SKU-1189:zh\nanswers:SKU-0042:zh"),
            edit("bot/invalidate.py", "event.id", "sku_of(event.id)"),
            themes="C",
        ),
        ask(
            "顺便看看首页的横幅图为什么变形",
            "图片容器写死了宽高。`web/banner.css` 改成按比例缩放，横幅不再变形。",
            edit("web/banner.css", "height: 200px", "aspect-ratio: 4 / 1"),
        ),
        ask(
            "提交",
            "已提交 7d3e2aa，包括事件失效和对照表；横幅单独提交为 0c19b42。",
            bash('git commit -m "改价时失效"', "[main 7d3e2aa] 改价时失效"),
            themes="c",
        ),
        ask(
            "如果事件丢了怎么办？",
            "每晚 3 点跑一次对账：取最近一天改过的商品，逐个比较缓存里的价格，不一致就删掉。这样就算事件丢了，最多错一天。",
            write("jobs/reconcile.py", "def run(): ...\n"),
            themes="C",
            decided=True,
        ),
        ask(
            "这个定时任务跑多久？",
            "测试环境 3,200 个商品用了 41 秒，正式环境估计 3 分钟，都在夜里。",
            bash("time python -m jobs.reconcile", "real 0m41s"),
            themes="C",
        ),
        ask(
            "新同事入职的文档在哪里？",
            "在 `docs/onboarding.md`，上周更新过。",
            bash("ls docs", "onboarding.md"),
        ),
    ),
)

FRONT = Talk(
    "front end after release",
    9,
    11,
    (
        ask(
            "After a release some agents see the old page until they empty the browser cache. Why?",
            "`index.html` is served with `Cache-Control: max-age=86400`, so the browser keeps it for a day, and it names "
            "the old bundles.",
            bash("curl -sI https://outpost.dev | grep -i cache", "cache-control: max-age=86400"),
        ),
        ask(
            "Make it right",
            "Decided: `index.html` gets `no-cache`, hashed bundles get `immutable` for a year, because only the page names "
            "the bundles. nginx is changed.",
            edit("deploy/nginx.conf", "max-age=86400", "no-cache"),
            decided=True,
        ),
        ask(
            "浏览器缓存还是没有清掉，是不是 service worker？",
            "是的，旧的 service worker 还在自己缓存页面。加了一个自毁版本，下次打开就会注销并清掉它的缓存。",
            write("web/sw.js", "self.registration.unregister()\n"),
        ),
        ask(
            "still the old page on my phone",
            "The phone keeps a tab open from last week; a reload fetches the new page.",
        ),
        ask(
            "CI takes 9 minutes. Can we cache node_modules?",
            "Yes: the pipeline now caches `~/.npm` by the hash of the lock file. A run takes 4 minutes.",
            edit(".ci/build.yml", "steps:", "cache: ~/.npm\nsteps:"),
        ),
        ask(
            "commit and push",
            "Pushed as e20f6c8.",
            bash("git push", "main -> main"),
        ),
        ask(
            "The build cache is poisoned after the node upgrade",
            "The key did not contain the node version. With it the build passes again.",
            bash("npm run build", "Error: invalid ELF header", code=1),
            edit(".ci/build.yml", "hash(lock)", "hash(lock, node)"),
        ),
    ),
)

REFRESH = Talk(
    "silent sign-in",
    11,
    15,
    (
        ask(
            "Agents get a 401 in the middle of a chat, every 15 minutes. I thought the client renews by itself?",
            "It renews only when the page is loaded. The short-lived credential runs out during the chat, and the websocket "
            "is closed with 401.",
            grep("401", "web", "web/socket.ts:44: if (code === 401) location.href = '/login'"),
            themes="T",
        ),
        ask(
            "Renew two minutes before it expires, in the background",
            "`web/session.ts` now asks for a new access token two minutes before the old one expires and hands it to the "
            "open socket. No more 401 in a 40-minute test chat.",
            write("web/session.ts", "export function renew() { /* … */ }\n"),
            bash("npm test -- session", "7 passing"),
            themes="T",
            decided=None,
        ),
        ask(
            "Two tabs log each other out",
            "Each tab used the same refresh token, and the second use looked like theft, so the whole grant was revoked. "
            "One tab must renew for all: they now elect a leader through `navigator.locks`.",
            edit("web/session.ts", "renew()", "navigator.locks.request('renew', renew)"),
            themes="T",
            decided=None,
        ),
        ask(
            "Use a subagent to check who else calls /auth/renew",
            "Only the web client and the old mobile app call `/auth/renew`. The mobile app has no lock, so it may still "
            "revoke itself.",
            agent(
                "Find every caller of /auth/renew",
                say(
                    "The web client (`web/session.ts`) and the mobile app (`mobile/net.kt`) call /auth/renew."
                ),
                description="Find callers",
            ),
            themes="T",
        ),
        ask(
            "Then allow a grace period for reuse",
            "Decided: a refresh token may be used again within 30 seconds after its rotation, because the mobile app "
            "cannot lock; later reuse still revokes the grant. This softens what we settled on 2 November.",
            edit("gateway/grants.py", "if used: revoke(user)", "if used and age > 30: revoke(user)"),
            bash("pytest tests/gateway -q", "16 passed in 1.31s"),
            themes="T",
            decided=True,
        ),
        ask(
            "the CI is red again, flaky test?",
            "`test_search_order` depends on the order of a set. It sorts now; ten runs are green.",
            edit("tests/test_search.py", "list(found)", "sorted(found)"),
        ),
        ask(
            "fix the linting",
            "One line in `gateway/grants.py` was too long; it is wrapped.",
            edit("gateway/grants.py", "  ", " "),
            themes="T",
        ),
        ask(
            "commit it",
            "Committed as b7f02d9.",
            bash('git commit -am "Grace period"', "[main b7f02d9] Grace period"),
            themes="T",
        ),
        ask(
            "15 minutes is too short for the branch offices, their line drops. Can it be 30?",
            "It can: the longest time a stolen credential lives doubles, but revoking is still possible.",
            themes="T",
        ),
        ask(
            "改成 30 分钟，写进配置",
            "决定：访问令牌从 15 分钟改为 30 分钟，放进配置 `auth.access_ttl`，因为分店的网络常断，15 分钟来不及续期。",
            edit("config/gateway.toml", "access_ttl = 900", "access_ttl = 1800"),
            themes="T",
            decided=True,
        ),
        ask(
            "what is the weather API key renewal date?",
            "The contract for the weather service runs until 31 March.",
        ),
    ),
)

LIMIT = Talk(
    "限流",
    13,
    10,
    (
        ask(
            "有个客户每秒发 50 条消息，把机器人拖垮了。怎么限流？",
            "现在没有任何限制。建议用令牌桶：每个客户每秒补 2 个令牌，桶容量 10，超出就回 429。",
            read("bot/server.py", "async def handle(message): ..."),
        ),
        ask(
            "令牌桶和漏桶哪个好？",
            "漏桶把突发完全抹平，令牌桶允许短的突发。客户经常连发三四条再停，令牌桶更合适。",
        ),
        ask(
            "用令牌桶",
            "决定：用令牌桶限流，每个客户每秒 2 个、容量 10，因为客户习惯连发几条。`bot/limit.py` 实现好了。",
            write("bot/limit.py", "class Bucket: rate = 2; size = 10\n"),
            bash("pytest tests/bot/test_limit.py -q", "6 passed in 0.20s"),
            decided=True,
        ),
        ask(
            "桶的状态放哪里？多个节点要共享",
            "放 redis，用一段 Lua 脚本原子地取令牌，键带 60 秒过期。和商品回答的缓存用不同的库号，互不影响。",
            edit("bot/limit.py", "state = {}", "state = redis(db=2)"),
            themes="c",
            decided=True,
        ),
        ask(
            "压测一下",
            "每秒 50 条时放过 2 条，其余 429，机器人的延迟从 4 秒回到 300 毫秒。",
            bash("python bench/flood.py", "429: 96%"),
        ),
        ask("提交吧", "已提交 1f8c33e。", bash('git commit -am "限流"', "[main 1f8c33e] 限流")),
        ask(
            "429 的提示语翻译成英文",
            "改好了：“You are sending messages too fast. Please wait a moment.”",
            edit("bot/messages.toml", "太快了", "You are sending messages too fast"),
        ),
    ),
)

STAMPEDE = Talk(
    None,
    17,
    16,
    (
        ask(
            "Every time marketing changes 500 prices at once the bot is down for a minute. Is that our invalidation?",
            "Yes. 500 keys are deleted at once, then a thousand customers ask and every one of them calls the model for the "
            "same missing answer. It is a stampede.",
            bash("grep -c 'answer miss' logs/bot.log", "18442"),
            themes="C",
        ),
        ask(
            "怎么防？",
            "两种办法：同一个键只让一个请求去生成，其他人等它；或者先返回旧答案，后台再更新。价格不能用旧的，所以选第一种。",
            themes="C",
            decided=None,
        ),
        ask(
            "First one. Single flight per key",
            "Decided: one request per key computes a missing answer and the others wait for it at most 3 seconds, because a "
            "stale price is worse than a short wait. `bot/flight.py` holds a lock in Redis.",
            write("bot/flight.py", "async def once(key, make): ...\n"),
            bash("pytest tests/bot -q", "18 passed in 1.20s"),
            themes="C",
            decided=True,
        ),
        ask(
            "the test hangs sometimes",
            "The lock was not released when the model call failed. It is now released in `finally` and expires after 10 "
            "seconds anyway.",
            bash("pytest tests/bot/test_flight.py -q", "Timeout >30.0s", code=1),
            edit("bot/flight.py", "await make()", "try: await make()\nfinally: release()"),
            themes="C",
        ),
        ask(
            "Now something else: dark mode for the agents' desk",
            "`web/theme.css` has a dark palette that follows the system's setting.",
            write("web/theme.css", "@media (prefers-color-scheme: dark) {}\n"),
        ),
        ask(
            "the contrast of the buttons is too low",
            "Button text is #f5f5f5 on #2d5bd0 now, a contrast of 5.6.",
            edit("web/theme.css", "#999", "#f5f5f5"),
        ),
        ask(
            "深色模式先不发布，等设计确认",
            "好，深色模式放在开关 `desk.dark` 后面，默认关闭。",
            edit("config/desk.toml", "dark = true", "dark = false"),
            decided=True,
        ),
        ask(
            "回到缓存：500 个价格再改一次试试",
            "这次 500 个键失效后只有 500 次模型调用，没有重复；机器人最慢的回答 1.8 秒，没有超时。",
            bash("python bench/reprice.py --count 500", "model calls 500, slowest 1.8 s"),
            themes="C",
        ),
        ask(
            "And how often do we hit now?",
            "91.4 % over the last hour, almost as before. The nightly reconciliation found no difference.",
            bash("python tools/hitrate.py", "hit rate 0.914"),
            themes="C",
        ),
        ask(
            "ship it", "Deployed 6be01d4 to production.", bash("make deploy", "deployed 6be01d4"), themes="C"
        ),
        ask(
            "Write the release notes for November",
            "Release notes written: silent sign-in and 30-minute access tokens, rate limiting, prices that are never stale, "
            "prompt trimming.",
            write("docs/november.md", "# November\n"),
            themes="ct",
        ),
        ask(
            "半年后再看一次要不要换掉 redis，记到待办",
            "记到 `docs/todo.md` 了：2027 年 5 月评估是否用进程内缓存代替 redis。",
            edit("docs/todo.md", "# Todo", "# Todo\n- 2027-05: redis?"),
            themes="C",
            decided=None,
        ),
    ),
)

TALKS = (LOGIN, CONTEXT, STALE, FRONT, REFRESH, LIMIT, STAMPEDE)
