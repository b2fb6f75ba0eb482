// Package stats has the statistics of an evaluation: rates with their intervals, and the difference
// of two rates that were measured on the same cases.
//
//	trials ─▶ Case (judged, passed) ─▶ Groups ─▶ Rate, Interval
//	two evals ─▶ Pair ─▶ Compare ─▶ mean, interval, exact p value, power
//
// The unit is the case, never the trial: trials of one case are not independent. Cases of one
// cluster count as one case, with the mean of their rates. Nothing is sampled.
package stats

import (
	"cmp"
	"math"
	"slices"
)

// Case is the count of one case.
type Case struct {
	// Cluster names the cases that are not independent of this one. Empty means none.
	Cluster string

	// Judged is the number of trials with a verdict.
	Judged int

	// Passed is how many of them passed.
	Passed int
}

// rate is the share of trials that passed. The Case has a judged trial.
func (c Case) rate() float64 { return float64(c.Passed) / float64(c.Judged) }

// Groups returns the rate of each case with a judged trial. The cases of a cluster have one rate
// together, at the place of the first of them.
func Groups(cases []Case) []float64 {
	var rates []float64
	var members []float64 // how many cases each rate is the mean of
	at := map[string]int{}
	for _, c := range cases {
		if c.Judged == 0 {
			continue
		}
		i, known := at[c.Cluster]
		if known && c.Cluster != "" {
			rates[i] += c.rate()
			members[i]++
			continue
		}
		at[c.Cluster] = len(rates)
		rates = append(rates, c.rate())
		members = append(members, 1)
	}
	for i := range rates {
		rates[i] /= members[i]
	}
	return rates
}

// Mean returns the mean of values. It is NaN for none.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// StandardError returns the standard error of the mean. It is 0 for fewer than two values.
func StandardError(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	mean := Mean(values)
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	n := float64(len(values))
	return math.Sqrt(squares/(n-1)) / math.Sqrt(n)
}

// PassAt returns the probability that at least one of k trials passes, estimated from n trials of
// which c passed: 1 - C(n-c,k)/C(n,k). It is NaN if n < k.
func PassAt(n, c, k int) float64 {
	if n < k {
		return math.NaN()
	}
	return 1 - chosen(n-c, n, k)
}

// PassAll returns the probability that all of k trials pass, estimated from n trials of which c
// passed: C(c,k)/C(n,k). It is NaN if n < k.
func PassAll(n, c, k int) float64 {
	if n < k {
		return math.NaN()
	}
	return chosen(c, n, k)
}

// chosen returns C(part,k)/C(whole,k) as a product of k factors, which cannot overflow.
func chosen(part, whole, k int) float64 {
	product := 1.0
	for i := range k {
		product *= max(0, float64(part-i)) / float64(whole-i)
	}
	return product
}

// Over returns the mean of an estimate over the cases, and NaN if it is undefined for one of them.
// The estimate is PassAt or PassAll.
func Over(cases []Case, k int, estimate func(n, c, k int) float64) float64 {
	var values []float64
	for _, c := range cases {
		if c.Judged > 0 {
			values = append(values, estimate(c.Judged, c.Passed, k))
		}
	}
	return Mean(values)
}

// confidence is the quantile of a two-sided interval of 95 %.
const confidence = 0.975

// normalQuantile is the quantile of the normal distribution at confidence.
const normalQuantile = 1.959963984540054

// Interval returns a 95 % interval for the mean of rates, which were measured with so many trials
// in all: Wilson's interval with the number of trials that would have this standard error, and with
// the quantile of Student's distribution. With one rate it is Wilson's interval over the trials,
// and is about this case alone. The bounds are NaN without rates.
func Interval(rates []float64, trials int) (low, high float64) {
	cases := float64(len(rates))
	p := Mean(rates)
	switch {
	case len(rates) == 0:
		return math.NaN(), math.NaN()
	case len(rates) == 1:
		return wilson(p, float64(trials), normalQuantile)
	}

	// Without spread nothing is known of how trials of a case depend on each other: each case then
	// counts as one trial.
	effective := cases
	se := StandardError(rates)
	if se > 0 && p*(1-p) > 0 {
		effective = min(max(p*(1-p)/(se*se), cases), max(float64(trials), cases))
	}
	return wilson(p, effective, TQuantile(confidence, cases-1))
}

// wilson returns Wilson's interval for the share p of n trials.
func wilson(p, n, quantile float64) (low, high float64) {
	square := quantile * quantile
	centre := p + square/(2*n)
	half := quantile * math.Sqrt(p*(1-p)/n+square/(4*n*n))
	scale := 1 + square/n
	return max(0, (centre-half)/scale), min(1, (centre+half)/scale)
}

// Holm returns the p values of several tests, adjusted so that the probability of one false alarm
// among them stays below the level of a single test.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })

	adjusted := make([]float64, len(p))
	largest := 0.0
	for rank, i := range order {
		largest = max(largest, min(1, p[i]*float64(len(p)-rank)))
		adjusted[i] = largest
	}
	return adjusted
}
