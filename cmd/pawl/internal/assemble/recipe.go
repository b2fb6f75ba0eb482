package assemble

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// Recipe is the command line of a durable run, from which resuming builds its agent again. It names
// keys but does not contain them. It contains neither the database nor the user, because every
// command about the run names them.
type Recipe struct {
	Dir    string `json:"dir"`              // the working directory of the command
	File   string `json:"file,omitempty"`   // the file of the agent; "" means none
	Digest string `json:"digest,omitempty"` // digest of the content of the file
	// the given flags, by the name of their field in AgentFlags
	Flags map[string]json.RawMessage `json:"flags,omitempty"`
	// names of environment variables whose values were secrets
	Secret []string `json:"secret,omitempty"`
}

// notRecorded are the flags that select the run and its owner.
var notRecorded = []string{"DB", "Tenant", "User"}

// NewRecipe returns the recipe of an agent, as JSON without the secrets of s. An empty file name
// means no file.
func NewRecipe(file string, f *AgentFlags, s *Setup) (json.RawMessage, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	n := Recipe{Dir: dir, File: file, Flags: Given(f), Secret: secretVariables(s)}
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		// A later process compares it: a run must not continue with another agent without notice.
		n.Digest = digestOf(b)
	}
	for _, name := range notRecorded {
		delete(n.Flags, name)
	}
	b, err := json.Marshal(n)
	return s.Secrets.JSON(b), err
}

// secretVariables returns the names of the environment variables whose values s hides. Commands
// about the run hide them too, without building its agent.
func secretVariables(s *Setup) []string {
	var names []string
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		value = strings.TrimSpace(value)
		if value != "" && s.Secrets.String(value) == redacted {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// redacted replaces a secret.
const redacted = "[redacted]"

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// Given returns the flags whose value is not the default.
func Given(f *AgentFlags) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	v := reflect.ValueOf(f).Elem()
	for _, field := range reflect.VisibleFields(v.Type()) {
		if field.Anonymous || !field.IsExported() {
			continue
		}
		one := v.FieldByIndex(field.Index)
		byDefault := field.Tag.Get("default")
		if one.IsZero() || byDefault != "" && fmt.Sprint(one.Interface()) == byDefault {
			continue
		}
		// strings, numbers and lists of them have no errors
		out[field.Name], _ = json.Marshal(one.Interface())
	}
	return out
}

// Over sets the flags of f that are not given to the values of the recipe.
func (n *Recipe) Over(f *AgentFlags) error {
	now := Given(f)
	v := reflect.ValueOf(f).Elem()
	for name, value := range n.Flags {
		field, ok := v.Type().FieldByName(name)
		// A flag of today replaces the recorded one: a run can be resumed with another model.
		if _, again := now[name]; again {
			continue
		}
		if !ok {
			return cli.Usage("", "the run was started with a flag that this version of pawl does not know: %s", name)
		}
		if strings.Contains(string(value), redacted) {
			return cli.Usage("set it again", "%s held a secret when the run was started, and was not stored",
				FlagName(field))
		}
		if err := json.Unmarshal(value, v.FieldByIndex(field.Index).Addr().Interface()); err != nil {
			return cli.Usage("", "%s was stored as %s, which this version of pawl does not understand",
				FlagName(field), value)
		}
	}
	return nil
}

// Command returns the recorded command line. Its flags are in alphabetical order.
func (n *Recipe) Command() string {
	words := []string{}
	if n.File != "" {
		words = append(words, n.File)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Flags)) {
		if field, ok := reflect.TypeFor[AgentFlags]().FieldByName(name); ok {
			words = append(words, flagWords(field, n.Flags[name])...)
		}
	}
	return strings.Join(words, " ")
}

// commandLine returns a command line with the words and the given flags of a struct.
func commandLine(words []string, flags any) string {
	words = append([]string{"pawl"}, words...)
	v := reflect.ValueOf(flags).Elem()
	for _, field := range reflect.VisibleFields(v.Type()) {
		if one := v.FieldByIndex(field.Index); !field.Anonymous && !one.IsZero() {
			value, _ := json.Marshal(one.Interface())
			words = append(words, flagWords(field, value)...)
		}
	}
	return strings.Join(words, " ")
}

// flagWords returns a flag with its value, as a person types it.
func flagWords(field reflect.StructField, value json.RawMessage) []string {
	word := string(value)
	var text string
	var list []string
	switch {
	case word == "true":
		return []string{FlagName(field)}
	case json.Unmarshal(value, &text) == nil:
		word = text
	case json.Unmarshal(value, &list) == nil:
		word = strings.Join(list, ",")
	}

	if strings.ContainsAny(word, " \n\t") {
		word = strconv.Quote(word)
	}
	return []string{FlagName(field), word}
}

// FlagName returns the name of the flag of a field on the command line.
func FlagName(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return "--" + name
	}
	var out strings.Builder
	for i, r := range f.Name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			out.WriteByte('-')
		}
		out.WriteRune(r)
	}
	return "--" + strings.ToLower(out.String())
}

// Enter changes to the directory in which the run was started, so that recorded file names are
// valid. File names in f are made absolute first.
func (n *Recipe) Enter(f *AgentFlags, file *string) error {
	here, err := os.Getwd()
	if err != nil || n.Dir == "" || n.Dir == here {
		return err
	}

	// The person typed these names here, and means the files of here. An address stays.
	for _, path := range []*string{file, &f.DB, &f.Root, &f.Passive, &f.Rehearse, &f.Catalog, &f.Output} {
		if *path != "" && !strings.Contains(*path, "://") && !filepath.IsAbs(*path) {
			*path = filepath.Join(here, *path)
		}
	}
	for _, paths := range [][]string{f.Skills, f.ToolFile} {
		for i := range paths {
			if !filepath.IsAbs(paths[i]) {
				paths[i] = filepath.Join(here, paths[i])
			}
		}
	}
	if err := os.Chdir(n.Dir); err != nil {
		return cli.Usage("", "the run was started in a folder that cannot be entered: %s", cli.Plain(err))
	}
	return nil
}

// Changed reports whether the agent's file has changed since the run was started.
func (n *Recipe) Changed(file string) bool {
	if n.File == "" || file != n.File {
		return false
	}
	b, err := os.ReadFile(file)
	return err == nil && digestOf(b) != n.Digest
}

// ReadRecipe reads the recipe of a run. nil means that the run was not started by pawl run.
func ReadRecipe(meta json.RawMessage) *Recipe {
	n := new(Recipe)
	if json.Unmarshal(meta, n) != nil || n.Dir == "" {
		return nil
	}
	return n
}
