package openai

import (
	"encoding/json"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/wire"
)

// toUsage reads the figures of either API. Some servers (xAI, behind Chat Completions) leave reasoning out of the output;
// their total gives it away.
func toUsage(raw []byte) *pawl.Usage {
	c := jsonscan.New(raw)
	if !c.Object() {
		return nil
	}
	u := new(pawl.Usage)
	var total int
	details := func(cached bool) {
		if !c.Object() {
			return
		}
		for k, ok := c.Key(); ok; k, ok = c.Key() {
			switch string(k) {
			case "cached_tokens":
				if cached {
					u.CacheRead = wire.Count(&c)
				}
			case "cache_write_tokens", "cache_creation_tokens":
				if cached {
					u.CacheWrite = wire.Count(&c)
				}
			case "reasoning_tokens":
				if !cached {
					u.Reasoning = wire.Count(&c)
				}
			}
		}
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "input_tokens", "prompt_tokens":
			u.Input = wire.Count(&c)
		case "output_tokens", "completion_tokens":
			u.Output = wire.Count(&c)
		case "total_tokens":
			total = wire.Count(&c)
		case "input_tokens_details", "prompt_tokens_details":
			details(true)
		case "output_tokens_details", "completion_tokens_details":
			details(false)
		case "prompt_cache_hit_tokens": // DeepSeek
			if n := wire.Count(&c); u.CacheRead == 0 {
				u.CacheRead = n
			}
		case "cost": // OpenRouter, in dollars
			u.Cost, _ = c.Float()
		}
	}
	if c.Err() != nil {
		return nil
	}
	if u.Reasoning > 0 && total == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning
	}
	u.Raw = append(json.RawMessage(nil), raw...)
	return u
}
