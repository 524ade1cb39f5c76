"""What is said in the second bilingual corpus; the labels stand beside the turns.

An invented subtitling service, /home/dev/subloom: Lin mostly writes Chinese, Mara mostly English, both mix. Three
subjects go on over the sessions: ``T`` subtitles that drift from the sound, ``G`` the customers' glossaries, ``E``
the subtitle files handed over. Worker memory, uploads, the editor's looks and invoices come between.
"""

# ruff: noqa: E501  (an utterance stands on one line)

from dataclasses import dataclass

from tests.wires import Call, bash, edit, grep, read, say, write
from tests.wires import Say as Step


@dataclass(frozen=True, slots=True)
class Ask:
    """One turn. ``themes``: T, G, E for a member, the small letter for acceptable either way. ``decided``: the
    label of a decision; none for the turns that carry no such label."""

    user: str
    steps: tuple[Step, ...]
    themes: str = ""
    decided: bool | None = None


@dataclass(frozen=True, slots=True)
class Talk:
    title: str | None
    day: int
    hour: int
    asks: tuple[Ask, ...]


def ask(user: str, answer: str, *calls: Call, themes: str = "", decided: bool | None = None) -> Ask:
    steps = (say("", *calls), say(answer)) if calls else (say(answer),)
    return Ask(user, steps, themes, decided)


SLIDE = Talk(
    "字幕慢慢跑偏",
    5,
    9,
    (
        ask(
            "Meridian 反馈 90 分钟的访谈，字幕时间轴越到后面越慢，结尾差了快 2 秒，开头是准的。看看 align 那块",
            "找到了一个可疑的地方：`subloom/align/segment.py` 用帧号换算时间，帧率写死为 30，而这条片子是 29.97 fps。每分钟差 60 毫秒左右，"
            "片子越长差得越多，和客户说的现象一致。我还没有改。",
            read(
                "subloom/align/segment.py",
                "FPS = 30\n\ndef to_frames(seconds): return round(seconds * FPS)\n\ndef to_seconds(frame, fps=30): return frame / fps",
            ),
            bash(
                "ffprobe -v error -select_streams v -show_entries stream=r_frame_rate samples/meridian_07.mp4",
                "r_frame_rate=30000/1001",
            ),
            themes="T",
            decided=False,
        ),
        ask(
            "改吧，帧率从 ffprobe 里读，不要写死",
            "`segment.py` 现在接收 `fps` 参数，由 `probe.py` 读出来传进去。但是有 3 个测试没过，看起来是解析的问题。",
            edit("subloom/align/segment.py", "FPS = 30\n", ""),
            edit(
                "subloom/media/probe.py",
                "return info",
                "info['fps'] = float(info['r_frame_rate'])\n    return info",
            ),
            bash(
                "pytest tests/align -q",
                "E   ValueError: could not convert string to float: '30000/1001'\n3 failed, 21 passed in 2.14s",
                code=1,
            ),
            themes="T",
        ),
        ask(
            "这个是分数，用 Fraction",
            "对，ffprobe 给的是分数。改用 `Fraction`，一路不转成浮点数，24 个测试全部通过。",
            edit("subloom/media/probe.py", "float(", "Fraction("),
            themes="T",
        ),
        ask(
            "手机录的片子是 variable frame rate，怎么办？",
            "VFR 的片子没有一个固定的帧率，按帧换算怎么都会有误差。比较干净的做法是内部不再数帧，全部保存毫秒时间戳，只有显示的时候才换成帧。"
            "改动涉及 `align/` 和 `store/` 一共 6 个文件。",
            grep("to_frames|to_seconds", "subloom", "subloom/align/merge.py:12\nsubloom/store/cue.py:40"),
            themes="T",
            decided=False,
        ),
        ask(
            "那就这样，内部一律毫秒，不要再数帧了",
            "改完了：`Cue.start` 和 `Cue.end` 都是整数毫秒，帧号只在编辑器显示时计算。旧数据用一个迁移脚本转过来，转换后逐条比较，误差不超过半帧。",
            edit("subloom/store/cue.py", "start_frame: int", "start: int  # ms"),
            write("migrations/0014_cue_ms.py", "def up(db): ...\n"),
            themes="T",
            decided=True,
        ),
        ask(
            "uploads 目录快满了，先清一下 30 天以前的",
            "没有权限，目录属于 `www-data`，当前用户删不了。需要 sudo，或者让运维执行同一条命令。",
            bash(
                "find /home/dev/uploads -mtime +30 -type f -delete",
                "find: cannot delete '/home/dev/uploads/a91.mp4': Permission denied",
                code=1,
            ),
        ),
        ask("那算了，我去找运维", "好，命令留在上面，让他们先去掉 `-delete` 看一遍列表再删。"),
        ask(
            "回到刚才的，Meridian 那一集重新跑一遍看看",
            "重新跑完了。抽查 10 处：开头差 12 毫秒，结尾差 31 毫秒，之前结尾是 1,940 毫秒。",
            bash(
                "python -m subloom.align samples/meridian_07.mp4 --check 10",
                "first +12 ms, last +31 ms, worst 38 ms",
            ),
            themes="T",
        ),
        ask(
            "好，提交",
            "已提交 3fd81c2，迁移脚本也在里面。",
            bash('git commit -am "内部统一用毫秒"', "[main 3fd81c2] 内部统一用毫秒"),
            themes="T",
        ),
    ),
)

