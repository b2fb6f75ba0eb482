package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// bench is a running server, and the program that measures: this one, in a process of its own for
// each measurement.
type bench struct {
	program string
	dir     string // scratch folder, removed by close
	at      addresses
	server  *exec.Cmd
}

// begin starts the server on free loopback ports.
func begin() (b *bench, err error) {
	b = new(bench)
	if b.program, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "pawl-bench-"); err != nil {
		return nil, err
	}
	b.server = exec.Command(b.program, "-serve", b.dir)
	b.server.Stderr = os.Stderr
	printed, err := b.server.StdoutPipe()
	if err == nil {
		err = b.server.Start()
	}
	if err != nil {
		os.RemoveAll(b.dir)
		return nil, err
	}
	if err := json.NewDecoder(bufio.NewReader(printed)).Decode(&b.at); err != nil {
		b.close()
		return nil, fmt.Errorf("the server printed no addresses: %w", err)
	}
	return b, nil
}

// close ends the server and removes the scratch folder.
func (b *bench) close() {
	b.server.Process.Kill()
	b.server.Wait()
	os.RemoveAll(b.dir)
}

// one makes one measurement of one side.
func (b *bench) one(ctx context.Context, o options, side string, r row) (rep report, err error) {
	t := task{
		Side:    side,
		Wire:    r.Wire,
		Job:     r.Job,
		Stream:  r.Stream,
		History: r.History,
		Tools:   r.Tools,
		Conc:    r.Conc,
		URL:     b.at.HTTPS,
		Dur:     o.dur,
		Warm:    o.warm,
	}
	if r.Plain {
		t.URL = b.at.HTTP
	}
	t.URL += "/v1"
	if r.Once {
		t.Dur, t.Warm = 1, 1
	}
	if t.Dir, err = os.MkdirTemp(b.dir, "side-"); err != nil {
		return rep, err
	}
	defer os.RemoveAll(t.Dir)
	text, err := json.Marshal(t)
	if err != nil {
		return rep, err
	}

	// Each measurement is a process of its own: the heap and the caches of one side must not cost
	// the other.
	c := exec.CommandContext(ctx, b.program, "-side", string(text))
	c.Env = append(os.Environ(), "SSL_CERT_FILE="+filepath.Join(b.dir, certName), "SSL_CERT_DIR="+b.dir)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err == nil {
		err = json.Unmarshal(out, &rep)
	}
	if err != nil {
		return rep, fmt.Errorf("%s: %w", side, err)
	}
	return rep, nil
}

// measure makes o.pairs pairs of measurements of r and adds them to the pairs of before. Each side
// goes first in turn. nil means no earlier pairs.
func (b *bench) measure(ctx context.Context, o options, r row, before *comparison) (comparison, error) {
	c := comparison{Row: r.Name}
	if before != nil {
		c = *before
	}
	sides := [2]string{r.Side, byHand}
	if o.self {
		sides[0] = byHand
	}
	for i := range o.pairs {
		var pair [2]report
		for k := range 2 {
			side := (i + k) % 2
			rep, err := b.one(ctx, o, sides[side], r)
			if err != nil {
				return c, err
			}
			pair[side] = rep
		}
		c.Pawl = append(c.Pawl, pair[0])
		c.Hand = append(c.Hand, pair[1])
	}
	c.Ratios = ratiosOf(c.Pawl, c.Hand, r.Conc)
	return c, nil
}
