package caller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/caller"
)

// No way of printing shows the credential.
func TestTokenIsHidden(t *testing.T) {
	const secret = "eyJhbGciOi"
	c := caller.Caller{Name: "ann", Token: secret}
	j, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("call", "caller", c, "token", c.Token)
	slog.New(slog.NewTextHandler(&log, nil)).Info("call", "caller", c, "token", c.Token)
	for name, text := range map[string]string{"json": string(j), "slog": log.String(),
		"%v": fmt.Sprintf("%v %s %q", c, c.Token, c.Token), "%+v": fmt.Sprintf("%+v", c), "%#v": fmt.Sprintf("%#v", c)} {
		if strings.Contains(text, secret) || !strings.Contains(text, "redacted") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if c.Token.Reveal() != secret {
		t.Errorf("Reveal returns %q", c.Token.Reveal())
	}
}

func Example() {
	ctx := caller.With(context.Background(), caller.Caller{Name: "ann", Token: "secret-of-ann"})
	c, ok := caller.From(ctx)
	fmt.Println(c.Name, c.Token, ok)
	_, ok = caller.From(context.Background())
	fmt.Println(ok)
	// Output:
	// ann [redacted] true
	// false
}