TERMS = Talk(
    "term list import",
    6,
    14,
    (
        ask(
            "Mara here. Translators keep getting 管线 for “pipeline” in one episode and 流水线 in the next. Do we have anything where a customer can fix their terms?",
            "No. The translation prompt in `subloom/translate/prompt.py` knows only the language pair and the previous six cues, so the model picks afresh each time. "
            "Smallest first: (1) they upload a CSV per customer, (2) a table in the web UI, (3) sync with their CAT tool.",
            grep("notes", "subloom/translate", ""),
            themes="G",
        ),
        ask(
            "csv then. three columns: source, target, note",
            "`subloom/terms/base.py` reads the file and stores it per customer in the new table `term`; `POST /customers/{id}/glossary` takes the upload. 9 tests pass.",
            write("subloom/terms/base.py", "def load(path): ...\n"),
            themes="G",
            decided=True,
        ),
        ask(
            "Excel 存出来的 csv 是 GBK 的，读进来全是乱码",
            "先按 `utf-8-sig` 读，失败再按 `gb18030` 读，两个都不行就返回 422 并指出第几行。",
            edit(
                "subloom/terms/base.py",
                "open(path)",
                "open(path, encoding=sniff(path), newline='')",
            ),
            themes="G",
        ),
        ask(
            "try again with the file I put in samples/",
            "The encoding is fine now, but the import stops at line 212: `render farm` stands there twice with two different targets (渲染农场, 渲染集群).",
            bash(
                "python -m subloom.terms.base samples/acme_terms.csv",
                "terms.base.DuplicateTerm: line 212: 'render farm' already defined on line 57",
                code=1,
            ),
            themes="G",
        ),
        ask(
            "last one wins is good enough",
            "OK, a later row replaces the earlier one and the import prints how many were replaced: 4 in this file, 1,396 terms stored.",
            edit("subloom/terms/base.py", "raise DuplicateTerm(line)", "replaced += 1"),
            themes="G",
            decided=True,
        ),
        ask(
            "why does vite warn about a chunk over 500 kB?",
            "The waveform library and its codecs end up in the main chunk. A dynamic import in `web/src/Editor.svelte` would move 380 kB out of it.",
        ),
        ask("leave it for now", "Fine, nothing changed."),
        ask(
            "匹配的时候区分大小写吗？",
            "现在是区分的，所以句首的 Pipeline 匹配不到。建议：一般词条不区分；词条本身全大写的（API、GPU）才区分，不然 it 会匹配到 IT。",
            themes="G",
        ),
        ask(
            "行，按你说的来，然后 commit",
            "改好并提交了：c07a5e9。",
            edit("subloom/terms/match.py", "word == term", "fold(word, term) == fold(term, term)"),
            bash('git commit -am "Import customer term lists"', "[main c07a5e9] Import customer term lists"),
            themes="G",
        ),
    ),
)

