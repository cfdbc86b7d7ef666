package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A line that is called after a cache, K/V, has the colour of the cache: the
// same in every picture. The type of K gives the hue, in degrees, and that of V
// the lightness, in percent: the fewer bits, the lighter.
var (
	hues = map[string]float64{
		"packed16": 204, "packed16-mse": 285, "packed16 +q8": 240,
		"q8_0": 24, "f16": 158, "bf16": 110, "f32": 80,
		"q4_0": 330, "q4_1": 355, "q5_0": 44, "q5_1": 58, "iq4_nl": 182,
	}
	lightness = map[string]float64{
		"f32": 16, "bf16": 21, "f16": 26, "q8_0": 42, "q5_1": 46, "q5_0": 50, "q4_1": 54, "q4_0": 58, "iq4_nl": 62,
	}
)

const saturation = 85 // percent, of all of them

// others are the colours of what is no cache, as bounds are: none of them is that
// of a cache.
var others = []string{"#4d4d4d", "#b2182b", "#999999", "#8c6d31", "#000000", "#7b4173", "#637939", "#bd9e39", "#ad494a"}

// palette gives every name of a chart its colour.
func palette(names []string) map[string]string {
	out := map[string]string{}
	n := 0
	for _, name := range names {
		color, ok := cacheColor(name)
		if !ok {
			color = others[n%len(others)]
			n++
		}
		out[name] = color
	}
	return out
}

// cacheColor is the colour of the cache K/V, or of one with a note behind it, as
// K/V +q8.
func cacheColor(name string) (string, bool) {
	pair, note, _ := strings.Cut(name, " ")
	k, v, _ := strings.Cut(pair, "/")
	if note != "" {
		k += " " + note
	}
	h, known := hues[k]
	l, too := lightness[v]
	return hsl(h, saturation/100., l/100), known && too
}

// hsl is a colour as SVG has it, from its hue in degrees, and its saturation and
// lightness from 0 to 1 (https://www.w3.org/TR/css-color-4/#hsl-to-rgb).
func hsl(h, s, l float64) string {
	part := func(n float64) int {
		k := math.Mod(n+h/30, 12)
		return int(math.Round(255 * (l - s*min(l, 1-l)*max(-1, slices.Min([]float64{k - 3, 9 - k, 1})))))
	}
	return fmt.Sprintf("#%02x%02x%02x", part(0), part(8), part(4))
}
