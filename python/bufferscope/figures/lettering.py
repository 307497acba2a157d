"""The widths of words in pictures, which are those of Helvetica, whatever font a reader's machine has.

Arial, Liberation Sans, Arimo and Nimbus Sans have the same widths as Helvetica (Adobe's Core 14 fonts, AFM files), and
pictures name these fonts. `settled` also writes each text's length into an SVG: where none of them is installed, the
letters of another font move closer together instead of running into their neighbours.
"""

import re
from collections.abc import Mapping
from html import unescape

FONT = "Arial, Helvetica, 'Liberation Sans', Arimo, 'Nimbus Sans', sans-serif"
BOLD = 600
"""From this weight on, fonts are bold."""
_REGULAR = {
    191: "'", 222: "ijl’", 260: "|", 278: " !,./:;I[\\]ft\N{NO-BREAK SPACE}·", 333: "()-`r“”", 334: "{}", 355: '"',
    389: "*", 400: "°", 469: "^", 500: "Jcksvxyz", 549: "≤≥", 556: "#$0123456789?L_abdeghnopquµ–§äöü",
    584: "+<=>~±×", 611: "FTZß", 667: "&ABEKPSVXY", 713: "∞", 722: "CDHNRUw", 778: "GOQ", 833: "Mm", 889: "%",
    944: "W", 1000: "—…", 1015: "@",
}  # fmt: skip
_BOLD = {
    238: "'", 278: " ,./I\\ijl\N{NO-BREAK SPACE}·’", 280: "|", 333: "!()-:;[]`ft", 389: "*r{}", 400: "°", 474: '"',
    500: "z“”", 549: "≤≥", 556: "#$0123456789J_aceksvxy–§ä", 584: "+<=>^~±×", 611: "?FLTZbdghnopquµöüß", 667: "EPSVXY",
    713: "∞", 722: "&ABCDHKNRU", 778: "GOQw", 833: "M", 889: "%m", 944: "W", 975: "@", 1000: "—…",
}  # fmt: skip
"""Thousandths of the font's size, and the characters that are so wide."""


def _widths(table: Mapping[int, str]) -> dict[str, int]:
    return {character: width for width, characters in table.items() for character in characters}


_TABLES = {False: _widths(_REGULAR), True: _widths(_BOLD)}
_TEXT = re.compile(r"<text ([^>]*)>(.*?)</text>", re.DOTALL)
_LINE = re.compile(r"<tspan([^>]*)>([^<]*)</tspan>")
_SIZE = re.compile(r'font-size="([\d.]+)px"')
_WEIGHT = re.compile(r'font-weight="(\d+|bold)"')


def width(words: str, size: float, *, bold: bool = False) -> float | None:
    """The width of words in pixels; None if the table lacks one of the characters."""
    table = _TABLES[bold]
    try:
        return sum(table[character] for character in words) * size / 1000
    except KeyError:
        return None


def settled(svg: str) -> str:
    """The SVG with the length of each text, so that every font fills the same width."""
    return _TEXT.sub(_with_lengths, svg)


def _with_lengths(found: re.Match[str]) -> str:
    attributes, content = found.groups()
    size, weight = _SIZE.search(attributes), _WEIGHT.search(attributes)
    if size is None:
        return found[0]
    bold = weight is not None and (weight[1] == "bold" or int(weight[1]) >= BOLD)
    pixels = float(size[1])
    if "<" not in content:
        return f"<text {attributes}{_length(content, pixels, bold)}>{content}</text>"
    lines = _LINE.sub(lambda line: f"<tspan{line[1]}{_length(line[2], pixels, bold)}>{line[2]}</tspan>", content)
    return f"<text {attributes}>{lines}</text>"


def _length(content: str, size: float, bold: bool) -> str:
    """The attributes that set the length of text; none for a single character, which has no gaps."""
    words = unescape(content)
    known = width(words, size, bold=bold) if len(words) > 1 else None
    return f' textLength="{known:.1f}" lengthAdjust="spacingAndGlyphs"' if known else ""
