package main

import (
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/recording"
	"github.com/pawl-go/pawl/recording/vcr"
)

// recordFlags keep what the provider said, or play it again.
type recordFlags struct {
	Record string `group:"record" placeholder:"FILE" help:"Keep what is said to the provider, and what it answers, in this file, without keys: see docs/recordings.md."`
	Replay string `group:"record" placeholder:"FILE" help:"Answer from a recording, and ask no provider; a request that was not recorded fails, and is shown beside the nearest one. Tools run."`

	recorder *recording.Recorder
	player   *recording.Player
}

// carrier prepares what carries the requests of an agent, where it is not the usual.
func (f *recordFlags) carrier(sys *system, a *agentFlags) error {
	switch {
	case f.Record != "" && f.Replay != "":
		return usage("one of them", "--record and --replay: what is played is recorded already")
	case f.Record != "":
		if err := savable("--record", f.Record); err != nil {
			return err
		}
		f.recorder = &recording.Recorder{Next: provider.Transport()}
		a.carryBy(f.recorder, false)
	case f.Replay != "":
		b, err := readFile("--replay", f.Replay)
		if err != nil {
			return err
		}
		r, err := recording.Parse(b)
		if err != nil {
			return usage("what --record wrote; pawl record import reads cassettes of go-vcr and VCR", "--replay %s: %v", f.Replay, err)
		}
		f.player = recording.Play(r)
		a.carryBy(f.player, true)
	}
	return nil
}

// hide says what must not be kept, before the first request.
func (f *recordFlags) hide(s *pawl.Redactor) {
	if f.recorder != nil {
		f.recorder.Secrets = s
	}
	if f.player != nil {
		f.player.Secrets = s
	}
}

// keep writes the recording when the run is over, whatever it came to, and returns that.
func (f *recordFlags) keep(sys *system, err error) error {
	if f.player != nil && f.player.Left() > 0 && err == nil {
		sys.tell(fmt.Sprintf("--replay %s: %s not asked", f.Replay, count(f.player.Left(), "recorded request")))
	}
	if f.recorder == nil || len(f.recorder.Recording().Exchanges) == 0 { // a file that is there stays, when nothing was asked
		return err
	}
	b, failed := f.recorder.Recording().JSON()
	if failed == nil {
		failed = writeFile(f.Record, b)
	}
	if failed != nil {
		tell(sys.err, fmt.Errorf("--record: %w", failed))
		if err == nil {
			err = silent(statusFailed)
		}
	}
	return err
}

// durably has the journal of a durable run keep the requests, in front of what carries them.
func (f *agentFlags) durably() {
	if f.carry == nil {
		f.carry = provider.Transport()
	}
	f.carry = durable.Transport(f.carry)
}

// recordCmd is about recordings.
type recordCmd struct {
	Import recordImportCmd `cmd:"" help:"Make a recording of a cassette of go-vcr, VCR or VCR.py."`
}

type recordImportCmd struct {
	File string `arg:"" name:"FILE" help:"A cassette in YAML."`
	Out  string `arg:"" optional:"" name:"OUT" help:"Where to write the recording. Default: standard output."`
}

// Help says what is read.
func (*recordImportCmd) Help() string {
	return `It reads what go-vcr writes (all versions), VCR for Ruby, and VCR.py with what is built on it (pytest-recording, pydantic-ai's). Keys and other headers are left behind. pawl run --replay OUT plays it: each request must be the recorded one, in its body too.`
}

// Run reads the cassette.
func (c *recordImportCmd) Run(sys *system) error {
	b, err := readFile("record import", c.File)
	if err != nil {
		var f *failure
		errors.As(err, &f)
		return usage("", "%s", f.Error()[len("record import: "):])
	}
	r, err := vcr.Parse(b, secrets(sys.env, nil))
	if err != nil {
		return usage("a cassette of go-vcr, VCR or VCR.py, in YAML", "%s: %v", c.File, err)
	}
	out, err := r.JSON()
	if err != nil {
		return err
	}
	if c.Out == "" {
		_, err = sys.out.Write(out)
		return err
	}
	if err := savable("OUT", c.Out); err != nil {
		return err
	}
	if err := writeFile(c.Out, out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(sys.err, "pawl: %s in %s\n", count(len(r.Exchanges), "exchange"), visible(c.Out))
	return err
}
