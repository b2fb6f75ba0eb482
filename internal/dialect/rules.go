package dialect

import "regexp"

// The sources of the rules. Pages change; these were read in 2026. A report is an issue or a pull
// request that quotes the provider's error message.
const (
	openAIGuide = "https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas"
	// report: not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level
	openAIRoot = "https://github.com/langchain-ai/langchainjs/issues/9804"
	// report: object schema missing properties
	openAIProps = "https://github.com/bnb-chain/bnbchain-mcp/issues/68"
	// report: array schema missing items
	openAIItems = "https://github.com/sigoden/aichat/pull/1049"
	// report: the same, with prefixItems
	openAITuple = "https://github.com/PrefectHQ/fastmcp/issues/2464"
	// report: reference can only point to definitions defined at the top level
	openAIRefTop = "https://github.com/dotnet/extensions/issues/6918"
	// report: servers between that do not resolve $ref
	openAIRelay = "https://github.com/vectorize-io/hindsight/issues/3225"
	// report: a $ref with siblings is refused
	openAIRefAlone = "https://github.com/docker/docker-agent/pull/4155"
	// report: schema must have a 'type' key
	openAIType    = "https://github.com/can1357/oh-my-pi/issues/211"
	openAIEnum    = "https://community.openai.com/t/500-enums-limitation-in-structured-output/974416"
	openAIPattern = "https://github.com/pydantic/pydantic-ai/blob/009b91a4e959809d3107494e10f3346d7be0910c/pydantic_ai_slim/pydantic_ai/profiles/openai.py"

	claudeGuide = "https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use"
	// report: does not support oneOf, allOf, or anyOf at the top level
	claudeRoot = "https://github.com/anthropics/claude-code/issues/27337"
	// report: Property keys should match pattern
	claudeNames = "https://github.com/n8n-io/n8n/issues/30590"
	// says: inline what generators factor into $defs
	claudeRefs = "https://platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes"

	claudeStrict = "https://platform.claude.com/docs/en/build-with-claude/structured-outputs"
	// report: 'additionalProperties' must be explicitly set to false
	claudeClosed    = "https://github.com/vercel/ai/issues/20681"
	claudeTransform = "https://github.com/anthropics/anthropic-sdk-python/blob/00f1c336d10701c3235feb5359b9e385591027e6/src/anthropic/lib/_parse/_transform.py"

	geminiSchema = "https://ai.google.dev/api/caching#Schema"
	// the same type, generated from the discovery document
	geminiAPI = "https://hexdocs.pm/geminix/Geminix.V1beta.Schema.html"

	// says: the schema must describe an object
	geminiDeclare = "https://ai.google.dev/api/caching#FunctionDeclaration"
	// lists what is read of JSON Schema
	geminiJSON = "https://ai.google.dev/api/generate-content#FIELDS.response_json_schema"

	// report: type: must be specified when not using one_of, any_of or all_of
	geminiType = "https://github.com/danny-avila/LibreChat/issues/6971"
	// report: parameters schema should be of type OBJECT
	geminiRoot = "https://github.com/diegosouzapw/OmniRoute/pull/3360"
	// report: When using any_of, it must be the only field set
	geminiAnyOf = "https://github.com/anomalyco/opencode/issues/15795"
	geminiItems = "https://github.com/cline/cline/issues/7339" // report: items: missing field
	// report: only 'enum' and 'date-time' are supported for STRING type
	geminiFormat = "https://github.com/google-gemini/gemini-cli/issues/2237"
	// report: enum: only allowed for STRING type
	geminiEnum  = "https://github.com/musistudio/llms/pull/20"
	geminiEmpty = "https://github.com/Smana/runlore/pull/40" // report: enum[3]: cannot be empty
	// report: required[0]: property is not defined
	geminiNeeded = "https://github.com/probelabs/probe/issues/569"
	// report: $ref is not known in parameters
	geminiRef = "https://github.com/googleapis/python-genai/issues/1122"
	// report: type is not repeating, cannot start list
	geminiList = "https://github.com/taylorwilsdon/google_workspace_mcp/issues/1099"
)

