package stats

import "math"

// Pair is a case that was measured twice: before a change, and after it.
type Pair struct {
	// Cluster names the pairs that are not independent of this one. Empty means none.
	Cluster string

	// Before and After are the counts.
	Before, After Case
}

// Difference is what two measurements of the same cases differ in.
type Difference struct {
	// Cases is the number of pairs that were compared. A cluster counts as one.
	Cases int

	// Changed is how many of them have another rate than before.
	Changed int

	// Mean is the mean of the differences, after minus before. NaN means no cases.
	Mean float64

	// Low and High are the bounds of its 95 % interval. They are NaN for fewer than two cases.
	Low, High float64

	// Either is the probability of a difference at least as large in either direction, if the two
	// are equal.
	Either float64

	// Drop is the probability of a mean this low, if the two are equal.
	Drop float64

	// Detectable is the drop that would mostly have been seen. 0 means that the trials cannot say.
	Detectable float64
}

// detectable is the factor between a standard error and the drop that a test at 5 % finds in four
// of five evals: the quantiles of the normal distribution at 0.975 and 0.8, together about 2.80.
const detectable = normalQuantile + 0.8416212335729143

// Compare compares pairs in which both sides have judged trials. The p values are exact: the
// signs of the differences are flipped in all ways.
func Compare(pairs []Pair) Difference {
	diffs, scale := differences(pairs)
	values := make([]float64, len(diffs))
	changed := 0
	for i, d := range diffs {
		values[i] = float64(d) / scale
		if d != 0 {
			changed++
		}
	}

	out := Difference{Cases: len(values), Changed: changed, Mean: Mean(values)}
	out.Either, out.Drop = flipped(diffs)
	out.Low = math.NaN()
	out.High = math.NaN()
	if len(values) > 1 {
		se := StandardError(values)
		half := TQuantile(confidence, float64(len(values)-1)) * se
		out.Low = out.Mean - half
		out.High = out.Mean + half
		out.Detectable = detectable * se
	}
	return out
}

// differences returns the difference of each pair, or of each cluster of pairs, as whole multiples
// of 1/scale, so that sums of them are exact.
func differences(pairs []Pair) (diffs []int64, scale float64) {
	sizes := map[string]int64{}
	var judged []Pair
	for _, p := range pairs {
		if p.Before.Judged > 0 && p.After.Judged > 0 {
			judged = append(judged, p)
			sizes[p.Cluster]++
		}
	}
	sizes[""] = 1

	common := int64(1)
	for _, p := range judged {
		own := lcm(int64(p.Before.Judged), int64(p.After.Judged))
		common = lcm(common, own*sizes[p.Cluster])
	}

	at := map[string]int{}
	for _, p := range judged {
		part := common / sizes[p.Cluster]
		d := part/int64(p.After.Judged)*int64(p.After.Passed) - part/int64(p.Before.Judged)*int64(p.Before.Passed)
		i, known := at[p.Cluster]
		if known && p.Cluster != "" {
			diffs[i] += d
			continue
		}
		at[p.Cluster] = len(diffs)
		diffs = append(diffs, d)
	}
	return diffs, float64(common)
}

// flipped returns the two-sided and the one-sided p value of the sum of diffs: the shares of all
// choices of signs with a sum at least as far from 0, and with a sum at most as high. The
// distribution is made by convolution.
func flipped(diffs []int64) (twoSided, drop float64) {
	sums := map[int64]float64{0: 1}
	observed := int64(0)
	for _, d := range diffs {
		observed += d
		if d == 0 {
			continue
		}
		next := make(map[int64]float64, 2*len(sums))
		for sum, share := range sums {
			next[sum+d] += share / 2
			next[sum-d] += share / 2
		}
		sums = next
	}

	for sum, share := range sums {
		if max(sum, -sum) >= max(observed, -observed) {
			twoSided += share
		}
		if sum <= observed {
			drop += share
		}
	}
	return min(1, twoSided), min(1, drop)
}

func lcm(a, b int64) int64 {
	return a / gcd(a, b) * b
}

func gcd(a, b int64) int64 {
	if b == 0 {
		return a
	}
	return gcd(b, a%b)
}
