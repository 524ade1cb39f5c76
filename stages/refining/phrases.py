"""The few words that refining adds of its own, in the two languages of conversations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrases:
    failed: str
    succeeded_again: str
    prints: str
    passed: str
    created: str
    edited: str
    removed: str
    added: str
    changed: str
    and_more: str
    turn_failed: str
    cancelled: str
    unfinished: str
    blocked: str
    midway: str
    interrupted: str
    ran: str
    pasted: str
    output_of: str
    chose: str
    agreed: str
    go_ahead: str
    declined: str
    asked: str
    rejected: str
    plan_approved: str
    plan_rejected: str
    answered: str
    notification: str
    goal: str
    continued: str
    wrote: str
    committed: str
    context: str
    join: str
    stop: str
    done: str


ENGLISH = Phrases(
    failed="{what} failed: {line}.",
    succeeded_again="{what} succeeds now.",
    prints="{what} prints “{line}”.",
    passed="{what}: {line}.",
    created="Created {path}: {what}.",
    edited="Edited {files}.",
    removed="removed {what}",
    added="added {what}",
    changed="changed {what}",
    and_more="{files} and {count} more",
    turn_failed="failed: {line}",
    cancelled="cancelled by the user",
    unfinished="unfinished",
    blocked="blocked: {line}",
    midway="stopped before: {line}",
    interrupted="The user interrupted the agent",
    ran="The user ran {what}",
    pasted="Pasted output: {line}",
    output_of="Output of {what}: {line}",
    chose="The user chose {number}: {option}",
    agreed="Agreed: {question}",
    go_ahead="The user gave the go-ahead on: {question}",
    declined="The user declined: {question}",
    asked="Asked: {question}",
    rejected="The user rejected {what}.",
    plan_approved="The user approved the plan{what}.",
    plan_rejected="The user rejected the proposed plan.",
    answered="Asked “{question}”, the user answered “{answer}”.",
    notification="A background task reported back",
    goal="Goal continuation",
    continued="The session goes on from an earlier conversation",
    wrote="Wrote {files}.",
    committed="Committed {hash}: {line}.",
    context="{text} (on: {about})",
    join="; ",
    stop=".",
    done="done: {line}",
)

CHINESE = Phrases(
    failed="{what} 失败：{line}。",
    succeeded_again="{what} 现在成功了。",
    prints="{what} 输出“{line}”。",
    passed="{what}：{line}。",
    created="新建 {path}：{what}。",
    edited="修改了 {files}。",
    removed="删除 {what}",
    added="新增 {what}",
    changed="修改 {what}",
    and_more="{files} 等另外 {count} 个文件",
    turn_failed="失败：{line}",
    cancelled="被用户取消",
    unfinished="未完成",
    blocked="被拦截：{line}",
    midway="停在：{line}",
    interrupted="用户打断了助手",
    ran="用户运行了 {what}",
    pasted="贴出的输出：{line}",
    output_of="{what} 的输出：{line}",
    chose="用户选择了 {number}：{option}",
    agreed="同意：{question}",
    go_ahead="用户同意动手：{question}",
    declined="用户拒绝了提议：{question}",
    asked="提问：{question}",
    rejected="用户拒绝了 {what}。",
    plan_approved="用户批准了计划{what}。",
    plan_rejected="用户拒绝了所提的计划。",
    answered="问“{question}”，用户答“{answer}”。",
    notification="后台任务返回了结果",
    goal="继续执行目标",
    continued="接着更早的对话继续",
    wrote="写入了 {files}。",
    committed="提交 {hash}：{line}。",
    context="{text}（承接：{about}）",
    join="；",
    stop="。",
    done="已完成：{line}",
)


def phrases(chinese: bool) -> Phrases:
    """The words for a conversation in Chinese, or in any other language."""
    return CHINESE if chinese else ENGLISH
