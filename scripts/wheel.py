"""Makes the wheel of a built binary: python3 scripts/wheel.py TARGET BINARY LICENSES OUT

The wheel has the binary as a script, and no Python code. maturin would compile the crate. TARGET is a target of
scripts/targets.json, LICENSES what scripts/licenses.mjs writes. The files have the time SOURCE_DATE_EPOCH.
"""

import base64
import hashlib
import json
import os
import re
import sys
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = """{description}

`uvx agui-server` starts the server with a demo agent on http://127.0.0.1:8080. The [repository]({repository}) has the
documentation.
"""


def platform_tag(target: str, binary: bytes) -> str:
    """Returns the platform that pip compares with its own: for glibc, with the newest version that the binary needs."""
    known = {entry["target"]: entry for entry in json.loads((ROOT / "scripts/targets.json").read_text())}
    if "wheel" in known[target]:
        return known[target]["wheel"]
    minor = max(int(found) for found in re.findall(rb"(?<=\0)GLIBC_2\.(\d+)(?=\0|\.\d+\0)", binary))
    return f"manylinux_2_{minor}_{target.split('-')[0]}"


def metadata(package: dict) -> str:
    fields = [
        "Metadata-Version: 2.4",
        f"Name: {package['name']}",
        f"Version: {package['version']}",
        f"Summary: {package['description']}",
        f"License-Expression: {package['license']}",
        "License-File: LICENSE",
        "License-File: THIRD-PARTY-LICENSES.txt",
        f"Keywords: {','.join(package['keywords'])}",
        "Requires-Python: >=3.8",
        f"Project-URL: Source, {package['repository']}",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(fields) + "\n\n" + TEXT.format(**package)


def record_line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def main(target: str, binary: str, licenses: str, out: str) -> None:
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    # The version and others stand in the workspace's part, for all crates.
    package = manifest["package"] | manifest["workspace"]["package"]
    content = Path(binary).read_bytes()
    name = f"{package['name'].replace('-', '_')}-{package['version']}"
    tag = f"py3-none-{platform_tag(target, content)}"
    program = "agui-server.exe" if "windows" in target else "agui-server"
    info = f"{name}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: scripts/wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = {
        f"{name}.data/scripts/{program}": content,
        f"{info}/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
        f"{info}/licenses/THIRD-PARTY-LICENSES.txt": Path(licenses).read_bytes(),
        f"{info}/METADATA": metadata(package).encode(),
        f"{info}/WHEEL": wheel.encode(),
    }
    record = [record_line(*file) for file in files.items()] + [f"{info}/RECORD,,"]
    files[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    date = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))[:6]
    with zipfile.ZipFile(Path(out) / f"{name}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            # A file's type and mode.
            entry.external_attr = (0o100755 if path.endswith(program) else 0o100644) << 16
            archive.writestr(entry, content)


if __name__ == "__main__":
    main(*sys.argv[1:])
