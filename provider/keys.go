package provider

import "slices"

// KeyVariables returns the names of the environment variables in which the adapters of the named providers look for keys, in the order in
// which they do; without a name those of all that Open knows: what a program hides in all that it tells. A name that is none has no variables.
func KeyVariables(providers ...string) []string {
	if len(providers) == 0 {
		providers = Names()
	}
	var names []string
	add := func(more ...string) {
		for _, n := range more {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	for _, p := range providers {
		switch p {
		case "openai", "openai-chat":
			add("OPENAI_API_KEY")
		case "anthropic":
			add("ANTHROPIC_API_KEY")
		case "gemini":
			add("GEMINI_API_KEY", "GOOGLE_API_KEY")
		}
		for _, s := range servers {
			if s.Name == p {
				add(s.KeyEnv)
			}
		}
	}
	return names
}
