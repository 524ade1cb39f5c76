"""One agent's wire, written turn by turn: order and bookkeeping of WIRE §4 around ``tests.wire_records``."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from tests import wire_records as rec
from tests.wire_calls import Call, Say, SubAgent
from tests.wire_ids import Bulk, Ids
from tests.wire_records import dumps

Outcome: TypeAlias = Literal["completed", "cancelled", "failed", "killed"]


class Host(Protocol):
    """What a wire asks of its session."""

    @property
    def cwd(self) -> str: ...
    @property
    def bucket(self) -> str: ...
    @property
    def ids(self) -> Ids: ...
    @property
    def bulk(self) -> Bulk: ...
    @property
    def journal(self) -> bool: ...
    def spawn(self, parent: "Wire", profile: str, item: str | None = None) -> "Wire": ...


@dataclass(slots=True)
class _Open:
    """The turn being written."""

    number: int
    prompt_id: str | None
    began: int
    step: int = 0
    copies: list[str] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)


class Wire:
    """One agent's wire: records are appended in file order by ``turn``, ``undo`` and the others.

    ``now`` is the time of the next record in ms; it moves by itself, and callers may move it forward.
    """

    def __init__(self, session: Host, agent_id: str, at: int, profile: str = "agent") -> None:
        self.session = session
        self.agent_id = agent_id
        self.now = at
        self.turns = 0
        self.lines: list[str] = []
        self._fresh = True
        self._date = ""
        self._messages = 2
        self._replies = 0
        self._tokens = 1_000
        self._branches = 0
        self._versions: dict[str, int] = {}
        self._anchors: list[tuple[int, int]] = []  # (turn, line of its turn.prompt)
        self._ids = session.ids
        self._uuid = session.ids.uuid
        self._add(rec.metadata(at))
        self._add(rec.set_binding(agent_id, session.bucket, self._tick()))
        self._add(rec.profile_bind(agent_id, profile, session.bulk.prompt_json, session.cwd, self._tick(6)))
        self._add(rec.set_mode(agent_id, self._tick(10)))

    def _add(self, line: str) -> None:
        self.lines.append(line)

    def _copy(self, line: str) -> None:
        if self.session.journal:
            self.lines.append(line)

    def _tick(self, ms: int = 1) -> int:
        self.now += ms
        return self.now

    # -- turns --

    def turn(
        self,
        text: str,
        *says: Say,
        outcome: Outcome = "completed",
        error: str = "400 invalid request",
        steers: Mapping[int, str] | None = None,
        origin: str = rec.USER,
        gap: int = 0,
    ) -> int:
        """One turn from prompt to end; returns its turnId.

        ``gap`` ms pass before it. ``steers`` maps a step (from 1) to the message that comes after it. A
        cancelled turn's last step is cut short; a failed one dies in a further request; a killed one simply
        stops: calls of its last step may have no output, and that step has no end.
        """
        self.now += gap
        turn = self._begin(text, origin)
        for index, one in enumerate(says, 1):
            last = index == len(says)
            self._step(turn, one, cut=outcome if last and outcome in ("cancelled", "killed") else None)
            if steers and index in steers:
                self._steer(turn, steers[index])
        if outcome == "failed":
            self._fail(turn, error)
        elif outcome == "cancelled":
            self._end_cancelled(turn)
        elif outcome == "completed":
            self._end(turn, "completed", "done")
        return turn.number

    def _begin(self, text: str, origin: str) -> _Open:
        me, text_json = self.agent_id, dumps(text)
        before = self.now
        human = origin == rec.USER or origin == rec.SUBAGENT
        prompt_id = self._ids.message(before) if human else None
        turn = _Open(self.turns, prompt_id, self._tick(6))
        self.turns += 1
        if origin == rec.USER:
            self._anchors.append((turn.number, len(self.lines) + 1))
        self._add(rec.prompt(me, text_json, origin, prompt_id, turn.number, self.now))
        self._add(rec.message(me, text_json, origin, prompt_id, self._tick()))
        meta = '{"source":"notify"}' if prompt_id is None else rec.input_meta(origin, prompt_id, before)
        self._copy(rec.copy_user(text_json, meta, before + 1))
        self._messages += 1
        self._reminders()
        self._copy(rec.copy_turn_started(turn.number, prompt_id, before + 1))
        if self._fresh:
            self._add(rec.session_start(me, self._tick()))
        return turn

    def _reminders(self) -> None:
        date = rec.iso(self.now)[:10]
        if date != self._date:
            self._date = date
            self._add(rec.date_change(self.agent_id, date, self._tick()))
        if self._fresh:
            self._add(rec.auto_mode(self.agent_id, self._tick()))

    def _step(self, turn: _Open, one: Say, cut: Outcome | None) -> None:
        me, uuid = self.agent_id, self._uuid()
        turn.step += 1
        self._add(rec.step_begin(me, uuid, turn.number, turn.step, self._tick(2)))
        if self._fresh:
            self._fresh = False
            bulk = self.session.bulk
            tools = bulk.tools_json if me == "main" else bulk.sub_tools_json
            self._add(rec.tools_snapshot(me, tools, self._tick(3)))
        self._add(rec.llm_request(me, self._messages, turn.number, turn.step, self._tick()))
        if cut == "cancelled":
            self._cut_step(turn, one, uuid)
            return
        self._replies += 1
        spent = rec.usage(self._tokens, 20 + (len(one.text) + len(one.think)) // 4)
        self._measure(spent, one)
        parts = self._parts(turn, one, uuid)
        calls = [self._call(turn, call, uuid, index) for index, call in enumerate(one.calls)]
        results = [self._result(turn, call, ids) for call, ids in zip(one.calls, calls, strict=True)]
        if cut == "killed":
            return
        self._add(
            rec.step_end(me, uuid, turn.number, turn.step, bool(calls), spent, self._replies, self._tick())
        )
        called = [(ident, call.name, args) for call, (ident, _, args) in zip(one.calls, calls, strict=True)]
        turn.copies.append(rec.copy_assistant(parts, called, spent, self._replies))
        turn.copies.extend(results)

    def _measure(self, spent: str, one: Say) -> None:
        self._add(rec.usage_record(self.agent_id, spent, self._tick(900)))
        self._messages += 1 + len(one.calls)
        self._tokens += 100
        self._add(rec.measured(self.agent_id, self._messages, self._tokens, self.now))

    def _parts(self, turn: _Open, one: Say, step_uuid: str) -> list[str]:
        parts = [rec.think_part(dumps(one.think))] if one.think else []
        if one.text:
            parts.append(rec.text_part(dumps(one.text)))
        for part in parts:
            self._add(
                rec.content_part(
                    self.agent_id, self._uuid(), turn.number, turn.step, step_uuid, part, self._tick()
                )
            )
        return parts

    def _call(self, turn: _Open, call: Call, step_uuid: str, index: int) -> tuple[str, str, str]:
        """Writes the call; returns (call id, its uuid, arguments as JSON)."""
        if call.wrote is not None and call.wrote not in turn.written:
            self._track(turn, call.wrote)
        ident, uuid, args = f"call_{self._replies}_{index}", self._uuid(), dumps(call.args)
        shown = None if call.display is None else self._display(call.display)
        about = (ident, call.name, args, shown)
        self._add(rec.tool_call(self.agent_id, uuid, turn.number, turn.step, step_uuid, about, self._tick()))
        if call.name == "TodoList":
            self._add(
                rec.record(
                    "tools.update_store", self.agent_id, self.now, key="todo", value=call.args["todos"]
                )
            )
        return ident, uuid, args

    def _display(self, display: Mapping[str, object]) -> str:
        """Paths are made absolute, and a command learns its directory."""
        shown = dict(display)
        path = shown.get("path")
        if isinstance(path, str) and not path.startswith("/"):
            shown["path"] = self.session.cwd if path == "." else f"{self.session.cwd}/{path}"
        if "cwd" in shown:
            shown["cwd"] = self.session.cwd
        return dumps(shown)

    def _result(self, turn: _Open, call: Call, ids: tuple[str, str, str]) -> str:
        """Writes the result, if there is one; returns its copy for the journal."""
        ident, uuid, _ = ids
        output = self._delegate(call, ident) if call.agents else call.output
        if output is None:
            return ""
        body = dumps(output)
        self._add(
            rec.tool_result(
                self.agent_id,
                uuid,
                ident,
                body,
                error=call.error,
                note=call.note,
                ms=call.ms,
                time=self._tick(call.ms),
            )
        )
        return rec.copy_tool(body, ident)

    def _delegate(self, call: Call, call_id: str) -> str:
        """Runs the sub-agents of a call in their own wires; returns what the parent is told (WIRE §7)."""
        sub = call.agents[0]
        wire = self.session.spawn(self, sub.profile, sub.item)
        self._add(
            dumps(
                {
                    "type": "subagent.spawned",
                    "subagentId": wire.agent_id,
                    "subagentName": sub.profile,
                    "parentToolCallId": call_id,
                    "parentAgentId": self.agent_id,
                    "callerAgentId": self.agent_id,
                    "description": str(call.args["description"]),
                    "runInBackground": False,
                    "model": rec.MODEL,
                    "thinkingEffort": "on",
                    "taskId": f"agent-{self._ids.task()}",
                    "time": self._tick(),
                }
            )
        )
        self._add(dumps({"type": "subagent.started", "subagentId": wire.agent_id, "time": self.now}))
        context = (
            '<git-context status="unavailable" reason="not-a-repo"/>\n\n' if sub.profile == "explore" else ""
        )
        wire.turn(context + sub.prompt, *sub.says, origin=rec.SUBAGENT)
        self.now = max(self.now, wire.now)
        return self._delegated(wire.agent_id, sub)

    def _delegated(self, agent_id: str, sub: SubAgent) -> str:
        summary = sub.says[-1].text
        spent = {"inputOther": 2500, "output": 40, "inputCacheRead": 0, "inputCacheCreation": 0}
        done = {"type": "subagent.completed", "subagentId": agent_id, "resultSummary": summary}
        self._add(dumps({**done, "usage": spent, "contextTokens": 1320, "time": self._tick()}))
        return (
            f"agent_id: {agent_id}\nactual_subagent_type: {sub.profile}\nstatus: completed\n"
            f"stop_reason: completed\n\n[summary]\n{summary}"
        )

    def _track(self, turn: _Open, path: str) -> None:
        """The file's state before its first change in this turn (``file_history.tracked``)."""
        version = self._versions.get(path, 0)
        key = f"file-history/{hashlib.sha256(path.encode()).hexdigest()}"
        entry: dict[str, object] = {"key": f"{key}@v{version}" if version else None, "version": version or 1}
        if version:
            entry |= {"contentHash": self._ids.digest(), "size": 100 + version}
        turn.written[path] = key
        self._versions[path] = max(version, 1)
        self._add(
            rec.record(
                "file_history.tracked",
                self.agent_id,
                self._tick(),
                turnId=turn.number,
                path=path,
                entry=entry,
            )
        )

    def _steer(self, turn: _Open, text: str) -> None:
        me, text_json, ident = self.agent_id, dumps(text), self._ids.message(self.now)
        assert turn.prompt_id is not None
        self._add(rec.prompt_steered(me, turn.prompt_id, text_json, ident, self._tick()))
        self._add(rec.steered_message(me, text_json, ident, self._tick()))
        self._add(rec.steer(me, text_json, ident, turn.number, self.now))
        meta = f'{{"source":"input","promptId":"{ident}","userMessageId":"{ident}","origin":{rec.STEER}}}'
        turn.copies.append(
            f'{{"message":{{"message":{{"role":"user","content":[{rec.text_part(text_json)}]}},"meta":{meta}}},'
        )
        self._messages += 1

    # -- the ways a turn ends --

    def _journal(self, turn: _Open, outcome: str) -> None:
        for copy in turn.copies:
            if copy:
                self._copy(rec.copied(copy, self.now))
        self._copy(rec.copy_turn_ended(turn.number, outcome, self.now))

    def _end(self, turn: _Open, reason: str, outcome: str, error_json: str = "") -> None:
        me = self.agent_id
        self._journal(turn, outcome)
        ended = self._tick(2)
        self._add(rec.turn_ended(me, turn.number, reason, error_json, ended - turn.began, ended))
        self._add(rec.turn_recorded(me, turn.number, self._messages, self._tokens, self._tick()))
        if turn.prompt_id is not None:
            self._add(rec.prompt_completed(me, turn.prompt_id, reason, self._tick()))
        if turn.written:
            self._checkpoint(turn)

    def _checkpoint(self, turn: _Open) -> None:
        entries: dict[str, object] = {}
        for path, key in turn.written.items():
            self._versions[path] += 1
            version = self._versions[path]
            entries[path] = {
                "key": f"{key}@v{version}",
                "version": version,
                "contentHash": self._ids.digest(),
                "size": 100 + version,
            }
        self._add(
            rec.record(
                "file_history.checkpoint",
                self.agent_id,
                self._tick(11),
                turnId=turn.number,
                phase="end",
                entries=entries,
            )
        )

    def _fail(self, turn: _Open, message: str) -> None:
        me, uuid = self.agent_id, self._uuid()
        turn.step += 1
        self._add(rec.step_begin(me, uuid, turn.number, turn.step, self._tick(2)))
        self._add(rec.llm_request(me, self._messages, turn.number, turn.step, self._tick()))
        self._add(rec.step_cut(me, uuid, turn.number, turn.step, "error", self._tick(20)))
        about = f"[provider.api_error] {message}"
        fields = {"turnId": turn.number, "step": turn.step, "reason": "error", "message": about}
        self._add(rec.record("turn.step.interrupted", me, self._tick(3), **fields))
        error = {
            "code": "provider.api_error",
            "message": message,
            "name": "APIStatusError",
            "details": {"statusCode": 400, "requestId": None, "traceId": None},
            "retryable": False,
        }
        self._end(turn, "failed", "failed", dumps(error))

    def _cut_step(self, turn: _Open, one: Say, uuid: str) -> None:
        """Esc: the part is written as far as it got (WIRE §3, §4)."""
        me = self.agent_id
        cancel = {"turnId": turn.number, "target": "active", "reason": "user_cancelled"}
        self._add(rec.record("turn.cancel", me, self._tick(4_000), **cancel))
        parts = self._parts(turn, one, uuid)
        self._add(rec.step_cut(me, uuid, turn.number, turn.step, "interrupted", self.now))
        cut = {"turnId": turn.number, "step": turn.step, "reason": "aborted"}
        self._add(rec.record("turn.step.interrupted", me, self.now, **cut))
        turn.copies.append(rec.copy_salvaged(parts))
        self._messages += 1

    def _end_cancelled(self, turn: _Open) -> None:
        me = self.agent_id
        self._journal(turn, "aborted")
        self._add(rec.usage_record(me, rec.NO_USAGE, self._tick()))
        ended = self._tick()
        self._add(rec.turn_ended(me, turn.number, "cancelled", "", ended - turn.began, ended))
        self._add(rec.turn_recorded(me, turn.number, self._messages, self._tokens, self.now))
        self._add(rec.interruption(me, self.now))
        self._add(
            rec.record(
                "prompt.aborted", me, self._tick(), promptId=turn.prompt_id, abortedAt=rec.iso(self.now)
            )
        )

    # -- what happens between turns --

    def restart(self, gap: int = 0) -> None:
        """A new process resumes the session: reminders and the tool list are sent again."""
        self.now += gap
        self._fresh = True
        self._date = ""

    def undo(self, count: int = 1, gap: int = 0) -> tuple[int, ...]:
        """Undoes the last ``count`` prompts (three records since 0.43, WIRE §6); returns their turnIds."""
        self.now += gap
        gone = self._anchors[-count:]
        del self._anchors[-count:]
        me, time = self.agent_id, self._tick()
        branch = f"b{self._branches}" if self._branches else "main"
        self._branches += 1
        about = {"reason": "undo", "base": {"branch": branch, "line": gone[0][1]}, "turns": count}
        line = len(self.lines) + 2
        self._add(
            rec.record("agent.switched", me, time, branch=f"b{self._branches}", **about, legacyUndoLine=line)
        )
        self._add(rec.record("context.undo", me, time, count=count))
        self._add(rec.record("context.undone", me, time, turns=count, fromTurnId=gone[0][0]))
        self._add(rec.record("token_counting.truncated", me, self._tick(11), length=5, tokens=self._tokens))
        return tuple(range(gone[0][0], self.turns))

    def clear(self) -> None:
        self._anchors.clear()
        self._add(rec.record("context.clear", self.agent_id, self._tick()))

    def compact(self, summary: str, instruction: str = "") -> None:
        """A manual compaction between turns, in the shape of 2.1.0; a wall for later undos."""
        me = self.agent_id
        begin = {"source": "manual"} | ({"instruction": instruction} if instruction else {})
        self._add(rec.record("full_compaction.begin", None, self._tick(), **begin, agentId=me))
        fields: dict[str, object] = {
            "summary": summary,
            "contextSummary": f"The conversation so far has been compacted to free up context.\n{summary}\n\n"
            "## Context Recovery\nEverything before this note is still on disk in this agent's event log.",
            "compactedCount": self._messages,
            "tokensBefore": self._tokens,
            "tokensAfter": 900,
            "summaryOutputTokens": 120,
            "keptUserMessageCount": len(self._anchors),
            "wireLines": {"start": 1, "end": len(self.lines)},
        }
        self._add(rec.record("context.apply_compaction", me, self._tick(12), **fields))
        self._add(rec.record("full_compaction.complete", me, self._tick()))
        self._anchors.clear()

    def shell(self, command: str, output: str) -> None:
        """``!command`` in the TUI: two messages between turns that open none."""
        for phase, text in (
            ("input", f"<bash-input>\n{command}\n</bash-input>"),
            ("output", f"<bash-stdout>{output}</bash-stdout><bash-stderr></bash-stderr>"),
        ):
            origin = f'{{"kind":"shell_command","phase":"{phase}"}}'
            self._add(rec.message(self.agent_id, dumps(text), origin, None, self._tick(14)))

    def raw(self, line: str) -> None:
        """Any line at all, for tests of odd files."""
        self._add(line)

    def data(self) -> bytes:
        """The file's bytes. A lone surrogate must come in through ``raw`` as an escape."""
        return ("\n".join(self.lines) + "\n").encode()

    def copy_to(self, session: Host, at: int) -> "Wire":
        """This wire as a fork's: same lines, then ``forked`` (WIRE §7); numbering goes on."""
        twin = Wire(session, self.agent_id, at)
        for name in ("turns", "_messages", "_replies", "_tokens", "_branches"):
            setattr(twin, name, getattr(self, name))
        twin.lines = [*self.lines]
        twin._versions = dict(self._versions)
        twin._anchors = list(self._anchors)
        twin.now = at
        twin._add(rec.record("forked", self.agent_id, at))
        return twin
