package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/sandbox"
)

// Cmd examines what pawl can use on this machine, and reports faults.
type Cmd struct {
	Files  []string `arg:"" optional:"" name:"FILE.yaml" help:"@doctor_files"`
	Online bool     `help:"@doctor_online"`
	DB     string   `name:"db" placeholder:"FILE" help:"@doctor_db"`
	JSON   bool     `name:"json" help:"Print a JSON object."`
}

// How a check ended.
const (
	checkOK   = "ok"
	checkWarn = "warn" // something useful is missing
	checkFail = "fail" // something is wrong, and will not work
)

// finding is what a check found, as --json prints it.
type finding struct {
	Area   string `json:"area"`
	Status string `json:"status"`
	Text   string `json:"text"`
	Next   string `json:"next,omitempty"` // what to do about it
}

// diagnosis is what doctor --json prints.
type diagnosis struct {
	Version string          `json:"version"`
	OK      bool            `json:"ok"` // nothing failed
	Checks  []finding       `json:"checks"`
	Sandbox *sandbox.Report `json:"sandbox"`
	Env     []setting       `json:"environment"`
}

// examination collects findings about this machine, in order.
type examination struct {
	sys    *cli.System
	python string // where the code tool looks for it
	online bool
	lists  map[string]*lister // the lists of models, by provider
	area   string
	found  []finding
}

// in starts an area.
func (x *examination) in(area string) { x.area = area }

func (x *examination) say(status, next, format string, args ...any) {
	x.found = append(x.found, finding{x.area, status, fmt.Sprintf(format, args...), next})
}

func (x *examination) ok(format string, args ...any) { x.say(checkOK, "", format, args...) }

// Run examines the machine and changes nothing.
func (c *Cmd) Run(sys *cli.System) error {
	d := diagnosis{Version: cli.Version(debug.ReadBuildInfo()), Sandbox: sandbox.Probe(), OK: true}
	x := &examination{sys: sys, python: "/usr/bin/python3", online: c.Online, lists: map[string]*lister{}}
	ctx := context.Background()
	x.machine(d.Version)
	x.sandbox(d.Sandbox)
	d.Env = x.keys()
	x.endpoints(ctx) // the lists of models, which files are compared with
	x.database(c.DB)
	x.temporal(ctx)
	x.files(ctx, c.Files)

	d.Checks = x.found
	for _, f := range d.Checks {
		d.OK = d.OK && f.Status != checkFail
	}
	var err error
	if c.JSON {
		err = cli.PrintJSON(sys.Out, d)
	} else {
		d.print(sys)
	}
	if err == nil && !d.OK {
		err = cli.Silent(cli.StatusFailed)
	}
	return err
}

// print writes the findings for a person, area by area.
func (d *diagnosis) print(sys *cli.System) {
	s := sys.Colours(sys.OutTerm)
	colour := map[string]func(string) string{checkOK: s.Green, checkWarn: s.Yellow, checkFail: s.Red}
	area := ""
	counts := map[string]int{}
	for _, f := range d.Checks {
		if f.Area != area {
			area = f.Area
			fmt.Fprintf(sys.Out, "%s\n", s.Bold(area))
		}
		counts[f.Status]++
		fmt.Fprintf(sys.Out, "  %s %s\n", colour[f.Status](fmt.Sprintf("%-4s", f.Status)),
			indentedBy(cli.Visible(f.Text), "       "))
		if f.Next != "" {
			fmt.Fprintf(sys.Out, "       %s %s\n", s.Dim("→"), cli.Visible(f.Next))
		}
	}
	fmt.Fprintf(sys.Out, "\n%d ok, %s, %d failed\n", counts[checkOK], cli.Count(counts[checkWarn], "warning"),
		counts[checkFail])
}

// indentedBy indents all lines after the first.
func indentedBy(s, margin string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+margin)
}

// patience is the timeout for programs and servers.
const patience = 5 * time.Second

// machine examines the program, the clock and Python.
func (x *examination) machine(version string) {
	x.in("program")
	x.ok("%s", version)
	x.clock(time.Now(), cli.BuiltOn())
	x.interpreter()
}

