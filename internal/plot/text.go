package plot

import (
	"strings"
	"unicode/utf8"
)

// widest is how wide a character is on average, over the size of the font, in
// DejaVu Sans: measured on these pictures' own texts, 0.50 and bold 0.565, and
// rounded up. The other sans-serif fonts in use are narrower.
const (
	widest     = 0.53
	widestBold = 0.58
)

// wrap breaks text between words into lines that are at most width wide. A word
// that is wider stands alone.
func wrap(text string, width, size, each float64) []string {
	most := int(width / (size * each))
	var lines []string
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= most {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// wide is how much room a text takes.
func wide(text string, size float64) int {
	return int(float64(utf8.RuneCountInString(text)) * size * widest)
}
