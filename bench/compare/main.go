// Command compare measures pawl and loops written by hand: the same job, the same server, in one
// sitting.
//
// It builds the benchmark's server and its loops unchanged from the folder that PAWL_BENCH names
// (default: ../shared/bench next to the module), and a driver for pawl in a temporary workspace. It
// starts the server as a process of its own on a free loopback port, and in front of it the program
// front, which answers over TLS with HTTP/2. It then runs each row of the table in turns, one side
// and then the other, so that other work of the machine affects both.
//
// A figure is the median over the pairs of pawl's value divided by the value of the loop by hand.
// The least and the greatest of the pairs follow it. If they are more than 10 % of the median
// apart, the row is measured once more, and the median of all pairs counts. Below 1.00, pawl
// costs less.
//
//	compare                   measure, print the table, write bench/out/latest.json
//	compare -rows 'chat/.*3x5.*tls'  only these rows
//	compare -quick            only the rows that stand for others
//	compare -check            compare with bench/ratios.json; fail if a ratio rose over 15 %
//	compare -update           measure, and write bench/ratios.json
//	compare -build            build everything, measure nothing
//	compare -self             the loop by hand on both sides: the error of the measurement itself
//
// If the folder is absent, it says so and exits 0; with -check too, since nothing was compared.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "compare:", err)
		}
		os.Exit(1)
	}
}

type options struct {
	root, bench string
	rows        *regexp.Regexp
	pairs       int
	dur, warm   time.Duration
	check       bool
	update      bool
	self        bool
	quick       bool
	again       int
	build       bool
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(errs)
	var o options
	pattern := flags.String("rows", "", "only rows whose name matches this regular expression")
	flags.StringVar(&o.root, "root", ".", "folder of the module pawl")
	flags.IntVar(&o.pairs, "n", 5, "pairs of measurements a row")
	flags.IntVar(&o.again, "again", 1, "how often a row is measured again while its pairs are more than 10 % apart")
	flags.BoolVar(&o.quick, "quick", false, "only the rows that stand for others")
	flags.DurationVar(&o.dur, "dur", 300*time.Millisecond, "measuring time of one measurement")
	flags.DurationVar(&o.warm, "warm", 50*time.Millisecond, "warm-up before it")
	flags.BoolVar(&o.check, "check", false, "compare with bench/ratios.json")
	flags.BoolVar(&o.update, "update", false, "write bench/ratios.json")
	flags.BoolVar(&o.build, "build", false, "build everything, measure nothing")
	flags.BoolVar(&o.self, "self", false, "measure the loop by hand against itself")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.pairs < 1 || o.check && o.update || o.self && (o.check || o.update) {
		return errors.New("-n is at least 1, and -check, -update and -self exclude each other")
	}
	var err error
	if o.rows, err = regexp.Compile(*pattern); err != nil {
		return fmt.Errorf("-rows: %w", err)
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	o.bench = os.Getenv("PAWL_BENCH")
	if o.bench == "" {
		o.bench = filepath.Join(o.root, "..", "shared", "bench")
	}
	if o.bench, err = filepath.Abs(o.bench); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(o.bench, "harness")); err != nil {
		fmt.Fprintf(out, "benchmark absent: there is none at %s, so nothing was measured; PAWL_BENCH names its folder\n", o.bench)
		return nil
	}
	var picked []row
	for _, r := range rows() {
		if o.rows.MatchString(r.Name) && (r.Quick || !o.quick) {
			picked = append(picked, r)
		}
	}
	if len(picked) == 0 {
		return fmt.Errorf("no row that is measured matches %q", *pattern)
	}
	return measureAll(ctx, o, picked, out, errs)
}

func measureAll(ctx context.Context, o options, picked []row, out, errs io.Writer) error {
	committed, err := readRatios(filepath.Join(o.root, "bench", "ratios.json"))
	if err != nil && (o.check || o.update && !errors.Is(err, os.ErrNotExist)) {
		return err
	}
	b, err := build(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	if o.build {
		fmt.Fprintln(out, "the benchmark builds")
		return nil
	}

	begin := time.Now()
	fmt.Fprintf(out, "pawl and the hand-written loops: median of %d pairs (least to greatest), pawl / by hand; below 1.00 pawl costs less\n\n", o.pairs)
	fmt.Fprintln(out, head)
	var all []comparison
	var worse []string
	for i, r := range picked {
		fmt.Fprintf(errs, "%s of %s: row %d of %d, %s\n", time.Since(begin).Round(time.Second), left(begin, i, len(picked)), i+1, len(picked), r.Name)
		c, err := b.measure(ctx, o, r, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		want, known := committed[r.Name]
		for again := 0; again < o.again && c.Ratios.spread() > noisy ||
			again < 2 && o.check && known && len(fallen(c.Ratios, want)) > 0; again++ {
			if c, err = b.measure(ctx, o, r, &c); err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
		}
		all = append(all, c)
		fmt.Fprintln(out, c.line())
		if o.check {
			if !known {
				worse = append(worse, r.Name+": not in bench/ratios.json; make bench-update writes it")
			}
			for _, w := range fallen(c.Ratios, want) {
				worse = append(worse, r.Name+": "+w)
			}
		}
	}
	fmt.Fprintln(out)
	summary(out, all, time.Since(begin))
	if err := writeJSON(filepath.Join(o.root, "bench", "out", "latest.json"), all); err != nil {
		return err
	}
	if o.update {
		if committed == nil {
			committed = map[string]ratios{}
		}
		for _, c := range all {
			committed[c.Row] = c.Ratios
		}
		return writeJSON(filepath.Join(o.root, "bench", "ratios.json"), committed)
	}
	if len(worse) > 0 {
		for _, w := range worse {
			fmt.Fprintln(out, "FAILED", w)
		}
		return fmt.Errorf("%d ratios fell by more than %.0f %%", len(worse), (slack-1)*100)
	}
	if o.check {
		fmt.Fprintf(out, "%d rows are within %.0f %% of bench/ratios.json\n", len(all), (slack-1)*100)
	}
	return nil
}

// noisy is the spread of the pairs, relative to their median, above which the row is measured
// again.
const noisy = 0.1

// left estimates the time for all rows from the rows that are done.
func left(begin time.Time, done, rows int) string {
	if done == 0 {
		return "?"
	}
	return (time.Since(begin) / time.Duration(done) * time.Duration(rows)).Round(time.Second).String()
}
