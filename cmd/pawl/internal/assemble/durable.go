package assemble

import (
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
)

// DurableFlags store a run step by step, so that it survives this process.
type DurableFlags struct {
	Durable bool           `group:"durable" help:"@durable_durable"`
	Run     string         `group:"durable" name:"run" placeholder:"ID" help:"@durable_run"`
	Lease   *time.Duration `group:"durable" name:"lease" placeholder:"TIME" help:"@durable_lease"`
}

// Check reports flags that contradict each other.
func (f *DurableFlags) Check() error {
	switch {
	case !f.Durable && f.Run != "":
		return cli.Usage("pawl run --durable --run "+f.Run+" …", "--run: the run is not durable")
	case !f.Durable && f.Lease != nil:
		return cli.Usage("pawl run --durable --lease TIME …", "--lease: the run is not durable")
	case f.Lease != nil && *f.Lease < time.Second:
		return cli.Usage("a second and more, such as 30s", "--lease %v is too short", *f.Lease)
	case f.Run == LastRun:
		return cli.Usage("another name", "--run last: this stands for the last run")
	case f.Run != "":
		if err := store.CheckID(f.Run); err != nil {
			return cli.Usage("a name such as invoice-7", "--run: %v", err)
		}
	}
	return nil
}
