package wire

import "time"

// PromptCache has the settings of the prompt cache in OpenAI's APIs. The zero value means the API's
// defaults.
type PromptCache struct {
	Key string
	TTL time.Duration
}

// lifetime is how a request asks for a lifetime of the prompt cache.
type lifetime struct {
	member string
	value  string
	chat   bool // Chat Completions has it
}

// lifetimes has a row for each lifetime of OpenAI's APIs: PromptCacheOptions and
// PromptCacheRetention of openai-go 3.99.
// https://developers.openai.com/api/docs/guides/prompt-caching
var lifetimes = map[time.Duration]lifetime{
	30 * time.Minute: {member: "prompt_cache_options", value: `{"ttl":"30m"}`, chat: true},
	12 * time.Hour:   {member: "prompt_cache_options", value: `{"ttl":"12h"}`},
	24 * time.Hour:   {member: "prompt_cache_retention", value: `"24h"`, chat: true},
}

// Check returns the error of settings that the server does not have. own means OpenAI's own server,
// and chat its API Chat Completions.
func (c PromptCache) Check(provider string, own, chat bool) error {
	if c == (PromptCache{}) {
		return nil
	}
	if !own {
		return Unsupported(provider, "cache", "only OpenAI's own servers have these settings of the prompt cache; "+
			"a server with settings of its own takes them in settings.options")
	}
	if c.TTL == 0 {
		return nil
	}

	known, ok := lifetimes[c.TTL]
	switch {
	case chat && !known.chat:
		return Unsupported(provider, "cache.ttl", "Chat Completions caches for 30m or 24h, not for %s", c.TTL)
	case !ok:
		return Unsupported(provider, "cache.ttl", "OpenAI caches for 30m, 12h or 24h, not for %s", c.TTL)
	}
	return nil
}

// PromptCache writes the settings of the prompt cache.
func (w *Writer) PromptCache(c PromptCache) {
	if c.Key != "" && w.Key("prompt_cache_key") {
		w.String(c.Key)
	}
	if l, ok := lifetimes[c.TTL]; ok && w.Key(l.member) {
		w.Raw(l.value)
	}
}
