package config

import _ "embed"

// Starter is a commented file to begin with, as pawl init writes it.
//
//go:embed starter.yaml
var Starter string
