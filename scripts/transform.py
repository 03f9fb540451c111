"""Prints the CloudFormation template that AWS makes of a SAM template, as JSON:  transform.py TEMPLATE

cfn-lint misses errors in a raw template: three of three planted ones, and none in this output. checkov sees more of it
too: only here are the address and its permissions resources of their own. Runs in the environment of `infra/lint.txt`,
without a network and credentials.
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

#: Replaces the local file by an address such as `sam deploy` writes after uploading.
UPLOADED = "s3://deployment/package.zip"


def transform(template: Path) -> str:
    session = boto3.session.Session(region_name="eu-central-1")
    document = yaml_parse(template.read_text("utf-8"))
    for resource in document["Resources"].values():
        if "CodeUri" in resource.get("Properties", {}):
            resource["Properties"]["CodeUri"] = UPLOADED
    # No managed policies by name: the role is written out.
    output = Translator({}, Parser(), boto_session=session).translate(sam_template=document, parameter_values={})
    return json.dumps(_with_metadata(output, document), indent=2)


def _with_metadata(output: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Copy each resource's metadata to the resources made of it, where checkov looks for reasons of exceptions.

    AWS neither copies nor reads them.
    """
    written = document["Resources"]
    for name, resource in output["Resources"].items():
        if name not in written:
            origin = max((known for known in written if name.startswith(known)), key=len)
            resource["Metadata"] = written[origin].get("Metadata", {})
    return output


if __name__ == "__main__":
    print(transform(Path(sys.argv[1])))