// OpenAI is the form of function tools that are not strict, in Responses and Chat Completions.
// OpenAI accepts almost all of JSON Schema. Compatible servers accept less, so simplifications
// without a cost (inlining, items) are made for them.
var OpenAI = &Dialect{Name: "openai", Title: "OpenAI", Rules: []Rule{
	{Trait: RootObject, Says: "the root is an object with properties", Source: openAIProps},
	{Trait: RootWithout, Words: []string{"anyOf", "oneOf", "allOf", "enum", "const", "not"},
		Says: "the root has no alternatives, no enum and no not", Source: openAIRoot},
	{Trait: PropertiesNeeded, Says: "an object has properties", Source: openAIProps},
	{Trait: ItemsNeeded, Says: "an array has items, also next to prefixItems", Source: openAIItems},
	{Trait: RefsTop, Says: "a $ref points to a definition at the top level", Source: openAIRefTop},
	{Trait: RefsInlined, Says: "servers behind the same interface do not all resolve $ref", Source: openAIRelay},
}}

// OpenAIStrict is the form of function tools with strict: true, and of structured output. The
// provider enforces the output while the model writes.
var OpenAIStrict = &Dialect{Name: "openai-strict", Title: "OpenAI, strict", Rules: []Rule{
	{Trait: RootObject, Says: "the root is an object with properties", Source: openAIGuide},
	{Trait: RootWithout, Words: []string{"anyOf", "oneOf", "allOf", "enum", "const", "not"},
		Says: "the root is no anyOf", Source: openAIGuide},
	{Trait: Keywords, Words: []string{"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs",
		"title", "description", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"},
		Says: "these keywords are known", Source: openAIGuide},
	{Trait: Formats, Words: []string{"string:date-time", "string:time", "string:date", "string:duration", "string:email", "string:hostname", "string:ipv4", "string:ipv6", "string:uuid"},
		Says: "these formats are known", Source: openAIGuide},
	{Trait: TypeNeeded, Says: "a schema has a type, or is an anyOf or a $ref", Source: openAIType},
	{Trait: PropertiesNeeded, Says: "an object has properties", Source: openAIProps},
	{Trait: ItemsNeeded, Says: "an array has items", Source: openAITuple},
	{Trait: AllRequired, Says: "all properties are required; what is optional takes null", Source: openAIGuide},
	{Trait: Closed, Says: "additionalProperties is false in every object", Source: openAIGuide},
	{Trait: RequiredDefined, Says: "what is required is among the properties", Source: openAIGuide},
	{Trait: RefsTop, Says: "a $ref points to a definition at the top level", Source: openAIRefTop},
	{Trait: RefAlone, Says: "nothing stands next to a $ref", Source: openAIRefAlone},
	{Trait: PlainPatterns, Says: "a pattern does not look around", Source: openAIPattern},
	{Trait: MaxDepth, Limit: 10, Says: "at most 10 levels of nesting", Source: openAIGuide},
	{Trait: MaxProperties, Limit: 5000, Says: "at most 5,000 properties", Source: openAIGuide},
	{Trait: MaxEnum, Limit: 1000, Says: "at most 1,000 enum values", Source: openAIEnum},
	{Trait: MaxText, Limit: 120000, Says: "at most 120,000 characters of names and values", Source: openAIGuide},
	{Trait: MaxEnumText, Limit: 15000, Says: "at most 15,000 characters in an enum of more than 250 values", Source: openAIGuide},
}}

// Anthropic is the form of input_schema in Messages: JSON Schema 2020-12 with restrictions for the
// root and the names of properties.
var Anthropic = &Dialect{Name: "anthropic", Title: "Anthropic", Rules: []Rule{
	{Trait: RootObject, Says: "the root is an object", Source: claudeGuide},
	{Trait: RootWithout, Words: []string{"anyOf", "oneOf", "allOf"}, Says: "the root has no anyOf, oneOf or allOf", Source: claudeRoot},
	{Trait: PropertyNames, Pattern: regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`), Says: "names of properties fit a pattern", Source: claudeNames},
	{Trait: RefsTop, Says: "definitions stand at the root", Source: claudeRefs},
	{Trait: RefsInlined, Says: "definitions are better inlined", Source: claudeRefs},
}}

// AnthropicStrict is the form of tools with strict: true, and of structured output. The provider
// enforces the output while the model writes. A request may contain 20 such tools, and 24 optional
// properties in total; the sender must count them.
var AnthropicStrict = &Dialect{Name: "anthropic-strict", Title: "Anthropic, strict", Rules: []Rule{
	{Trait: RootObject, Says: "the root is an object", Source: claudeGuide},
	{Trait: RootWithout, Words: []string{"anyOf", "oneOf", "allOf", "enum", "const", "not"}, Says: "the root has no anyOf, oneOf or allOf", Source: claudeRoot},
	{Trait: Keywords, Words: []string{"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "title", "description", "format", "minItems"},
		Says: "these keywords are known", Source: claudeStrict},
	{Trait: Formats, Words: []string{"string:date-time", "string:time", "string:date", "string:duration", "string:email", "string:hostname", "string:uri", "string:ipv4", "string:ipv6", "string:uuid"},
		Says: "these formats are known", Source: claudeStrict},
	{Trait: TypeNeeded, Says: "a schema has a type, an enum or an anyOf", Source: claudeTransform},
	{Trait: PropertiesNeeded, Says: "an object has properties", Source: claudeTransform},
	{Trait: ItemsNeeded, Says: "an array has items", Source: claudeTransform},
	{Trait: Closed, Says: "additionalProperties is false in every object", Source: claudeClosed},
	{Trait: RequiredDefined, Says: "what is required is among the properties", Source: claudeClosed},
	{Trait: PropertyNames, Pattern: regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`), Says: "names of properties fit a pattern", Source: claudeNames},
	{Trait: RecursionCut, Says: "a schema does not contain itself", Source: claudeStrict},
	{Trait: MaxMinItems, Limit: 1, Says: "minItems is 0 or 1", Source: claudeStrict},
}}

