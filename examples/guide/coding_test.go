package guide

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/shell"
)

func Example_coding() {
	ctx := context.Background()
	workspace, state := "workspace", "state"
	if err := os.Mkdir(workspace, 0o755); err != nil {
		panic(err)
	}
	defer os.RemoveAll(workspace)
	defer os.RemoveAll(state)

	golang, err := sandbox.Go(filepath.Join(state, "cache"))
	if err != nil {
		panic(err)
	}
	run, err := shell.New(workspace, &shell.Options{
		Toolchains: []sandbox.Toolchain{golang},
		Level:      sandbox.None, // for a machine without user namespaces; else leave it out
	})
	if err != nil {
		panic(err)
	}
	undo := filepath.Join(state, "undo")
	files, err := file.New(workspace, &file.Options{Undo: undo})
	if err != nil {
		panic(err)
	}
	defer files.Close()

	model := script.New( // or openai.New("gpt-6.1-terra", nil)
		script.Call("file_write", `{"path":"main.go","content":"package main\n"}`),
		script.Call("shell_exec", `{"command":"ls; go env GOPROXY"}`),
		script.Say("The program is there."))
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{files, run}}
	res, err := agent.Run(ctx, llm.User("Begin a program."))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Steps[1].Executions[0].Result.Text())
	change, err := files.Undo(ctx, undo, false)
	if err != nil {
		panic(err)
	}
	_, err = os.Stat(filepath.Join(workspace, change.Path))
	fmt.Println(change.Path, "is gone:", os.IsNotExist(err))

	// Output:
	// main.go
	// off
	// main.go is gone: true
}
