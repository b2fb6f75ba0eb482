// Command supportbot is a support desk on the web. It shows durable runs over SQLite, refunds that
// wait for a person with typed arguments, answers as server-sent events, threads and memories of
// each customer, tenants, a limit on cost with a fallback model, and OpenTelemetry.
//
//	export OPENAI_API_KEY=… ANTHROPIC_API_KEY=… OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318
//	go run ./examples/supportbot -payments http://localhost:9000/refunds
//	curl -N localhost:8080/threads/t1 -H "Authorization: Bearer alice" -d "Refund order 7: 900"
//	curl localhost:8080/pending -H "Authorization: Bearer tom"
//	curl localhost:8080/decisions -H "Authorization: Bearer tom" -d '{"run":"alice/t1/0",
//	  "key":"run/1/0","digest":"…","approve":true}'
//
// Stop it at any point, also with kill -9, and start it again: the runs continue.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/telemetry"
	"github.com/pawl-go/pawl/telemetry/export"
	"github.com/pawl-go/pawl/tools/remember"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	addr := flag.String("addr", "localhost:8080", "address of the web server")
	path := flag.String("db", "support.db", "the database")
	model := flag.String("model", "openai:gpt-6.1-terra", "the model")
	fallback := flag.String("fallback", "anthropic:claude-sonnet-5-5", "the model that answers if the first cannot")
	payments := flag.String("payments", "", "address of the payment service")
	tokens := flag.String("people", `{"alice": {"Tenant": "acme", "User": "alice"},
		"tom": {"Tenant": "acme", "User": "tom", "Approver": true}}`, "JSON `object` of tokens and their owners")
	flag.Parse()
	var people map[string]person
	check(json.Unmarshal([]byte(*tokens), &people))
	db := must(sqlite.Open(*path, nil))
	out := must(export.Open(&export.Options{Service: "supportbot"}))
	vendor, name, _ := strings.Cut(*model, ":")
	b := &bot{
		db:     db,
		engine: &durable.Engine{Journal: db},
		tel: must(telemetry.New(&telemetry.Options{Tracer: out.Tracer, Meter: out.Meter,
			Provider: vendor, Model: name})),
		model:    must(provider.Open(*model, nil)),
		fallback: must(provider.Open(*fallback, nil)),
		payments: *payments,
	}
	l := must(net.Listen("tcp", *addr))
	srv := &http.Server{Handler: b.handler(people), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }} // a signal interrupts runs
	go func() { _ = srv.Serve(l) }() // until Shutdown
	fmt.Println("listening on http://" + l.Addr().String())
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			b.recover(ctx)
		}
	}
	end := context.WithoutCancel(ctx)
	check(errors.Join(srv.Shutdown(end), out.Close(end), db.Close()))
}

// check ends the program if there is an error.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "supportbot:", err)
		os.Exit(1)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// person is the owner of a token. An approver decides about the pending calls of the tenant.
type person struct {
	Tenant, User string
	Approver     bool
}

// tenant is the scope of runs, so that approvers find the runs of all customers.
func (p person) tenant() store.Scope { return store.Scope{Tenant: p.Tenant} }

// owner is the scope of threads and memories.
func (p person) owner() store.Scope { return store.Scope{Tenant: p.Tenant, User: p.User} }

// bot answers customers. Its fields are set once.
type bot struct {
	db       store.Store
	engine   *durable.Engine
	tel      *telemetry.Telemetry
	model    llm.Model
	fallback llm.Model // answers if model cannot
	payments string    // the address of the payment service
}

// turn is one question of a customer. It is stored with the run, for the process that resumes it.
type turn struct {
	person
	Thread string
	Before int // the number of messages before it in the thread
}

// id names the run of the turn. The same question is the same run, also when it is sent again.
func (t turn) id() string {
	return fmt.Sprintf("%s/%s/%d", url.PathEscape(t.User), url.PathEscape(t.Thread), t.Before)
}

