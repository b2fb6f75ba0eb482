package main

import (
	"fmt"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/recording"
	"github.com/pawl-go/pawl/redact"
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
		a.carry = f.recorder
	case f.Replay != "":
		b, err := readFile("--replay", f.Replay)
		if err != nil {
			return err
		}
		r, err := recording.Parse(b)
		if err != nil {
			return usage("what --record wrote; docs/recordings.md has a script for cassettes of go-vcr and VCR", "--replay %s: %v", f.Replay, err)
		}
		f.player = recording.Play(r)
		a.carry, a.offline = f.player, true
	}
	return nil
}

// hide says what must not be kept, before the first request.
func (f *recordFlags) hide(s *redact.Redactor) {
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
			err = &failure{status: statusFailed}
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
