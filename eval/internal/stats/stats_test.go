package stats_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/pawl-go/pawl/eval/internal/stats"
)

// TestTQuantile compares quantiles with the integral of the density by Simpson's rule.
func TestTQuantile(t *testing.T) {
	for _, freedom := range []float64{1, 2, 3, 7, 20, 29, 100, 1834} {
		q := stats.TQuantile(0.975, freedom)
		if got := 0.5 + simpson(q, freedom); math.Abs(got-0.975) > 1e-9 {
			t.Errorf("with %g degrees of freedom, %.9f lies below %.9f of the values, want 0.975", freedom, q, got)
		}
	}
}

// simpson integrates the density of Student's distribution from 0 to q.
func simpson(q, freedom float64) float64 {
	whole, _ := math.Lgamma((freedom + 1) / 2)
	half, _ := math.Lgamma(freedom / 2)
	front := math.Exp(whole-half) / math.Sqrt(freedom*math.Pi)
	density := func(x float64) float64 { return front * math.Pow(1+x*x/freedom, -(freedom+1)/2) }

	const steps = 20_000
	width := q / steps
	sum := density(0) + density(q)
	for i := 1; i < steps; i++ {
		weight := 2.0
		if i%2 == 1 {
			weight = 4
		}
		sum += weight * density(float64(i)*width)
	}
	return sum * width / 3
}

// TestPasses compares pass@k and pass^k with the count over all choices of k trials.
func TestPasses(t *testing.T) {
	for n := 1; n <= 8; n++ {
		for c := 0; c <= n; c++ {
			for k := 1; k <= 9; k++ {
				one, all := choices(n, c, k)
				same(t, one, stats.PassAt(n, c, k), "pass@%d of %d/%d", k, c, n)
				same(t, all, stats.PassAll(n, c, k), "pass^%d of %d/%d", k, c, n)
			}
		}
	}
}

// choices counts the choices of k of n trials, the first c of which passed, that have a trial which
// passed, and that have no other.
func choices(n, c, k int) (one, all float64) {
	total := 0.0
	passed := uint(1)<<c - 1
	for set := uint(0); set < 1<<n; set++ {
		if bits.OnesCount(set) != k {
			continue
		}
		total++
		if set&passed != 0 {
			one++
		}
		if set&^passed == 0 {
			all++
		}
	}
	return one / total, all / total // NaN for no choice
}

func same(t *testing.T, want, got float64, format string, args ...any) {
	t.Helper()
	if math.IsNaN(want) && math.IsNaN(got) {
		return
	}
	if !(math.Abs(want-got) <= 1e-9) {
		t.Errorf("got %.12f, want %.12f: "+format, append([]any{got, want}, args...)...)
	}
}

// table returns the counts of a random eval.
func table(random *rand.Rand) []stats.Pair {
	pairs := make([]stats.Pair, 2+random.IntN(11))
	for i := range pairs {
		before := 1 + random.IntN(5)
		after := 1 + random.IntN(5)
		pairs[i] = stats.Pair{
			Before: stats.Case{Judged: before, Passed: random.IntN(before + 1)},
			After:  stats.Case{Judged: after, Passed: random.IntN(after + 1)},
		}
		if random.IntN(4) == 0 {
			pairs[i].Cluster = string(rune('a' + random.IntN(3)))
			pairs[i].Before.Cluster = pairs[i].Cluster
			pairs[i].After.Cluster = pairs[i].Cluster
		}
	}
	return pairs
}

// TestTables compares intervals and differences with other ways to compute them, on 1,000 tables.
func TestTables(t *testing.T) {
	for seed := range uint64(1000) {
		pairs := table(rand.New(rand.NewPCG(seed, 1)))
		var cases []stats.Case
		trials := 0
		for _, p := range pairs {
			cases = append(cases, p.After)
			trials += p.After.Judged
		}

		low, high := stats.Interval(stats.Groups(cases), trials)
		wantLow, wantHigh := solved(means(cases), trials)
		same(t, wantLow, low, "the lower bound of table %d", seed)
		same(t, wantHigh, high, "the upper bound of table %d", seed)

		d := stats.Compare(pairs)
		wantBoth, wantDrop := enumerated(pairs)
		same(t, wantBoth, d.Either, "p of table %d", seed)
		same(t, wantDrop, d.Drop, "one-sided p of table %d", seed)
	}
}

// means returns the rate of each group of cases, by collecting the members of each first.
func means(cases []stats.Case) []float64 {
	groups := map[string][]float64{}
	var names []string
	for i, c := range cases {
		name := c.Cluster
		if name == "" {
			name = string(rune(1000 + i))
		}
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], float64(c.Passed)/float64(c.Judged))
	}
	var rates []float64
	for _, name := range names {
		rates = append(rates, average(groups[name]))
	}
	return rates
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// solved returns the interval of a rate as the shares x at which |p - x| is the quantile times the
// standard error of x. It finds them by bisection.
func solved(rates []float64, trials int) (low, high float64) {
	p := average(rates)
	n := float64(trials)
	quantile := 1.959963984540054
	if cases := float64(len(rates)); cases > 1 {
		quantile = stats.TQuantile(0.975, cases-1)
		squares := 0.0
		for _, r := range rates {
			squares += r*r - p*p
		}
		variance := squares / (cases - 1) / cases
		n = cases
		if variance > 1e-12 && p > 1e-12 && p < 1-1e-12 {
			n = math.Min(math.Max(p*(1-p)/variance, cases), math.Max(float64(trials), cases))
		}
	}

	inside := func(x float64) bool { return math.Abs(p-x) <= quantile*math.Sqrt(x*(1-x)/n) }
	bound := func(in, out float64) float64 {
		for range 200 {
			middle := (in + out) / 2
			if inside(middle) {
				in = middle
			} else {
				out = middle
			}
		}
		return in
	}
	// Near 0 and 1 the rate itself lies outside of no interval.
	return bound(p, 0), bound(p, 1)
}