type refundIn struct {
	Order string  `json:"order" jsonschema:"the number of the order"`
	Euros float64 `json:"euros" jsonschema:"the amount"`
}

// limit decides which refunds wait for a person.
func limit(_ context.Context, in refundIn) (pawl.Approval, error) {
	if in.Euros > 0 && in.Euros <= 100 {
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	}
	return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "not up to 100 euros", ValidFor: 7 * 24 * time.Hour}, nil
}

// runner returns the agent of a turn: the memory and the refunds are the customer's own, and the
// thread grows when the turn has ended.
func (b *bot) runner(t turn) pawl.Runner {
	owner := t.owner()
	refund := pawl.Func("refund", "Refunds an order of the customer.",
		func(ctx context.Context, in refundIn) (string, error) { return b.pay(ctx, t.User, in) })
	refund.Effect = pawl.EffectIdempotent // the payment service executes each key once
	agent := &pawl.Agent{
		Name:  "support",
		Model: b.model,
		Instructions: "You answer customers of a shop. Remember what they say about themselves. " +
			"Refund what they ask for; large refunds wait for a colleague.",
		Tools:  []pawl.Toolset{refund, remember.New(b.db, &remember.Options{Scope: &owner})},
		Limits: pawl.Limits{Rounds: 10, Cost: 0.25},
		Middleware: []pawl.Middleware{
			policy.Fallback{Models: []llm.Model{b.fallback}}.Middleware(),
			history.Window(&history.WindowOptions{HighTokens: 20_000}),
			policy.Approve(refund, limit),
			b.tel.Middleware(),
		},
	}
	return observe.Sync(b.tel.Runner(agent), func(e pawl.Event) {
		if e.Kind == pawl.EventRunEnded && e.Run == "run" {
			b.keep(t, e.Result)
		}
	})
}

// pay executes a refund. After a crash it may repeat, with the same key.
func (b *bot) pay(ctx context.Context, customer string, in refundIn) (string, error) {
	form := url.Values{"customer": {customer}, "order": {in.Order}, "euros": {fmt.Sprintf("%.2f", in.Euros)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.payments, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", pawl.InvocationFrom(ctx).IdempotencyKey())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the payment service answered %s", resp.Status)
	}
	return fmt.Sprintf("refunded %.2f euros", in.Euros), nil
}

// keep appends the messages of a turn to its thread. A turn with a pending call, a failed request
// or an interruption continues later. A replayed turn is there already, which is a conflict.
func (b *bot) keep(t turn, res *pawl.Result) {
	switch res.Stop.Class() {
	case pawl.ClassWaiting, pawl.ClassFailed, pawl.ClassCancelled:
		return
	}
	err := b.db.AppendMessages(context.Background(), t.owner(), t.Thread, t.Before, res.Messages[t.Before:]...)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		slog.Error("the thread lacks a turn", "run", t.id(), "error", err)
	}
}

// stored returns the runner of a run in the journal, in the scope of its tenant.
func (b *bot) stored(ctx context.Context, id string) (pawl.Runner, error) {
	meta, err := b.engine.Meta(ctx, id)
	if err != nil {
		return nil, err
	}
	var t turn
	err = json.Unmarshal(meta, &t)
	return b.runner(t), err
}

// recover resumes the runs of a process that died, and runs that got their decision from it.
func (b *bot) recover(ctx context.Context) {
	_, err := b.engine.Recover(ctx, 0, func(r store.JournalRun) (pawl.Runner, error) {
		return b.stored(store.WithScope(ctx, r.Scope), r.ID)
	})
	if err != nil && ctx.Err() == nil {
		slog.Error("some runs were not resumed", "error", err)
	}
}

