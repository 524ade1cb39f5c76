"""`pipeline config`: the effective settings and where each comes from."""

from __future__ import annotations

import os

import click

from pipeline.commands.scope import echo_json, json_option
from pipeline.config import effective, settings_for


@click.command()
@json_option
def config(as_json: bool) -> None:
    """Show the settings in force, and which variable or file each comes from."""
    rows = effective(settings_for(os.environ))
    if as_json:
        echo_json(
            {
                row.setting.name: {
                    "value": list(row.value) if isinstance(row.value, tuple) else _plain(row.value),
                    "origin": row.origin,
                    "environment": row.setting.env,
                    "key": row.setting.key,
                }
                for row in rows
            }
        )
        return
    for row in rows:
        value = ", ".join(row.value) if isinstance(row.value, tuple) else row.value
        click.echo(f"{row.setting.env:34} {'' if value is None else value}  ({row.origin})")


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | bool | str) or value is None else str(value)
