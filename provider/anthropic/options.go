package anthropic

import (
	"slices"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// options are the request's options for this provider.
type options struct {
	body     []byte // the members for the body, as an object
	betas    []string
	tools    []byte   // the elements of the array
	names    []string // of these tools
	thinking string   // the type of its thinking; "" means none
	cached   bool     // has a cache_control
	// container is the object that configures the container in which the server runs code, with
	// its skills. nil means none.
	container []byte
	// compaction is the order to summarize, which is sent once in a reply. nil means none.
	compaction []byte
}

func (o *options) empty() bool {
	return o.body == nil && o.tools == nil && o.container == nil && o.compaction == nil
}

// readOptions separates the members that are not copied into the body.
func readOptions(raw []byte) (options, error) {
	var o options
	if len(raw) == 0 {
		return o, nil
	}
	bad := func(name, want string) error { return invalid("settings.options.anthropic"+name, "not %s", want) }
	if !jsonscan.IsObject(raw) {
		return o, bad("", "a JSON object")
	}
	var body []byte
	c := jsonscan.New(raw)
	for k := range c.Members() {
		name := string(k)
		value := c.Raw()
		v := jsonscan.New(value)
		switch name {
		case "betas":
			if v.Kind() != jsonscan.Array {
				return o, bad(".betas", "an array of strings")
			}
			for v.Array(); v.More(); {
				o.betas = append(o.betas, v.String())
			}
			continue
		case "tools":
			if v.Kind() != jsonscan.Array {
				return o, bad(".tools", "an array")
			}
			// The body gets them next to the request's tools, except tools of the same names.
			o.tools = []byte{}
			for v.Array(); v.More(); {
				tool := v.Raw()
				if len(o.tools) > 0 {
					o.tools = append(o.tools, ',')
				}
				o.tools = append(o.tools, tool...)
				o.names = append(o.names, wire.MemberText(tool, "name"))
			}
			continue
		case "compaction":
			if v.Kind() != jsonscan.Object {
				return o, bad(".compaction", "a JSON object")
			}
			o.compaction = value
			continue
		case "container":
			// An object, such as one with skills, gets the id of the container that a reply has
			// used. An id alone stays a member of the body.
			if v.Kind() == jsonscan.Object {
				o.container = value
				continue
			}
		case "thinking":
			o.thinking = wire.MemberText(value, "type")
		case "cache_control":
			o.cached = true
		}
		body = wire.AppendMember(body, name, value)
	}
	if body != nil {
		o.body = append(body, '}')
	}
	return o, nil
}

// without returns the tools that the options do not define.
func (o *options) without(tools []*llm.ToolSpec) []*llm.ToolSpec {
	named := func(t *llm.ToolSpec) bool { return slices.Contains(o.names, t.Name) }
	if !slices.ContainsFunc(tools, named) {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), named)
}
