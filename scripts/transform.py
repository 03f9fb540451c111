"""Prints what AWS would make of a SAM template, as JSON:  transform.py TEMPLATE

cfn-lint sees little of a raw one: of three planted errors it missed three, and none of what comes out of here. checkov
sees more of it too: the address and its permissions are resources of their own only here.
Runs in the environment of `infra/lint.txt`, without a network and without credentials.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

#: In place of the local file: `sam deploy` uploads it before the transform, and writes such an address there.
UPLOADED = "s3://deployment/package.zip"


def transformed(template: Path) -> str:
    session = boto3.session.Session(region_name="eu-central-1")
    document = yaml_parse(template.read_text("utf-8"))
    for resource in document["Resources"].values():
        if "CodeUri" in resource.get("Properties", {}):
            resource["Properties"]["CodeUri"] = UPLOADED
    # No managed policy is asked for by name: the role is written out.
    made = Translator({}, Parser(), boto_session=session).translate(sam_template=document, parameter_values={})
    return json.dumps(_explained(made, document), indent=2)


def _explained(made: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Give what was made of a resource its metadata too, where checkov looks for the reasons of exceptions.

    AWS doesn't, and reads none of it: a raw template can't say anything about what is made of it later.
    """
    written = document["Resources"]
    for name, resource in made["Resources"].items():
        if name not in written:
            origin = max((known for known in written if name.startswith(known)), key=len)
            resource["Metadata"] = written[origin].get("Metadata", {})
    return made


if __name__ == "__main__":
    print(transformed(Path(sys.argv[1])))
