package guide

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store/sqlite"
)

func Example_deployment() {
	dir, err := os.MkdirTemp("", "deployment")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "pawl.db"), nil) // or postgres.Open
	if err != nil {
		panic(err)
	}
	defer db.Close()
	agent := &pawl.Agent{Name: "clerk", Model: script.New(script.Say("It rains."))}
	s, err := server.New([]*pawl.Agent{agent}, db, nil)
	if err != nil {
		panic(err)
	}
	web := httptest.NewServer(s) // or net.Listen and s.Serve
	defer web.Close()

	for _, step := range []struct{ path, body string }{
		{"/v1/ready", ""},
		{"/v1/chat/completions", `{"model":"clerk","messages":[{"role":"user","content":"Weather?"}]}`},
	} {
		method := http.MethodGet
		if step.body != "" {
			method = http.MethodPost
		}
		req, err := http.NewRequest(method, web.URL+step.path, strings.NewReader(step.body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Println(res.Status, strings.Contains(string(body), "It rains."))
	}
	// Before a deploy: running calls end, and other runs stop where the next process resumes them.
	if err := s.Drain(context.Background()); err != nil {
		panic(err)
	}

	// Output:
	// 200 OK false
	// 200 OK true
}
