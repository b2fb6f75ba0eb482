package file_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/file"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	files, err := file.New(dir, nil)
	if err != nil {
		panic(err)
	}
	defer files.Close()

	// An agent gets the whole set: pawl.Agent{Tools: []pawl.Toolset{files}}.
	for _, c := range []struct {
		tool *pawl.Tool
		args string
	}{
		{files.Write, `{"path":"notes/today.txt","content":"buy milk\n"}`},
		{files.List, `{"path":"notes"}`},
		{files.Read, `{"path":"notes/today.txt"}`},
		{files.Read, `{"path":"notes/todya.txt"}`},
		{files.Read, `{"path":"../../etc/passwd"}`},
	} {
		res := pawl.Toolsets{c.tool}.Execute(context.Background(),
			llm.ToolCall{ID: "1", Name: c.tool.Name, Args: json.RawMessage(c.args)}).Result
		fmt.Println(strings.ReplaceAll(res.Text(), "; ", ";\n"))
	}
	// Output:
	// Written 9 bytes to notes/today.txt
	// file	today.txt
	// buy milk
	//
	// no such file: "notes/todya.txt";
	// the nearest there is: "notes/today.txt"
	// path traversal not allowed: "../../etc/passwd" leads out of the root by "..";
	// give a path below the root
}
