package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// built is the set-up of a measurement: the programs of both sides, and two running servers.
type built struct {
	dir     string // scratch folder, removed by close
	raw     string
	driver  string
	http    string // URL of the load server, which speaks plain HTTP/1.1
	https   string // URL of the program front before it, which speaks TLS and HTTP/2
	servers []*exec.Cmd
}

// build compiles the four programs and starts the servers on free loopback ports.
func build(ctx context.Context, o options) (b *built, err error) {
	dir, err := os.MkdirTemp("", "pawl-bench-")
	if err != nil {
		return nil, err
	}
	b = &built{dir: dir, raw: filepath.Join(dir, "raw"), driver: filepath.Join(dir, "driver")}
	defer func(made *built) { // a return of nil, err sets b to nil
		if err != nil {
			made.close()
		}
	}(b)
	work := filepath.Join(dir, "go.work")
	text := fmt.Sprintf("go 1.26.0\n\nuse (\n\t%s\n\t%s\n\t%s\n)\n",
		strconv.Quote(o.root), strconv.Quote(filepath.Join(o.root, "bench")), strconv.Quote(filepath.Join(o.bench, "harness")))
	if err := os.WriteFile(work, []byte(text), 0o644); err != nil {
		return nil, err
	}
	server, front := filepath.Join(dir, "server"), filepath.Join(dir, "front")
	for _, p := range []struct{ from, to, work string }{
		{filepath.Join(o.bench, "server"), server, "off"},
		{filepath.Join(o.bench, "raw"), b.raw, "off"},
		{filepath.Join(o.root, "bench", "front"), front, "off"},
		{filepath.Join(o.root, "bench", "driver"), b.driver, work},
	} {
		if p.to == b.driver && o.self {
			continue
		}
		c := exec.CommandContext(ctx, "go", "build", "-o", p.to, ".")
		c.Dir = p.from
		c.Env = append(os.Environ(), "GOWORK="+p.work)
		if text, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", p.from, err, text)
		}
	}
	load, err := b.start(server, "-addr", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	encrypted, err := b.start(front, "-load", load, "-dir", dir)
	if err != nil {
		return nil, err
	}
	b.http, b.https = "http://"+load, "https://"+encrypted
	return b, nil
}

// start runs a server and returns the address that it prints.
func (b *built) start(program string, args ...string) (string, error) {
	c := exec.Command(program, args...)
	c.Stderr = os.Stderr
	stdout, err := c.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	b.servers = append(b.servers, c)
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s printed no address: %w", filepath.Base(program), err)
	}
	return strings.TrimSpace(address), nil
}

// close ends the servers and removes the scratch folder.
func (b *built) close() {
	for _, s := range b.servers {
		s.Process.Kill()
		s.Wait()
	}
	os.RemoveAll(b.dir)
}

// report is the harness's report of one measurement: figures of one run, except for the memory,
// which is for the process.
type report struct {
	Runs   int64   `json:"runs"`
	CPU    float64 `json:"cpu_us"`
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"bytes"`
	Wall   float64 `json:"wall_us"` // elapsed time divided by runs
	P50    float64 `json:"p50_us"`
	P99    float64 `json:"p99_us"`
	RSS    float64 `json:"rss_kb"`  // the peak of the process
	Base   float64 `json:"base_kb"` // before its first run
	Err    string  `json:"err,omitempty"`
}

// one makes one measurement of one side.
func (b *built) one(ctx context.Context, o options, program, peer string, r row) (report, error) {
	dur, warm := o.dur, o.warm
	if r.Once {
		dur, warm = 1, 1
	}
	url := b.https
	if r.Plain {
		url = b.http
	}
	c := exec.CommandContext(ctx, program, "-peer", peer, "-url", url, "-model", r.Model,
		"-c", strconv.Itoa(r.Conc), "-idle", strconv.Itoa(max(4096, r.Conc)),
		"-stream="+strconv.FormatBool(r.Stream), "-hist", strconv.Itoa(r.Hist), "-dur", dur.String(), "-warm", warm.String())
	c.Env = append(os.Environ(), "SSL_CERT_FILE="+filepath.Join(b.dir, "cert.pem"), "SSL_CERT_DIR="+b.dir)
	var words strings.Builder
	c.Stderr = &words
	text, err := c.Output()
	var rep report
	if jsonErr := json.Unmarshal(text, &rep); jsonErr != nil {
		return rep, fmt.Errorf("%s: %w %s", peer, errors.Join(err, jsonErr), words.String())
	}
	if rep.Err != "" || err != nil {
		return rep, fmt.Errorf("%s: %s %s", peer, rep.Err, words.String())
	}
	return rep, nil
}

// measure makes o.pairs pairs of measurements of r and adds them to the pairs of before. Each side
// goes first in turn. nil means no earlier pairs.
func (b *built) measure(ctx context.Context, o options, r row, before *comparison) (comparison, error) {
	c := comparison{Row: r.Name}
	if before != nil {
		c = *before
	}
	raw := ""
	for _, w := range wires {
		if w.name == r.Wire {
			raw = w.raw
		}
	}
	for i := range o.pairs {
		var pair [2]report
		for k := range 2 {
			side := (i + k) % 2
			program, peer := b.driver, "pawl-"+r.Wire
			if side == 1 || o.self {
				program, peer = b.raw, raw
			}
			rep, err := b.one(ctx, o, program, peer, r)
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
