package outside

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/tools/internal/yamlvalue"
)

// Definition is one entry of a list of tools. Exactly one of its fields is set.
type Definition struct {
	Command *Command `json:"command,omitempty" yaml:"command"` // runs a program
	HTTP    *HTTP    `json:"http,omitempty" yaml:"http"`       // sends a request
	OpenAPI *OpenAPI `json:"openapi,omitempty" yaml:"openapi"` // has the operations of a document
	A2A     *A2A     `json:"a2a,omitempty" yaml:"a2a"`         // gives tasks to an agent
}

// Command defines a tool that runs a program. The program reads the arguments of a call as a JSON
// object from standard input and writes the result to standard output. A non-zero exit status is an
// error; the model gets it with the end of standard error.
type Command struct {
	Name        string `json:"name" yaml:"name"`               // of the tool
	Description string `json:"description" yaml:"description"` // for the model
	// JSON Schema of the arguments; empty means no arguments
	Input JSON `json:"input,omitempty" yaml:"input"`
	// Run is the program and its arguments, used literally: no shell, no placeholders.
	Run []string `json:"run" yaml:"run"`
	// Dir is the working directory. Empty means the folder of the definitions.
	Dir string `json:"dir,omitempty" yaml:"dir"`
	// Env lists variables in addition to PATH: NAME copies the current value, NAME=value sets one.
	Env []string `json:"env,omitempty" yaml:"env"`
	// Read lists readable paths in a sandbox, in addition to its own file and the working
	// directory.
	Read  []string `json:"read,omitempty" yaml:"read"`
	Write []string `json:"write,omitempty" yaml:"write"` // readable and writable paths in a sandbox
	// Network says that the program needs the network. In a sandbox it reaches the hosts that are
	// named for it.
	Network bool         `json:"network,omitempty" yaml:"network"`
	Effect  *pawl.Effect `json:"effect,omitempty" yaml:"effect"` // nil means not stated
	// Concurrent says that a call waits for no other call of its step, and that none waits for it.
	Concurrent bool     `json:"concurrent,omitempty" yaml:"concurrent"`
	Timeout    Duration `json:"timeout,omitempty" yaml:"timeout"` // 0 means 60 s
	// MaxOutput is the number of bytes of standard output to return. 0 means 256 KiB.
	MaxOutput int `json:"max_output,omitempty" yaml:"max_output"`
}

// HTTP defines a tool that sends a request built from a template. {name} in url, query, headers and
// body stands for an argument.
type HTTP struct {
	Name        string `json:"name" yaml:"name"`               // of the tool
	Description string `json:"description" yaml:"description"` // for the model
	// JSON Schema of the arguments; empty means that each {name} is a required string
	Input JSON `json:"input,omitempty" yaml:"input"`
	// An empty Method means GET, or POST if there is a body.
	Method string `json:"method,omitempty" yaml:"method"`
	// URL may contain arguments in its path and in the values of its query.
	URL string `json:"url" yaml:"url"`
	// Query is added to the query of the URL. A field without its argument is left out.
	Query map[string]string `json:"query,omitempty" yaml:"query"`
	// ${NAME} stands for an environment variable
	Headers map[string]string `json:"headers,omitempty" yaml:"headers"`
	// Body is sent as JSON. A string that consists of {name} has the argument's type.
	Body JSON `json:"body,omitempty" yaml:"body"`
	// JSON Pointer to the part of a JSON response to return; empty means all of it
	Result string `json:"result,omitempty" yaml:"result"`
	// A nil Effect means read for GET and HEAD, idempotent for PUT and DELETE, otherwise write.
	Effect *pawl.Effect `json:"effect,omitempty" yaml:"effect"`
	// Concurrent says that a call waits for no other call of its step, and that none waits for it.
	Concurrent bool     `json:"concurrent,omitempty" yaml:"concurrent"`
	Timeout    Duration `json:"timeout,omitempty" yaml:"timeout"` // 0 means 30 s
	// Allow lists hosts that may be reached although they are not public.
	Allow []string `json:"allow,omitempty" yaml:"allow"`
}

