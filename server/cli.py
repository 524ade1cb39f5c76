"""`kimi-memory`: serves the memory of your sessions to Kimi Code over MCP."""

from __future__ import annotations

import os
import sys

import click

HOST, PORT = "127.0.0.1", 8931


class _Group(click.Group):
    """Loads ``setup`` when it is asked for: the server's start does not pay for it."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*super().list_commands(context), "setup"])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name == "setup":
            from server.setup.commands import setup

            return setup
        return super().get_command(context, name)


@click.group(
    cls=_Group, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="kimi-memory-pipeline")
@click.pass_context
def cli(context: click.Context) -> None:
    """Memory for Kimi Code. Without a command it serves over stdin and stdout, as an MCP client starts it."""
    if context.invoked_subcommand is None:
        context.invoke(serve)


@cli.command()
@click.option(
    "--http", "over_http", is_flag=True, help=f"Serve streamable HTTP on {HOST} instead of stdin and stdout."
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="Port for --http; 0: any."
)
@click.option("--workspace", metavar="PATH", help="The project's directory. Default: the current one.")
def serve(over_http: bool = False, port: int = PORT, workspace: str | None = None) -> None:
    """Run the MCP server.

    HTTP needs a token in each request (`Authorization: Bearer …`): the variable KIMI_MEMORY_TOKEN, else one that
    is made and kept in <store root>/http-token.
    """
    from server import logs
    from server.app import create_server
    from server.setup.startup import finish_setup

    logs.set_up(os.environ)
    finish_setup(os.environ)
    server, app = create_server(os.environ, workspace)
    if over_http:
        from server.http import run as run_http

        run_http(server, app, port)
    else:
        from server.stdio import run

        run(server, app)


@cli.command()
@click.argument("kimi_pid", default="0")
@click.argument("store_root", default="")
def hook(kimi_pid: str, store_root: str) -> None:
    """Handle a Kimi Code hook event: its JSON on stdin. Silent, whatever is broken."""
    from server.hook import main as handle_event

    sys.exit(handle_event([kimi_pid, store_root]))


def main() -> None:
    """The console script."""
    from pipeline.errors import PipelineError, exit_code

    try:
        cli(standalone_mode=False)
    except PipelineError as error:
        click.echo(f"kimi-memory: {error}", err=True)
        sys.exit(exit_code(error))
    except click.ClickException as error:
        error.show()
        sys.exit(exit_code(error))
    except click.Abort:
        sys.exit(130)


if __name__ == "__main__":
    main()
