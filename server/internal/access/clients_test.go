package access_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
)

// The groups of users who sign in are forgotten beyond a bound, the oldest first. A user who signs
// in again is known again, and the users of the list of tokens are never forgotten.
func TestGroupsOfSignedInUsersAreBounded(t *testing.T) {
	const bound = 10_000
	clients, err := access.New([]api.Token{{Name: "lead", Token: "0123456789abcdef", Scopes: []api.Scope{api.ScopeAll}, User: "lead",
		Approves: []string{"group:desk"}}, {Name: "listed", Token: "fedcba9876543210", Scopes: []api.Scope{api.ScopeAll},
		User: "listed", Groups: []string{"desk"}}})
	if err != nil {
		t.Fatal(err)
	}
	lead := clients.Find("0123456789abcdef")
	signIn := func(n int, groups ...string) {
		name := fmt.Sprint("user", n)
		_, err := clients.SignedIn(api.Token{Name: name, User: name, Groups: groups})
		if err != nil {
			t.Fatal(err)
		}
	}
	decides := func(name string) bool { return lead.For(name) != nil }

	for n := range 3 * bound {
		signIn(n, "desk")
	}
	users, _ := lead.Others()
	if len(users) > bound+1 || len(users) < bound/2 {
		t.Errorf("the groups of %d users are known, want at most %d", len(users), bound)
	}
	if decides("user0") || !decides(fmt.Sprint("user", 3*bound-1)) || !decides("listed") {
		t.Errorf("known: the first %t, the last %t, the listed one %t; want false, true, true",
			decides("user0"), decides(fmt.Sprint("user", 3*bound-1)), decides("listed"))
	}

	signIn(0, "desk")
	signIn(3*bound - 1) // has left the group
	if !decides("user0") || decides(fmt.Sprint("user", 3*bound-1)) {
		t.Error("a user who signs in again has the groups of before")
	}
	if users, _ := lead.Others(); !slices.Contains(users, "user0") {
		t.Error("user0 is not listed")
	}
}
