// Command frontends serves two chat pages for one agent: useChat of Vercel's AI SDK with React, and
// AG-UI without a framework. npm start makes the pages and starts it.
//
//	npm start
//	go run . -model openai:gpt-6.1-terra -addr 127.0.0.1:8090
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8090", "address")
	name := flag.String("model", "", "a model such as openai:gpt-6.1-terra; empty means one that needs no key")
	flag.Parse()
	model := demo()
	if *name != "" {
		var err error
		if model, err = provider.Open(*name, nil); err != nil {
			log.Fatal(err)
		}
	}
	s, err := site("pages", model, func(invoice int) { log.Printf("paid invoice %d", invoice) })
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("http://%s", *addr)
	log.Fatal(http.ListenAndServe(*addr, s))
}

// site returns the pages in a folder, and the server that they talk to.
func site(pages string, model llm.Model, paid func(invoice int)) (http.Handler, error) {
	type invoice struct {
		Invoice int `json:"invoice"`
	}
	look := pawl.Func("invoice", "Shows an invoice.", func(_ context.Context, in invoice) (string, error) {
		return fmt.Sprintf("invoice %d: 240.00 EUR, due today", in.Invoice), nil
	})
	look.Effect = pawl.EffectRead
	pay := pawl.Func("pay", "Pays an invoice.", func(_ context.Context, in invoice) (string, error) {
		paid(in.Invoice)
		return fmt.Sprintf("paid invoice %d", in.Invoice), nil
	})
	agent := &pawl.Agent{Name: "clerk", Model: model, Tools: []pawl.Toolset{look, pay},
		Instructions: "You pay invoices. Look at an invoice before you pay it.",
		Middleware:   []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
	s, err := server.New([]*pawl.Agent{agent}, new(store.MemoryJournal), nil)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", s)
	mux.Handle("/", http.FileServer(http.Dir(pages)))
	return mux, nil
}

// demo returns a model that looks at the invoice of the last message and then pays it.
func demo() llm.Model {
	return script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		said, steps := "", 0
		for _, m := range req.Messages {
			switch m.Role {
			case llm.RoleUser:
				said, steps = m.Text(), 0
			case llm.RoleAssistant:
				steps++
			}
		}
		n := 0
		_, number, pays := strings.Cut(strings.ToLower(said), "invoice ")
		if _, err := fmt.Sscan(number, &n); !pays || err != nil {
			if steps == 0 && strings.Contains(said, "language") {
				return script.Call("page_language", `{}`)
			}
			return script.Say("I pay invoices: write “Pay invoice 7”." + results(req))
		}
		args := fmt.Sprintf(`{"invoice":%d}`, n)
		switch steps {
		case 0:
			return script.Together(script.Think("Look before paying."), script.Say("I look at it."), script.Call("invoice", args))
		case 1:
			return script.Together(script.Say("It is due today."), script.Call("pay", args))
		}
		return script.Say("Done." + results(req))
	})))
}

func results(req *llm.Request) (all string) {
	for _, r := range script.Results(req) {
		all += " (" + r.Text() + ")"
	}
	return all
}
