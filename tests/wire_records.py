"""The lines of a wire, byte for byte as Kimi Code CLI 2.1.0 writes them (WIRE §4), for tests and benchmarks.

Each function returns one line without its line end. ``time`` is ms; parameters ending in ``_json`` are JSON
text already. Key order and the absence of blanks matter: readers skip by prefix (WIRE §8). Written as
templates and not through a dictionary because the benchmark's corpus is made of millions of them.
"""

import datetime
from collections.abc import Sequence

import orjson

USER = '{"kind":"user"}'
STEER = '{"kind":"user","inTurn":true}'
SUBAGENT = '{"kind":"system_trigger","name":"subagent"}'
MODEL = "kimi-for-coding"
NO_USAGE = '{"inputOther":0,"output":0,"inputCacheRead":0,"inputCacheCreation":0}'

_AUTO_MODE = (
    "Auto permission mode is active. Tool approvals will be handled automatically while this mode remains "
    "enabled.\n"
    "  - Continue normally without pausing for approval prompts.\n"
    "  - Do NOT call AskUserQuestion while auto mode is active; decide and continue.\n"
    "  - ExitPlanMode is also approved automatically, without the user reviewing the plan. An auto-approved "
    "plan is NOT a signal from the user to start executing — follow the user's original instructions on "
    "whether to proceed."
)
_INTERRUPTED = (
    "The previous turn was interrupted by the user before completion; any partial output shown above is "
    "incomplete. The user's next message continues the conversation."
)
_DATE = (
    "Today's date is {date}. The current date is restated in a reminder whenever it changes; rely on the "
    "latest such reminder for the current date. DO NOT mention this to the user explicitly."
)


def dumps(value: object) -> str:
    """Compact JSON with raw non-ASCII, as ``JSON.stringify`` gives it."""
    return orjson.dumps(value).decode()


def iso(ms: int) -> str:
    """``2026-11-30T10:15:02.428Z``."""
    moment = datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def usage(read: int, output: int) -> str:
    return f'{{"inputOther":{read},"output":{output},"inputCacheRead":0,"inputCacheCreation":0}}'


# --- the head of a file ------------------------------------------------------------------------------------


def metadata(created_at: int) -> str:
    return f'{{"type":"metadata","protocol_version":"1.5","created_at":{created_at}}}'


def set_binding(agent: str, workspace: str, time: int) -> str:
    return (
        f'{{"type":"runtime.set_binding","workspaceId":"{workspace}","runtimeId":"local","agentId":"{agent}",'
        f'"time":{time}}}'
    )


def profile_bind(agent: str, profile: str, prompt_json: str, cwd: str, time: int) -> str:
    return (
        f'{{"type":"profile.bind","agentId":"{agent}","modelAlias":"{MODEL}","profileName":"{profile}",'
        f'"thinkingEffort":"on","systemPrompt":{prompt_json},"environmentDisclosure":{{"cwd":{dumps(cwd)}}},'
        f'"agentsMdPaths":[],"activeToolNames":["Read","Write","Edit","Grep","Glob","Bash","TodoList","Agent",'
        f'"FetchURL","mcp__*"],"disallowedTools":[],"subagents":["coder","explore","plan"],"time":{time}}}'
    )


def set_mode(agent: str, time: int) -> str:
    return f'{{"type":"permission.set_mode","agentId":"{agent}","mode":"auto","time":{time}}}'


def session_start(agent: str, time: int) -> str:
    return f'{{"type":"plugin.session_start","agentId":"{agent}","content":null,"time":{time}}}'


def tools_snapshot(agent: str, tools_json: str, time: int) -> str:
    return (
        f'{{"type":"llm.tools_snapshot","agentId":"{agent}",'
        f'"hash":"f1f74d3af035d9eedbc954584620128f8b6bcdc2db711d664fae7f1dd5edf5a8","tools":{tools_json},'
        f'"time":{time}}}'
    )


# --- messages ----------------------------------------------------------------------------------------------


def _parts(text_json: str) -> str:
    return f'[{{"type":"text","text":{text_json}}}]'


