package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/telemetry"
	"github.com/pawl-go/pawl/telemetry/export"
)

// telemetryFlags say who else is told of a run.
type telemetryFlags struct {
	OTel        string `group:"telemetry" name:"otel" placeholder:"URL" help:"Send OpenTelemetry's spans and metrics to the collector there, over OTLP/HTTP: http://localhost:4318; or the word env, for what OTEL_EXPORTER_OTLP_ENDPOINT says."`
	Log         string `group:"telemetry" placeholder:"FILE" help:"Write a line of JSON for each thing that happens to the end of this file, or with - to standard error."`
	TellContent bool   `group:"telemetry" name:"tell-content" help:"With --otel and --log: what was said, too, with secrets hidden. Default: names, times and figures."`
}

// fromEnv as --otel takes the address from the environment.
const fromEnv = "env"

// open has the runs of s told to whom the flags say, until s is closed. It stands after all that changes the agent.
func (f *telemetryFlags) open(sys *system, s *setup) error {
	if f.OTel == "" && f.Log == "" {
		if f.TellContent {
			return usage("--otel URL or --log FILE", "--tell-content says what is told, and nobody is told")
		}
		return nil
	}
	o := &telemetry.Options{Content: f.TellContent, Redactor: s.secrets}
	o.Provider, o.Model = named(s.model)
	if f.OTel != "" {
		p, err := pipeline(f.OTel, sys)
		if err != nil {
			return err
		}
		o.Tracer, o.Meter = p.Tracer, p.Meter
		s.onClose(func() {
			if err := p.Close(context.Background()); err != nil {
				fmt.Fprintf(sys.err, "pawl: error: %s\n", visible(err.Error()))
			}
		})
	}
	tel, err := telemetry.New(o)
	if err != nil {
		return err
	}
	s.agent.Middleware = append(s.agent.Middleware, tel.Middleware())
	s.around = tel.Runner
	if f.Log == "" {
		return nil
	}
	w := sys.err
	if f.Log != "-" {
		file, err := os.OpenFile(f.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return usage("", "--log: %s", plain(err))
		}
		s.onClose(func() {
			if err := file.Close(); err != nil {
				fmt.Fprintf(sys.err, "pawl: error: --log: %s\n", plain(err))
			}
		})
		w = file
	}
	l := slog.New(slog.NewJSONHandler(w, nil))
	s.around = func(r pawl.Runner) pawl.Runner { return tel.Runner(tel.Log(r, l)) }
	return nil
}

// pipeline is the way to a collector, and to pages for Prometheus beside it.
func pipeline(url string, sys *system, pages ...*export.Prometheus) (*export.Pipeline, error) {
	o := &export.Options{Endpoint: url, Getenv: sys.env}
	for _, p := range pages {
		o.Readers = append(o.Readers, p.Reader())
	}
	if url == fromEnv {
		o.Endpoint = ""
	}
	p, err := export.Open(o)
	if err != nil {
		return nil, usage("--otel http://localhost:4318, or --otel env", "--otel: %s", err)
	}
	return p, nil
}

// named returns the provider as the conventions name it, and the model.
func named(model string) (provider, name string) {
	provider, name, _ = strings.Cut(model, ":")
	switch provider {
	case "openai-chat":
		provider = "openai"
	case "gemini":
		provider = "gcp.gemini"
	case "mistral":
		provider = "mistral_ai"
	case "xai":
		provider = "x_ai"
	}
	return provider, name
}

// onClose has fn done before what s holds is let go of.
func (s *setup) onClose(fn func()) {
	next := s.close
	s.close = func() { fn(); next() }
}

// linked is the context of a run that goes on from a Result.
func linked(ctx context.Context, from *pawl.Result) context.Context {
	return telemetry.LinkTo(ctx, telemetry.Resumed, telemetry.Traceparent(from))
}
