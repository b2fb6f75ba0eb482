package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/provider/internal/wire"
)

// A number that no double holds is sent as its text. All else stays byte for byte.
func TestObjectQuotesHugeNumbers(t *testing.T) {
	nines := strings.Repeat("9", 400)
	for args, want := range map[string]string{
		`{"n":1e400}`:                                      `{"n":"1e400"}`,
		`{"n":-1E+400,"m":[1,2e999]}`:                      `{"n":"-1E+400","m":[1,"2e999"]}`,
		`{"n": 1e309 , "s":"1e309 \" 1e309"}`:              `{"n": "1e309" , "s":"1e309 \" 1e309"}`,
		`{"1e400":1e400}`:                                  `{"1e400":"1e400"}`,
		`{"n":` + nines + `}`:                              `{"n":"` + nines + `"}`,
		`{"n":1e-400}`:                                     `{"n":1e-400}`, // it is read as 0
		`{"n":1e308,"z":-0.0,"l":12345678901234567890123}`: `{"n":1e308,"z":-0.0,"l":12345678901234567890123}`,
		`{"s":"\\","n":1e400}`:                             `{"s":"\\","n":"1e400"}`,
		`[1e400]`:                                          `{"raw":"[1e400]"}`,
	} {
		got := string(wire.Object([]byte(args), "raw"))
		if got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
		var v any
		if err := json.Unmarshal([]byte(got), &v); err != nil {
			t.Errorf("%s: a server reads %v", args, err)
		}
	}
}