// enumerated returns the p values by all choices of signs.
func enumerated(pairs []stats.Pair) (both, drop float64) {
	var before, after []stats.Case
	for _, p := range pairs {
		before = append(before, p.Before)
		after = append(after, p.After)
	}
	was := means(before)
	is := means(after)

	observed := 0.0
	for i := range was {
		observed += is[i] - was[i]
	}
	const slack = 1e-9
	for signs := uint(0); signs < 1<<len(was); signs++ {
		sum := 0.0
		for i := range was {
			d := is[i] - was[i]
			if signs>>i&1 == 1 {
				d = -d
			}
			sum += d
		}
		if math.Abs(sum) >= math.Abs(observed)-slack {
			both++
		}
		if sum <= observed+slack {
			drop++
		}
	}
	all := float64(uint(1) << len(was))
	return both / all, drop / all
}

// TestOneTrial holds the test to McNemar's exact one where each case has one trial.
func TestOneTrial(t *testing.T) {
	var pairs []stats.Pair
	add := func(times, before, after int) {
		for range times {
			pairs = append(pairs, stats.Pair{
				Before: stats.Case{Judged: 1, Passed: before},
				After:  stats.Case{Judged: 1, Passed: after},
			})
		}
	}
	add(9, 1, 1)
	add(7, 1, 0)
	add(1, 0, 1)
	add(3, 0, 0)

	// Of 8 coins, at most one shows the rare side: (1 + 8) / 256, and twice that.
	d := stats.Compare(pairs)
	same(t, 2*9.0/256, d.Either, "7 fell and 1 rose")
	same(t, 9.0/256, d.Drop, "7 fell and 1 rose")
	if d.Changed != 8 || d.Cases != 20 {
		t.Errorf("got %d of %d cases changed, want 8 of 20", d.Changed, d.Cases)
	}
}

// TestCoverage simulates evals of 20 cases with 4 trials, and counts the intervals that have the
// true rate. The control pools the trials, as if they were independent.
func TestCoverage(t *testing.T) {
	evals := 1000
	if testing.Short() {
		evals = 200
	}
	pooledFirst := 0.0
	for i, shape := range [][2]float64{{0.8, 1.2}, {4.5, 0.5}, {9.5, 0.5}} {
		random := rand.New(rand.NewPCG(7, uint64(i)))
		truth := shape[0] / (shape[0] + shape[1])
		covered, pooled := 0, 0
		for range evals {
			cases := make([]stats.Case, 20)
			passed := 0
			for j := range cases {
				cases[j] = stats.Case{Judged: 4, Passed: binomial(random, 4, beta(random, shape[0], shape[1]))}
				passed += cases[j].Passed
			}
			if low, high := stats.Interval(stats.Groups(cases), 80); low <= truth && truth <= high {
				covered++
			}
			if low, high := stats.Interval([]float64{float64(passed) / 80}, 80); low <= truth && truth <= high {
				pooled++
			}
		}

		if share := float64(covered) / float64(evals); share < 0.92 {
			t.Errorf("the interval has the rate of Beta%v in %.3f of the evals, want 0.92", shape, share)
		}
		if i == 0 {
			pooledFirst = float64(pooled) / float64(evals)
		}
	}
	if pooledFirst >= 0.90 {
		t.Errorf("pooled trials cover %.3f, want less than 0.90: the simulation would not see a wrong interval",
			pooledFirst)
	}
}

// TestPower simulates pairs of evals: equal agents are seldom reported, worse ones mostly.
func TestPower(t *testing.T) {
	evals := 500
	if testing.Short() {
		evals = 150
	}
	random := rand.New(rand.NewPCG(11, 0))
	flagged := func(drop float64) float64 {
		n := 0
		for range evals {
			pairs := make([]stats.Pair, 30)
			for j := range pairs {
				p := beta(random, 2.1, 0.9)
				pairs[j].Before = stats.Case{Judged: 4, Passed: binomial(random, 4, p)}
				pairs[j].After = stats.Case{Judged: 4, Passed: binomial(random, 4, max(0, p-drop))}
			}
			if stats.Compare(pairs).Drop < 0.05 {
				n++
			}
		}
		return float64(n) / float64(evals)
	}
	if share := flagged(0); share > 0.07 {
		t.Errorf("%.3f of the equal agents are reported, want at most 0.07", share)
	}
	if share := flagged(0.2); share < 0.9 {
		t.Errorf("%.3f of the agents that are worse by 0.2 are reported, want at least 0.9", share)
	}
}

func binomial(random *rand.Rand, n int, p float64) (passed int) {
	for range n {
		if random.Float64() < p {
			passed++
		}
	}
	return passed
}

// beta draws from a beta distribution by Jöhnk's method.
func beta(random *rand.Rand, a, b float64) float64 {
	for {
		x := math.Pow(random.Float64(), 1/a)
		y := math.Pow(random.Float64(), 1/b)
		if x+y > 0 && x+y <= 1 {
			return x / (x + y)
		}
	}
}

// TestHolm compares with values computed by hand.
func TestHolm(t *testing.T) {
	got := stats.Holm([]float64{0.04, 0.01, 0.03})
	for i, want := range []float64{0.06, 0.03, 0.06} {
		same(t, want, got[i], "test %d", i)
	}
}
