package provider

import (
	"net/url"
	"strings"

	"github.com/pawl-go/pawl/provider/openai"
)

// server is a server that speaks Chat Completions, other than OpenAI's.
type server struct {
	openai.Server
	example string // the name of a model there
	source  string // where the address and the variable are documented
}

// servers are the servers that Open knows. A local server needs no key; it may have been started
// with one.
var servers = []server{
	{openai.Server{Name: "ollama", BaseURL: "http://localhost:11434/v1", KeyEnv: "OLLAMA_API_KEY", Keyless: true},
		"qwen3:4b", "https://docs.ollama.com/api/openai-compatibility"},
	{openai.Server{Name: "vllm", BaseURL: "http://localhost:8000/v1", KeyEnv: "VLLM_API_KEY", Keyless: true},
		"Qwen/Qwen3-4B", "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"},
	{openai.Server{Name: "llamacpp", BaseURL: "http://localhost:8080/v1", KeyEnv: "LLAMA_API_KEY", Keyless: true},
		"default", "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"},
	{openai.Server{Name: "lmstudio", BaseURL: "http://localhost:1234/v1", KeyEnv: "LM_API_TOKEN", Keyless: true},
		"qwen3-4b", "https://lmstudio.ai/docs/developer/core/authentication"},
	{openai.Server{Name: "openrouter", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY"},
		exampleOpenRouter, "https://openrouter.ai/docs/quick-start"},
	{openai.Server{Name: "groq", BaseURL: "https://api.groq.com/openai/v1", KeyEnv: "GROQ_API_KEY"},
		exampleGroq, "https://console.groq.com/docs/openai"},
	{openai.Server{Name: "mistral", BaseURL: "https://api.mistral.ai/v1", KeyEnv: "MISTRAL_API_KEY"},
		exampleMistral, "https://docs.mistral.ai/api/"},
	{openai.Server{Name: "deepseek", BaseURL: "https://api.deepseek.com/v1", KeyEnv: "DEEPSEEK_API_KEY", JSONObject: true},
		exampleDeepSeek, "https://api-docs.deepseek.com/"},
	{openai.Server{Name: "xai", BaseURL: "https://api.x.ai/v1", KeyEnv: "XAI_API_KEY"},
		exampleXAI, "https://docs.x.ai/developers/quickstart"},
	// The address ends in /openai/v1, or in /openai/deployments/NAME with an api-version in its
	// query.
	{openai.Server{Name: "azure", BaseEnv: "AZURE_OPENAI_BASE_URL", KeyEnv: "AZURE_OPENAI_API_KEY", KeyHeader: "api-key"},
		"DEPLOYMENT", "https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle"},
}

func (s server) options(o *Options) *openai.Options {
	opts := fromOptions(o)
	opts.Server = &s.Server
	return opts
}

// toServer returns the options of a model under one of OpenAI's names. If the base URL belongs to
// a server of the list, the key comes from that server's variable, because it must not receive
// OpenAI's key. OPENAI_BASE_URL is not compared: it belongs to OPENAI_API_KEY.
func toServer(o *Options) *openai.Options {
	opts := fromOptions(o)
	u, err := url.Parse(strings.TrimSpace(o.BaseURL))
	if err != nil || u.Host == "" {
		return opts
	}
	host := strings.ToLower(u.Hostname())
	for _, s := range servers {
		own, err := url.Parse(s.BaseURL)
		switch {
		case err == nil && !s.Keyless && own.Hostname() == host:
			opts.Server = &s.Server
		case s.Name == "azure" && strings.HasSuffix(host, ".openai.azure.com"):
			// Each customer has a host.
			opts.Server = &s.Server
		}
	}
	return opts
}
