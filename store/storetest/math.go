package storetest

import (
	"cmp"
	"math"
	"slices"
)

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		x := float64(a[i])
		y := float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	return dot / math.Sqrt(aa*bb)
}

// sortBy sorts by a key. The sort is stable.
func sortBy(list []int, key func(int) float64) {
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(key(a), key(b)) })
}
