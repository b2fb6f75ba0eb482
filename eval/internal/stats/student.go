package stats

import "math"

// TQuantile returns the quantile of Student's distribution with these degrees of freedom. p is
// between 0.5 and 1.
func TQuantile(p, freedom float64) float64 {
	low := 0.0
	high := 1.0
	for tail(high, freedom) > 1-p {
		high *= 2
	}

	// The interval halves until no number lies between its ends.
	for {
		middle := low + (high-low)/2
		if middle <= low || middle >= high {
			return high
		}
		if tail(middle, freedom) > 1-p {
			low = middle
		} else {
			high = middle
		}
	}
}

// tail returns the probability of a value above t, for t >= 0.
func tail(t, freedom float64) float64 {
	return incompleteBeta(freedom/(freedom+t*t), freedom/2, 0.5) / 2
}

// incompleteBeta returns the regularized incomplete beta function at x.
func incompleteBeta(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	// The fraction converges fast on this side only.
	case x > (a+1)/(a+b+2):
		return 1 - incompleteBeta(1-x, b, a)
	}
	whole, _ := math.Lgamma(a + b)
	left, _ := math.Lgamma(a)
	right, _ := math.Lgamma(b)
	front := math.Exp(whole - left - right + a*math.Log(x) + b*math.Log1p(-x))
	return front * betaFraction(x, a, b) / a
}

// mostTerms bounds a fraction that converges after a few terms.
const mostTerms = 10_000

// betaFraction evaluates the continued fraction of the incomplete beta function by Lentz's method.
func betaFraction(x, a, b float64) float64 {
	const tiny = 1e-300
	nonzero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}

	c := 1.0
	d := 1 / nonzero(1-(a+b)*x/(a+1))
	product := d
	for i := 1; i < mostTerms; i++ {
		m := float64(i)
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / nonzero(1+even*d)
		c = nonzero(1 + even/c)
		product *= d * c

		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / nonzero(1+odd*d)
		c = nonzero(1 + odd/c)
		product *= d * c
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	return product
}
