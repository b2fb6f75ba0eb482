package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl/internal/test/obey"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// TestMain is also the command: with EXTRACT_MAIN the test binary is the program.
func TestMain(m *testing.M) {
	if os.Getenv("EXTRACT_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const workers = 64

// Each tokensIn costs 0.25 dollars a million, each tokensOut 2.
const tokensIn, tokensOut = 200, 20

// world counts outside of pawl: a server that counts the requests of each document, answers one
// of 25 first requests with 503, and answers one of 40 documents first with an invoice that does
// not fit.
type world struct {
	*pawltest.Simulator
	mu       sync.Mutex
	requests map[int]int  // by document
	failed   map[int]bool // the documents that got their 503

	// stubborn makes the model insist on an invoice that does not fit, in every tenth document.
	stubborn atomic.Bool

	// From the request hold on, requests wait until their client leaves; held is closed when every
	// worker waits. 0 means that none waits.
	hold   int
	count  int
	flight map[int]bool // the documents whose requests wait
	held   chan struct{}
}

func newWorld(t *testing.T) *world {
	w := &world{requests: map[int]int{}, failed: map[int]bool{}, flight: map[int]bool{}}
	w.held = make(chan struct{})
	model := script.New(script.Loop(script.Func(w.answer)))
	model.Quiet = true
	sim, err := pawltest.NewSimulator(obey.Model(model), &pawltest.SimulatorOptions{Quiet: true, Fault: w.fault})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	w.Simulator = sim
	return w
}

// number returns the document of a request.
func number(req *llm.Request) (n int) {
	for _, m := range req.Messages {
		if at := strings.Index(m.Text(), "Invoice "); m.Role == llm.RoleUser && at >= 0 {
			fmt.Sscanf(m.Text()[at:], "Invoice %d", &n)
			return n
		}
	}
	return -1
}

// answer is the model: it reads the invoice, and takes one in 40 wrongly until it is corrected.
func (w *world) answer(req *llm.Request) script.Turn {
	n := number(req)
	total := fmt.Sprint(amount(n))
	currency := "EUR"
	switch {
	case unfit(n) && len(req.Messages) == 2: // instructions and document
		total = `"a lot"`
	case n%20 == 1 && w.stubborn.Load():
		currency = "Euro" // which the schema refuses
	case n%20 == 11 && w.stubborn.Load():
		total = "1.005" // which Validate refuses
	}
	turn := script.Say(fmt.Sprintf(`{"number":%d,"vendor":"Acme %d","total":%s,"currency":%q}`, n, n%7, total, currency))
	turn.Size = 1000 // one fragment
	turn.Usage = &llm.Usage{Input: tokensIn, Output: tokensOut}
	return turn
}

func amount(n int) float64 { return float64(n) + 0.5 }
func faulty(n int) bool    { return n%25 == 3 }
func unfit(n int) bool     { return n%40 == 7 }

// due returns the requests that a document needs without a crash, and how many of them are
// answered and therefore paid.
func due(n int) (requests, paid int) {
	requests, paid = 1, 1
	if unfit(n) {
		requests, paid = 2, 2
	}
	if faulty(n) {
		requests++
	}
	return requests, paid
}

func (w *world) fault(_ int, r *pawltest.Received) *pawltest.Fault {
	n := number(r.Request)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests[n]++
	if w.count++; w.hold > 0 && w.count >= w.hold {
		if w.flight[n] = true; len(w.flight) == workers {
			close(w.held)
		}
		return &pawltest.Fault{Hold: make(chan struct{})} // until the client leaves
	}
	if faulty(n) && !w.failed[n] {
		w.failed[n] = true
		return &pawltest.Fault{Status: 503, Header: map[string]string{"Retry-After-Ms": "1"}}
	}
	return nil
}

// reset forgets the requests and holds no more.
func (w *world) reset() (requests map[int]int, flight map[int]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	requests, flight = w.requests, w.flight
	w.requests, w.flight, w.count, w.hold = map[int]int{}, map[int]bool{}, 0, 0
	return requests, flight
}

// program is the command, with the documents as its input.
type program struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

func (w *world) program(t *testing.T, db string, documents int) *program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var in bytes.Buffer
	for n := range documents {
		fmt.Fprintf(&in, "{\"id\":\"d%d\",\"text\":\"Invoice %d of Acme %d. To pay: %v EUR.\"}\n", n, n, n%7, amount(n))
	}
	p := &program{Cmd: exec.CommandContext(t.Context(), exe, "-db", db, "-lease", "4s")}
	p.Stdin, p.Stdout, p.Stderr = &in, &p.stdout, &p.stderr
	p.Env = append(os.Environ(), "EXTRACT_MAIN=1", "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+w.URL, "GORACE=atexit_sleep_ms=0")
	return p
}

// rows runs p to its end, checks its invoices, and returns the requests and the cost that it
// reports.
func (p *program) rows(t *testing.T, documents int) (requests int, cost float64) {
	t.Helper()
	if err := p.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &p.stderr)
	}
	got := map[string]Invoice{}
	for dec := json.NewDecoder(&p.stdout); dec.More(); {
		var row Row
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		if _, twice := got[row.ID]; twice || row.Error != "" {
			t.Errorf("row %+v, twice: %v", row, twice)
		}
		got[row.ID] = row.Invoice
	}
	for n := range documents {
		want := Invoice{Number: n, Vendor: fmt.Sprint("Acme ", n%7), Total: amount(n), Currency: "EUR"}
		if id := fmt.Sprint("d", n); got[id] != want {
			t.Errorf("document %s: got %+v, want %+v", id, got[id], want)
		}
	}
	var done, failed int
	summary := regexp.MustCompile(`\d+ documents,.*`).FindString(p.stderr.String())
	if _, err := fmt.Sscanf(summary, "%d documents, %d failed, %d requests, $%g", &done, &failed, &requests, &cost); err != nil ||
		done != documents || failed != 0 || len(got) != documents {
		t.Errorf("%d rows of %d documents, %v:\n%s", len(got), documents, err, &p.stderr)
	}
	return requests, cost
}