// A2A defines a tool that gives tasks to an agent of another server by the A2A protocol, version
// 1.0. A question of that agent is a result, which the model can answer with another call.
type A2A struct {
	Name string `json:"name" yaml:"name"` // of the tool
	// Description is for the model, which is not shown the agent's card.
	Description string `json:"description" yaml:"description"`
	// URL is the address below which the agent's card is, at /.well-known/agent-card.json.
	URL string `json:"url" yaml:"url"`
	// ${NAME} stands for an environment variable
	Headers map[string]string `json:"headers,omitempty" yaml:"headers"`
	Effect  *pawl.Effect      `json:"effect,omitempty" yaml:"effect"` // nil means not stated
	// Concurrent says that a call waits for no other call of its step, and that none waits for it.
	Concurrent bool     `json:"concurrent,omitempty" yaml:"concurrent"`
	Timeout    Duration `json:"timeout,omitempty" yaml:"timeout"` // 0 means 10 min
	// Allow lists hosts that may be reached although they are not public.
	Allow []string `json:"allow,omitempty" yaml:"allow"`
}

// OpenAPI defines tools, one for each operation of an OpenAPI document (3.0, 3.1). The operationId
// is the name of a tool. Its arguments are the parameters, by name, and the request body as body.
type OpenAPI struct {
	// Spec is the file of the document, JSON or YAML, at most 32 MiB.
	Spec string `json:"spec" yaml:"spec"`
	// An empty BaseURL means the document's first server.
	BaseURL string `json:"base_url,omitempty" yaml:"base_url"`
	// Include lists names or "GET /pets", with * as wildcard. Empty means all.
	Include []string `json:"include,omitempty" yaml:"include"`
	// Exclude has the same forms and takes precedence over Include.
	Exclude []string `json:"exclude,omitempty" yaml:"exclude"`
	Prefix  string   `json:"prefix,omitempty" yaml:"prefix"` // prefix of each tool's name
	// Headers are sent with each request. ${NAME} stands for an environment variable.
	Headers map[string]string `json:"headers,omitempty" yaml:"headers"`
	// Concurrent says that a call waits for no other call of its step, and that none waits for it.
	Concurrent bool     `json:"concurrent,omitempty" yaml:"concurrent"`
	Timeout    Duration `json:"timeout,omitempty" yaml:"timeout"` // 0 means 30 s
	// Allow lists hosts that may be reached although they are not public.
	Allow []string `json:"allow,omitempty" yaml:"allow"`
}

// Duration is a time.Duration in Go notation: "10s", "1m30s".
type Duration time.Duration

// MarshalText returns d in Go notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses Go notation. A negative duration is an error.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration: want one such as 10s or 1m30s", b)
	}
	*d = Duration(v)
	return nil
}

// JSON is a JSON value. In YAML it is written as YAML.
type JSON json.RawMessage

// MarshalJSON returns the value, or null if it is empty.
func (j JSON) MarshalJSON() ([]byte, error) { return json.RawMessage(j).MarshalJSON() }

// UnmarshalJSON stores a copy of the value.
func (j *JSON) UnmarshalJSON(b []byte) error { return (*json.RawMessage)(j).UnmarshalJSON(b) }

// UnmarshalYAML converts the value to JSON.
func (j *JSON) UnmarshalYAML(n *yaml.Node) error {
	v, err := yamlvalue.Of(n)
	if err != nil {
		return err
	}
	*j, err = json.Marshal(v)
	return err
}

var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// described checks the fields that every definition of a single tool has.
func described(name, description string) error {
	switch {
	case !toolName.MatchString(name):
		return fmt.Errorf("name %q: want a letter, then letters, digits and _, 64 at most", name)
	case description == "":
		return fmt.Errorf("description is empty: the model chooses tools by it")
	}
	return nil
}
