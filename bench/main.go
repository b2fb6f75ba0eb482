// Command bench measures pawl and loops written by hand: the same job, the same server, in one
// sitting. It needs nothing but Go.
//
// It starts a server that answers as providers do, over TLS with HTTP/2, in a process of its own.
// It then measures each row of the table in turns, one side and then the other, each in a process
// of its own, so that other work of the machine affects both.
//
// A figure is the median over the pairs of pawl's value divided by the value of the loop by hand.
// The quartiles of the pairs follow it. If they are more than 10 % of the median apart, the row is
// measured once more, and the median of all pairs counts. Below 1.00, pawl costs less.
//
//	bench                            measure, print the table, write bench/out/latest.json
//	bench -rows 'chat/.*3x5.*tls'    only these rows
//	bench -quick                     only the rows that stand for others
//	bench -check                     compare with bench/ratios.json; fail if one rose over 15 %
//	bench -update                    measure, and write bench/ratios.json and docs/performance.md
//	bench -self                      the loop by hand on both sides: the error of the measurement
//	bench -list                      print the names of the rows
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
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

type options struct {
	root      string
	rows      *regexp.Regexp
	pairs     int
	dur, warm time.Duration
	check     bool
	update    bool
	self      bool
	quick     bool
	again     int
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
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
	list := flags.Bool("list", false, "print the names of the rows")
	serveIn := flags.String("serve", "", "be the server, with its certificate in this folder; bench uses it")
	side := flags.String("side", "", "measure one side; bench uses it")
	flags.BoolVar(&o.self, "self", false, "measure the loop by hand against itself")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *serveIn != "":
		return serve(*serveIn, out)
	case *side != "":
		return measureSide(ctx, *side, out)
	}
	if o.pairs < 1 || o.check && o.update || o.self && (o.check || o.update) {
		return errors.New("-n is at least 1, and -check, -update and -self exclude each other")
	}
	if o.update && *pattern != "" {
		return errors.New("-update measures all rows, or those of -quick: one commit stands for all of them")
	}
	var err error
	if o.rows, err = regexp.Compile(*pattern); err != nil {
		return fmt.Errorf("-rows: %w", err)
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
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
	if *list {
		for _, r := range picked {
			fmt.Fprintln(out, r.Name)
		}
		return nil
	}
	return measureAll(ctx, o, picked, out, errs)
}

// measureAll measures the rows, prints them, and compares or writes what is committed.
func measureAll(ctx context.Context, o options, picked []row, out, errs io.Writer) error {
	committed, err := readFigures(o.root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	b, err := begin()
	if err != nil {
		return err
	}
	defer b.close()

	began := time.Now()
	fmt.Fprintf(out, "pawl / the loop by hand: median of %d pairs (quartiles); below 1.00 pawl costs less\n\n%s\n", o.pairs, head)
	var all []comparison
	for i, r := range picked {
		fmt.Fprintf(errs, "%s of %s: row %d of %d, %s\n", time.Since(began).Round(time.Second), left(began, i, len(picked)), i+1, len(picked), r.Name)
		c, err := b.row(ctx, o, r, committed)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		all = append(all, c)
		fmt.Fprintln(out, c.line())
	}
	fmt.Fprintln(out)
	summary(out, all, time.Since(began))
	if err := writeJSON(filepath.Join(o.root, "bench", "out", "latest.json"), all); err != nil {
		return err
	}
	switch {
	case o.update:
		return committed.update(ctx, o.root, all)
	case o.check:
		return check(out, committed, all)
	}
	return nil
}

// row measures a row: again while its pairs are far apart, and where it would fail the check.
func (b *bench) row(ctx context.Context, o options, r row, committed *figures) (comparison, error) {
	c, err := b.measure(ctx, o, r, nil)
	if err != nil {
		return c, err
	}
	want, known := committed.Rows[r.Name]
	for again := 0; again < 2; again++ {
		// Another program may have disturbed the pairs. A ratio that would fail the check is
		// measured again before it does.
		isNoisy := again < o.again && c.Ratios.spread() > noisy
		hasFallen := o.check && known && len(fallen(c.Ratios, want)) > 0
		if !isNoisy && !hasFallen {
			break
		}
		c, err = b.measure(ctx, o, r, &c)
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// check compares what was measured with what is committed.
func check(out io.Writer, committed *figures, all []comparison) error {
	worse := 0
	for _, c := range all {
		want, known := committed.Rows[c.Row]
		if !known {
			fmt.Fprintf(out, "FAILED %s: not in bench/ratios.json; make bench-update writes it\n", c.Row)
			worse++
		}
		for _, w := range fallen(c.Ratios, want) {
			fmt.Fprintf(out, "FAILED %s: %s\n", c.Row, w)
			worse++
		}
	}
	if worse > 0 {
		return fmt.Errorf("%d ratios rose by more than %.0f %%", worse, (slack-1)*100)
	}
	fmt.Fprintf(out, "%d rows are within %.0f %% of bench/ratios.json\n", len(all), (slack-1)*100)
	return nil
}

// noisy is the spread of the pairs, relative to their median, above which the row is measured
// again.
const noisy = 0.1

// left estimates the time for all rows from the rows that are done.
func left(began time.Time, done, rows int) string {
	if done == 0 {
		return "?"
	}
	return (time.Since(began) / time.Duration(done) * time.Duration(rows)).Round(time.Second).String()
}