// Gemini is the form of a function declaration's parameters: a subset of OpenAPI 3.0, read as a
// protocol buffer without other names. GeminiJSON accepts more, but not in every version of the
// API.
var Gemini = &Dialect{Name: "gemini", Title: "Gemini", Rules: []Rule{
	{Trait: RootObject, Says: "the root has type OBJECT", Source: geminiRoot},
	{Trait: RootWithout, Words: []string{"anyOf", "oneOf", "allOf", "enum", "const", "not"}, Says: "the root has type OBJECT, so it is no anyOf", Source: geminiRoot},
	{Trait: Keywords, Words: []string{"type", "format", "description", "nullable", "enum", "anyOf", "items", "minItems", "maxItems", "properties", "required",
		"minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum"},
		Says: "no other names are known; default is known and ignored", Source: geminiAPI},
	{Trait: Formats, Words: []string{"number:float", "number:double", "integer:int32", "integer:int64", "string:date-time"},
		Says: "these formats are known", Source: geminiFormat},
	{Trait: TypeNeeded, Says: "a schema has a type, or is an anyOf; a type is one word", Source: geminiType},
	{Trait: ItemsNeeded, Says: "an array has items", Source: geminiItems},
	{Trait: RequiredDefined, Says: "what is required is among the properties", Source: geminiNeeded},
	{Trait: RecursionCut, Says: "there is no $ref", Source: geminiRef},
	{Trait: AnyOfAlone, Says: "nothing stands next to anyOf", Source: geminiAnyOf},
	{Trait: NullableFlag, Says: "null is allowed by nullable", Source: geminiList},
	{Trait: UpperTypes, Says: "types are written in capitals", Source: geminiSchema},
	{Trait: StringEnums, Says: "an enum is of strings", Source: geminiEnum},
	{Trait: FilledEnums, Says: "no value of an enum is empty", Source: geminiEmpty},
}}

// GeminiJSON is the form of parametersJsonSchema and responseJsonSchema, which accept JSON Schema.
// Recursion is not changed; the provider follows it for some levels.
var GeminiJSON = &Dialect{Name: "gemini-json", Title: "Gemini, JSON Schema", Rules: []Rule{
	{Trait: RootObject, Says: "the root is an object", Source: geminiDeclare},
	{Trait: ItemsNeeded, Says: "an array has items", Source: geminiItems},
	{Trait: RefsTop, Says: "definitions stand at the root", Source: geminiJSON},
	{Trait: RefsInlined, Says: "keywords next to a $ref are refused, so definitions are better inlined", Source: geminiJSON},
}}
