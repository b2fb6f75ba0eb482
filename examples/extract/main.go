// Command extract reads documents, one JSON object a line, and writes the invoice in each as JSON.
// It shows structured output, 64 requests at once, retries, and a journal: a second start after a
// crash asks the model only for the documents that were in flight. It needs OPENAI_API_KEY.
//
//	go run ./examples/extract <documents.jsonl >invoices.jsonl
//
// A document is {"id": "d1", "text": "Invoice 17 of Acme: 12.50 EUR"}. The id names its run, so the
// same documents with the same -db continue the batch.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/store/sqlite"
)

// Document is a line of the input.
type Document struct{ ID, Text string }

// Invoice is what the model extracts from a document.
type Invoice struct {
	Number   int     `json:"number" jsonschema:"the number of the invoice"`
	Vendor   string  `json:"vendor" jsonschema:"the company that sent it"`
	Total    float64 `json:"total" jsonschema:"minimum=0,description=the amount to pay"`
	Currency string  `json:"currency" enum:"EUR,NOK,USD"`
}

// Validate is a check that no schema can say. The model reads its error.
func (v Invoice) Validate() error {
	if cents := v.Total * 100; math.Abs(cents-math.Round(cents)) > 1e-6 {
		return fmt.Errorf("total: %v has a fraction of a cent", v.Total)
	}
	return nil
}

// Row is a line of the output: an invoice, or the reason why there is none.
type Row struct {
	ID      string  `json:"id"`
	Invoice Invoice `json:"invoice,omitzero"`
	Error   string  `json:"error,omitzero"`
}

func main() {
	model := flag.String("model", "openai-chat:gpt-6.1-terra", "PROVIDER:MODEL")
	path := flag.String("db", "extract.db", "the file with the journal")
	workers := flag.Int("workers", 64, "the number of documents at once")
	lease := flag.Duration("lease", 10*time.Second, "how long the runs of a dead process stay locked")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := extract(ctx, *model, *path, *workers, *lease); err != nil {
		log.Fatal(err)
	}
}

// extract reads documents from standard input and writes invoices to standard output.
func extract(ctx context.Context, model, path string, workers int, lease time.Duration) error {
	m, err := provider.Open(model, nil)
	if err != nil {
		return err
	}
	db, err := sqlite.Open(path, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	agent := &pawl.Agent{Model: m, Instructions: "Extract the invoice from the document."}
	if err := agent.Check(ctx); err != nil {
		return err
	}
	engine := &durable.Engine{Journal: db, Lease: lease, WaitLease: 2 * lease}
	b := &batch{engine: engine, agent: agent, out: json.NewEncoder(os.Stdout)}
	err = b.run(ctx, json.NewDecoder(os.Stdin), workers)
	log.Printf("%d documents, %d failed, %d requests, $%.6f", b.done, b.failed, b.spent.Requests, b.spent.Usage.Cost)
	return err
}

// batch is the state of the program. Its mutex guards the fields below it.
type batch struct {
	engine *durable.Engine
	agent  *pawl.Agent

	mu           sync.Mutex
	out          *json.Encoder
	done, failed int
	spent        pawl.Spent
}

// run extracts the documents of in, at most workers at once.
func (b *batch) run(ctx context.Context, in *json.Decoder, workers int) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for slots := make(chan struct{}, workers); ctx.Err() == nil; {
		var d Document
		if err := in.Decode(&d); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the documents: %w", err)
		}
		// The next document is read when a worker is free, so that the input may be endless.
		slots <- struct{}{}
		wg.Go(func() {
			b.extract(ctx, d)
			<-slots
		})
	}
	return context.Cause(ctx)
}

// extract runs the document under its id, or gets the answer of its earlier run, and writes a row.
func (b *batch) extract(ctx context.Context, d Document) {
	invoice, res, err := pawl.Into[Invoice](ctx, b.engine.Runner(d.ID, b.agent), llm.User(d.Text))
	b.mu.Lock()
	defer b.mu.Unlock()
	row := Row{ID: d.ID, Invoice: invoice}
	if b.done++; err != nil {
		b.failed++
		row.Error = err.Error()
	}
	if res != nil {
		b.spent.Add(res.Spent)
	}
	if err := b.out.Encode(row); err != nil {
		log.Fatal(err)
	}
}
