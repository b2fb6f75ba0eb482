package assemble

import (
	"cmp"
	"fmt"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/recording"
	"github.com/pawl-go/pawl/redact"
)

// RecordFlags record the requests to a provider and its responses, or replay a recording.
type RecordFlags struct {
	Record string `group:"record" placeholder:"FILE" help:"@record_record" rare:""`
	Replay string `group:"record" placeholder:"FILE" help:"@record_replay" rare:""`

	recorder *recording.Recorder
	player   *recording.Player
}

// Carrier sends the requests of the agent through the recorder or the player, if a flag asks for
// one.
func (f *RecordFlags) Carrier(sys *cli.System, a *AgentFlags) error {
	switch {
	case f.Record != "" && f.Replay != "":
		return cli.Usage("one of them", "--record and --replay: a replayed run is recorded already")
	case f.Record != "":
		if err := cli.Savable("--record", f.Record); err != nil {
			return err
		}
		f.recorder = &recording.Recorder{Next: provider.Transport()}
		a.CarryBy(f.recorder, false)

	case f.Replay != "":
		b, err := cli.ReadFile("--replay", f.Replay)
		if err != nil {
			return err
		}
		r, err := recording.Parse(b)
		if err != nil {
			return cli.Usage("a file of --record; docs/recordings.md has a script for cassettes of go-vcr and VCR",
				"--replay %s: %v", f.Replay, err)
		}
		f.player = recording.Play(r)
		a.CarryBy(f.player, true)
	}
	return nil
}

// Hide sets the secrets that a recording does not contain. Call it before the first request.
func (f *RecordFlags) Hide(s *redact.Redactor) {
	if f.recorder != nil {
		f.recorder.Secrets = s
	}
	if f.player != nil {
		f.player.Secrets = s
	}
}

// Keep writes the recording after a run that ended with err. It returns err, or else the error of
// the write.
func (f *RecordFlags) Keep(sys *cli.System, err error) error {
	if f.player != nil && f.player.Left() > 0 && err == nil {
		left := cli.Count(f.player.Left(), "recorded request")
		sys.Notice(fmt.Sprintf("--replay %s: %s not requested", f.Replay, left))
	}
	// without any request an existing file stays unchanged
	if f.recorder == nil || len(f.recorder.Recording().Exchanges) == 0 {
		return err
	}
	b, failed := f.recorder.Recording().JSON()
	if failed == nil {
		failed = cli.WriteFile(f.Record, b)
	}
	if failed != nil {
		cli.Report(sys.Err, fmt.Errorf("--record: %w", failed))
		if err == nil {
			err = cli.Silent(cli.StatusFailed)
		}
	}
	return err
}

// Durably stores the requests in the journal of a durable run.
func (f *AgentFlags) Durably() {
	f.carry = cmp.Or(f.carry, provider.Transport())
	f.carry = durable.Transport(f.carry)
}
