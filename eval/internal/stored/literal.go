package stored

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/pawl-go/pawl/eval/internal/match"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/tools/outside"
)

// literal.go: the matcher of recorded arguments.

// redacted stands for a secret in the texts of a run.
const redacted = "[redacted]"

// literal returns the matcher that arguments alone fit, with any text in place of a secret. Nil
// means that they are no JSON.
func literal(args json.RawMessage) outside.JSON {
	text, err := match.Literal(args)
	if err != nil {
		return nil
	}
	value, err := jsonform.Value(text)
	if err != nil {
		return nil
	}
	text, err = jsonform.Marshal(withSecrets(value))
	if err != nil {
		return nil
	}
	return outside.JSON(jsonform.Canonical(text))
}

// withSecrets returns a matcher with expressions in place of the texts that had a secret.
func withSecrets(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, one := range value {
			value[name] = withSecrets(one)
		}
	case []any:
		for i, one := range value {
			value[i] = withSecrets(one)
		}
	case string:
		if value == redacted {
			return map[string]any{"$any": true}
		}
		if strings.Contains(value, redacted) {
			return map[string]any{"$regex": expression(value)}
		}
	}
	return value
}

// expression matches a text that had other texts where its secrets stand.
func expression(text string) string {
	parts := strings.Split(text, redacted)
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return "(?s)^" + strings.Join(parts, ".*") + "$"
}
