package provider

import "slices"

// KeyVariables returns the environment variables that hold the keys of the named providers, in the
// order in which the adapters read them. Without names it returns the variables of all providers;
// programs redact their values. Unknown names have no variables.
func KeyVariables(providers ...string) []string {
	if len(providers) == 0 {
		providers = Names()
	}
	var names []string
	for _, name := range providers {
		p, _ := Find(name)
		for _, key := range p.Keys {
			if !slices.Contains(names, key) {
				names = append(names, key)
			}
		}
	}
	return names
}
