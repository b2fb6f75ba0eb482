//go:build unix

package doctor

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// asDoctor is the variable that makes the test program the command doctor.
const asDoctor = "PAWL_TEST_DOCTOR"

func TestMain(m *testing.M) {
	if os.Getenv(asDoctor) == "" {
		os.Exit(m.Run())
	}
	c := new(Cmd)
	k, err := kong.New(c, cli.HelpTexts(false))
	if err == nil {
		_, err = k.Parse(os.Args[1:])
	}
	if err == nil {
		err = c.Run(cli.Here())
	}
	os.Exit(cli.Report(os.Stderr, err))
}

// Doctor reports a database, a folder and an agent file without the rights to write or read them.
// Root has every right, so a test that runs as root starts doctor as another user.
func TestDoctorRights(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "held.db")
	f := &assemble.StoreFlags{DB: path}
	d, _, err := f.Open(&cli.System{Env: func(string) string { return "" }}, true)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	agent := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(agent, []byte("agent: a\nmodel: ollama:x\n"), 0o000); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(dir, 0o755) }()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		// The program may stand in a folder that only root can enter, such as root's cache.
		program = copied(t, program)
	}
	look := func(db string) (out diagnosis) {
		t.Helper()
		c := exec.Command(program, "--json", "--db", db, agent)
		c.Dir, c.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GORACE=atexit_sleep_ms=0",
			asDoctor + "=1"}
		if os.Getuid() == 0 {
			opened(t, filepath.Dir(program))
			opened(t, filepath.Dir(dir))
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		b, err := c.Output()
		if c.ProcessState.ExitCode() != cli.StatusFailed {
			t.Errorf("status %d, want %d: %v", c.ProcessState.ExitCode(), cli.StatusFailed, err)
		}
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		return out
	}
	found := look(path)
	has(t, found, checkFail, "held.db cannot be written: permission denied", "chmod u+w")
	has(t, found, checkFail, "agents: ", "agent.yaml", "permission denied", "pawl check")
	has(t, look(filepath.Join(dir, "new.db")), checkFail, "new.db does not exist, and cannot be created")
}

// copied copies the program to a temporary folder of the test.
func copied(t *testing.T, program string) string {
	t.Helper()
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "doctor")
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// opened makes a folder of the tests and its parents accessible to all users, as far as the tests
// own them.
func opened(t *testing.T, dir string) {
	t.Helper()
	for ; strings.HasPrefix(dir, os.TempDir()+string(filepath.Separator)); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