MEMORY = Talk(
    "whisper worker killed",
    8,
    10,
    (
        ask(
            "whisper worker died twice last night, dmesg says oom-killer. what's eating the memory?",
            "Each job loads the model again (2.9 GB) and the old one is released only when the garbage collector gets round to it. Two long jobs after one another exceed the 8 GB.",
            bash(
                "dmesg | grep -i oom | tail -2",
                "Out of memory: Killed process 4127 (python) anon-rss:7912444kB",
            ),
        ),
        ask(
            "load it once per process then",
            "Each process loads the model once. Six jobs in a row stay at 4.3 GB.",
            edit("subloom/worker/run.py", "load('large-v3')", "shared_model()"),
            bash("python tools/twojobs.py --jobs 6", "peak rss 4.3 GB"),
        ),
        ask(
            "对了，周一那个 29.97 的修复上 staging 了吗？",
            "还没有。staging 上是 a4410be，是周日的版本，3fd81c2 在它后面。",
            bash("ssh staging cat /home/dev/subloom/REVISION", "a4410be"),
            themes="T",
            decided=False,
        ),
        ask(
            "deploy it, Meridian is waiting",
            "Deployed 3fd81c2 to staging. The first attempt stopped at migration 0014 because a worker held a lock on `cue`; I paused the queue, ran it again and resumed the queue.",
            bash(
                "make deploy ENV=staging REV=3fd81c2",
                "psycopg.errors.LockNotAvailable: canceling statement due to lock timeout",
                code=2,
            ),
            bash("make deploy ENV=staging REV=3fd81c2", "migrated 0014 (41 s)\nrestarted web, worker"),
            themes="T",
        ),
        ask(
            "commit the worker change, leave the Makefile out",
            "Committed as 5b92d10, only `subloom/worker/run.py`.",
            bash(
                'git commit -m "Load the model once" subloom/worker/run.py',
                "[main 5b92d10] Load the model once",
            ),
        ),
    ),
)

STATION = Talk(
    "电视台的 srt",
    9,
    16,
    (
        ask(
            "电视台说我们给的 srt 导入他们系统以后中文全是问号",
            "我们导出的是不带 BOM 的 UTF-8。他们发来的规格书第 3 页要求 “UTF-8 with signature”，没有 BOM 时他们的系统按 Latin-1 读，所以中文变成问号。",
            read(
                "subloom/export/srt.py",
                "def write(cues, path):\n    with open(path, 'w', encoding='utf-8') as f: ...",
            ),
            themes="E",
        ),
        ask(
            "那默认就加上 BOM？",
            "不建议。有些网页播放器会把 BOM 显示成第一条字幕前面的一个怪字符，现有 11 个客户都没有要求它。可以做成每个客户的选项。",
            themes="E",
            decided=False,
        ),
        ask(
            "嗯，做成 delivery profile 里的选项，默认关",
            "`delivery.bom` 加好了，默认 false，电视台的 profile 设为 true。",
            edit(
                "subloom/export/srt.py",
                "encoding='utf-8'",
                "encoding='utf-8-sig' if profile.bom else 'utf-8'",
            ),
            edit("config/delivery.toml", "[station]", "[station]\nbom = true"),
            themes="E",
            decided=True,
        ),
        ask(
            "their spec also says max 2 lines and 16 Chinese characters per line",
            "Added `max_lines` and `max_cjk` to the profile. Lines break at punctuation first, then between words as jieba cuts them; what does not fit becomes a second cue and is listed in the report.",
            write("subloom/export/wrap.py", "def wrap(text, profile): ...\n"),
            themes="E",
        ),
        ask(
            "unrelated: login page footer still says 2025",
            "It was a literal in `web/src/Footer.svelte`; it now takes the year of the build.",
            edit("web/src/Footer.svelte", "2025", "{__BUILD_YEAR__}"),
        ),
        ask(
            "write a test that compares with their sample byte for byte",
            "It is written and fails: their lines end in CRLF, ours in LF.",
            write("tests/export/test_station.py", "def test_same_bytes(): ...\n"),
            bash(
                "pytest tests/export/test_station.py -q",
                "E   AssertionError: at byte 5: b'\\r' != b'\\n'\n1 failed in 0.21s",
                code=1,
            ),
            themes="E",
        ),
        ask(
            "改成 CRLF，再试",
            "通过了。`newline` 也放进了 profile，其他客户仍然是 LF。",
            edit("subloom/export/srt.py", "open(path, 'w'", "open(path, 'w', newline=profile.newline"),
            themes="E",
        ),
        ask(
            "好，提交吧",
            "提交了两个：e5510ab 是交付选项和换行，71c0d3f 是页脚的年份。",
            bash("git log --oneline -2", "71c0d3f Footer year\ne5510ab 电视台交付选项"),
            themes="e",
        ),
    ),
)