// clock reports a clock that is before the build. Approvals, leases and schedules depend on it.
func (x *examination) clock(now, built time.Time) {
	zone, _ := now.Zone()
	if now.Before(built.Add(-24 * time.Hour)) {
		x.say(checkFail, "set the clock: approvals, leases and schedules depend on it, and servers refuse connections",
			"the clock shows %s, which is before this program was built", now.Format(time.DateTime))
		return
	}
	x.ok("the clock shows %s %s", now.Format(time.DateTime), zone)
}

// interpreter examines the Python of the code tool.
func (x *examination) interpreter() {
	const next = "install python3, or use the built-in interpreter: --code embedded"
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, x.python, "--version").CombinedOutput()
	said := strings.TrimSpace(string(out))
	var minor int
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.say(checkWarn, next, "there is no %s, so --tools code has no Python", x.python)
	case err != nil:
		x.say(checkFail, next, "%s does not work: %v", x.python, err)
	default:
		// An answer of another form is shown and not judged.
		if n, _ := fmt.Sscanf(said, "Python 3.%d", &minor); n == 1 && minor < 8 {
			x.say(checkFail, next, "%s is %s; --tools code needs 3.8 or later", x.python, said)
			return
		}
		x.ok("%s at %s, for --tools code", said, x.python)
	}
}

// sandbox reports the levels that can be enforced, and why others cannot.
func (x *examination) sandbox(r *sandbox.Report) {
	x.in("sandbox")
	x.ok("%s", r.System)
	for _, f := range r.Facts {
		x.ok("%s: %s", f.Name, f.Value)
	}
	for _, l := range r.Levels {
		if l.OK {
			x.ok("%s: %s", l.Level, l.Gives)
			continue
		}
		x.say(checkWarn, "docs/security.md describes the other levels; --sandbox LEVEL selects one",
			"%s cannot be enforced: %s", l.Level, l.Reason)
	}
}

// database examines the database.
func (x *examination) database(db string) {
	x.in("database")
	d := agentfile.NewDatabase(agentfile.Store{DB: db}, x.sys.Env, false)
	path, err := d.Path()
	if err != nil {
		x.say(checkFail, "name it with --db FILE", "%v", err)
		return
	}
	if strings.Contains(path, "://") {
		x.server(d)
		return
	}

	// A missing file must not be made by the examination.
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.newDatabase(path)
	case err != nil:
		x.say(checkFail, "check its permissions, or name another with --db FILE", "%s: %s", path, cli.Cause(err))
	case !info.Mode().IsRegular():
		x.say(checkFail, "name another with --db FILE", "%s is not a file", path)
	default:
		x.databaseFile(d, path, info.Size())
	}
}

// databaseFile examines a database that is a file of a size.
func (x *examination) databaseFile(d *agentfile.Database, path string, size int64) {
	// SQLite would report a file that it cannot write only at the first write.
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		x.say(checkFail, "let this user write it (chmod u+w), or name another with --db FILE",
			"%s cannot be written: %s", path, cli.Cause(err))
		return
	}
	head := make([]byte, 100)
	n, _ := io.ReadFull(file, head)
	file.Close()
	if _, err := d.Open(); err != nil {
		x.say(checkFail, "name another with --db FILE; if it is damaged, restore a copy", "%v", err)
		return
	}
	d.Close()

	// where the head of a file of SQLite has its way of writing and the program's own version
	const walAt, versionAt = 18, 60
	if n < len(head) || head[walAt] != 2 {
		x.say(checkWarn, "any command that writes to it enables the log", "%s does not use a write-ahead log yet", path)
	} else {
		x.ok("%s can be opened: version %d, with a write-ahead log, %s",
			path, binary.BigEndian.Uint32(head[versionAt:]), amount(uint64(size)))
	}
	x.room(filepath.Dir(path))
}

// newDatabase reports whether a database that does not exist can be created.
func (x *examination) newDatabase(path string) {
	dir := filepath.Dir(path)
	for dir != filepath.Dir(dir) { // the first folder that exists
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}

	// Only an attempt shows what permissions, quotas and read-only file systems allow.
	probe, err := os.CreateTemp(dir, ".pawl-doctor-*")
	if err != nil {
		x.say(checkFail, "let this user write there, or name another file with --db FILE",
			"%s does not exist, and cannot be created: %s", path, cli.Cause(err))
		return
	}
	probe.Close()
	os.Remove(probe.Name())
	x.say(checkOK, "", "%s does not exist yet; the first run with --durable creates it", path)
	x.room(dir)
}

