package agentframework

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/script"
)

// mockGateway is the type of the gateway that answers without a model.
const mockGateway = "MockInferenceGateway"

// gateway is the config of every gateway.
type gateway struct {
	Model           string   `yaml:"model"`
	APIKey          Node     `yaml:"api_key"`
	BaseURL         string   `yaml:"base_url"`
	Temperature     nullable `yaml:"temperature"`
	FunctionCalling *bool    `yaml:"use_function_calling"`
	ToolChoice      choice   `yaml:"tool_choice"`
}

// gatewayTypes are the types of gateways, with their providers and default models.
var gatewayTypes = []struct{ name, provider, model string }{
	{"OpenAIGateway", "openai-chat", "gpt-6-luna"},
	{"GoogleAIGateway", "gemini", "gemini-3.5-flash-lite"},
	{"AnthropicGateway", "anthropic", ""},
	{name: mockGateway},
}

// mockSentence is the answer of a MockInferenceGateway to everything.
const mockSentence = "This is the mock gateway: it says this to everything."

// gateway takes the model from the gateway of this name.
func (d *document) gateway(name, path string) {
	i, ok := d.resource(d.Resources.Gateways, name, path, "gateway")
	if !ok {
		return
	}
	g := d.Resources.Gateways[i]
	at := index("resources.inference_gateways", i)
	var all []string
	for _, t := range gatewayTypes {
		all = append(all, t.name)
	}
	k := slices.Index(all, g.Type)
	if k < 0 {
		d.placed(codeUnknownType, at+".type", nearest.Hint(g.Type, all), "there is no gateway of type %q", cut(g.Type))
		return
	}

	var c gateway
	at += ".config"
	d.read(g.Config, &c, at)
	if g.Type == mockGateway {
		d.native.Model = script.New(script.Loop(script.Say(mockSentence)))
		d.native.ModelName = "mock"
		return
	}

	c.Model = cmp.Or(c.Model, gatewayTypes[k].model)
	if g.Type == "GoogleAIGateway" {
		c.Model = strings.TrimPrefix(c.Model, "models/")
	}
	if c.Model == "" {
		d.placed(codeMissingKey, at, "model: claude-sonnet-5-5", "the key model is missing")
		return
	}
	d.set("model", at+".model", d.mapping(at+".model"))
	d.set("model.name", at+".model", gatewayTypes[k].provider+":"+c.Model)
	d.said("model.base_url", at+".base_url", c.BaseURL)
	d.said("model.key_env", at+".api_key", d.keyOf(c.APIKey.node, at+".api_key"))
	d.requestKeys(c, g.Type, at)
}

// requestKeys takes from the config of a gateway what is sent with each request.
func (d *document) requestKeys(c gateway, kind, at string) {
	t := c.Temperature.node
	switch {
	case t != nil && !isNull(t):
		d.set("settings.temperature", at+".temperature", t)
	case t == nil && kind == "OpenAIGateway":
		d.set("settings.temperature", at, 0) // its default
	}
	d.said("tool_choice", at+".tool_choice", d.choice(c.ToolChoice.node, at+".tool_choice"))
	d.reportedIf(c.FunctionCalling != nil, at+".use_function_calling", "the planner's use_function_calling decides")
}

// keyOf returns the name of the variable in api_key. A key itself has no place in a file.
func (d *document) keyOf(n *yaml.Node, path string) string {
	if n == nil {
		return ""
	}
	name, ok := variableIn(n)
	if !ok {
		d.placed(codeRefused, path, "${NAME}, or leave it out for the provider's own variable",
			"a key has no place in a file")
	}
	return name
}

// variableIn returns the name of the variable that a text consists of.
func variableIn(n *yaml.Node) (name string, ok bool) {
	inner, opened := strings.CutPrefix(strings.TrimSpace(n.Value), "${")
	inner, closed := strings.CutSuffix(inner, "}")
	name, fallback, _ := strings.Cut(inner, ":-")
	switch {
	case n.Kind != yaml.ScalarNode, !opened, !closed, fallback != "", !variableName(name):
		return "", false
	}
	return name, true
}

// variableName reports whether an environment variable can have this name.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString

// choice is a tool choice: a word, the name of a tool, or the object of OpenAI's API.
type choice struct{ Node }

// Wanted lists the forms of a tool choice.
func (c *choice) Wanted() string {
	return "auto, none, required, the name of a tool, or {type: function, function: {name: NAME}}"
}

// choice reads a tool choice as one word or name.
func (d *document) choice(n *yaml.Node, path string) string {
	var word string
	switch {
	case n == nil:
	case n.Kind == yaml.MappingNode:
		var o struct {
			Type     string `yaml:"type" required:"true" enum:"function"`
			Function struct {
				Name string `yaml:"name" required:"true"`
			} `yaml:"function" required:"true"`
		}
		d.Read(n, &o, path)
		word = o.Function.Name
	case n.Kind == yaml.ScalarNode:
		d.Read(n, &word, path)
		if name, err := ForcedTool([]byte(word)); err == nil {
			word = name
		}
	default:
		d.Report(n, codeWrongType, path, "", "want "+new(choice).Wanted()+", got a list")
	}
	return word
}

// ForcedTool reads a tool choice in the form of OpenAI's API,
// {"type":"function","function":{"name":…}}, and returns the name.
func ForcedTool(text []byte) (string, error) {
	var o struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return "", err
	}
	if o.Type != "function" || o.Function.Name == "" {
		return "", errors.New(`want {"type":"function","function":{"name":"NAME"}}`)
	}
	return o.Function.Name, nil
}
