package pawltest_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/pawltest"
)

// For any request of a client, the checker and the reader return, and a body that is not an object
// is never accepted.
func FuzzCheckAndRead(f *testing.F) {
	for i, body := range []string{
		`{"model":"m","messages":[` + user + `,` + callAB + `,` + resultA + `,` + resultB + `],` + chatTools + `}`,
		`{"input":[` + user + `,` + thought + `,` + itemA + `,` + outputA + `],` + flatTools + `}`,
		`{"max_tokens":1,"model":"m","messages":[` + user + `,` + useAB + `,` + gotBoth + `],` + claudeTools + `}`,
		`{"contents":[` + asks + `,` + callsBoth + `,` + answerBoth + `],` + declared + `}`,
	} {
		f.Add(i, body)
	}
	f.Fuzz(func(t *testing.T, i int, body string) {
		api := pawltest.APIs()[(i%4+4)%4]
		found := pawltest.CheckModel(api, "gemini-3-pro", []byte(body))
		if !strings.HasPrefix(strings.TrimSpace(body), "{") && len(found) == 0 {
			t.Errorf("%s accepts %q", api, body)
		}
		pawltest.ReadRequest(api, []byte(body)) // an error is fine
	})
}
