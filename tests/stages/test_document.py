"""What of a turn is searchable, and what is not."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stages.document import ACTIONS_LIMIT, CALL_HEAD, CALL_TAIL, argument_values, document
from stages.model import Cut, FileTouch, Steer, Step, ToolCall, Turn
from stages.snippet import fence, own_words


def turn(**changes: object) -> Turn:
    base = Turn(position=0, turn_id=0, origin="user", opening_text="why?", user_text="why?")
    return replace(base, **changes)  # type: ignore[arg-type]


def call(name: str = "Bash", args: str = "{}", **changes: object) -> ToolCall:
    return replace(ToolCall("c1", name, args), **changes)  # type: ignore[arg-type]


def test_each_thing_is_in_its_column() -> None:
    found = document(
        turn(
            user_text="why is the port busy",
            steps=(
                Step(1, ("I look.",), (call("Read", files=(FileTouch("src/server.py", "read", "c1"),)),)),
                Step(2, (), (call(command="python3 server.py", result="error", error="OSError: 98"),)),
                Step(3, ("Fixed.",)),
            ),
            error="429 rate limited",
            compactions=("Earlier: the port was chosen.",),
        )
    )
    assert found.user == "why is the port busy"
    assert found.agent.split("\n") == ["I look.", "Fixed.", "Earlier: the port was chosen."]
    assert found.actions.split("\n") == ["tool#Read", "src/server.py", "tool#Bash", "python3 server.py"]
    assert found.errors == "OSError: 98\n429 rate limited"


def test_what_an_undone_steer_took_with_it_is_left_out() -> None:
    steers = (Steer("also log it", "user", True, None, 1), Steer("forget it", "user", True, None, 2))
    found = document(turn(steps=(Step(1, ("one",)), Step(2, ("two",))), steers=steers, cut=Cut(1, 1, None)))
    assert found.user == "why?\nalso log it"
    assert found.agent == "one"


def test_notices_boilerplate_and_bulk_output_are_left_out() -> None:
    steer = Steer("<notification>", "task", False, None, 1)
    assert "notification" not in document(turn(steers=(steer,))).user
    goal = document(turn(origin="system_trigger:goal_continuation", user_text=None, opening_text="Go on."))
    assert goal.user == ""
    output = document(turn(steps=(Step(1, (), (call(result="ok", outcome="long listing"),)),)))
    assert "listing" not in "".join((output.user, output.agent, output.actions, output.errors))


def test_a_sub_agents_prompt_is_what_was_asked_of_it() -> None:
    asked = document(
        turn(origin="system_trigger:subagent", user_text=None, opening_text="Look at the queue.")
    )
    assert asked.user == "Look at the queue."


def test_our_own_calls_and_recalled_text_never_become_memory() -> None:
    found = document(
        turn(
            user_text=f"you said\n{fence('secret recalled words')}\nbut why?",
            steps=(
                Step(1, ("as\n" + fence("recalled again"),), (call("mcp__m__search_context", own=True),)),
            ),
        )
    )
    assert "recalled" not in found.user + found.agent + found.actions
    assert "but why?" in found.user
    assert found.actions == ""


def test_terminal_escapes_do_not_glue_to_words() -> None:
    assert document(turn(user_text="\x1b[31mred\x1b[0m alert")).user == "red alert"


def test_argument_values_are_indexed_without_their_keys() -> None:
    args = '{"pattern":"EADDR.*","options":{"glob":["*.ts"],"head":40,"case":true},"note":null}'
    assert (
        document(turn(steps=(Step(1, (), (call("Grep", args),)),))).actions == "tool#Grep\nEADDR.*\n*.ts\n40"
    )


def test_arguments_nested_deeper_than_python_calls_are_read() -> None:
    args = '{"a":' + "[" * 1000 + '"needle"' + "]" * 1000 + "}"
    assert list(argument_values(args)) == ["needle"]


def test_arguments_that_were_cut_short_are_read_as_far_as_they_go() -> None:
    cut = '{"path":"a.py","content":"first\\nsecond \\"quoted\\" thi'
    actions = document(turn(steps=(Step(1, (), (call("Write", cut),)),))).actions
    assert actions.startswith("tool#Write\n")
    assert "a.py" in actions and "second" in actions and "quoted" in actions and "nsecond" not in actions


def test_repeats_count_once_and_length_is_bounded() -> None:
    same = tuple(call(command="make test") for _ in range(50))
    assert document(turn(steps=(Step(1, (), same),))).actions == "tool#Bash\nmake test"
    long = call("Write", '{"content":"' + "x" * 50_000 + 'END"}')
    actions = document(turn(steps=(Step(1, (), (long,)),))).actions
    assert len(actions) <= CALL_HEAD + CALL_TAIL + 20 and actions.endswith("END")
    many = tuple(call(command=f"echo {n} " + "y" * 400) for n in range(100))
    assert len(document(turn(steps=(Step(1, (), many),))).actions) <= ACTIONS_LIMIT


@given(
    st.lists(
        st.text(alphabet="\x1b[0mab\n\\")
        | st.sampled_from([fence("x"), "<recalled-memory>", "<recalled-", "\x1b]0;t"])
    )
)
def test_the_texts_of_an_agent_are_cleaned_one_by_one(texts: list[str]) -> None:
    steps = tuple(Step(number, (text,)) for number, text in enumerate(texts))
    assert document(turn(steps=steps)).agent == "\n".join(map(own_words, texts))
