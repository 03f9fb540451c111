"""Command `check`: report mistakes in a built site and its index."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Unpack

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import note, progress_bar
from chapterverse.cli.parameters import option, print_json, project_options, settings_from, switch
from chapterverse.errors import InputError
from chapterverse.ext.site_check.check import check as check_site
from chapterverse.ext.site_check.findings import FINDING_KINDS, RANKS, Findings
from chapterverse.site.delivery import replace_file

FailOn = StrEnum("FailOn", ["error", "warning", "note", "never"])


def check(
    site_dir: parameters.SiteDir,
    base_url: parameters.BaseUrl = None,
    no_index: bool = switch("--no-index", "Check only the site, without its index."),
    ignore: list[str] | None = option("Kind of finding to leave out, as the report names it; may be repeated.", "KIND"),
    fail_on: FailOn = option("Lowest rank that fails the check.", default=FailOn.error),
    baseline: Path | None = option("Findings to leave out, of an earlier check.", "FILE"),
    write_baseline: Path | None = option("Accept all findings but secrets.", "FILE"),
    exclude: parameters.Exclude = None,
    include: parameters.Include = None,
    ledger: parameters.Ledger = None,
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.IndexFlags],
) -> None:
    """Report mistakes in a built site and its index.

    Finds pages without a chat, secrets in files, a stale index, dead links. Exits with 3 on an error; a dead link is a
    warning.
    To adopt it on a site with findings, accept these with --write-baseline, and fail on new ones with --baseline.
    """
    _check_kinds(ignore or ())
    if baseline and write_baseline:
        raise typer.BadParameter("Give --baseline or --write-baseline: the written one is used at once.")
    settings = settings_from(**flags, ledger=ledger, base_url=base_url)
    project = project_options()
    include, exclude = include or project.include, exclude or project.exclude
    with progress_bar() as report:
        findings = check_site(
            site_dir, settings, with_index=not no_index, exclude=exclude, include=include, progress=report
        )
    findings.ignore(ignore or ())
    if write_baseline:
        _accept(findings, write_baseline)
    elif baseline:
        findings.leave_out_known(baseline)
    if as_json:
        print_json(findings.to_json())
    else:
        for line in findings.lines():
            typer.echo(line)
    if fail_on is not FailOn.never and any(findings.ranks()[rank] for rank in RANKS[: RANKS.index(fail_on.value) + 1]):
        raise typer.Exit(3)


def _accept(findings: Findings, file: Path) -> None:
    """Write a baseline, and leave out what it holds. A symbolic link stays one."""
    try:
        replace_file(file.resolve(), findings.baseline().encode())
    except OSError as error:
        raise InputError(f"{file} can't be written: {error.strerror}.") from None
    count = len(findings.found)
    findings.leave_out_known(file)
    note(f"{file}: {count - len(findings.found):,} findings are accepted.")


def _check_kinds(kinds: Iterable[str]) -> None:
    for kind in kinds:
        if kind not in FINDING_KINDS:
            nearest = difflib.get_close_matches(kind, FINDING_KINDS, 1, 0)[0]
            raise typer.BadParameter(f"There is no kind of finding {kind[:60]!a}: the nearest is {nearest}.")
