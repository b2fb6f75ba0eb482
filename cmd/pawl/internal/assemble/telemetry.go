package assemble

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/telemetry"
	"github.com/pawl-go/pawl/telemetry/export"
	"github.com/pawl-go/pawl/tools/search"
)

// TelemetryFlags send traces and metrics of a run to a collector, and write a log.
type TelemetryFlags struct {
	OTel    string `name:"otel" placeholder:"URL" help:"@telemetry_otel"`
	Names   string `name:"otel-names" placeholder:"NAMES" help:"@telemetry_names" rare:""`
	Log     string `placeholder:"FILE" help:"@telemetry_log"`
	Content bool   `name:"include-content" aliases:"tell-content" help:"@telemetry_content" rare:""`
}

// fromEnv is the value of --otel that takes the address from the environment.
const fromEnv = "env"

// Open traces and logs the runs of s until s is closed. Call it after all other changes of the
// agent, because its middleware must come last.
func (f *TelemetryFlags) Open(sys *cli.System, s *Setup) error {
	if f.OTel == "" && f.Log == "" {
		if f.Content {
			return cli.Usage("--otel URL or --log FILE",
				"--include-content adds content to traces and logs, and neither is enabled")
		}
		return nil
	}

	o := &telemetry.Options{Content: f.Content, Redactor: s.Secrets, Names: telemetry.Names(f.Names)}
	o.Provider, o.Model = Named(s.Model)
	if f.OTel != "" {
		p, err := Pipeline(f.OTel, sys)
		if err != nil {
			return err
		}
		o.Tracer = p.Tracer
		o.Meter = p.Meter
		s.onClose(func() { cli.Report(sys.Err, p.Close(context.Background())) })
	}
	tel, err := telemetry.New(o)
	if err != nil {
		return err
	}
	s.Agent.Middleware = append(s.Agent.Middleware, tel.Middleware())
	s.Around = tel.Runner
	if f.Log == "" {
		return nil
	}

	w, err := f.openLog(sys, s)
	if err != nil {
		return err
	}
	// The log is within the trace, so that its lines have the IDs of the trace.
	l := slog.New(slog.NewJSONHandler(w, nil))
	s.Around = func(r pawl.Runner) pawl.Runner { return tel.Runner(tel.Log(r, l)) }
	return nil
}

// openLog opens the file of --log until s is closed. "-" means standard error.
func (f *TelemetryFlags) openLog(sys *cli.System, s *Setup) (io.Writer, error) {
	if f.Log == "-" {
		return sys.Err, nil
	}
	file, err := os.OpenFile(f.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, cli.Usage("", "--log: %s", cli.Plain(err))
	}
	s.onClose(func() {
		if err := file.Close(); err != nil {
			fmt.Fprintf(sys.Err, "pawl: error: --log: %s\n", cli.Plain(err))
		}
	})
	return file, nil
}

// Pipeline connects to the collector at url and to pages for Prometheus. The url "env" means the
// address in the environment.
func Pipeline(url string, sys *cli.System, pages ...*export.Prometheus) (*export.Pipeline, error) {
	o := &export.Options{Endpoint: url, Getenv: sys.Env}
	for _, p := range pages {
		o.Readers = append(o.Readers, p.Reader())
	}
	if url == fromEnv {
		o.Endpoint = ""
	}
	p, err := export.Open(o)
	if err != nil {
		return nil, cli.Usage("--otel http://localhost:4318, or --otel env", "--otel: %s", err)
	}
	return p, nil
}

// Named splits the name of a model into the provider and the model. It names the provider as the
// OpenTelemetry conventions do.
func Named(model string) (api, name string) {
	api, name, _ = strings.Cut(model, ":")
	info, _ := provider.Find(api)
	return cmp.Or(info.Telemetry, api), name
}

// onClose calls fn before s releases its resources.
func (s *Setup) onClose(fn func()) {
	next := s.Close
	s.Close = func() { fn(); next() }
}

// minKey is the minimum length of a key that is hidden. Shorter values, such as "none" or "ollama"
// for a server without keys, are ordinary words.
const minKey = 8

// Secrets returns a redactor for the keys of all providers and search services, for others, such as
// the value of --key-env and headers of --tool-file, and for arguments that tools mark as secret.
func Secrets(env func(string) string, tools []*pawl.Tool, others ...string) *redact.Redactor {
	r := new(redact.Redactor)
	r.AddTools(tools...)
	keys := others
	for _, name := range append(provider.KeyVariables(), search.KeyVariables()...) {
		keys = append(keys, strings.TrimSpace(env(name)))
	}
	addKeys(r, keys)
	return r
}

// addKeys adds the keys that are long enough.
func addKeys(r *redact.Redactor, keys []string) {
	for _, key := range keys {
		if len(key) >= minKey {
			_ = r.Add(key) // the length is checked
		}
	}
}
