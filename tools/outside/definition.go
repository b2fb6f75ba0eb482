package outside

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/pawl-go/pawl"
	"go.yaml.in/yaml/v3"
)

// Definition is one entry of a list of tools: exactly one of its fields is set.
type Definition struct {
	Command *Command `json:"command,omitempty" yaml:"command"`
	HTTP    *HTTP    `json:"http,omitempty" yaml:"http"`
	OpenAPI *OpenAPI `json:"openapi,omitempty" yaml:"openapi"`
}

// Command defines a tool that runs a program. The arguments of a call are a JSON object on its standard input, what it writes to standard output is the
// result. A status other than 0 is an error, which the model is told with the end of standard error.
type Command struct {
	Name        string       `json:"name" yaml:"name"`
	Description string       `json:"description" yaml:"description"`         // for the model
	Input       JSON         `json:"input,omitempty" yaml:"input"`           // JSON Schema of the arguments; none: there are none
	Run         []string     `json:"run" yaml:"run"`                         // the program and its arguments, as they are: no shell, no placeholders
	Dir         string       `json:"dir,omitempty" yaml:"dir"`               // where it runs; "": where the definitions are
	Env         []string     `json:"env,omitempty" yaml:"env"`               // variables it gets beside PATH: NAME as it is here, NAME=value as said
	Read        []string     `json:"read,omitempty" yaml:"read"`             // what it may read in a sandbox beside its own file and the folder it runs in
	Write       []string     `json:"write,omitempty" yaml:"write"`           // what it may read and write in a sandbox
	Network     bool         `json:"network,omitempty" yaml:"network"`       // it needs the network; in a sandbox, the hosts that are named for it
	Effect      *pawl.Effect `json:"effect,omitempty" yaml:"effect"`         // none: write
	Timeout     Duration     `json:"timeout,omitempty" yaml:"timeout"`       // 0: 60 s
	MaxOutput   int          `json:"max_output,omitempty" yaml:"max_output"` // bytes of standard output that are kept; 0: 256 KiB
}

// HTTP defines a tool that sends a request made from a template. {name} in url, query, headers and body stands for an argument.
type HTTP struct {
	Name        string            `json:"name" yaml:"name"`
	Description string            `json:"description" yaml:"description"`   // for the model
	Input       JSON              `json:"input,omitempty" yaml:"input"`     // JSON Schema of the arguments; none: each {name} is a string, and required
	Method      string            `json:"method,omitempty" yaml:"method"`   // "": GET, or POST where there is a body
	URL         string            `json:"url" yaml:"url"`                   // arguments may stand in its path and in the values of its query
	Query       map[string]string `json:"query,omitempty" yaml:"query"`     // added to the URL's; a field whose argument is not given is left out
	Headers     map[string]string `json:"headers,omitempty" yaml:"headers"` // ${NAME} stands for a variable of the environment
	Body        JSON              `json:"body,omitempty" yaml:"body"`       // sent as JSON; a string that is {name} and nothing else keeps the argument's type
	Result      string            `json:"result,omitempty" yaml:"result"`   // a JSON Pointer to what is told of a JSON answer; "": all of it
	Effect      *pawl.Effect      `json:"effect,omitempty" yaml:"effect"`   // none: read for GET and HEAD, idempotent for PUT and DELETE, else write
	Timeout     Duration          `json:"timeout,omitempty" yaml:"timeout"` // 0: 30 s
	Allow       []string          `json:"allow,omitempty" yaml:"allow"`     // hosts that may be reached although they are not public
}

// OpenAPI defines tools, one for each operation of an OpenAPI document (3.0, 3.1). They are named by operationId, and take the parameters by their names
// and the request body as body.
type OpenAPI struct {
	Spec    string            `json:"spec" yaml:"spec"`                   // the document's file, JSON or YAML, at most 32 MiB
	BaseURL string            `json:"base_url,omitempty" yaml:"base_url"` // "": the document's first server
	Include []string          `json:"include,omitempty" yaml:"include"`   // names or "GET /pets", * for anything; none: all
	Exclude []string          `json:"exclude,omitempty" yaml:"exclude"`   // the same; it wins
	Prefix  string            `json:"prefix,omitempty" yaml:"prefix"`     // of each tool's name
	Headers map[string]string `json:"headers,omitempty" yaml:"headers"`   // sent with each request; ${NAME} stands for a variable of the environment
	Timeout Duration          `json:"timeout,omitempty" yaml:"timeout"`   // 0: 30 s
	Allow   []string          `json:"allow,omitempty" yaml:"allow"`       // hosts that may be reached although they are not public
}

// Duration is a time.Duration that is written as Go writes it: "10s", "1m30s".
type Duration time.Duration

// MarshalText writes it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads it. It must not be below 0.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is no duration: want one such as 10s or 1m30s", b)
	}
	*d = Duration(v)
	return nil
}

// JSON is a JSON value. In YAML it is written as YAML.
type JSON json.RawMessage

// MarshalJSON returns the value; null for none.
func (j JSON) MarshalJSON() ([]byte, error) { return json.RawMessage(j).MarshalJSON() }

// UnmarshalJSON keeps a copy of the value.
func (j *JSON) UnmarshalJSON(b []byte) error { return (*json.RawMessage)(j).UnmarshalJSON(b) }

// UnmarshalYAML makes JSON of the value.
func (j *JSON) UnmarshalYAML(n *yaml.Node) error {
	v, err := fromYAML(n)
	if err != nil {
		return err
	}
	*j, err = json.Marshal(v)
	return err
}

var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// described checks what every definition of one tool has.
func described(name, description string) error {
	switch {
	case !toolName.MatchString(name):
		return fmt.Errorf("name %q: want a letter, then letters, digits and _, 64 at most", name)
	case description == "":
		return fmt.Errorf("description is empty: the model chooses tools by it")
	}
	return nil
}
