"""Small PDFs, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def pdf(pages: Sequence[Sequence[str]], title: str = "", outline: Mapping[int, str] = {}) -> bytes:
    """Return a PDF with lines of text on each page, and an outline with a title for some pages (counted from 1)."""
    bodies: list[str] = []

    def add(body: str) -> int:
        bodies.append(body)
        return len(bodies)

    font = add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    tree = len(bodies) + 2 * len(pages) + 1
    numbers = []
    for lines in pages:
        text = " ".join(f"({line.replace('(', '[').replace(')', ']')}) Tj T*" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 50 700 Td {text} ET"
        content = add(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        numbers.append(
            add(
                f"<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R "
                f"/Resources << /Font << /F1 {font} 0 R >> >> >>"
            )
        )
    kids = " ".join(f"{number} 0 R" for number in numbers)
    assert add(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>") == tree
    root = f"<< /Type /Catalog /Pages {tree} 0 R"
    if outline:
        first, last = len(bodies) + 1, len(bodies) + len(outline)
        for at, (page, entry) in enumerate(outline.items(), first):
            following = f"/Next {at + 1} 0 R" if at < last else ""
            add(f"<< /Title ({entry}) /Parent {last + 1} 0 R /Dest [{numbers[page - 1]} 0 R /Fit] {following} >>")
        outlines = add(f"<< /Type /Outlines /First {first} 0 R /Last {last} 0 R /Count {len(outline)} >>")
        root += f" /Outlines {outlines} 0 R"
    catalog = add(f"{root} >>")
    about = add(f"<< /Title ({title}) >>")
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    trailer = (
        f"trailer\n<< /Size {len(bodies) + 1} /Root {catalog} 0 R /Info {about} 0 R >>\nstartxref\n{len(out)}\n%%EOF"
    )
    return bytes(out) + f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")
