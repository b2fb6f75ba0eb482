package running

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/recording"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// run.go: one attempt of a trial, from its world to its record.

// Runner runs trials.
type Runner struct {
	// Engine stores the runs.
	Engine *durable.Engine

	// Getenv returns the value of an environment variable.
	Getenv func(string) string

	// Record is the folder for what is sent to models and what they answer. Empty means that it is
	// not kept.
	Record string

	// Paces are shared by all trials. Nil means that requests are sent at once.
	Paces *Paces

	// Replay is the folder with recordings that answer all requests. Empty means that models are
	// asked.
	Replay string
}

// Trial names a trial.
type Trial struct {
	// Case and Variant are what runs.
	Case    *suite.LoadedCase
	Variant *suite.Variant

	// Number counts the trials of the two from 1.
	Number int

	// Attempt counts the attempts of the trial from 1.
	Attempt int
}

// name is the ID of its first run.
func (t *Trial) name() string {
	return fmt.Sprintf("%s.%s.%d", t.Case.ID, t.Variant.Name, t.Number)
}

// free returns an ID for a run of the trial that no stored run has. A run that was cut is never
// continued, because its world is gone.
func (r *Runner) free(t *Trial) (string, error) {
	id := t.name()
	for n := 2; ; n++ {
		_, err := r.Engine.Meta(context.Background(), id)
		if errors.Is(err, store.ErrNotFound) {
			return id, nil
		}
		if err != nil {
			return "", err
		}
		id = fmt.Sprintf("%s-%d", t.name(), n)
	}
}

// Run runs a trial, without judging it. Why it cannot be judged is in the record. A trial that the
// end of ctx cuts is skipped.
func (r *Runner) Run(ctx context.Context, t *Trial) *trial.Record {
	out := &trial.Record{
		Case:     t.Case.ID,
		Variant:  t.Variant.Name,
		Number:   t.Number,
		Digest:   t.Case.Digest,
		Input:    t.Case.Text,
		Attempts: t.Attempt,
	}
	err := r.run(ctx, t, out)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		// What the run would have done is unknown, so that a resumed eval begins it again.
		out.Verdict = trial.Skipped
		out.Error = "the trial was cut: " + err.Error()
	default:
		out.Verdict = trial.Error
		out.Code = codeOf(err)
		out.Error = err.Error()
	}
	return out
}

// The codes of trials without a verdict, in addition to the codes of providers.
const (
	codeWorld  = "world"       // the world cannot be made
	codeMiss   = "miss"        // a recording has no answer to a request
	codeAgent  = "agent"       // the agent cannot be built
	codeCancel = "interrupted" // a deadline within the trial passed
)

// errAgent marks an error of building the agent.
var errAgent = errors.New("the agent")

// codeOf returns the code of an error of a trial.
func codeOf(err error) string {
	var miss *recording.Miss
	var failed *llm.ProviderError
	switch {
	case errors.Is(err, errWorld):
		return codeWorld
	case errors.As(err, &miss):
		return codeMiss
	case errors.As(err, &failed):
		return string(failed.Code)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return codeCancel
	}
	return codeAgent
}

// run fills the record in. The error says why the trial cannot be judged.
func (r *Runner) run(ctx context.Context, t *Trial, out *trial.Record) error {
	id, err := r.free(t)
	if err != nil {
		return err
	}
	out.Run = id
	pause := new(waiting)
	by, recorder, err := r.carrier(t, pause)
	if err != nil {
		return fmt.Errorf("%w: %w", errWorld, err)
	}
	w, err := NewWorld(&t.Case.Where)
	if err != nil {
		return fmt.Errorf("%w: %w", errWorld, err)
	}
	defer w.Close()
	built, err := build(ctx, t.Variant, t.Case, w, r.Getenv, by)
	if err != nil {
		return fmt.Errorf("%w: %w", errAgent, err)
	}
	defer built.Close()
	out.Hidden = built.Hidden
	if recorder != nil {
		recorder.Secrets = Redactor(built.Hidden)
	}

	out.Before, err = w.Files()
	if err != nil {
		return fmt.Errorf("%w: %w", errWorld, err)
	}
	p := &playing{runner: r, id: id, built: built, replies: t.Case.Replies, out: out}
	err = errors.Join(p.play(ctx, t.Case.Messages), p.keep(w))
	out.Spent.Time = max(0, out.Spent.Time-pause.total())
	free := r.Replay != "" || t.Variant.IsScripted()
	if u := p.usage(); free || u.CostKnown() {
		out.Spent.Cost = &u.Cost
	}
	if recorder != nil {
		err = errors.Join(err, r.write(t, recorder))
	}
	return err
}

