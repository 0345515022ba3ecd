"""What pip calls to make a wheel of the package (PEP 517, PEP 660), by the standard library alone. A
wheel is a zip file of the package and of a folder that says what it is (PEP 427)."""
from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from pathlib import Path
from typing import Any, Optional

_HERE = Path(__file__).resolve().parent
_WHEEL = "Wheel-Version: 1.0\nGenerator: rocemu\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _version() -> str:
    """Of the project, whose one place it stands in."""
    text = (_HERE.parent / "CMakeLists.txt").read_text()
    found = re.search(r"^project\(rocemu VERSION ([0-9.]+)", text, re.MULTILINE)
    if found is None:
        raise RuntimeError("CMakeLists.txt beside the folder python has no version of the project")
    return found.group(1)


def _add(wheel: zipfile.ZipFile, records: list[str], name: str, content: bytes) -> None:
    wheel.writestr(name, content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    records.append(f"{name},sha256={digest},{len(content)}\n")


def _build(folder: str, package: dict[str, bytes]) -> str:
    version = _version()
    info = f"rocemu-{version}.dist-info"
    name = f"rocemu-{version}-py3-none-any.whl"
    metadata = (_HERE / "dist-info" / "METADATA.in").read_text()
    records: list[str] = []
    with zipfile.ZipFile(Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in package.items():
            _add(wheel, records, path, content)
        _add(wheel, records, f"{info}/METADATA",
             metadata.replace("@PROJECT_VERSION@", version).encode())
        _add(wheel, records, f"{info}/entry_points.txt",
             (_HERE / "dist-info" / "entry_points.txt").read_bytes())
        _add(wheel, records, f"{info}/WHEEL", _WHEEL.encode())
        wheel.writestr(f"{info}/RECORD", "".join(records) + f"{info}/RECORD,,\n")
    return name


def build_wheel(wheel_directory: str, config_settings: Optional[dict[str, Any]] = None,
                metadata_directory: Optional[str] = None) -> str:
    files = sorted((_HERE / "rocemu").glob("*.py")) + [_HERE / "rocemu" / "py.typed"]
    return _build(wheel_directory, {f"rocemu/{file.name}": file.read_bytes() for file in files})


def build_editable(wheel_directory: str, config_settings: Optional[dict[str, Any]] = None,
                   metadata_directory: Optional[str] = None) -> str:
    return _build(wheel_directory, {"rocemu.pth": f"{_HERE}\n".encode()})