EDITOR = Talk(
    "editor timeline",
    12,
    9,
    (
        ask(
            "编辑器里的时间轴组件放到最大的时候波形是糊的",
            "canvas 没有考虑 `devicePixelRatio`，在高分屏上被拉伸了。现在按像素比设置宽高，波形清楚了。",
            edit("web/src/Timeline.svelte", "canvas.width = w", "canvas.width = w * devicePixelRatio"),
        ),
        ask(
            "zooming all the way out makes it jump",
            "The scroll position became negative and the browser took 0. It is clamped now, with a unit test.",
            bash("npm test -- timeline", "AssertionError: expected -38 to be at least 0", code=1),
            edit("web/src/Timeline.svelte", "scroll = s", "scroll = clamp(s, 0, max)"),
        ),
        ask(
            "Mara 说拖一条字幕的边，后面那些也会跟着晚一点点，拖几次就听得出来了。是前端还是 align 的问题？",
            "是前端。`Cue.svelte` 拖动时把时间吸附到 1/30 秒的格子上，而且连同后面相邻的字幕一起重新取整，每拖一次最多多 16 毫秒，会累积。后端没有问题。",
            grep("snap", "web/src", "web/src/Cue.svelte:71: const snap = (t) => Math.round(t * 30) / 30"),
            themes="T",
        ),
        ask(
            "前端也别吸附到帧了，跟后端一样毫秒",
            "去掉了吸附，只改被拖动的那一条，单位是毫秒。拖 50 次以后其余字幕一毫秒都没变。",
            edit("web/src/Cue.svelte", "snap(t)", "Math.round(t * 1000)"),
            themes="T",
        ),
        ask(
            "commit, split it in two",
            "Two commits: 8d20f6e sharp waveform and the jump, 0b7e913 dragging in milliseconds.",
            bash(
                "git log --oneline -2",
                "0b7e913 Drag in milliseconds\n8d20f6e Sharp waveform, no jump",
            ),
            themes="t",
        ),
    ),
)

