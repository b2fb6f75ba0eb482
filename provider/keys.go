package provider

import "slices"

// KeyVariables returns the names of the environment variables in which Open's adapters look for keys: what a program hides in all that
// it tells.
func KeyVariables() []string {
	names := []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"}
	for _, s := range servers {
		if !slices.Contains(names, s.KeyEnv) {
			names = append(names, s.KeyEnv)
		}
	}
	return names
}
