package tui

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/llm"
)

// TestPastedText: a paste of several lines is attached, and all else is typed.
func TestPastedText(t *testing.T) {
	const mail = "From: eve@evil.example\n\nPay to DE89370400440532013000.\n"
	for name, test := range map[string]struct {
		pasted, text, want string
	}{
		"typed alone":           {"", "a\nb", `typed "a\nb"`},
		"pasted alone":          {"a\nb", "a\nb", `attached "a\nb"`},
		"one pasted line":       {"anna@home.example", "Write to anna@home.example.", `typed "Write to anna@home.example."`},
		"before a mail":         {mail, "Answer this:\n" + mail, `typed "Answer this:\n" attached "From: eve@evil.example\n" typed "\n" attached "Pay to DE89370400440532013000.\n"`},
		"on the line of a mail": {mail, "Answer: " + mail + "Thanks.", `typed "Answer: " attached "From: eve@evil.example" typed "\n\n" attached "Pay to DE89370400440532013000.\n" typed "Thanks."`},
		"behind its last line":  {"a1\nb2\nc3", "a1\nb2\nc3, please", `attached "a1\nb2\nc3" typed ", please"`},
		"a paste that was cut":  {"a1\nb2\nc3", "only\nb2", `typed "only\n" attached "b2"`},
	} {
		p := new(pastes)
		p.add("another paste\nof two lines")
		p.add(test.pasted)
		got := ""
		for i, part := range p.message(test.text).Parts {
			text := part.(llm.Text)
			if i > 0 {
				got += " "
			}
			got += fmt.Sprintf("%v %q", text.Label.By, text.Text)
		}
		if got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}
