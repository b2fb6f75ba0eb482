package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
)

func Example() {
	agent := &pawl.Agent{Name: "clerk", Model: script.New(script.Say("It rains."))}
	// or sqlite.Open("pawl.db", nil)
	s, err := server.New([]*pawl.Agent{agent}, new(store.MemoryJournal), nil)
	if err != nil {
		panic(err)
	}
	defer s.Close(context.Background())
	h := httptest.NewServer(s) // or net.Listen and s.Serve
	defer h.Close()

	res, err := http.Post(h.URL+"/v1/runs", "application/json", strings.NewReader(`{"id":"oslo","input":"How is the weather in Oslo?","wait":true}`))
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	fmt.Println(res.Status)
	fmt.Println(strings.Contains(string(body), `"state":"over","stop":"answer","answer":"It rains."`))
	// Output:
	// 201 Created
	// true
}