PROMPT = Talk(
    "terms in the prompt",
    13,
    11,
    (
        ask(
            "now the translation should actually use the glossary. Acme has 1,400 entries, that won't fit in every prompt, will it?",
            "It would fit, at about 19,000 tokens per request, but it costs 40 times what the cue itself costs, and models follow a long list badly.",
            themes="G",
        ),
        ask(
            "only send the ones that occur in the segment",
            "Done. An Aho-Corasick automaton per customer finds them; on Acme's last episode a prompt carries 2.3 terms on average, 11 at most. Building it takes 4 ms and it is rebuilt after an upload.",
            write("subloom/terms/find.py", "class Finder: ...\n"),
            themes="G",
        ),
        ask(
            "第 12 集讲生物，cell 被翻成了“单元格”",
            "Acme 的术语表里 cell 只有一个译法，是给他们表格软件的教程用的。要么加一列 domain，按项目选择；要么生物类项目不用这张表。我倾向加一列，空着就表示通用。",
            themes="G",
        ),
        ask(
            "ok, add the column",
            "The fourth column `domain` is optional, old files still load, and a project chooses its domain. With biology, episode 12 says 细胞 in all 14 places.",
            edit("subloom/terms/base.py", "source, target, note", "source, target, note, domain"),
            themes="G",
        ),
        ask(
            "财务问上个月的用量账单从哪里导出",
            "后台的 Billing → Usage 可以按月导出 CSV，需要 admin 权限。九月一共 412 小时。",
            bash("python tools/usage.py --month 9", "412.6 h, 38 customers"),
        ),
        ask(
            "模型有时候不听话，给了术语也照样用自己的",
            "抽查 500 条，有 6.2% 没有用指定的译法，多数是动词变成了别的词性。可以在翻译后检查一遍，缺了就带着提醒重译。",
            bash("python tools/check_terms.py --sample 500", "31 of 500 without the required target"),
            themes="G",
            decided=False,
        ),
        ask(
            "重译一次，再不行就标黄让人看，不要死循环",
            "`translate/verify.py` 做了这件事：最多重译一次，之后给字幕打上 `needs_review`。抽查里剩下 1.1% 标黄。有一个测试没过，是假模型没有记录调用次数。",
            write("subloom/translate/verify.py", "def verify(cue, terms): ...\n"),
            bash(
                "pytest tests/translate -q",
                "E   AttributeError: 'FakeModel' object has no attribute 'calls'\n1 failed, 26 passed in 1.92s",
                code=1,
            ),
            themes="G",
            decided=True,
        ),
        ask(
            "fix it and commit",
            "The fake counts its calls now, 27 pass. Committed as 64e1b07.",
            edit(
                "tests/translate/fake.py", "self.answers = answers", "self.answers, self.calls = answers, 0"
            ),
            bash('git commit -am "Require the terms"', "[main 64e1b07] Require the terms"),
            themes="G",
        ),
    ),
)

UPLOAD = Talk(
    "断点续传",
    14,
    15,
    (
        ask(
            "big files start from zero when the line drops at 80%, and people complain again. Own chunks or tus?",
            "tus has a client (`tus-js-client`) and a server (`tusd`) with resuming, concurrency and expiry. Own chunks are quick to begin with, and then all of that has to be added.",
        ),
        ask(
            "tus, don't reinvent it",
            "`tusd` runs beside the web server and calls our hook when a file is complete; the browser uses `tus-js-client` with 16 MB chunks.",
            write(
                "deploy/tusd.service", "[Service]\nExecStart=tusd -hooks-http http://127.0.0.1:8000/hooks\n"
            ),
            decided=True,
        ),
        ask(
            "续传以后文件的 checksum 不对，Upload-Offset 好像差了一块",
            "代理缓冲了请求体：断线时 nginx 已经收下、但还没转给 tusd 的那部分丢了，客户端却以为已经写入。要关掉 `proxy_request_buffering`。",
            edit(
                "deploy/nginx.conf",
                "location /files/ {",
                "location /files/ {\n  proxy_request_buffering off;",
            ),
        ),
        ask(
            "还是不对",
            "staging 的 nginx 没有重新加载配置。reload 以后断线 5 次续传，checksum 每次都一致。",
            bash(
                "ssh staging sudo nginx -s reload && python tools/flaky_upload.py --drops 5",
                "5 drops, sha256 equal",
            ),
        ),
        ask(
            "可以了，commit and push",
            "远端有新提交，第一次 push 被拒绝；rebase 之后推上去了，9a3c5d4。",
            bash("git push", "! [rejected] main -> main (fetch first)", code=1),
            bash("git pull --rebase && git push", "main -> main"),
        ),
    ),
)

