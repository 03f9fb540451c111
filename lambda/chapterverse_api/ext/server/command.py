"""The command `serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from chapterverse.cli import parameters
from chapterverse.cli.messages import note, warn
from chapterverse.cli.parameters import configure, option, with_secrets
from chapterverse.errors import IndexFault
from chapterverse.extensions import load
from chapterverse.local_server import bind, is_everywhere, run, socket_origin
from chapterverse.store import only_head, open_store

_EVERYWHERE = (
    "Every network of this machine reaches this service, but only by an address or as localhost: to answer to a name, "
    "set CHAPTERVERSE_ALLOWED_ORIGINS to the origins of the pages that may ask, such as https://docs.example.com."
)


def serve(
    host: str = option("Address to listen on.", default="127.0.0.1"),
    port: int = option("Port to listen on; 0 takes a free one.", default=8765, min=0, max=65535),
    site_dir: Path | None = option("Built site to serve at the same address.", "DIR"),
    **flags: Unpack[parameters.ServiceFlags],
) -> None:
    """Run the API, and optionally serve the site.

    With --site-dir, citations lead to the site at this address. The log goes to standard error.
    """
    # The application reads the secrets itself and renews them; reading them here reports an error at once.
    settings = configure(**flags)
    resolved = with_secrets(settings)
    # Only this command needs a server to be installed.
    create_app = load("chapterverse_api.app:create_app")
    hosts, warnings = [host, settings.base_url], list[str]()
    with bind(host, port) as listening:
        origin = socket_origin(listening)
        if site_dir is not None:
            # Readers use the site here, so citations must lead here and not to its published address.
            settings = settings.override(base_url=f"{origin}/")
            if settings.allowed_origins:
                # The chat of this site asks from this origin too.
                settings = settings.override(allowed_origins=f"{settings.allowed_origins},{origin}")
        try:
            heads = open_store(resolved).heads()
            hosts += [head.base_url for head in heads]
            only_head(heads, settings.site, settings.docs_version, place=settings.store)
        except IndexFault as error:
            # The index may appear later: the next question opens it.
            warnings.append(str(error))
        application = create_app(settings=settings, site_dir=site_dir, hosts=hosts)
        # Open the service now, so that an invalid setting fails here and not with the first reader.
        application.state.service()
        if is_everywhere(listening) and not settings.origins:
            warnings.append(_EVERYWHERE)
        for warning in warnings:
            warn(warning)
        note(f"Listening at {origin}/ (Ctrl-C ends it)")
        run(application, listening)
