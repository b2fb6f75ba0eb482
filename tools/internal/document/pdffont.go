package document

// pdffont.go: the fonts of a PDF, and the widths of their letters.

import (
	"strings"

	"github.com/ledongthuc/pdf"
)

// font holds the required properties of a font. They are read once, because each access to the file
// needs a parse.
type font struct {
	code  pdf.TextEncoding
	first int
	// widths of one-byte letters, from first on, in thousandths of the font size; nil means unknown
	widths []float64
	wide   bool // letters have two bytes
	of     map[int]float64
	other  float64 // width of the wide letters that are not in of
}

func newFont(v pdf.Value) *font {
	if !plainMap(v.Key("ToUnicode")) {
		panic("a font has a map that is broken")
	}
	f := &font{code: (&pdf.Font{V: v}).Encoder(), first: int(v.Key("FirstChar").Int64())}
	if w := v.Key("Widths"); w.Kind() == pdf.Array {
		for i := range min(w.Len(), 256) {
			f.widths = append(f.widths, w.Index(i).Float64())
		}
	}
	if v.Key("Subtype").Name() == "Type0" {
		f.readWide(v.Key("DescendantFonts").Index(0))
	}
	return f
}

// readWide reads the widths of a font with two-byte letters: [c [w w …] from to w …].
func (f *font) readWide(v pdf.Value) {
	f.wide = true
	f.of = map[int]float64{}
	f.other = 1000
	if dw := v.Key("DW"); dw.Kind() != pdf.Null {
		f.other = dw.Float64()
	}

	// Letters have two bytes. A broken file may state ranges of any length.
	const most = 65536
	w := v.Key("W")
	for i := 0; i+1 < min(w.Len(), most); {
		from := int(w.Index(i).Int64())
		next := w.Index(i + 1)
		if next.Kind() == pdf.Array {
			for j := range min(next.Len(), most) {
				f.of[from+j] = next.Index(j).Float64()
			}
			i += 2
			continue
		}

		width := w.Index(i + 2).Float64()
		for c := max(0, from); c <= min(int(next.Int64()), most); c++ {
			f.of[c] = width
		}
		i += 3
	}
}

// measure returns the width of a text, in thousandths of the font size, and its number of letters.
// If the font does not state widths, as the standard fonts need not, typical widths are assumed.
func (f *font) measure(raw, text string) (sum float64, letters int) {
	switch {
	case f != nil && f.wide:
		sum, letters = f.measureWide(raw)
	case f != nil && f.widths != nil:
		letters = len(raw)
		for i := range len(raw) {
			if at := int(raw[i]) - f.first; at >= 0 && at < len(f.widths) {
				sum += f.widths[at]
			}
		}
	}
	if sum > 0 {
		return sum, letters
	}

	letters = 0
	for _, r := range text {
		letters++
		sum += typicalWidth(r)
	}
	return sum, letters
}

// measureWide measures a text whose letters have two bytes.
func (f *font) measureWide(raw string) (sum float64, letters int) {
	for i := 0; i+1 < len(raw); i += 2 {
		w, ok := f.of[int(raw[i])<<8|int(raw[i+1])]
		if !ok {
			w = f.other
		}
		sum += w
		letters++
	}
	return sum, letters
}

// typicalWidth returns about the width that a letter has in Helvetica.
func typicalWidth(r rune) float64 {
	switch {
	case strings.ContainsRune("ijlItf :;", r) || r >= '!' && r <= '/':
		return 278
	case strings.ContainsRune("mwMW", r):
		return 830
	case r >= 'A' && r <= 'Z':
		return 690
	case r >= 0x2E80: // the first of the East Asian scripts
		return 1000
	}
	return 540
}
