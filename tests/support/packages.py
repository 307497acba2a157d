"""Kernel packages and modules made by hand, as small as they can be."""

import io
import lzma
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path

from bufferscope.engines.guest.modules import REQUIRED

RELEASE = "6.1.0-9-cloud-amd64"
NET = f"lib/modules/{RELEASE}/kernel/net"
NEWER = "7.3.4+deb13-cloud-amd64"
"""A release that Debian packages in parts."""


def module(depends: str = "", softdep: str = "", vermagic: str = "") -> bytes:
    """A kernel module: an ELF-64 object with nothing but a section `.modinfo`."""
    optional = [f"{key}={value}".encode() for key, value in (("softdep", softdep), ("vermagic", vermagic)) if value]
    info = b"\0".join([b"license=GPL", f"depends={depends}".encode(), *optional])
    names = b"\0.modinfo\0.shstrtab\0"
    body = info + b"\0" + names
    start = 64
    sections = [
        (0, 0, 0, 0, 0, 0),
        (1, 1, 0, 0, start, len(info) + 1),
        (10, 3, 0, 0, start + len(info) + 1, len(names)),
    ]
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, start + len(body), 0, 64, 0, 0, 64, len(sections), 2)
    table = b"".join(struct.pack("<IIQQQQ", *section).ljust(64, b"\0") for section in sections)
    return header + body + table


def kernel_files(vermagic: str = "") -> dict[str, bytes]:
    """The smallest kernel that can be a guest, with one module that is there only as a dependency."""
    files = {f"{NET}/{name}.ko": module(vermagic=vermagic) for name in REQUIRED}
    files |= {
        f"boot/vmlinuz-{RELEASE}": b"a kernel",
        f"{NET}/virtio_console.ko": module(depends="virtio,virtio-ring"),
        f"{NET}/virtio.ko": module(depends="virtio_ring"),
        f"{NET}/virtio-ring.ko.xz": lzma.compress(module()),
        f"{NET}/unwanted.ko": module(),
        f"lib/modules/{RELEASE}/modules.builtin": b"kernel/net/ipv4/tcp_cubic.ko\n",
    }
    return files


def kernel_parts(directory: Path, vermagic: str = "") -> dict[str, Path]:
    """The same kernel as Debian packages Linux 7: in parts, below `usr/lib/modules`, with compressed modules."""
    tree = f"usr/lib/modules/{NEWER}"
    modules = {Path(name).name: content for name, content in kernel_files(vermagic).items() if ".ko" in name}
    parts = {
        "image": {f"usr/share/doc/linux-image-{NEWER}/copyright": b"it depends on the others"},
        "binary": {f"{tree}/vmlinuz": b"a newer kernel"},
        "modules": {
            f"{tree}/kernel/net/{name.removesuffix('.xz')}.xz": lzma.compress(content)
            if name.endswith(".ko")
            else content
            for name, content in modules.items()
        },
        "base": {f"{tree}/modules.builtin": b"kernel/net/ipv4/tcp_cubic.ko\n", f"{tree}/config": b"CONFIG_NET=y\n"},
    }
    return {
        part: package(directory / f"linux-{part}-{NEWER}_7.3.4-1~bpo13+1_amd64.deb", files)
        for part, files in parts.items()
    }


def archive(top: str, files: Mapping[str, bytes]) -> bytes:
    """A tar archive of these files, all below one directory."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return made.getvalue()


def package(path: Path, files: Mapping[str, bytes], *, compress: bool = True) -> Path:
    """A Debian package of these files."""
    tar = archive(".", files)
    data = ("data.tar.xz", lzma.compress(tar)) if compress else ("data.tar", tar)
    members = [("debian-binary", b"2.0\n"), ("control.tar", b"odd"), data]
    path.write_bytes(b"!<arch>\n" + b"".join(_member(name, content) for name, content in members))
    return path


def _member(name: str, content: bytes) -> bytes:
    header = f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)
