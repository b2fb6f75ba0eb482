package provider

// The models that documents, examples, templates, help texts and hints name, one for each provider
// with models of its own. TestExampleModels in this package fails for any other name there, and 60
// days before the announced end of one of these: then a line changes here, and the texts with it.
const (
	exampleOpenAI     = "gpt-6.1-terra"
	exampleAnthropic  = "claude-sonnet-5-5"
	exampleGemini     = "gemini-3.8-flash"
	exampleOpenRouter = "openai/gpt-6.1-terra"
	exampleGroq       = "openai/gpt-oss-120b"
	exampleMistral    = "mistral-large-latest"
	exampleDeepSeek   = "deepseek-v4-flash"
	exampleXAI        = "grok-4.6"
)