// room reports the free space of a folder.
func (x *examination) room(dir string) {
	free, known := freeSpace(dir)
	switch {
	case !known:
	case free < 64<<20:
		x.say(checkFail, "free some space: a run that cannot be stored stops", "%s has %s left", dir, amount(free))
	case free < 1<<30:
		x.say(checkWarn, "free some space: a run that cannot be stored stops", "%s has %s left", dir, amount(free))
	default:
		x.ok("%s has %s left", dir, amount(free))
	}
}

// amount writes a number of bytes.
func amount(n uint64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	case n < 10<<30:
		return cli.Grouped(int(n>>20)) + " MiB"
	}
	return cli.Grouped(int(n>>30)) + " GiB"
}

// server connects to a database server, with --online only.
func (x *examination) server(d *agentfile.Database) {
	if !x.online {
		x.ok("it is at an address; --online connects to it")
		return
	}
	if _, err := d.Open(); err != nil {
		x.say(checkFail, "check that the server runs and that PGPASSWORD is right", "%v", err)
		return
	}
	d.Close()
	x.ok("the server answers, and the database can be opened")
}

// temporal reports whether a server answers at TEMPORAL_ADDRESS.
func (x *examination) temporal(ctx context.Context) {
	addr := x.sys.Env("TEMPORAL_ADDRESS")
	if addr == "" {
		return
	}
	x.in("temporal")
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		x.say(checkFail, "TEMPORAL_ADDRESS=127.0.0.1:7233", "TEMPORAL_ADDRESS is not HOST:PORT")
		return
	}
	// Without --online nothing leaves this machine.
	if !x.online && !isLoopback(host) {
		x.ok("TEMPORAL_ADDRESS is %s; --online connects to it", addr)
		return
	}

	conn, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", addr)
	if err != nil {
		x.say(checkFail, "docs/temporal.md shows how to start one", "no server answers at TEMPORAL_ADDRESS: %s",
			cli.Cause(err))
		return
	}
	conn.Close()
	x.ok("a server is at %s", addr)
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// files checks files with agents, and whether the keys of their models are set.
func (x *examination) files(ctx context.Context, names []string) {
	x.in("agents")
	if len(names) == 0 { // the file that pawl init writes
		if _, err := os.Stat("agent.yaml"); err != nil {
			return
		}
		names = []string{"agent.yaml"}
	}

	o, err := assemble.BuildOptions(x.sys)
	if err != nil {
		x.say(checkFail, "pawl models update writes the catalogue again", "%v", err)
		return
	}
	o.Notice = nil
	for _, name := range names {
		x.file(ctx, name, o)
	}
}

// file checks a file with agents.
func (x *examination) file(ctx context.Context, name string, o *agentfile.Options) {
	file, err := agentfile.Load(name, &agentfile.LoadOptions{Getenv: x.sys.Env})
	wrong := agentfile.FindingsOf(err)
	for _, a := range file.Agents {
		if err == nil {
			wrong = append(wrong, a.Check(ctx, o)...)
		}
	}
	for _, w := range wrong {
		x.say(checkFail, "pawl check "+name, "%s", strings.ReplaceAll(w.Error(), "\n", " "))
	}
	if len(wrong) > 0 {
		return
	}

	x.ok("%s: %s", name, cli.Count(len(file.Agents), "agent"))
	for _, a := range file.Agents {
		for _, m := range a.Model {
			x.keyOf(a.Name, m)
		}
		x.endings(a, o)
	}
}

// keyOf reports a missing key of a model.
func (x *examination) keyOf(agent string, m agentfile.Model) {
	if m.KeyEnv != "" || m.BaseURL != "" {
		return // what key_env names has been looked for with the rest of the file
	}
	name, _, _ := strings.Cut(m.Name, ":")
	variables := provider.KeyVariables(name)
	isSet := func(v string) bool { return x.sys.Env(v) != "" }
	if keyless[name] || len(variables) == 0 || slices.ContainsFunc(variables, isSet) {
		return
	}
	x.say(checkFail, "export "+variables[0]+"=…", "agent %s uses %s, and %s is not set", agent, m.Name,
		strings.Join(variables, " or "))
}
