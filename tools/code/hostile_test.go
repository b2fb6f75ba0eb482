package code_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/code"
)

// find is code by which a program finds the secret of its child, if it is not hidden: in the frames
// below its own.
const find = `
import os, sys
f = sys._getframe()
while "key" not in f.f_locals or "seq" not in f.f_locals:
    f = f.f_back
key, seq = f.f_locals["key"], f.f_locals["seq"]
def forge(data, length=None):
    seq[1] += 1
    os.write(4, (len(data) if length is None else length).to_bytes(4, "big") + key + seq[1].to_bytes(4, "big") + data)
`

// For any action of a program against its tool, the call ends with a result that reports it.
func TestHostile(t *testing.T) {
	soak.Sequential(t)
	py := python(t, nil)
	tool := newTool(t, py, nil)
	for _, tt := range []struct {
		name, code string
		outcome    string // any one of these outcomes
		says       string
	}{
		{"forged frame", `import os; os.write(4, (4).to_bytes(4, "big") + b"x" * 16 + (1).to_bytes(4, "big") + b"null")`, "forged", "call_tool"},
		{"forged length", `import os; os.write(4, b"\xff" * 4 + b"x" * 20)`, "forged", ""},
		{"half a frame", `import os; os.write(4, b"\0\0"); os._exit(0)`, "forged", ""},
		{"lines as in other tools", `import os; os.write(4, b'{"type":"result","data":"x"}\n')`, "forged", ""},
		{"large frame with the secret", find + `forge(b"", 2 << 20)`, "too_large", "at once"},
		{"large result with the secret", find + `forge(b'{"result":"' + b"x" * 100000 + b'"}')`, "too_large", "at most 65536"},
		{"other words with the secret", find + `forge(b'{"end":"fine"}')`, "forged", ""},
		{"no JSON with the secret", find + `forge(b'{"end":')`, "forged", ""},
		{"a frame twice with the secret", find + `seq[1] -= 1; forge(b'{"result":1}'); seq[1] -= 1; forge(b'{"result":2}')`, "forged", ""},
		{"an end with a program that goes on", find + "forge(b'{\"end\":\"ok\"}')\nwhile True: pass", "no_result", ""},
		{"exit", `import sys; set_result(1); sys.exit()`, "ok", "1"},
		{"exit with a status", `import sys; set_result(1); sys.exit(3)`, "exited", "exit status 3"},
		{"exit with words", `exit("no more")`, "exited", "no more"},
		{"end of the process", `import os; set_result(1); os._exit(4)`, "exited", "exit status 4"},
		{"a fault of the machine", "import ctypes\nset_result(1)\nctypes.string_at(0)", "killed", "segmentation fault"},
		{"a signal", "import os\nset_result(1)\nos.kill(os.getpid(), 9)\nos.abort()", "killed", "signal"},
		{"a process left behind", "import subprocess\nsubprocess.Popen(['/bin/sleep', '600'])\nset_result('done')", "ok", "done"},
		{"a process that goes on printing", "import subprocess\nsubprocess.Popen(['/bin/sh', '-c', 'while :; do echo x; done'])\nset_result('done')", "ok", "done"},
		{"a thread left behind", "import threading, time\nthreading.Thread(target=lambda: time.sleep(600)).start()\nset_result('done')", "ok", "done"},
		{"endless print", "while True: print('x' * 1000)", "timeout", "bytes left out"},
		{"recursion without a limit", "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()", "killed memory error exited timeout", ""},
		{"memory", "x = []\nwhile True: x.append(bytearray(1 << 20))", "memory", "line 2"},
		{"many processes", "import os\nn = 0\ntry:\n  while True:\n    if os.fork() == 0:\n      import time; time.sleep(600)\n    n += 1\nexcept OSError: pass\nset_result(n < 100)", "ok", "true"},
		{"closed descriptors", "import os\nos.close(4)\nwhile True: pass", "forged", "closed"},
		{"all descriptors closed", "import os\nos.closerange(0, 256)", "exited killed", ""},
		{"nothing is what it was", "import os, json, builtins\nos.write = os.read = os._exit = json.dumps = json.JSONEncoder = None\nset_result('set')\nbuiltins.isinstance = builtins.str = None", "ok", "set"},
		{"no input", "try:\n  input()\nexcept EOFError:\n  set_result('none')", "ok", "none"},
		{"the last program's variables", "import builtins, os\nseen = hasattr(builtins, 'leak') or os.path.exists('/tmp/leak')\nbuiltins.leak = 1\nopen('/tmp/leak', 'w').close()\nset_result(seen)", "ok", "false"},
		{"the last program's variables, again", "import builtins, os\nset_result(hasattr(builtins, 'leak') or os.path.exists('/tmp/leak') or 'leak' in globals())", "ok", "false"},
		{"a program's own variables, as a control", "import builtins, os\nbuiltins.leak = 1\nopen('/tmp/leak', 'w').close()\nset_result(hasattr(builtins, 'leak') and os.path.exists('/tmp/leak'))", "ok", "true"},
		{"inherited descriptors", "import os\nset_result(sorted(os.readlink('/proc/self/fd/%s' % n).split(':')[0] for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n)))", "ok", `["pipe","pipe","pipe","pipe","pipe"]`},
		{"the environment", "import os\nset_result(sorted(os.environ))", "ok", `["HOME","LANG","PATH","PYTHONHASHSEED","PYTHONUTF8","TMPDIR"]`},
		{"the network", "import socket\ntry:\n  socket.create_connection(('127.0.0.1', 80), 1)\nexcept OSError as e:\n  set_result('none')", "ok", "none"},
		{"no such module", "import nosuch", "error", "No module named 'nosuch'"},
		{"a name that a module has not", "from json import nosuch", "error", "cannot import name 'nosuch'"},
		{"an error without words", "class E(Exception):\n  def __str__(self): raise self\nraise E()", "error", "line 3"},
		{"words that are no text", "print('\\ud800')\nset_result('\\ud800')", "ok", "\\ud800"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begun := time.Now()
			// programs that end for another reason do so long before, even on a busy machine
			timeout := 60
			if strings.Contains(tt.outcome, "timeout") {
				timeout = 3
			}
			x, d := run(t, tool, newWorld(), object{"code": tt.code, "timeout": timeout})
			text := x.Result.Text()
			if !strings.Contains(" "+tt.outcome+" ", " "+d.Outcome+" ") || !strings.Contains(text, tt.says) {
				t.Errorf("got %s: %s", d.Outcome, text)
			}
			if len(text) > 80<<10 || strings.Contains(text, "/usr/") {
				t.Errorf("%d bytes: %.300s", len(text), text)
			}
			if took := time.Since(begun); took > 50*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// A file that is open in this process is not open in a program. As a control, it is open in a
// process that is started without the sandbox.
func TestInheritedDescriptors(t *testing.T) {
	py := python(t, nil)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(secret, syscall.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	const look = "import os\nopen_files = [os.readlink('/proc/self/fd/' + n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n)]\n"
	_, d := run(t, newTool(t, py, nil), newWorld(), object{"code": look + "set_result(any('secret' in f for f in open_files))"})
	if string(d.Result) != "false" {
		t.Errorf("got %+v", d)
	}
	b, err := exec.Command("/usr/bin/python3", "-c", look+"print(any('secret' in f for f in open_files))").CombinedOutput()
	if err != nil || string(b) != "True\n" {
		t.Errorf("the control does not see it: %v %s", err, b)
	}
}

// A program that has found the secret can only make calls, as every program can. They need the same
// approval, count towards the same limits, and are recorded.
func TestSecretIsNoPower(t *testing.T) {
	py := python(t, nil)
	w := newWorld()
	forged := find + `
forge(b'{"calls":[{"name":"mail_send","args":{"to":"eve","text":"hello"}},{"name":"now","args":{}}]}')
n = int.from_bytes(os.read(3, 4), "big"); os.read(3, 20)
set_result(json.loads(os.read(3, n)))`
	args, _ := json.Marshal(object{"code": forged})
	a := &pawl.Agent{Model: script.New(script.Call("execute_code", string(args)), script.Say("done")),
		Tools: []pawl.Toolset{w.tools(), newTool(t, py, nil)},
		Middleware: []pawl.Middleware{pawl.Approve(func(_ context.Context, c llm.ToolCall,
			_ *pawl.Tool) (pawl.Approval, error) {
			if c.Name == "mail_send" {
				return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "no mail"}, nil
			}
			return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
		})}}
	res, err := a.Run(t.Context(), llm.User("go"))
	if err != nil {
		t.Fatal(err)
	}
	var d data
	if err := json.Unmarshal(res.Steps[0].Executions[0].Result.Data, &d); err != nil || len(w.Mails) != 0 ||
		len(d.Calls) != 2 || d.Calls[0].Outcome != "denied" || !strings.Contains(string(d.Result), "no mail") {
		t.Errorf("got %v, %s; mails %q", err, res.Steps[0].Executions[0].Result.Text(), w.Mails)
	}
}

// Threads of a program call concurrently, and each gets its own answer.
func TestThreads(t *testing.T) {
	py := python(t, nil)
	_, d := run(t, newTool(t, py, nil), newWorld(), object{"code": `
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    set_result(list(pool.map(lambda i: call_tool("add", {"a": i, "b": 1}), range(50))) == list(range(1, 51)))`})
	if string(d.Result) != "true" {
		t.Errorf("got %+v", d)
	}
}

// If the level cannot be enforced, or there is no python3, no program runs, and the reason is
// reported.
func TestRefused(t *testing.T) {
	py := code.Python(&code.PythonOptions{Path: "/usr/bin/no-such-python"})
	defer py.Close()
	w := newWorld()
	_, d := run(t, newTool(t, py, nil), w, object{"code": "call_tool('now')"})
	if d.Outcome != "refused" || !strings.Contains(d.Error, "The program was not run") || !strings.Contains(d.Error, "Calling again will not help") || w.ran() != 0 {
		t.Errorf("got %+v", d)
	}
	if py.Check() == nil {
		t.Error("Check finds it")
	}
	py.Close()
	if _, d = run(t, newTool(t, py, nil), w, object{"code": "x = 1"}); d.Outcome != "refused" || !strings.Contains(d.Error, "closed") {
		t.Errorf("after Close: got %+v", d)
	}
}

// At every level that is available here, a program runs, its calls are transmitted, and the
// processes that it started end with it.
func TestLevels(t *testing.T) {
	for level := sandbox.Strict; level <= sandbox.None; level++ {
		if err := sandbox.Check(level); err != nil {
			t.Logf("WITHOUT %s: %v", level, err)
			continue
		}
		py := code.Python(&code.PythonOptions{Level: level})
		if err := py.Check(); err != nil {
			py.Close()
			t.Skip(err)
		}
		w := newWorld()
		begun := time.Now()
		_, d := run(t, newTool(t, py, nil), w, object{"code": "import subprocess\nsubprocess.Popen(['/bin/sh', '-c', 'sleep 600; echo late'])\nset_result([call_tool('add', a=1, b=2), call_tool('now')])", "timeout": 300})
		if d.Outcome != "ok" || string(d.Result) != `[3,"2026-01-02"]` || time.Since(begun) > time.Minute {
			t.Errorf("%s: got %+v after %s", level, d, time.Since(begun))
		}
		py.Close()
	}
}