// handler returns the endpoints. people has the owners of tokens; a real shop has its own login.
func (b *bot) handler(people map[string]person) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, approver bool, serve func(http.ResponseWriter, *http.Request, person) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			p, ok := people[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
			if !ok || approver && !p.Approver {
				http.Error(w, "this needs the token of another person", http.StatusForbidden)
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
			err := serve(w, r.WithContext(store.WithScope(r.Context(), p.tenant())), p)
			switch {
			case errors.Is(err, store.ErrNotFound):
				http.Error(w, err.Error(), http.StatusNotFound)
			case errors.Is(err, store.ErrConflict), errors.As(err, new(*journal.AnswerError)):
				http.Error(w, err.Error(), http.StatusConflict)
			case err != nil:
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	handle("POST /threads/{thread}", false, b.ask)
	handle("GET /threads/{thread}", false, b.thread)
	handle("GET /pending", true, b.pending)
	handle("POST /decisions", true, b.decide)
	return mux
}

// ask sends the body to the agent and streams its text, and then one event: answer, error, or the
// reason of a stop such as pending. If the customer disconnects, the run completes later, and its
// answer is in the thread.
func (b *bot) ask(w http.ResponseWriter, r *http.Request, p person) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	t := turn{person: p, Thread: r.PathValue("thread")}
	if _, err := b.db.PutThread(r.Context(), p.owner(), store.Thread{ID: t.Thread}); err != nil {
		return err
	}
	stored, err := b.db.Messages(r.Context(), p.owner(), t.Thread, 0, 0)
	if err != nil {
		return err
	}
	t.Before = len(stored)
	var msgs []llm.Message
	for _, m := range stored {
		msgs = append(msgs, m.Message)
	}
	run := b.engine.Runner(t.id(), b.runner(t))
	if run.Meta, err = json.Marshal(t); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	words, end := observe.Text(run.Stream(r.Context(), append(msgs, llm.User(string(text)))...))
	for s := range words {
		send(w, "text", s)
	}
	res, err := end()
	var stop *pawl.StopError
	switch {
	case errors.As(err, &stop):
		send(w, string(stop.Reason), err.Error())
	case err != nil:
		send(w, "error", err.Error())
	default:
		send(w, "answer", fmt.Sprintf("$%.4f", res.Spent.Usage.Cost))
	}
	return nil
}

// send writes one event of a stream.
func send(w http.ResponseWriter, event, text string) {
	data, _ := json.Marshal(text) // a string has a JSON form
	fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data)
	_ = http.NewResponseController(w).Flush() // without it the events arrive later
}

func (b *bot) thread(w http.ResponseWriter, r *http.Request, p person) error {
	stored, err := b.db.Messages(r.Context(), p.owner(), r.PathValue("thread"), 0, 0)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(stored)
}

// pending lists the pending calls of the tenant by run.
func (b *bot) pending(w http.ResponseWriter, r *http.Request, p person) error {
	runs, err := b.db.JournalRuns(r.Context(), p.tenant(), store.JournalWaiting, store.Page{})
	if err != nil {
		return err
	}
	calls := map[string][]pawl.PendingCall{}
	for _, run := range runs {
		if calls[run.ID], err = b.engine.Pending(r.Context(), run.ID); err != nil {
			return err
		}
	}
	return json.NewEncoder(w).Encode(calls)
}

// decide stores a decision about a pending call and resumes its run.
func (b *bot) decide(w http.ResponseWriter, r *http.Request, p person) error {
	var in struct {
		Run, Digest, Reason string
		Key                 llm.Key
		Approve             bool
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil
	}
	d := llm.Decision{Key: in.Key, Digest: in.Digest, Approve: in.Approve, Reason: in.Reason, By: p.User}
	if err := b.engine.Decide(r.Context(), in.Run, d); err != nil {
		return err
	}
	runner, err := b.stored(r.Context(), in.Run)
	if err != nil {
		return err
	}
	res, err := b.engine.Runner(in.Run, runner).Run(r.Context())
	if res == nil {
		return err
	}
	return json.NewEncoder(w).Encode(map[string]string{"stop": string(res.Stop), "answer": res.Text()})
}
