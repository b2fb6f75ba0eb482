package provider

import "slices"

// KeyVariables returns the names of the environment variables in which the adapters of the named providers look for keys, in the order in
// which they do; without a name those of all that Open knows: what a program hides in all that it tells. A name that is none has no variables.
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
