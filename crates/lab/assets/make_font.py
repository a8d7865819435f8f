"""Makes DejaVuSans.ttf in this folder from the full font: only the letters that plots need, without hints.

Packages: fonttools 4 (Python 3). Run: python make_font.py /path/to/DejaVuSans.ttf

Each letter gets an empty contour at its origin. The drawing library (plotters 0.3.7 with ab_glyph) puts the left edge of a
letter's box where the pen is and forgets the space before the ink; now the box starts at the origin, and the letters stand
where they belong.
"""

import sys

from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.subset import Options, Subsetter, parse_unicodes
from fontTools.ttLib import TTFont

LETTERS = "20-24F,370-3FF,2010-2027,2030-205E,2070-209F,2190-2199,2200-22FF,25A0-25FF"

font = TTFont(sys.argv[1])
subsetter = Subsetter(Options(layout_features=[], hinting=False, glyph_names=False, name_IDs=["*"]))
subsetter.populate(unicodes=parse_unicodes(LETTERS))
subsetter.subset(font)

glyphs, table = font.getGlyphSet(), font["glyf"]
redrawn = {}
for name in font.getGlyphOrder():
    if table[name].numberOfContours == 0:
        continue
    outline = DecomposingRecordingPen(glyphs)
    glyphs[name].draw(outline)
    pen = TTGlyphPen(None)
    outline.replay(pen)
    middle = (table[name].yMin + table[name].yMax) // 2
    pen.moveTo((0, middle))
    pen.lineTo((0, middle))
    pen.lineTo((0, middle))
    pen.closePath()
    redrawn[name] = pen.glyph()
for name, glyph in redrawn.items():
    table[name] = glyph
    font["hmtx"][name] = (font["hmtx"][name][0], 0)
font.save("DejaVuSans.ttf")