def prompt(agent: str, text_json: str, origin: str, prompt_id: str | None, turn: int, time: int) -> str:
    ident = "" if prompt_id is None else f'"promptId":"{prompt_id}",'
    return (
        f'{{"type":"turn.prompt","agentId":"{agent}","input":{_parts(text_json)},"origin":{origin},{ident}'
        f'"turnId":{turn},"time":{time}}}'
    )


def message(agent: str, text_json: str, origin: str, prompt_id: str | None, time: int) -> str:
    ident = "" if prompt_id is None else f'"id":"{prompt_id}",'
    return (
        f'{{"type":"context.append_message","agentId":"{agent}","message":{{"role":"user",'
        f'"content":{_parts(text_json)},{ident}"toolCalls":[],"origin":{origin}}},"time":{time}}}'
    )


def steered_message(agent: str, text_json: str, prompt_id: str, time: int) -> str:
    """A message into a running turn: its ``id`` comes last, after ``origin`` (WIRE §4.1)."""
    return (
        f'{{"type":"context.append_message","agentId":"{agent}","message":{{"role":"user",'
        f'"content":{_parts(text_json)},"toolCalls":[],"origin":{STEER},"id":"{prompt_id}"}},"time":{time}}}'
    )


def prompt_steered(agent: str, active: str, text_json: str, prompt_id: str, time: int) -> str:
    return (
        f'{{"type":"prompt.steered","agentId":"{agent}","activePromptId":"{active}","promptIds":["{prompt_id}"],'
        f'"messageId":"{prompt_id}","content":{_parts(text_json)},"steeredAt":"{iso(time)}","time":{time}}}'
    )


def steer(agent: str, text_json: str, prompt_id: str, turn: int, time: int) -> str:
    return (
        f'{{"type":"turn.steer","agentId":"{agent}","input":{_parts(text_json)},"origin":{STEER},'
        f'"messageId":"{prompt_id}","promptIds":["{prompt_id}"],"turnId":{turn},"time":{time}}}'
    )


def _reminder(agent: str, text: str, origin: str, time: int) -> str:
    body = dumps(f"<system-reminder>\n{text}\n</system-reminder>")
    return (
        f'{{"type":"context.append_message","agentId":"{agent}","message":{{"role":"user",'
        f'"content":{_parts(body)},"toolCalls":[],"origin":{origin}}},"time":{time}}}'
    )


def auto_mode(agent: str, time: int) -> str:
    return _reminder(agent, _AUTO_MODE, '{"kind":"injection","variant":"permission_mode"}', time)


def interruption(agent: str, time: int) -> str:
    return _reminder(agent, _INTERRUPTED, '{"kind":"injection","variant":"interruption"}', time)


def date_change(agent: str, date: str, time: int) -> str:
    origin = (
        '{"kind":"injection","variant":"date_change","disclosure":{"kind":"date","renderGeneration":1,'
        f'"localDate":"{date}","timeZone":"UTC"}}}}'
    )
    return _reminder(agent, _DATE.format(date=date), origin, time)


# --- the loop ----------------------------------------------------------------------------------------------


def _loop(agent: str, event: str, time: int) -> str:
    return f'{{"type":"context.append_loop_event","agentId":"{agent}","event":{event},"time":{time}}}'


def step_begin(agent: str, uuid: str, turn: int, step: int, time: int) -> str:
    return _loop(agent, f'{{"type":"step.begin","uuid":"{uuid}","turnId":"{turn}","step":{step}}}', time)


def llm_request(agent: str, messages: int, turn: int, step: int, time: int) -> str:
    return (
        f'{{"type":"llm.request","agentId":"{agent}","kind":"loop","provider":"kimi","model":"{MODEL}",'
        f'"modelAlias":"{MODEL}","thinkingEffort":"on","thinkingKeep":"all","maxTokens":262144,"toolSelect":false,'
        f'"systemPromptHash":"e37ebfa92def92e09d18c7645c93308aa22ad54bc293d198bfee62743a5021f3",'
        f'"toolsHash":"f1f74d3af035d9eedbc954584620128f8b6bcdc2db711d664fae7f1dd5edf5a8","messageCount":{messages},'
        f'"turnStep":"{turn}.{step}","time":{time}}}'
    )


