package viewer_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/viewer"
)

func Example() {
	agent := &pawl.Agent{Name: "clerk", Model: script.New(script.Say("It rains."))}
	agents := []*pawl.Agent{agent}
	s, err := server.New(agents, new(store.MemoryJournal), &server.Options{Pages: viewer.Handler()})
	if err != nil {
		panic(err)
	}
	defer s.Close(context.Background())
	h := httptest.NewServer(s) // or net.Listen and s.Serve; then open it in a browser
	defer h.Close()

	res, err := http.Get(h.URL + "/")
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	fmt.Println(res.Status, res.Header.Get("Content-Type"))
	// Output:
	// 200 OK text/html; charset=utf-8
}