// The process is killed in the middle of the batch. The next start gets every invoice, and asks
// again only for the documents that were in flight. Requests are counted at the server.
func TestKilledBatch(t *testing.T) {
	documents := soak.N(200, 5000)
	w := newWorld(t)
	db := filepath.Join(t.TempDir(), "extract.db")

	w.hold = documents / 2
	first := w.program(t, db, documents)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- first.Wait() }()
	select {
	case <-w.held:
	case err := <-ended:
		t.Fatalf("the program ended before the kill: %v\n%s", err, &first.stderr)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended // the error is the signal
	before, flight := w.reset()
	if len(flight) != workers {
		t.Fatalf("%d documents in flight, want %d", len(flight), workers)
	}

	requests, cost := w.program(t, db, documents).rows(t, documents)
	after, _ := w.reset()
	want, answered := 0, 0
	for n := range documents {
		sent, paid := due(n)
		want += sent
		answered += paid
		if flight[n] {
			sent++ // the request that died with the process
			if before[n] > 1 && faulty(n) {
				want-- // so did the count of the 503 before it
			}
		}
		if before[n] > 0 && !flight[n] && after[n] > 0 {
			t.Errorf("document %d was done before the kill, and asked for %d times after it", n, after[n])
		}
		if before[n]+after[n] != sent {
			t.Errorf("document %d: %d + %d requests, want %d", n, before[n], after[n], sent)
		}
	}
	if paid := float64(answered) * (tokensIn*1 + tokensOut*5) / 1e6; math.Abs(cost-paid) > 1e-6 {
		t.Errorf("cost $%f, want $%f", cost, paid)
	}
	if requests != want {
		t.Errorf("the program reports %d requests, want %d", requests, want)
	}

	// A third start sends nothing. The control: with a new journal it sends everything.
	w.program(t, db, 20).rows(t, 20)
	if sent, _ := w.reset(); len(sent) > 0 {
		t.Errorf("the third start asked for %d documents", len(sent))
	}
	w.program(t, filepath.Join(t.TempDir(), "new.db"), 20).rows(t, 20)
	if sent, _ := w.reset(); len(sent) != 20 {
		t.Errorf("a new journal asked for %d of 20 documents", len(sent))
	}
}

// A row whose answers were all refused, by the schema or by the program, has its reason in the
// output. The next start asks again for these rows, and for no other.
func TestNoRowIsFrozen(t *testing.T) {
	documents := soak.N(100, 2000)
	w := newWorld(t)
	db := filepath.Join(t.TempDir(), "extract.db")

	w.stubborn.Store(true)
	first := w.program(t, db, documents)
	if err := first.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &first.stderr)
	}
	reasons := map[string]int{}
	for dec := json.NewDecoder(&first.stdout); dec.More(); {
		var row Row
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		for _, reason := range []string{"Euro", "fraction of a cent"} {
			if strings.Contains(row.Error, reason) {
				reasons[reason]++
			}
		}
	}
	if reasons["Euro"] != documents/20 || reasons["fraction of a cent"] != documents/20 {
		t.Errorf("rows without an invoice: %v; want %d of each reason", reasons, documents/20)
	}
	w.reset()

	w.stubborn.Store(false)
	w.program(t, db, documents).rows(t, documents)
	asked, _ := w.reset()
	for n := range documents {
		want := 0
		if n%10 == 1 {
			want = 1
		}
		if asked[n] != want {
			t.Errorf("document %d: the second start asked %d times, want %d", n, asked[n], want)
		}
	}
}