BREAKS = Talk(
    "Meridian again: jumps",
    16,
    10,
    (
        ask(
            "Meridian again. Same series, but this time the captions jump 4 seconds early after the ad break at 31:20 and stay that way. Not a slow drift.",
            "The audio they sent for transcription has the ad break cut out, the master has it. Before 31:20 everything is within 30 ms, after it every cue is 4.02 s early. So the two files have different edits; our arithmetic is right.",
            bash(
                "python -m subloom.align samples/meridian_11.mp4 --check 20",
                "00:00-31:20 worst 29 ms\n31:20-58:04 mean -4021 ms",
            ),
            themes="T",
        ),
        ask(
            "他们肯定不会给我们 EDL 的，能自己检测出来吗？",
            "可以试：把两条音轨各自算成能量包络，每 30 秒一个窗口做互相关，峰值的位置就是这一段的偏移。偏移突然变化的地方就是剪辑点。",
            themes="T",
        ),
        ask(
            "try it on this episode",
            "A prototype finds one place, 31:19.8, where it goes from 0 to -4.02 s, just as one hears it. The episode took 6 minutes.",
            bash(
                "time python -m subloom.align.breaks samples/meridian_11.mp4",
                "31:19.8  0 -> -4.02 s  (0.93)\nreal 6m02s",
            ),
            themes="T",
        ),
        ask(
            "the concert recording gives eleven false ones",
            "Music repeats itself, so the correlation has several peaks of nearly the same height. I now use only windows with speech and demand a confidence of 0.8. The concert gives none, the interview still its one.",
            edit("subloom/align/breaks.py", "peak > 0.5", "peak > 0.8 and voiced(window)"),
            bash("python -m subloom.align.breaks samples/concert.mp4 | wc -l", "0"),
            themes="T",
        ),
        ask(
            "好。但检测结果只当建议，编辑点了确认才真的移动，不要自动改",
            "好，结果写进 `shift_suggestion` 表，字幕本身不动；编辑确认后才移动后面的字幕，可以撤销。自动移动一旦判断错，整集都会错，所以不做。",
            write("migrations/0017_shift_suggestion.py", "def up(db): ...\n"),
            themes="T",
            decided=True,
        ),
        ask(
            "what was the command to restart the queue again?",
            "`systemctl --user restart subloom-queue`; the log is `journalctl --user -u subloom-queue -f`.",
        ),
        ask(
            "give the suggestion a bar above the waveform",
            "`web/src/ShiftBar.svelte` shows the place, the size of the jump and two buttons. Accepting moves the cues after it and reloads the list.",
            write("web/src/ShiftBar.svelte", "<script lang='ts'>\n  export let shift;\n</script>\n"),
            themes="T",
        ),
        ask(
            "lgtm, commit it",
            "Committed as d41b88a.",
            bash(
                'git commit -am "Suggest shifts at edit points"',
                "[main d41b88a] Suggest shifts at edit points",
            ),
            themes="T",
        ),
    ),
)

RELEASE = Talk(
    "0.9",
    19,
    14,
    (
        ask(
            "Meridian 要双语：中文在上，英文在下，字号不一样。srt 做不到吧？",
            "srt 没有样式，要用 ASS。两种语言各一个 style，同一时刻两条 Dialogue。`pysubs2` 可以写，我们已经装了。",
            themes="E",
        ),
        ask(
            "do it. Font is Source Han Sans, do we embed it?",
            "`subloom/export/ass.py` is there, the styles stand in the profile. Embedding adds 16 MB to each file and their player ignores embedded fonts; naming the font and asking them to install it is more practical.",
            write("subloom/export/ass.py", "def write(cues, other, path, profile): ...\n"),
            themes="E",
        ),
        ask(
            "不嵌，写进说明",
            "好，`docs/delivery.md` 写明了需要安装 Source Han Sans，文件里只有字体名。",
            edit("docs/delivery.md", "## Files", "## Fonts\n\nInstall Source Han Sans.\n\n## Files"),
            themes="E",
        ),
        ask(
            "compared with the other file every cue is up to 9 ms early, why?",
            "ASS keeps hundredths of a second and `pysubs2` cuts the last digit off. Rounding to the nearest makes it 5 ms at most, and it does not drift, since each cue is rounded by itself.",
            edit("subloom/export/ass.py", "ms // 10", "(ms + 5) // 10"),
            themes="Et",
        ),
        ask(
            "上次说的后面的覆盖前面的不行，客户两个部门的术语表互相冲掉了。重复的要报出来让人选",
            "改了 10 月 6 日的做法：同一个词有两个译法时，导入先停下，返回冲突列表，选完才写入。完全相同的行仍然直接合并。",
            edit("subloom/terms/base.py", "replaced += 1", "conflicts.append((old, new))"),
            themes="G",
            decided=True,
        ),
        ask("好，就这样", "好的，冲突处理就按这个来，随 0.9 一起发布。", themes="G"),
        ask(
            "changelog for 0.9 please",
            "Written: millisecond times and shift suggestions, customer term lists, delivery profiles and bilingual ASS, resumable uploads, the worker's memory.",
            edit("CHANGELOG.md", "# Changelog", "# Changelog\n\n## 0.9\n\n- …"),
            themes="tge",
        ),
        ask(
            "tag it and push",
            "Tag `v0.9.0` is pushed, CI builds the images.",
            bash("git tag v0.9.0 && git push --tags", "* [new tag] v0.9.0 -> v0.9.0"),
            decided=False,
        ),
    ),
)

