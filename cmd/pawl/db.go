package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
)

// dbCmd backs up and restores the database.
type dbCmd struct {
	Backup  dbBackupCmd  `cmd:"" help:"Write a copy of the database into a new file."`
	Restore dbRestoreCmd `cmd:"" help:"@db_restore"`
}

// backuper is a database that copies itself into a file.
type backuper interface {
	Backup(ctx context.Context, path string) error
}

// schedulePauser is a database with schedules. PauseSchedules pauses the schedules that are due at
// now, and returns their number.
type schedulePauser interface {
	PauseSchedules(ctx context.Context, now time.Time) (int64, error)
}

type dbBackupCmd struct {
	File string `arg:"" name:"FILE" help:"The new file."`
	assemble.StoreFlags
}

// Run writes the copy.
func (c *dbBackupCmd) Run(sys *cli.System) error {
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		db, ok := j.Journal.(backuper)
		if !ok {
			return cli.Usage(`pg_dump --format=custom --schema=pawl --file=`+c.File+` "$ADDRESS"`,
				"PostgreSQL has its own program for backups")
		}
		if err := db.Backup(context.Background(), c.File); err != nil {
			return cli.Fail(cli.StatusFailed, err, "there is no backup; name a new file in a folder with room")
		}
		_, err := fmt.Fprintf(sys.Out, "%s is a copy of the database\n", cli.Visible(c.File))
		return err
	})
}

type dbRestoreCmd struct {
	File      string `arg:"" optional:"" name:"FILE" help:"@db_restore_file"`
	AsRestore bool   `help:"@db_restore_as"`
	assemble.StoreFlags
}

// Run puts a backup in place of a database that is gone.
func (c *dbRestoreCmd) Run(sys *cli.System) error {
	path, err := agentfile.NewDatabase(agentfile.Store{DB: c.DB}, sys.Env, false).Path()
	server := strings.Contains(path, "://")
	switch {
	case err != nil:
		return assemble.Misconfigured(err)
	case !c.AsRestore:
		return cli.Usage("pawl db restore FILE --as-restore", "--as-restore is missing: without it, the restored runs "+
			"would repeat what they did after the backup")
	case server && c.File != "":
		return cli.Usage("pg_restore --clean --if-exists --dbname=ADDRESS "+c.File+
			"; then, before a process works with the database: pawl db restore --as-restore --db ADDRESS",
			"PostgreSQL has its own program for restores")
	case c.File == "":
		return c.mark(sys)
	}

	// An old log of the database would be applied to the backup. A log of the backup has changes
	// that the file alone does not have.
	for _, old := range []string{path, path + "-wal", c.File + "-wal"} {
		if _, err := os.Stat(old); err == nil {
			return cli.Usage("end all processes of the database, move the file away, and repeat the command; "+
				"a backup is a single file, such as pawl db backup writes", "there is a file %s", old)
		}
	}
	if info, err := os.Stat(c.File); err == nil && !info.Mode().IsRegular() {
		return cli.Usage("a file that pawl db backup has written", "%s is not a regular file", c.File)
	}

	// Nothing opens the database before its runs are marked.
	part := path + ".restoring"
	if err := copyTo(part, c.File); err != nil {
		return cli.Usage("", "%s", cli.Plain(err))
	}
	c.DB = part
	if err := c.mark(sys); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, path)
}

// mark marks the runs, and pauses the schedules that are due.
func (c *dbRestoreCmd) mark(sys *cli.System) error {
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		n, err := j.MarkRestored(context.Background())
		if err != nil {
			return cli.Fail(cli.StatusFailed, err, "not all runs are marked; start no process, and repeat the command")
		}

		// A schedule that is due now may have been executed after the backup.
		var paused int64
		if db, ok := j.Journal.(schedulePauser); ok {
			paused, err = db.PauseSchedules(context.Background(), time.Now())
			if err != nil {
				return cli.Failed(err)
			}
		}
		_, err = fmt.Fprintf(sys.Out,
			"%s may have done more after the backup: their writes will be asked about; %s paused\n",
			cli.Count(n, "run"), cli.Count(int(paused), "due schedule"))
		return err
	})
}

// copyTo copies a file into a new one, and returns when it is on disk. No file is left after an
// error.
func copyTo(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	// A copy that is not on disk is none: the original may be deleted next.
	err = errors.Join(err, out.Sync(), out.Close())
	if err != nil {
		os.Remove(to) // or the command could not be repeated
	}
	return err
}
