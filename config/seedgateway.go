package config

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/script"
	"go.yaml.in/yaml/v3"
)

// seedGateway is the config of every gateway.
type seedGateway struct {
	Model           string     `yaml:"model"`
	APIKey          raw        `yaml:"api_key"`
	BaseURL         string     `yaml:"base_url"`
	Temperature     maybe      `yaml:"temperature"`
	FunctionCalling *bool      `yaml:"use_function_calling"`
	ToolChoice      seedChoice `yaml:"tool_choice"`
}

// gatewayTypes are the gateways, with their providers and the models that they ask by default.
var gatewayTypes = map[string]struct{ provider, model string }{
	"OpenAIGateway":        {"openai-chat", "gpt-4o-mini"},
	"GoogleAIGateway":      {"gemini", "gemini-2.5-flash"},
	"AnthropicGateway":     {"anthropic", ""},
	"MockInferenceGateway": {},
}

// mockSentence is what the model of a MockInferenceGateway says to everything.
const mockSentence = "This is the mock gateway: it says this to everything."

// gateway takes the model from the gateway of this name.
func (s *seedReading) gateway(name, path string) {
	i, ok := s.resource(s.doc.Resources.Gateways, name, path, "gateway")
	if !ok {
		return
	}
	g, at := s.doc.Resources.Gateways[i], index("resources.inference_gateways", i)
	kind, ok := gatewayTypes[g.Type]
	if !ok {
		s.placed(CodeUnknownType, at+".type", among(g.Type, []string{"OpenAIGateway", "GoogleAIGateway", "AnthropicGateway", "MockInferenceGateway"}), "there is no gateway of type %q", cut(g.Type))
		return
	}
	var c seedGateway
	g.Config.as(s.reading, &c, at+".config")
	if g.Type == "MockInferenceGateway" {
		s.a.Model = Models{{Name: "mock", made: script.New(script.Loop(script.Say(mockSentence)))}}
		return
	}
	if c.Model == "" {
		c.Model = kind.model
	}
	if g.Type == "GoogleAIGateway" {
		c.Model = strings.TrimPrefix(c.Model, "models/")
	}
	if c.Model == "" {
		s.placed(CodeMissingKey, at+".config", "model: claude-sonnet-4-5", "the key model is missing")
	}
	s.a.Model = Models{{Name: kind.provider + ":" + c.Model, BaseURL: c.BaseURL, KeyEnv: s.keyOf(&c.APIKey, at+".config.api_key")}}
	s.moved("model[0]", at+".config.model")
	s.moved("model[0].key_env", at+".config.api_key")
	s.moved("model[0].base_url", at+".config.base_url")
	zero := 0.0
	if s.a.Settings.Temperature = c.Temperature.value; !c.Temperature.said && g.Type == "OpenAIGateway" {
		s.a.Settings.Temperature = &zero // its default
	}
	if s.a.Choice = Choice(c.ToolChoice); len(s.a.Choice) > 0 {
		s.moved("tool_choice", at+".config.tool_choice")
	}
	if c.FunctionCalling != nil {
		s.reported(at+".config.use_function_calling", "the planner's use_function_calling decides")
	}
}

// keyOf is the variable that api_key names. A key itself has no place in a file.
func (s *seedReading) keyOf(c *raw, path string) string {
	if c.node == nil {
		return ""
	}
	text := strings.TrimSpace(c.node.Value)
	name, isVariable := strings.CutPrefix(text, "${")
	name, closed := strings.CutSuffix(name, "}")
	name, fallback, _ := strings.Cut(name, ":-")
	if c.node.Kind != yaml.ScalarNode || !isVariable || !closed || fallback != "" || !variableName(name) {
		s.placed(CodeRefused, path, "${NAME}, or leave it out for the provider's own variable", "a key has no place in a file")
		return ""
	}
	return name
}

// seedChoice is a tool choice: a word, the name of a tool, or the object of OpenAI's API.
type seedChoice Choice

func (c *seedChoice) wanted() string {
	return "auto, none, required, the name of a tool, or {type: function, function: {name: NAME}}"
}
func (c *seedChoice) read(r *reading, n *yaml.Node, path string) {
	var word string
	switch n.Kind {
	case yaml.MappingNode:
		var o struct {
			Type     string `yaml:"type" required:"true" enum:"function"`
			Function struct {
				Name string `yaml:"name" required:"true"`
			} `yaml:"function" required:"true"`
		}
		r.object(n, reflect.ValueOf(&o).Elem(), path)
		word = o.Function.Name
	case yaml.ScalarNode:
		r.scalar(n, reflect.ValueOf(&word).Elem(), path)
		if object, err := choiceObject([]byte(word)); err == nil {
			word = object[0]
		}
	default:
		r.wrong(n, reflect.TypeFor[seedChoice](), path)
	}
	if word != "" {
		*c = seedChoice{word}
	}
}

// among says which of all was meant, or what there is.
func among(name string, all []string) string {
	if near := nearest.Word(name, all); near != "" {
		return "did you mean " + near + "?"
	}
	if len(all) == 0 {
		return "there are none"
	}
	return "there are: " + strings.Join(all, ", ")
}

// stringsOnly is the schema of arguments of which only the names are known: each is a text, and required.
func stringsOnly(args []string) json.RawMessage {
	properties := object{}
	for _, a := range args {
		properties[a] = object{"type": "string"}
	}
	b, err := json.Marshal(object{"type": "object", "properties": properties, "required": args})
	if err != nil {
		panic(err) // of texts alone
	}
	return b
}
