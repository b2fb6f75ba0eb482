package openai

import (
	_ "embed"
)

type Object = map[string]any