// carrier returns how the requests of a trial are sent. The Recorder is nil if they are not kept.
func (r *Runner) carrier(t *Trial, pause *waiting) (by carrier, recorder *recording.Recorder, err error) {
	switch {
	case r.Replay != "":
		text, err := os.ReadFile(filepath.Join(r.Replay, t.name()+".json"))
		if errors.Is(err, os.ErrNotExist) {
			// A scripted model sends nothing, and a Player without exchanges refuses all.
			return carrier{recording.Play(new(recording.Recording)), true}, nil, nil
		}
		if err != nil {
			return by, nil, err
		}
		played, err := recording.Parse(text)
		if err != nil {
			return by, nil, err
		}
		return carrier{recording.Play(played), true}, nil, nil
	case t.Variant.IsScripted():
		return by, nil, nil
	}

	model := "" // an agent may have none
	if models := t.Variant.Models; len(models) > 0 {
		model = models[0]
	}
	by.transport = r.Paces.around(provider.Transport(), model, pause)
	if r.Record == "" {
		return by, nil, nil
	}
	recorder = &recording.Recorder{Next: by.transport}
	return carrier{recorder, false}, recorder, nil
}

// Redactor returns a redactor of these values. A value that is too short to be recognized is not
// hidden.
func Redactor(hidden []string) *redact.Redactor {
	r := new(redact.Redactor)
	for _, value := range hidden {
		// The error says that the value is too short.
		_ = r.Add(value)
	}
	return r
}

// write keeps what was sent and answered.
func (r *Runner) write(t *Trial, recorder *recording.Recorder) error {
	text, err := recorder.Recording().JSON()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Record, t.name()+".json"), text, 0o600)
}

// Play plays a run that is made up, by the real tools in a world of its own.
func (r *Runner) Play(ctx context.Context, c *suite.LoadedCase, v *suite.Variant, ref *suite.Reference,
	name string) (*trial.Record, error) {
	out := &trial.Record{Case: c.ID, Variant: v.Name, Input: c.Text}
	w, err := NewWorld(&c.Where)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	// No request is sent, so that no key is needed.
	built, err := build(ctx, v, c, w, r.Getenv, carrier{recording.Play(new(recording.Recording)), true})
	if err != nil {
		return nil, err
	}
	defer built.Close()

	var turns []script.Turn
	for _, call := range ref.Calls {
		args := call.Args
		if args == nil {
			args = []byte("{}")
		}
		turns = append(turns, script.Call(call.Tool, json.RawMessage(args)))
	}
	built.Agent.Model = script.New(append(turns, script.Say(ref.Answer))...)
	out.Before, err = w.Files()
	if err != nil {
		return nil, err
	}
	p := &playing{runner: r, id: name, built: built, replies: c.Replies, out: out}
	if err := p.play(ctx, c.Messages); err != nil {
		return nil, err
	}
	if err := p.keep(w); err != nil {
		return nil, err
	}
	free := 0.0
	out.Spent.Cost = &free
	return out, nil
}

// IsJudged reports whether an error of a provider with this code is the fault of the agent.
func IsJudged(code string) bool {
	switch llm.Code(code) {
	case llm.CodeInvalidRequest, llm.CodeContextLength, llm.CodeContentFilter, llm.CodeMalformedReply:
		return true
	}
	return false
}

// IsTemporary reports whether a trial with this code is begun again.
func IsTemporary(code string) bool {
	switch llm.Code(code) {
	case llm.CodeRateLimit, llm.CodeOverloaded, llm.CodeServer, llm.CodeTimeout, llm.CodeNetwork, llm.CodeStream,
		llm.CodeStreamInconsistent:
		return true
	}
	return false
}

// EndsVariant reports whether no further trial of the variant can succeed.
func EndsVariant(code string) bool {
	switch llm.Code(code) {
	case llm.CodeAuthentication, llm.CodePermission, llm.CodeNotFound, llm.CodeQuota, llm.CodeUnsupported:
		return true
	}
	return code == codeAgent
}