def usage_record(agent: str, usage_json: str, time: int) -> str:
    return (
        f'{{"type":"usage.record","agentId":"{agent}","model":"{MODEL}","usage":{usage_json},"usageScope":"turn",'
        f'"time":{time}}}'
    )


def measured(agent: str, length: int, tokens: int, time: int) -> str:
    counted = f'"length":{length},"tokens":{tokens}'
    return f'{{"type":"token_counting.measured","agentId":"{agent}",{counted},"time":{time}}}'


def content_part(agent: str, uuid: str, turn: int, step: int, step_uuid: str, part: str, time: int) -> str:
    event = (
        f'{{"type":"content.part","uuid":"{uuid}","turnId":"{turn}","step":{step},"stepUuid":"{step_uuid}",'
        f'"part":{part}}}'
    )
    return _loop(agent, event, time)


def text_part(text_json: str) -> str:
    return f'{{"type":"text","text":{text_json}}}'


def think_part(text_json: str) -> str:
    return f'{{"type":"think","think":{text_json},"reasoningKey":"reasoning_content"}}'


def tool_call(
    agent: str,
    uuid: str,
    turn: int,
    step: int,
    step_uuid: str,
    call: tuple[str, str, str, str | None],
    time: int,
) -> str:
    """``call`` is (call id, tool name, arguments as JSON, display as JSON or none)."""
    call_id, name, args, display = call
    shown = "" if display is None else f',"display":{display}'
    event = (
        f'{{"type":"tool.call","uuid":"{uuid}","turnId":"{turn}","step":{step},"stepUuid":"{step_uuid}",'
        f'"toolCallId":"{call_id}","name":"{name}","args":{args}{shown}}}'
    )
    return _loop(agent, event, time)


def tool_result(
    agent: str, parent: str, call_id: str, output_json: str, *, error: bool, note: str, ms: int, time: int
) -> str:
    flag = ',"isError":true' if error else ""
    noted = f',"note":{dumps(note)}' if note else ""
    event = (
        f'{{"type":"tool.result","parentUuid":"{parent}","toolCallId":"{call_id}",'
        f'"result":{{"output":{output_json}{flag}{noted},"durationMs":{ms}}}}}'
    )
    return _loop(agent, event, time)


def step_end(
    agent: str, uuid: str, turn: int, step: int, tools: bool, usage_json: str, reply: int, time: int
) -> str:
    finish, provider, raw = (
        ("tool_use", "tool_calls", "tool_calls") if tools else ("end_turn", "completed", "stop")
    )
    event = (
        f'{{"type":"step.end","uuid":"{uuid}","turnId":"{turn}","step":{step},"finishReason":"{finish}",'
        f'"usage":{usage_json},"llmFirstTokenLatencyMs":14,"llmStreamDurationMs":21,"llmRequestBuildMs":1,'
        f'"llmServerFirstTokenMs":13,"llmServerDecodeMs":21,"llmClientConsumeMs":0,"llmClientBlockedMs":21,'
        f'"messageId":"chatcmpl-{reply}","providerFinishReason":"{provider}","rawFinishReason":"{raw}"}}'
    )
    return _loop(agent, event, time)


def step_cut(agent: str, uuid: str, turn: int, step: int, reason: str, time: int) -> str:
    """A step that Esc (``interrupted``) or the provider (``error``) ended."""
    event = f'{{"type":"step.end","uuid":"{uuid}","turnId":"{turn}","step":{step},"finishReason":"{reason}"}}'
    return _loop(agent, event, time)


# --- the agent.* journal: copies, type key near the end ----------------------------------------------------


def copy_user(text_json: str, meta: str, time: int) -> str:
    return (
        f'{{"message":{{"message":{{"role":"user","content":{_parts(text_json)}}},"meta":{meta}}},'
        f'"type":"agent.message.appended","time":{time},"kind":"event"}}'
    )