SPEED = Talk(
    "metrics, slow detection",
    23,
    9,
    (
        ask(
            "add a counter for failed jobs to the Prometheus exporter",
            "`subloom_jobs_failed_total` with the labels `kind` and `reason` is there.",
            edit(
                "subloom/metrics.py",
                "DONE = Counter(",
                "FAILED = Counter('subloom_jobs_failed_total', '…', ['kind', 'reason'])\nDONE = Counter(",
            ),
        ),
        ask(
            "finding the edit points takes 6 minutes per episode, the queue is piling up",
            "It is the correlation: the envelope has 8 kHz and the direct way is quadratic. Down to 100 Hz and by FFT it should be some ten seconds.",
            bash(
                "python -m cProfile -s cumtime -m subloom.align.breaks samples/meridian_11.mp4 | head -3",
                "352.1 s  breaks.py:41(correlate)",
            ),
            themes="T",
        ),
        ask(
            "does that cost accuracy?",
            "A little: the place of the cut is within 10 ms instead of 1 ms, the size of the jump too. All 14 known cuts are still found. It takes 9 seconds an episode.",
            bash("python tools/known_cuts.py --rate 100", "14/14 found, worst 10 ms, 9.1 s per episode"),
            themes="T",
            decided=False,
        ),
        ask(
            "good enough, 100 Hz it is",
            "`align/breaks.py` uses 100 Hz now; it is not an option.",
            edit("subloom/align/breaks.py", "RATE = 8000", "RATE = 100"),
            themes="T",
        ),
        ask(
            "现在这么快，上传完直接跑吧，不用等到夜里",
            "上传完成的 hook 会放一个低优先级的任务，夜里的定时任务删掉了。",
            edit(
                "subloom/hooks.py",
                "enqueue('transcribe', f)",
                "enqueue('transcribe', f)\n    enqueue('breaks', f, low=True)",
            ),
            themes="T",
        ),
        ask(
            "commit, then check it on staging",
            "Committed as 2e96f4b and deployed. The first upload after it got its suggestion after 14 seconds.",
            bash(
                'git commit -am "Faster break detection" && make deploy ENV=staging',
                "[main 2e96f4b] Faster break detection\nrestarted web, worker",
            ),
            themes="T",
        ),
        ask(
            "电视台换系统了，不要 BOM 了，行尾也改回 LF",
            "电视台的 profile 去掉了 `bom` 和 `newline`，恢复默认；每行 16 字的限制保留。逐字节比较的测试换成了他们的新样本，通过。",
            edit("config/delivery.toml", "bom = true\nnewline = 'crlf'\n", ""),
            bash("pytest tests/export -q", "22 passed in 1.18s"),
            themes="E",
        ),
        ask(
            "提交，顺便帮我把这周的周报写三句话",
            "已提交 b03d7aa。周报：剪辑点检测从 6 分钟降到 9 秒，上传后立即运行；电视台改用新系统，交付恢复默认格式；0.9 已发布。",
            bash('git commit -am "电视台恢复默认格式"', "[main b03d7aa] 电视台恢复默认格式"),
            themes="et",
        ),
    ),
)

TALKS = (SLIDE, TERMS, MEMORY, STATION, EDITOR, PROMPT, UPLOAD, BREAKS, RELEASE, SPEED)
