package toolrun

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"strings"

	"github.com/pawl-go/pawl"
)

// Define completes t with texts from files and returns t. NAME.md is the description. NAME.json has
// the schemas, as {"input": …, "output": …}. A schema that is missing there keeps its value in t.
//
// vars are pairs of a name and a text. Define replaces {name} by the text in both files. In
// NAME.json it also replaces the string "{name}" with its quotes, so that a text can be a number.
// If vars have no such name, it replaces "{name}" by the schema of that name in shared.json.
//
// The files are embedded in the program. Define panics if a file is missing or is not JSON.
func Define(files fs.FS, name string, t *pawl.Tool, vars ...string) *pawl.Tool {
	var quoted, plain []string
	for i := 0; i < len(vars); i += 2 {
		plain = append(plain, "{"+vars[i]+"}", vars[i+1])
		quoted = append(quoted, `"{`+vars[i]+`}"`, vars[i+1])
	}
	shared := map[string]json.RawMessage{}
	if _, err := fs.Stat(files, "shared.json"); err == nil {
		decode(compact(files, "shared.json"), &shared)
	}
	for part, schema := range shared {
		quoted = append(quoted, `"{`+part+`}"`, string(schema))
	}
	replaced := strings.NewReplacer(append(quoted, plain...)...).Replace
	var schemas struct{ Input, Output json.RawMessage }
	decode([]byte(replaced(string(compact(files, name+".json")))), &schemas)
	t.Description = replaced(strings.TrimSpace(string(read(files, name+".md"))))
	if schemas.Input != nil {
		t.Input = schemas.Input
	}
	if schemas.Output != nil {
		t.Output = schemas.Output
	}
	return t
}

func read(files fs.FS, name string) []byte {
	b, err := fs.ReadFile(files, name)
	if err != nil {
		panic(err)
	}
	return b
}

func compact(files fs.FS, name string) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, read(files, name)); err != nil {
		panic(name + ": " + err.Error())
	}
	return b.Bytes()
}

func decode(b []byte, into any) {
	if err := json.Unmarshal(b, into); err != nil {
		panic(err)
	}
}