def input_meta(origin: str, prompt_id: str, time: int) -> str:
    return (
        f'{{"source":"input","promptId":"{prompt_id}","origin":{origin},"tracked":true,'
        f'"createdAt":"{iso(time)}","userMessageId":"{prompt_id}"}}'
    )


def copy_assistant(
    parts: Sequence[str], calls: Sequence[tuple[str, str, str]], usage_json: str, reply: int
) -> str:
    """Without its time: the caller completes it with ``copied``. ``calls`` are (id, name, arguments JSON)."""
    called = ",".join(
        f'{{"type":"function","id":"{ident}","name":"{name}","arguments":{dumps(args)}}}'
        for ident, name, args in calls
    )
    finish, raw = ("tool_calls", "tool_calls") if calls else ("completed", "stop")
    return (
        f'{{"message":{{"message":{{"role":"assistant","content":[{",".join(parts)}],"toolCalls":[{called}]}},'
        f'"meta":{{"model":{{"provider":"agent-loop","model":"agent-loop"}},"source":"llm","usage":{usage_json},'
        f'"finish":{{"finishReason":"{finish}","rawFinishReason":"{raw}"}},"messageId":"chatcmpl-{reply}"}}}},'
    )


def copy_salvaged(parts: Sequence[str]) -> str:
    return (
        f'{{"message":{{"message":{{"role":"assistant","content":[{",".join(parts)}],"toolCalls":[]}},'
        f'"meta":{{"model":{{"provider":"agent-loop","model":"agent-loop"}},"source":"salvaged",'
        f'"usage":{NO_USAGE}}}}},'
    )


def copy_tool(output_json: str, call_id: str) -> str:
    return (
        f'{{"message":{{"message":{{"role":"tool","content":{_parts(output_json)},"toolCallId":"{call_id}"}},'
        '"meta":{"source":"tool"}},'
    )


def copied(head: str, time: int) -> str:
    return f'{head}"type":"agent.message.appended","time":{time},"kind":"event"}}'


def copy_turn_started(turn: int, prompt_id: str | None, time: int) -> str:
    queue = "" if prompt_id is None else f'"queueItemId":"{prompt_id}",'
    return f'{{"turnId":{turn},{queue}"type":"agent.turn.started","time":{time},"kind":"event"}}'


def copy_turn_ended(turn: int, outcome: str, time: int) -> str:
    error = '"errorMessage":"[object Object]",' if outcome == "failed" else ""
    head = f'"turnId":{turn},"outcome":"{outcome}",{error}'
    return f'{{{head}"type":"agent.turn.ended","time":{time},"kind":"event"}}'


# --- the end of a turn, and what edits the past -------------------------------------------------------------


def turn_ended(agent: str, turn: int, reason: str, error_json: str, ms: int, time: int) -> str:
    error = f'"error":{error_json},' if error_json else ""
    return (
        f'{{"type":"turn.ended","agentId":"{agent}","turnId":{turn},"reason":"{reason}",{error}"durationMs":{ms},'
        f'"time":{time}}}'
    )


def turn_recorded(agent: str, turn: int, length: int, tokens: int, time: int) -> str:
    return (
        f'{{"type":"token_counting.turn_recorded","agentId":"{agent}","turnId":{turn},"length":{length},'
        f'"tokens":{tokens},"time":{time}}}'
    )


def prompt_completed(agent: str, prompt_id: str, reason: str, time: int) -> str:
    return (
        f'{{"type":"prompt.completed","agentId":"{agent}","promptId":"{prompt_id}","finishedAt":"{iso(time)}",'
        f'"reason":"{reason}","time":{time}}}'
    )


def record(kind: str, agent: str | None, time: int, **fields: object) -> str:
    """Any rarer record: ``type``, then ``agentId`` (unless none), the fields in order, ``time`` last."""
    named = {} if agent is None else {"agentId": agent}
    return dumps({"type": kind, **named, **fields, "time": time})
