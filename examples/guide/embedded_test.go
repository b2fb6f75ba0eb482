package guide

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/thread"
)

// signedIn returns the user of a session. An application asks its own session store.
func signedIn(r *http.Request) (user string, err error) {
	c, err := r.Cookie("session")
	if err != nil {
		return "", errors.New("sign in first")
	}
	user, ok := strings.CutPrefix(c.Value, "session of ")
	if !ok {
		return "", errors.New("the session has ended")
	}
	return user, nil
}

// application is the mux of an application with two ways to serve an agent.
func application(ctx context.Context, agent *pawl.Agent, db store.Store) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	// begin embedded
	// The whole API of pawl serve, behind the application's sessions.
	s, err := server.New([]*pawl.Agent{agent}, db, &server.Options{Access: server.Access{
		Hosts: []string{"shop.example.com"},
		Authenticate: func(r *http.Request) (api.Token, error) {
			user, err := signedIn(r)
			return api.Token{Name: user, User: user, Scopes: []api.Scope{api.ScopeRun, api.ScopeRead}}, err
		},
	}})
	if err != nil {
		return nil, err
	}
	mux.Handle("/agents/", http.StripPrefix("/agents", s)) // s.Close when the application ends
	go s.Recover(ctx)                                      // resumes interrupted runs

	// One endpoint: a chat with memory for useChat.
	mux.HandleFunc("POST /chat/{id}", func(w http.ResponseWriter, r *http.Request) {
		user, err := signedIn(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		msg, err := uistream.NewestMessage(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		chat := &thread.Runner{Runner: agent, DB: db, Scope: store.Scope{User: user}, ID: r.PathValue("id")}
		_ = uistream.Write(w, chat.Stream(r.Context(), msg), uistream.Options{})
	})

	// Its history, with which the page begins: new Chat({ messages, … }).
	mux.HandleFunc("GET /chat/{id}", func(w http.ResponseWriter, r *http.Request) {
		user, err := signedIn(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		_, chat, err := thread.Load(r.Context(), db, store.Scope{User: user}, r.PathValue("id"))
		if err != nil {
			http.Error(w, "the conversation cannot be read", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(uistream.UIMessages(chat.Messages))
	})
	// end embedded
	return mux, nil
}

func Example_embedded() {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "shop.db"), nil)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	agent := &pawl.Agent{Name: "clerk", Model: script.New(script.Say("Welcome to the shop."), script.Say("Lamps are in the cellar."))}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	mux, err := application(ctx, agent, db)
	if err != nil {
		panic(err)
	}
	shop := httptest.NewServer(mux)
	defer shop.Close()
	ask := func(session, path, text string) string {
		method, body := "GET", ""
		if text != "" { // what useChat sends
			method = "POST"
			body = `{"id":"c","messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"` + text + `"}]}]}`
		}
		req, _ := http.NewRequest(method, shop.URL+path, strings.NewReader(body))
		req.AddCookie(&http.Cookie{Name: "session", Value: session})
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			panic(err)
		}
		defer res.Body.Close()
		got, _ := io.ReadAll(res.Body)
		if text != "" {
			fmt.Println(res.StatusCode, strings.Count(string(got), `"text-delta"`) > 0)
		}
		return string(got)
	}
	ask("session of ann", "/chat/lamps", "Hello")
	ask("session of ann", "/chat/lamps", "Lamps")
	ask("other", "/chat/lamps", "Lamps")
	var history []struct {
		Role  string
		Parts []struct{ Text string }
	}
	_ = json.Unmarshal([]byte(ask("session of ann", "/chat/lamps", "")), &history)
	for _, m := range history {
		fmt.Println(m.Role, m.Parts)
	}
	t, err := db.Thread(context.Background(), store.Scope{User: "ann"}, "lamps")
	fmt.Println(t.Title, t.Messages, err)

	// Output:
	// 200 true
	// 200 true
	// 401 false
	// user [{Hello}]
	// assistant [{} {Welcome to the shop.}]
	// user [{Lamps}]
	// assistant [{} {Lamps are in the cellar.}]
	// Hello 4 <nil>
}
